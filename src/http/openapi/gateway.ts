import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { AuditParameters, ContextBody } from '../schemas/requests.ts';
import { AuditLog, Capabilities, ContextBlock, Health } from '../schemas/responses.ts';
import * as example from './examples.ts';
import { failures } from './failures.ts';
import { operation } from './operation.ts';

/** SPEC, Endpoints: the rest, and what the gateway says about itself. */
export const gatewayPaths: ZodOpenApiPathsObject = {
  '/context': {
    post: operation({
      id: 'buildContext',
      tag: 'memories',
      summary: 'Build a block of context for a prompt',
      description: 'The best-ranked memories within a token budget, without expired and superseded ones.',
      body: { schema: ContextBody, example: example.contextRequest },
      success: {
        status: 200,
        description: 'The block.',
        body: { schema: ContextBlock, example: example.contextBlock },
      },
      errors: ['invalid_request', 'unsupported_capability', 'payload_too_large', 'rate_limited', 'provider_error'],
    }),
  },
  '/audit': {
    get: operation({
      id: 'readAudit',
      tag: 'memories',
      summary: "Read the audit log of a user's memories",
      description: 'Answers `unsupported_capability` unless the provider records one (`features.supports_audit`).',
      query: AuditParameters,
      success: { status: 200, description: 'The entries.', body: { schema: AuditLog, example: example.auditLog } },
      errors: ['invalid_request', 'unsupported_capability', 'rate_limited', 'provider_error'],
    }),
  },
  '/capabilities': {
    get: operation({
      id: 'getCapabilities',
      tag: 'gateway',
      summary: 'What the provider supports',
      success: {
        status: 200,
        description: 'Capabilities.',
        body: { schema: Capabilities, example: example.capabilities },
      },
      errors: [],
    }),
  },
  '/healthz': {
    get: operation({
      id: 'getHealth',
      tag: 'gateway',
      summary: 'Whether the gateway runs and its backend answers',
      success: { status: 200, description: 'Alive.', body: { schema: Health, example: example.health } },
      errors: ['provider_error'],
    }),
  },
  '/openapi.json': {
    get: operation({
      id: 'getDescription',
      tag: 'gateway',
      summary: 'This description',
      success: {
        status: 200,
        description: 'An OpenAPI 3.1 document.',
        body: { schema: z.record(z.string(), z.unknown()) },
      },
      errors: [],
    }),
  },
  '/docs': {
    get: {
      operationId: 'getDocs',
      tags: ['gateway'],
      summary: 'This description as an interactive page',
      responses: {
        200: { description: 'The page.', content: { 'text/html': { schema: z.string() } } },
        ...failures(['not_found']),
      },
    },
  },
};
