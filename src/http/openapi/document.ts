import { z } from 'zod';
import { type CreateDocumentOptions, createDocument, type oas31, type ZodOpenApiPathsObject } from 'zod-openapi';
import { MAX_BATCH_SIZE } from '#contract';
import { OMP_VERSION } from '../../core/describe.ts';
import {
  AuditParameters,
  ContextBody,
  CreateBody,
  ExportParameters,
  KeyBody,
  KeysParameters,
  ListParameters,
  MapParameters,
  PatchBody,
  SearchParameters,
  StatsParameters,
  UsersParameters,
} from '../schemas.ts';
import { MovedMemories } from '../transfer.ts';
import * as example from './examples.ts';
import {
  IdempotencyKeyParameter,
  IfMatchParameter,
  IfNoneMatchParameter,
  publicOperation,
  UserIdParameter,
  VERSION_CHANGED,
  verb,
} from './operation.ts';
import {
  AuditLog,
  BatchResults,
  Capabilities,
  ContextBlock,
  CreatedKey,
  Erased,
  ExportPage,
  Health,
  ImportResults,
  Key,
  KeyPage,
  Liveness,
  Memory,
  MemoryMap,
  MemoryPage,
  Readiness,
  SearchResults,
  UserPage,
  UserStats,
} from './responses.ts';

const DESCRIPTION = `Stores, retrieves and searches memories: short text facts about a user.

The supported verbs and features depend on the provider behind the gateway: see \`GET /capabilities\`. All errors have the
same envelope; branch on \`error.code\`. Texts must not contain NUL or lone surrogates; characters are counted as Unicode
code points. docs/http-api.md and docs/security.md in the gateway's repository have the details.

**Authentication.** A gateway without keys is open: it needs no credential. Otherwise every path except \`/capabilities\`,
\`/healthz\`, \`/livez\`, \`/readyz\` and this description answers 401 without a valid key or token, unknown paths included.

**Authorization.** A key or token may access all users or some. Its grants allow \`read\` (get, list, search, context,
audit, users, stats, map), \`write\` (add, update) and \`delete\`, each in all scopes or in some; to erase a user needs \`delete\` in all. \`admin:*\` allows to manage keys, and nothing else. By id, a memory of a user without access
answers 404, exactly like an unknown id; a memory of a user with access, but outside the grants, answers 403. Update
needs \`write\` for the old and the new scope; without \`read\` it returns only what the caller sent. List, search, context and
audit return only what the grants allow; they answer 403 for a user without access, and for a scope that cannot match any
grant.`;

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key of the gateway, or a token (JWT) of the identity provider.',
  },
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'The same credential, for clients that use this header.',
  },
} as const;

/** One of them, or none while the gateway is open. */
const security: oas31.SecurityRequirementObject[] = [{ bearer: [] }, { apiKey: [] }, {}];

/** The OpenAPI 3.1 document, generated from the schemas that validate the requests. */
export const openApiDocument = (): oas31.OpenAPIObject =>
  polish(
    createDocument(
      {
        openapi: '3.1.1',
        info: { title: 'Open Memory Protocol gateway', version: OMP_VERSION, description: DESCRIPTION },
        // Relative to the document, so that it also works behind a proxy that strips a path prefix.
        servers: [{ url: '.' }],
        security,
        tags: [
          { name: 'memories', description: 'The verbs of the protocol.' },
          { name: 'keys', description: 'The API keys of the gateway. Callers need the grant `admin:*`.' },
          { name: 'gateway', description: 'Public information about the gateway.' },
        ],
        paths: { ...memoryPaths, ...keyPaths, ...gatewayPaths },
        components: { securitySchemes },
      },
      { override },
    ),
  );

const byId = {
  path: z.object({ id: z.string().meta({ description: 'Id of the memory.' }) }),
  headers: { 'X-User-Id': UserIdParameter },
};

/** Decision 35. `BatchBody` leaves each memory to be parsed by itself. */
const NewMemories = z
  .object({ memories: z.array(CreateBody).min(1).max(MAX_BATCH_SIZE) })
  .meta({ id: 'NewMemories', description: 'An invalid memory does not fail the others.' });

