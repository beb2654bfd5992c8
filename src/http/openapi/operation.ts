import { z } from 'zod';
import type { ZodOpenApiOperationObject, ZodOpenApiResponseObject } from 'zod-openapi';
import { beginAnew, type ErrorCode, IDEMPOTENCY_TTL_MS, OmpError, storeFrozen, versionChanged } from '#contract';
import { ErrorFields, IDEMPOTENCY_KEY } from '../../verbs/fields.ts';
import { demandsInWords, fieldsIn, queryFieldsOf, type Verb } from '../../verbs/verb.ts';
import { STATUS, toEnvelope } from '../error-envelope.ts';
import { REQUEST_ID } from '../request.ts';

/** SPEC, Errors. */
const ErrorEnvelope = z
  .looseObject({
    error: ErrorFields.extend({
      request_id: z.string().optional().meta({ description: '`X-Request-Id` of the response.' }),
    }),
  })
  .meta({ id: 'Error' });

const EXAMPLE_REQUEST_ID = '7f9c2ba4-e88f-4a7d-9c1b-0d5e3a6f2b10';

/** A body, by default JSON, with an example. */
interface Body {
  readonly type?: 'text/html' | 'application/x-ndjson';
  readonly schema: z.ZodType;
  readonly example?: object | undefined;
}

interface ApiOperation {
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly path?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  readonly body?: Body;
  readonly success: { readonly status: 200 | 201 | 204; readonly description: string; readonly body?: Body };
  /** A response that is neither a success nor an error of the protocol. */
  readonly otherwise?: { readonly status: 304 | 410 | 412 | 503; readonly description: string; readonly body?: Body };
  /** Whether a frozen store rejects it. */
  readonly writes?: boolean;
  /** Whether the answer is one memory, which has an `ETag`. */
  readonly tagged?: boolean;
  readonly errors: readonly ErrorCode[];
}

/** A verb: it needs authentication, and adds the errors that every verb can answer. */
export function verbOperation(verb: Verb): ZodOpenApiOperationObject {
  const { input, path, headers = {}, body, success, consistent = true, denies = true, tag = 'memories' } = verb;
  const { errors = ['invalid_request', 'unsupported_capability'] } = verb;
  const reads = success.tagged && verb.method === 'GET';
  const inPath = fieldsIn(path);
  const inQuery = queryFieldsOf(verb);
  const spec: ApiOperation = {
    id: verb.id,
    summary: verb.summary,
    ...((verb.description || verb.demands) && { description: describedWithDemands(verb) }),
    ...(inPath.length > 0 && { path: pick(input, inPath) }),
    ...(inQuery.length > 0 && { query: pick(input, inQuery) }),
    headers: {
      ...Object.fromEntries(Object.values(headers).map((name) => [name, HEADERS[name] as z.ZodType])),
      ...(reads && { 'If-None-Match': IfNoneMatchParameter }),
      ...(consistent && { 'X-Consistency-Token': ConsistencyTokenParameter }),
    },
    ...(body && { body: { schema: body.schema ?? input, example: body.example } }),
    success: {
      status: success.status ?? 200,
      description: success.description,
      ...(success.schema && {
        body: {
          schema: success.schema,
          ...(success.file ? { type: 'application/x-ndjson' as const } : { example: success.example }),
        },
      }),
    },
    ...('if_match' in headers && { otherwise: VERSION_CHANGED }),
    ...('last_event_id' in headers && { otherwise: CURSOR_GONE }),
    ...(verb.writes && { writes: true }),
    ...(reads && { otherwise: { status: 304, description: 'The client has this version.' } }),
    errors: [
      ...errors,
      ...(body ? (['payload_too_large'] as const) : []),
      'unauthorized',
      ...(denies ? (['scope_denied'] as const) : []),
      'rate_limited',
      'provider_error',
    ],
    ...(success.tagged && { tagged: true }),
  };
  return { ...operation(spec, consistent), tags: [tag] };
}

const describedWithDemands = (verb: Verb): string =>
  [verb.description, verb.demands && `Needs ${demandsInWords(verb)}.`].filter(Boolean).join(' ');

const pick = ({ shape }: z.ZodObject, names: readonly string[]): z.ZodObject =>
  z.object(Object.fromEntries(names.map((name) => [name, shape[name] as z.ZodType])));

/** A public path of the gateway. */
export const publicOperation = (spec: ApiOperation): ZodOpenApiOperationObject => ({
  ...operation(spec, false),
  tags: ['gateway'],
  security: [],
});

