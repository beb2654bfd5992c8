import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { AuditParameters, ContextBody } from '../schemas/requests.ts';
import { AuditLog, Capabilities, ContextBlock, Health, Liveness, Readiness } from '../schemas/responses.ts';
import * as example from './examples.ts';
import { publicOperation, verb } from './operation.ts';

/** SPEC, Endpoints: the rest, and what the gateway says about itself. */
export const gatewayPaths: ZodOpenApiPathsObject = {
  '/context': {
    post: verb({
      id: 'buildContext',
      summary: 'Build a block of context for a prompt',
      description: 'The best-ranked memories within a token budget, without expired and superseded ones.',
      body: { schema: ContextBody, example: example.contextRequest },
      success: {
        status: 200,
        description: 'The block.',
        body: { schema: ContextBlock, example: example.contextBlock },
      },
      errors: ['invalid_request', 'unsupported_capability', 'payload_too_large'],
    }),
  },
  '/audit': {
    get: verb({
      id: 'readAudit',
      summary: "Read the audit log of a user's memories",
      description: `Who did or tried what, newest first, where \`features.supports_audit\` says that it is recorded. A search or
list is entered with the scope it asked for. What was tried with an unknown id, or for a user out of the caller's reach,
belongs to no user and is not shown.
Contents and queries are never recorded.`,
      query: AuditParameters,
      success: { status: 200, description: 'The entries.', body: { schema: AuditLog, example: example.auditLog } },
      errors: ['invalid_request', 'unsupported_capability'],
      consistent: false,
    }),
  },
  '/capabilities': {
    get: publicOperation({
      id: 'getCapabilities',
      summary: 'What the provider supports',
      success: {
        status: 200,
        description: 'Capabilities.',
        body: { schema: Capabilities, example: example.capabilities },
      },
      errors: ['rate_limited'],
    }),
  },
  '/healthz': {
    get: publicOperation({
      id: 'getHealth',
      summary: 'Whether the gateway runs and its backend answers',
      success: { status: 200, description: 'Alive.', body: { schema: Health, example: example.health } },
      errors: ['provider_error'],
    }),
  },
  '/livez': {
    get: publicOperation({
      id: 'getLiveness',
      summary: 'Whether the gateway runs',
      description:
        'For orchestrators: while this is not answered, a restart may help. It tells nothing of the backend.',
      success: { status: 200, description: 'Alive.', body: { schema: Liveness, example: example.liveness } },
      errors: [],
    }),
  },
  '/readyz': {
    get: publicOperation({
      id: 'getReadiness',
      summary: 'Whether requests are to be sent here',
      description: 'For orchestrators and load balancers.',
      success: { status: 200, description: 'Yes.', body: { schema: Readiness, example: example.ready } },
      otherwise: { status: 503, description: 'Not now.', body: { schema: Readiness, example: example.notReady } },
      errors: [],
    }),
  },
  '/openapi.json': {
    get: publicOperation({
      id: 'getDescription',
      summary: 'This description',
      success: {
        status: 200,
        description: 'An OpenAPI 3.1 document.',
        body: { schema: z.record(z.string(), z.unknown()) },
      },
      errors: ['rate_limited'],
    }),
  },
  '/docs': {
    get: publicOperation({
      id: 'getDocs',
      summary: 'This description as an interactive page',
      success: { status: 200, description: 'The page.', body: { type: 'text/html', schema: z.string() } },
      errors: ['not_found', 'rate_limited'],
    }),
  },
};