/** SPEC, Endpoints: the verbs on memories. */
const memoryPaths: ZodOpenApiPathsObject = {
  '/memories': {
    post: verb({
      id: 'addMemory',
      summary: 'Create a memory',
      description: 'Optional fields given as null count as omitted. Unknown fields are ignored.',
      headers: { 'Idempotency-Key': IdempotencyKeyParameter },
      body: { schema: CreateBody, example: example.newMemory },
      tagged: true,
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
  '/memories/batch': {
    post: verb({
      id: 'addMemories',
      summary: 'Create several memories',
      description: `Each memory is added, or has an error in its place. Where the backend has transactions, a failure adds none and
answers one error. \`Idempotency-Key\` covers the whole batch. Counts as one request.`,
      headers: { 'Idempotency-Key': IdempotencyKeyParameter },
      body: { schema: NewMemories, example: example.newMemories },
      success: {
        status: 200,
        description: 'The results, in the order of the request.',
        body: { schema: BatchResults, example: example.batchResults },
      },
      errors: ['invalid_request', 'unsupported_capability', 'payload_too_large'],
      denies: false,
    }),
  },
  '/memories/search': {
    get: verb({
      id: 'searchMemories',
      summary: 'Search the memories of a user, or of several',
      description: 'Ranked by meaning, by keywords, or both: see `features` of `GET /capabilities`.',
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
      path: byId.path,
      headers: { ...byId.headers, 'If-None-Match': IfNoneMatchParameter },
      tagged: true,
      otherwise: { status: 304, description: 'The client has this version.' },
      success: { status: 200, description: 'The memory.', body: { schema: Memory, example: example.memory } },
      errors: ['not_found'],
    }),
    patch: verb({
      id: 'updateMemory',
      summary: 'Update fields of a memory',
      description: '`tags` and `supersedes` replace the whole list. Only `valid_to` and `x-` keys may be null.',
      path: byId.path,
      headers: { ...byId.headers, 'If-Match': IfMatchParameter },
      tagged: true,
      otherwise: VERSION_CHANGED,
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
      summary: 'Delete a memory permanently',
      description: 'To keep the history, add a memory that names this one in `supersedes`.',
      path: byId.path,
      headers: { ...byId.headers, 'If-Match': IfMatchParameter },
      otherwise: VERSION_CHANGED,
      success: { status: 204, description: 'Deleted.' },
      errors: ['unsupported_capability', 'not_found'],
    }),
  },
};

/** Decision 41. */
const keyPaths: ZodOpenApiPathsObject = {
  '/keys': {
    get: verb({
      id: 'listKeys',
      summary: 'List the stored keys',
      description: 'Newest first, revoked and expired ones included. Available if `features.keys` is true.',
      query: KeysParameters,
      success: { status: 200, description: 'One page.', body: { schema: KeyPage, example: example.keyPage } },
      errors: ['invalid_request', 'unsupported_capability'],
      consistent: false,
      tag: 'keys',
    }),
    post: verb({
      id: 'createKey',
      summary: 'Create a key',
      description: `Answers the key itself, this time only: the gateway keeps its hash. It may have any grants. Unknown fields are
rejected. Available if \`features.keys\` is true.`,
      body: { schema: KeyBody, example: example.newKey },
      success: {
        status: 201,
        description: 'The key.',
        body: { schema: CreatedKey, example: example.createdKey },
      },
      errors: ['invalid_request', 'unsupported_capability', 'payload_too_large'],
      consistent: false,
      tag: 'keys',
    }),
  },
  '/keys/{id}': {
    delete: verb({
      id: 'revokeKey',
      summary: 'Revoke a key',
      description: `Within five seconds no gateway accepts it. A key that is revoked already keeps its \`revoked_at\`. A key cannot
revoke itself. Available if \`features.keys\` is true.`,
      path: z.object({ id: z.string().meta({ description: 'Id of the key.' }) }),
      success: { status: 200, description: 'The revoked key.', body: { schema: Key, example: example.revokedKey } },
      errors: ['unsupported_capability', 'not_found'],
      consistent: false,
      tag: 'keys',
    }),
  },
};

/** SPEC, Endpoints: the others, and the public paths of the gateway. */
const gatewayPaths: ZodOpenApiPathsObject = {
  '/context': {
    post: verb({
      id: 'buildContext',
      summary: 'Build a block of context for a prompt',
      description: 'The best-ranked memories that fit a token budget, without expired and superseded ones.',
      body: { schema: ContextBody, example: example.contextRequest },
      success: {
        status: 200,
        description: 'The context block.',
        body: { schema: ContextBlock, example: example.contextBlock },
      },
      errors: ['invalid_request', 'unsupported_capability', 'payload_too_large'],
    }),
  },
  '/audit': {
    get: verb({
      id: 'readAudit',
      summary: "Read the audit log of a user's memories",
      description: `Successful and failed requests, newest first, if \`features.supports_audit\` is true. The entry of a search or
list has the requested scope. Requests with an unknown id, or for a user without access, belong to no user and are not
returned. Contents and queries are never recorded.`,
      query: AuditParameters,
      success: { status: 200, description: 'The entries.', body: { schema: AuditLog, example: example.auditLog } },
      errors: ['invalid_request', 'unsupported_capability'],
      consistent: false,
    }),
  },
  '/users': {
    get: verb({
      id: 'listUsers',
      summary: 'List the users that have memories',
      description: `The users that the caller may access and that have at least one memory the caller may read, if
\`features.users\` is true. Counts include only those memories. A page may have fewer users than \`limit\`, even none,
although there are more: \`next_cursor\` is then not null.`,
      query: UsersParameters,
      success: { status: 200, description: 'One page.', body: { schema: UserPage, example: example.userPage } },
      errors: ['invalid_request', 'unsupported_capability'],
    }),
  },
  '/users/{id}/memories': {
    delete: verb({
      id: 'eraseUser',
      summary: 'Delete all memories of a user permanently',
      description: `Needs a grant to delete in every scope. The audit log keeps its entries, which have no contents. After an error
some memories may be deleted; repeat the request. Available if \`features.erase\` is true.`,
      path: z.object({ id: z.string().meta({ description: 'Id of the user.' }) }),
      success: {
        status: 200,
        description: 'The number of memories.',
        body: { schema: Erased, example: example.erased },
      },
      errors: ['invalid_request', 'unsupported_capability'],
    }),
  },
  '/stats': {
    get: verb({
      id: 'getStats',
      summary: "Count a user's memories by scope and tag",
      description: 'Includes only memories that the caller may read. Available if `features.stats` is true.',
      query: StatsParameters,
      success: { status: 200, description: 'The counts.', body: { schema: UserStats, example: example.userStats } },
      errors: ['invalid_request', 'unsupported_capability'],
    }),
  },
  '/export': {
    get: verb({
      id: 'exportMemories',
      summary: 'Read all memories of the store',
      description: `In a fixed order, with all fields, to move them elsewhere; needs to read every scope, and every user unless
\`user_id\` is given. A page may have fewer memories than \`limit\`, even none, although there are more: \`next_cursor\` is then not
null. Available if \`features.export\` is true.`,
      query: ExportParameters,
      success: { status: 200, description: 'One page.', body: { schema: ExportPage, example: example.exportPage } },
      errors: ['invalid_request', 'unsupported_capability'],
    }),
  },
  '/import': {
    post: verb({
      id: 'importMemories',
      summary: 'Store memories with their ids and times',
      description: `Needs to write every scope of every user. Each memory is stored, or has an error in its place. Repeating a
request changes nothing more. Available if \`features.import\` is true.`,
      body: { schema: MovedMemories, example: example.movedMemories },
      success: {
        status: 200,
        description: 'What became of each memory.',
        body: { schema: ImportResults, example: example.importResults },
      },
      errors: ['invalid_request', 'unsupported_capability', 'payload_too_large'],
    }),
  },
  '/map': {
    get: verb({
      id: 'getMap',
      summary: "Place a user's newest memories on a plane, by meaning",
      description: `Up to 2,000 memories that the caller may read, fewer if vectors have more than 768 components or contents
are long. Memories with a like meaning are near each other, as far as a plane allows: \`among_10\` and \`among_50\` say how
far. Available if \`features.map\` is true.`,
      query: MapParameters,
      success: { status: 200, description: 'The places.', body: { schema: MemoryMap, example: example.memoryMap } },
      errors: ['invalid_request', 'unsupported_capability'],
    }),
  },
  '/capabilities': {
    get: publicOperation({
      id: 'getCapabilities',
      summary: 'Get the supported verbs, features and limits',
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
      summary: 'Check that the gateway runs and its backend answers',
      success: { status: 200, description: 'Alive.', body: { schema: Health, example: example.health } },
      errors: ['provider_error'],
    }),
  },
  '/livez': {
    get: publicOperation({
      id: 'getLiveness',
      summary: 'Check that the gateway runs',
      description: 'Liveness probe: without an answer, restart the process. It does not depend on the backend.',
      success: { status: 200, description: 'Alive.', body: { schema: Liveness, example: example.liveness } },
      errors: [],
    }),
  },
  '/readyz': {
    get: publicOperation({
      id: 'getReadiness',
      summary: 'Check that the gateway is ready for requests',
      description: 'Readiness probe for orchestrators and load balancers.',
      success: { status: 200, description: 'Ready.', body: { schema: Readiness, example: example.ready } },
      otherwise: { status: 503, description: 'Not ready.', body: { schema: Readiness, example: example.notReady } },
      errors: [],
    }),
  },
  '/openapi.json': {
    get: publicOperation({
      id: 'getDescription',
      summary: 'Get this description',
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
      summary: 'Get this description as an interactive page',
      success: { status: 200, description: 'The page.', body: { type: 'text/html', schema: z.string() } },
      errors: ['not_found', 'rate_limited'],
    }),
  },
};

/**
 * Query parameters are strings until they are parsed: a number must not show the pattern of its text, and a default, which
 * applies after parsing, would not be shown at all. The largest safe integer is no limit of the API.
 */
const override: CreateDocumentOptions['override'] = ({ jsonSchema, zodSchema, io }) => {
  const { def } = zodSchema._zod;
  if (jsonSchema.type === 'integer' || jsonSchema.type === 'number') delete jsonSchema.pattern;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (def.type === 'default' && io === 'input') jsonSchema.default = def.defaultValue;
};

/** Rewrites what zod-openapi generates into forms that tools display better. */
const polish = (document: oas31.OpenAPIObject): oas31.OpenAPIObject =>
  JSON.parse(JSON.stringify(document), (_key, node: unknown) => {
    if (!isObject(node)) return node;
    return 'in' in node && isObject(node.schema) ? describeParameter(node, node.schema) : mergeNull(node);
  });

type Node = Record<string, unknown>;
const isObject = (node: unknown): node is Node => typeof node === 'object' && node !== null && !Array.isArray(node);

/** Moves description and example from a parameter's schema to the parameter. */
function describeParameter({ schema: _, ...parameter }: Node, { description, examples, ...schema }: Node): Node {
  const example = Array.isArray(examples) && { example: examples[0] };
  return { ...parameter, ...(description !== undefined && { description }), ...example, schema };
}

/** Turns `anyOf: [schema, null]` into one schema with two types. */
function mergeNull({ anyOf, ...outer }: Node): Node {
  if (!Array.isArray(anyOf)) return outer;
  const [inner, ...others] = anyOf as Node[];
  const mergeable = typeof inner?.type === 'string' && others.length === 1 && others[0]?.type === 'null';
  if (!mergeable) return { ...outer, anyOf };
  const choices = Array.isArray(inner.enum) && { enum: [...inner.enum, null] };
  return { ...inner, ...outer, type: [inner.type, 'null'], ...choices };
}