const operation = (
  { id, summary, description, success, otherwise, writes, tagged, errors, ...spec }: ApiOperation,
  consistent: boolean,
): ZodOpenApiOperationObject => ({
  operationId: id,
  summary,
  ...(description !== undefined && { description }),
  requestParams: {
    ...(spec.path && { path: spec.path }),
    ...(spec.query && { query: spec.query }),
    header: z.object({ ...spec.headers, 'X-Request-Id': RequestIdParameter }),
  },
  ...(spec.body && { requestBody: { required: true, content: contentOf(spec.body) } }),
  responses: {
    [success.status]: {
      description: success.description,
      headers: responseHeaders({ errors, consistent, tagged }),
      ...(success.body && { content: contentOf(success.body) }),
    },
    ...(otherwise && {
      [otherwise.status]: {
        description: otherwise.description,
        headers: responseHeaders({ errors, consistent, tagged: otherwise.status === 304 || otherwise.status === 412 }),
        ...(otherwise.body && { content: contentOf(otherwise.body) }),
      },
    }),
    ...(writes && {
      503: {
        description: '`provider_error`: the store takes no changes, because it is being moved.',
        // With a time to come back.
        headers: responseHeaders({ errors, consistent }, ['rate_limited']),
        content: contentOf({
          schema: ErrorEnvelope,
          example: toEnvelope(storeFrozen('postgres', '2026-03-01T09:30:00.000Z'), EXAMPLE_REQUEST_ID),
        }),
      },
    }),
    ...failures({ errors, consistent }),
  },
});

const contentOf = ({ type, ...body }: Body) => ({ [type ?? 'application/json']: body });

/** When each code is used (SPEC, Errors). */
const CONDITIONS: Record<ErrorCode, string> = {
  unauthorized: 'missing or invalid API key or token',
  scope_denied: 'the key or token has no permission for this user or scope',
  not_found: 'no such resource',
  invalid_request: 'malformed body or invalid parameters',
  rate_limited: 'too many requests, failed authentications, or adds for the user on one day',
  unsupported_capability: 'the provider does not support this',
  provider_error: 'the backend failed or took too long',
  payload_too_large:
    'the request body exceeds the limit, by default 1 MiB, or 100,000 values, the memory would exceed twice the limit, or the user a limit of memories or bytes',
};

/** What the response headers of an operation depend on. */
interface ResponseFacts {
  readonly errors: readonly ErrorCode[];
  /** Whether it waits for the client's writes through other replicas. */
  readonly consistent: boolean;
  readonly tagged?: boolean | undefined;
}

/** The error responses of an operation: one per status, with an example of each of its codes. */
function failures(operation: ResponseFacts): Record<string, ZodOpenApiResponseObject> {
  const byStatus: Record<string, ErrorCode[]> = {};
  for (const code of operation.errors) {
    const status = STATUS[code];
    byStatus[status] = [...(byStatus[status] ?? []), code];
  }
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, those]) => [status, failure(those, responseHeaders(operation, those))]),
  );
}

/**
 * The headers of a response with one of these codes, or of a success. If an operation can answer `rate_limited`, every
 * response except 401 has the rate limit headers. Only successes and `not_found` have the consistency headers.
 */
function responseHeaders({ errors, consistent, tagged }: ResponseFacts, codes: readonly ErrorCode[] = []) {
  const unauthorized = codes.includes('unauthorized');
  const read = codes.length === 0 || codes.includes('not_found');
  return z.object({
    'X-Request-Id': RequestIdHeader,
    ...(tagged && { ETag: EtagHeader }),
    ...(unauthorized && { 'WWW-Authenticate': WwwAuthenticateHeader }),
    ...(codes.includes('rate_limited') && { 'Retry-After': RetryAfterHeader }),
    ...(errors.includes('rate_limited') && !unauthorized && rateLimitHeaders),
    ...(consistent && read && consistencyHeaders),
    ...(codes.length === 0 && errors.includes('invalid_request') && { 'X-Ignored-Fields': IgnoredFieldsHeader }),
  });
}

const failure = (codes: readonly ErrorCode[], headers: z.ZodObject): ZodOpenApiResponseObject => ({
  description: codes.map((code) => `\`${code}\`: ${CONDITIONS[code]}`).join('; '),
  headers,
  content: {
    'application/json': {
      schema: ErrorEnvelope,
      examples: Object.fromEntries(codes.map((code) => [code, { value: example(code) }])),
    },
  },
});

const example = (code: ErrorCode) => toEnvelope(new OmpError(code, CONDITIONS[code]), EXAMPLE_REQUEST_ID);

/** Optional on every request. `callMiddleware` accepts the same pattern. */
const RequestIdParameter = z
  .string()
  .optional()
  .meta({
    description: 'Used as the id of this request if it matches the pattern; otherwise the gateway generates one.',
    pattern: REQUEST_ID.source,
    param: { id: 'RequestId' },
  });

/** Decision 19. */
const UserIdParameter = z
  .string()
  .optional()
  .meta({
    description: 'If given, memories of other users count as absent.',
    param: { id: 'UserId' },
  });

