import { z } from 'zod';
import { type CreateDocumentOptions, createDocument, type oas31, type ZodOpenApiPathsObject } from 'zod-openapi';
import { OMP_VERSION } from '../../core/describe.ts';
import { AuditParameters, ContextBody, CreateBody, ListParameters, PatchBody, SearchParameters } from '../schemas.ts';
import * as example from './examples.ts';
import { IdempotencyKeyParameter, publicOperation, UserIdParameter, verb } from './operation.ts';
import {
  AuditLog,
  Capabilities,
  ContextBlock,
  Health,
  Liveness,
  Memory,
  MemoryPage,
  Readiness,
  SearchResults,
} from './responses.ts';

const DESCRIPTION = `Stores, retrieves and searches memories: short text facts about a user.

Which verbs and features there are depends on the provider behind the gateway: \`GET /capabilities\` tells. All errors
come in one envelope; branch on \`error.code\`. Text holds no NUL and no lone surrogates; characters are counted as
Unicode code points.

**Who may call.** A gateway without keys is open: it needs no credential. Otherwise every path but \`/capabilities\`,
\`/healthz\`, \`/livez\`, \`/readyz\` and this description, unknown paths too, answers 401 without a good key or token.

**Who may do what.** A key or token reaches all users or some, and its grants allow \`read\` (get, list, search, context,
audit), \`write\` (add, update) and \`delete\`, each everywhere or in some scopes. By id, a memory of a user out of reach
answers 404, exactly as an unknown id does; a memory of a user in reach, but outside the grants, answers 403. Update
needs \`write\` for the old and for the new scope, and answers with the memory even where \`read\` is not granted. List,
search, context and audit return what lies within the grants; they answer 403 for a user out of reach, and for a scope
that cannot match anything granted.`;

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: "A key of the gateway, or the identity provider's token (JWT).",
  },
  apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'The same, for clients that send it here.' },
} as const;

/** Either, or none while the gateway is open. */
const security: oas31.SecurityRequirementObject[] = [{ bearer: [] }, { apiKey: [] }, {}];

/** The OpenAPI 3.1 description of the gateway, made from the schemas that validate its requests. */
export const openApiDocument = (): oas31.OpenAPIObject =>
  polish(
    createDocument(
      {
        openapi: '3.1.1',
        info: { title: 'Open Memory Protocol gateway', version: OMP_VERSION, description: DESCRIPTION },
        // Relative to the document, so that a prefix that a proxy takes off is kept.
        servers: [{ url: '.' }],
        security,
        tags: [
          { name: 'memories', description: 'The verbs of the protocol.' },
          { name: 'gateway', description: 'What the gateway says about itself, to everybody.' },
        ],
        paths: { ...memoryPaths, ...gatewayPaths },
        components: { securitySchemes },
      },
      { override },
    ),
  );

const byId = {
  path: z.object({ id: z.string().meta({ description: 'Id of the memory.' }) }),
  headers: { 'X-User-Id': UserIdParameter },
};

/** SPEC, Endpoints: the verbs on memories. */
export const memoryPaths: ZodOpenApiPathsObject = {
  '/memories': {
    post: verb({
      id: 'addMemory',
      summary: 'Create a memory',
      description: 'Optional fields given as null count as omitted. Unknown fields are ignored.',
      headers: { 'Idempotency-Key': IdempotencyKeyParameter },
      body: { schema: CreateBody, example: example.newMemory },
      success: { status: 201, description: 'The created memory.', body: { schema: Memory, example: example.memory } },
      errors: ['invalid_request', 'unsupported_capability', 'payload_too_large'],
    }),
    get: verb({
      id: 'listMemories',
      summary: "List a user's memories",
      description: 'Newest first. Pass each `next_cursor` as `cursor`, with the same filters, until it is null.',
      query: ListParameters,
      success: { status: 200, description: 'One page.', body: { schema: MemoryPage, example: example.memoryPage } },
      errors: ['invalid_request', 'unsupported_capability'],
    }),
  },
  '/memories/search': {
    get: verb({
      id: 'searchMemories',
      summary: "Search a user's memories",
      description: 'Ranked by meaning, by keywords, or both, as `features` of `GET /capabilities` tells.',
      query: SearchParameters,
      success: {
        status: 200,
        description: 'Results.',
        body: { schema: SearchResults, example: example.searchResults },
      },
      errors: ['invalid_request', 'unsupported_capability'],
    }),
  },
  '/memories/{id}': {
    get: verb({
      id: 'getMemory',
      summary: 'Read one memory',
      ...byId,
      success: { status: 200, description: 'The memory.', body: { schema: Memory, example: example.memory } },
      errors: ['not_found'],
    }),
    patch: verb({
      id: 'updateMemory',
      summary: 'Update fields of a memory',
      description: '`tags` and `supersedes` replace the whole list. Only `valid_to` and `x-` keys may be null.',
      ...byId,
      body: { schema: PatchBody, example: example.memoryPatch },
      success: {
        status: 200,
        description: 'The full memory.',
        body: { schema: Memory, example: example.patchedMemory },
      },
      errors: ['invalid_request', 'unsupported_capability', 'not_found', 'payload_too_large'],
    }),
    delete: verb({
      id: 'deleteMemory',
      summary: 'Delete a memory for good',
      description: 'To keep the history, add a memory that names this one in `supersedes`.',
      ...byId,
      success: { status: 204, description: 'Deleted.' },
      errors: ['unsupported_capability', 'not_found'],
    }),
  },
};

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

/**
 * Query parameters are strings until parsed. What is described as a number must not keep the pattern of its text, and
 * a default, which stands behind the parsing, would not be shown at all. The largest exact integer is no limit of ours.
 */
export const override: CreateDocumentOptions['override'] = ({ jsonSchema, zodSchema, io }) => {
  const { def } = zodSchema._zod;
  if (jsonSchema.type === 'integer' || jsonSchema.type === 'number') delete jsonSchema.pattern;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (def.type === 'default' && io === 'input') jsonSchema.default = def.defaultValue;
};

/** The same document, written the way tools show best. */
export const polish = (document: oas31.OpenAPIObject): oas31.OpenAPIObject =>
  JSON.parse(JSON.stringify(document), (_key, node: unknown) => {
    if (!isObject(node)) return node;
    return 'in' in node && isObject(node.schema) ? describeParameter(node, node.schema) : mergeNull(node);
  });

type Node = Record<string, unknown>;
const isObject = (node: unknown): node is Node => typeof node === 'object' && node !== null && !Array.isArray(node);

/** What describes a parameter belongs to the parameter, not to its schema. */
function describeParameter({ schema: _, ...parameter }: Node, { description, examples, ...schema }: Node): Node {
  const example = Array.isArray(examples) && { example: examples[0] };
  return { ...parameter, ...(description !== undefined && { description }), ...example, schema };
}

/** `anyOf: [schema, null]` is one schema of two types. */
function mergeNull({ anyOf, ...outer }: Node): Node {
  if (!Array.isArray(anyOf)) return outer;
  const [inner, ...others] = anyOf as Node[];
  const mergeable = typeof inner?.type === 'string' && others.length === 1 && others[0]?.type === 'null';
  if (!mergeable) return { ...outer, anyOf };
  const choices = Array.isArray(inner.enum) && { enum: [...inner.enum, null] };
  return { ...inner, ...outer, type: [inner.type, 'null'], ...choices };
}
