import { z } from 'zod';
import { type CreateDocumentOptions, createDocument, type oas31, type ZodOpenApiPathsObject } from 'zod-openapi';
import { CapabilityFields, capabilityExample, OMP_VERSION } from '../../verbs/capabilities.ts';
import { VERB_TABLE } from '../../verbs/index.ts';
import type { Verb } from '../../verbs/verb.ts';
import { publicOperation, verbOperation } from './operation.ts';

const DESCRIPTION = `Stores, retrieves and searches memories: short text facts about a user.

The supported verbs and features depend on the provider behind the gateway: see \`GET /capabilities\`. All errors have the
same envelope; branch on \`error.code\`. Texts must not contain NUL or lone surrogates; characters are counted as Unicode
code points. docs/http-api.md and docs/security.md in the gateway's repository have the details.

**Authentication.** A gateway without keys is open: it needs no credential. Otherwise every path except \`/capabilities\`,
\`/healthz\`, \`/livez\`, \`/readyz\` and this description answers 401 without a valid key or token, unknown paths included.

**Authorization.** A key or token may access all users or some. Its grants allow \`read\` (get, list, search, context,
audit, users, stats, map; in all scopes also the file of a user), \`write\` (add, update) and \`delete\`, each in all scopes or in some; to erase a user needs \`delete\` in all. \`admin:*\` allows to manage keys and to freeze the store, and nothing else. By id, a memory of a user without access
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
          {
            name: 'webhooks',
            description: 'Deliveries of changes to other services. Callers need the grant `admin:*`.',
          },
          { name: 'store', description: 'The store as a whole. Callers need the grant `admin:*`.' },
          { name: 'gateway', description: 'Public information about the gateway.' },
        ],
        paths: { ...verbPaths(), ...gatewayPaths },
        components: { securitySchemes },
      },
      { override },
    ),
  );

/** The paths of the verbs, in the order of the table. */
function verbPaths(): ZodOpenApiPathsObject {
  const paths: ZodOpenApiPathsObject = {};
  for (const verb of Object.values<Verb>(VERB_TABLE)) {
    paths[verb.path] = { ...paths[verb.path], [verb.method.toLowerCase()]: verbOperation(verb) };
  }
  return paths;
}

const Health = z
  .looseObject({
    status: z.literal('ok').meta({ description: 'The gateway runs and its backend answers.' }),
    provider: z.string().meta({ description: 'Name of the backend.' }),
  })
  .meta({ id: 'Health' });

const Liveness = z
  .looseObject({ status: z.literal('ok').meta({ description: 'The process answers.' }) })
  .meta({ id: 'Liveness' });

const Readiness = z
  .looseObject({
    status: z.enum(['ready', 'starting', 'draining', 'read-only', 'unavailable']).meta({
      description:
        '`draining`: the gateway is stopping; `read-only`: the database takes no changes; `unavailable`: the backend does not answer.',
    }),
  })
  .meta({ id: 'Readiness' });

/** The public paths of the gateway. */
const gatewayPaths: ZodOpenApiPathsObject = {
  '/capabilities': {
    get: publicOperation({
      id: 'getCapabilities',
      summary: 'Get the supported verbs, features and limits',
      success: {
        status: 200,
        description: 'Capabilities.',
        body: { schema: CapabilityFields, example: capabilityExample },
      },
      errors: ['rate_limited'],
    }),
  },
  '/healthz': {
    get: publicOperation({
      id: 'getHealth',
      summary: 'Check that the gateway runs and its backend answers',
      success: {
        status: 200,
        description: 'Alive.',
        body: { schema: Health, example: { status: 'ok', provider: 'postgres' } },
      },
      errors: ['provider_error'],
    }),
  },
  '/livez': {
    get: publicOperation({
      id: 'getLiveness',
      summary: 'Check that the gateway runs',
      description: 'Liveness probe: without an answer, restart the process. It does not depend on the backend.',
      success: { status: 200, description: 'Alive.', body: { schema: Liveness, example: { status: 'ok' } } },
      errors: [],
    }),
  },
  '/readyz': {
    get: publicOperation({
      id: 'getReadiness',
      summary: 'Check that the gateway is ready for requests',
      description: 'Readiness probe for orchestrators and load balancers.',
      success: { status: 200, description: 'Ready.', body: { schema: Readiness, example: { status: 'ready' } } },
      otherwise: {
        status: 503,
        description: 'Not ready.',
        body: { schema: Readiness, example: { status: 'draining' } },
      },
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