/** Decision 20. */
const IdempotencyKeyParameter = z
  .string()
  .optional()
  .meta({
    description: `Makes the request idempotent. For ${IDEMPOTENCY_TTL_MS / 3_600_000} hours, the same key of the same caller with an equal memory returns
the first response again and creates nothing; with another memory it answers 400. A quoted string is allowed. If
\`features.idempotency\` is false, a request with a key is \`unsupported_capability\`.`,
    pattern: IDEMPOTENCY_KEY.source,
  });

/** Decision 36. */
const IfMatchParameter = z
  .string()
  .optional()
  .meta({
    description: `Changes the memory only if its \`ETag\` is one of these, or for \`*\`. A client can make one from any memory it has read:
\`updated_at\` in double quotes. If \`features.etags\` is false, a request with this header is \`unsupported_capability\`.`,
    example: '"2026-03-01T09:30:00.000Z"',
    param: { id: 'IfMatch' },
  });

/** Decision 51. */
const LastEventIdParameter = z
  .string()
  .optional()
  .meta({ description: 'The id of the last event that the client got, instead of `after`.' });

/** The headers that verbs read. */
const HEADERS: Readonly<Record<string, z.ZodType>> = {
  'X-User-Id': UserIdParameter,
  'Idempotency-Key': IdempotencyKeyParameter,
  'If-Match': IfMatchParameter,
  'Last-Event-ID': LastEventIdParameter,
};

/** Decision 36. */
const IfNoneMatchParameter = z
  .string()
  .optional()
  .meta({ description: 'Answers 304 if the `ETag` of the memory is one of these, or for `*`.' });

/** Decision 36. */
const VERSION_CHANGED = {
  status: 412,
  description: '`invalid_request`: the memory has changed. `ETag` has its present version: read it again.',
  body: { schema: ErrorEnvelope, example: toEnvelope(versionChanged('2026-03-01T09:30:00.000Z'), EXAMPLE_REQUEST_ID) },
} as const;

/** Decision 51. */
const CURSOR_GONE = {
  status: 410,
  description: '`invalid_request`: the changes after this cursor are not known any more. Begin anew.',
  body: { schema: ErrorEnvelope, example: toEnvelope(beginAnew('the log is another one'), EXAMPLE_REQUEST_ID) },
} as const;

/** Decision 23. */
const ConsistencyTokenParameter = z
  .string()
  .optional()
  .meta({
    description: `The \`X-Consistency-Token\` of this client's latest response that had one. Any replica waits briefly until it
shows the writes that the token names. Invalid tokens are ignored, and all tokens if \`features.consistency_tokens\` is
false.`,
    param: { id: 'ConsistencyToken' },
  });

const RequestIdHeader = z.string().meta({
  description: 'Id of the request, also in error bodies and in the log.',
  header: { id: 'RequestId' },
});

const EtagHeader = z
  .string()
  .optional()
  .meta({
    description:
      'The version of the memory: `updated_at` in double quotes, with the status while it is not indexed. Only if `features.etags` is true.',
    header: { id: 'ETag' },
  });

const WwwAuthenticateHeader = z.string().meta({
  description: 'The authentication scheme, `Bearer`.',
  header: { id: 'WwwAuthenticate' },
});

const RetryAfterHeader = z
  .string()
  .optional()
  .meta({
    description: 'Seconds to wait; absent if a backend rejected the request without giving a time.',
    header: { id: 'RetryAfter' },
  });

const optionalHeader = (id: string, description: string) => z.string().optional().meta({ description, header: { id } });

const limit = (id: string, description: string) => optionalHeader(id, `${description} Only if requests are limited.`);

/** Decision 17. */
const rateLimitHeaders = {
  'RateLimit-Policy': limit('RateLimitPolicy', 'The limit: `q` requests in `w` seconds.'),
  RateLimit: limit('RateLimit', 'What remains: `r` requests, more in `t` seconds.'),
  'X-RateLimit-Limit': limit('XRateLimitLimit', 'Requests per minute.'),
  'X-RateLimit-Remaining': limit('XRateLimitRemaining', 'Remaining requests.'),
  'X-RateLimit-Reset': limit('XRateLimitReset', 'Seconds until there are more.'),
};

/** Decision 6. */
const IgnoredFieldsHeader = optionalHeader(
  'IgnoredFields',
  'Names of unknown fields and parameters of the request, which were ignored: at most 16, separated by commas.',
);

/** Decision 23. */
const consistencyHeaders = {
  'X-Consistency-Token': optionalHeader(
    'ConsistencyToken',
    "After a write: names this write and those of the request's token. Only if `features.consistency_tokens` is true.",
  ),
  'X-Consistency': optionalHeader(
    'Consistency',
    '`behind`: the response may lack writes that the token of the request names.',
  ),
};
