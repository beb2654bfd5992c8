import { z } from 'zod';
import type { ZodOpenApiOperationObject, ZodOpenApiResponseObject } from 'zod-openapi';
import { type ErrorCode, OmpError, ONCE_TTL_MS } from '#contract';
import { ERRORS, toEnvelope } from '../errors.ts';
import { IDEMPOTENCY_KEY } from '../input.ts';
import { REQUEST_ID } from '../request.ts';
import { ErrorEnvelope } from './responses.ts';

/** A body, JSON unless it says otherwise, and how one looks. */
interface Body {
  readonly type?: 'text/html';
  readonly schema: z.ZodType;
  readonly example?: object;
}

interface Operation {
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly path?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly headers?: Readonly<Record<string, z.ZodType>>;
  readonly body?: Body;
  readonly success: { readonly status: 200 | 201 | 204; readonly description: string; readonly body?: Body };
  /** An answer that is no success and no error of the protocol either. */
  readonly otherwise?: { readonly status: 503; readonly description: string; readonly body: Body };
  readonly errors: readonly ErrorCode[];
  /** Default: as with every verb on memories, what a client wrote through another replica is waited for. */
  readonly consistent?: boolean;
}

/** A verb of the protocol: for callers who may, with the errors that any of them may answer. */
export const verb = ({ errors, consistent = true, ...rest }: Operation): ZodOpenApiOperationObject => ({
  ...operation(
    {
      ...rest,
      headers: { ...rest.headers, ...(consistent && { 'X-Consistency-Token': ConsistencyTokenParameter }) },
      errors: [...errors, 'unauthorized', 'scope_denied', 'rate_limited', 'provider_error'],
    },
    consistent,
  ),
  tags: ['memories'],
});

/** What the gateway says about itself, to everybody. */
export const publicOperation = (about: Operation): ZodOpenApiOperationObject => ({
  ...operation(about, false),
  tags: ['gateway'],
  security: [],
});

const operation = (
  { id, summary, description, success, otherwise, errors, ...about }: Omit<Operation, 'consistent'>,
  consistent: boolean,
): ZodOpenApiOperationObject => ({
  operationId: id,
  summary,
  ...(description !== undefined && { description }),
  requestParams: {
    ...(about.path && { path: about.path }),
    ...(about.query && { query: about.query }),
    header: z.object({ ...about.headers, 'X-Request-Id': RequestIdParameter }),
  },
  ...(about.body && { requestBody: { required: true, content: contentOf(about.body) } }),
  responses: {
    [success.status]: {
      description: success.description,
      headers: answerHeaders({ errors, consistent }),
      ...(success.body && { content: contentOf(success.body) }),
    },
    ...(otherwise && {
      [otherwise.status]: {
        description: otherwise.description,
        headers: answerHeaders({ errors, consistent }),
        content: contentOf(otherwise.body),
      },
    }),
    ...failures({ errors, consistent }),
  },
});

const contentOf = ({ type, ...body }: Body) => ({ [type ?? 'application/json']: body });

/** When each code is answered: SPEC, Errors. */
const CONDITIONS: Record<ErrorCode, string> = {
  unauthorized: 'missing or invalid API key or token',
  scope_denied: 'the key or token lacks the permission for this user or scope',
  not_found: 'no such resource',
  invalid_request: 'malformed body or invalid parameters',
  rate_limited: 'too many requests, or too many failed authentications',
  unsupported_capability: 'the provider does not support this',
  provider_error: 'the backend failed or took too long',
  payload_too_large:
    'the request body exceeds the limit, 1 MiB unless configured otherwise; or the memory would, twice that',
};

const EXAMPLE_REQUEST_ID = '7f9c2ba4-e88f-4a7d-9c1b-0d5e3a6f2b10';

/** What the headers of an endpoint's answers depend on. */
export interface Answering {
  readonly errors: readonly ErrorCode[];
  /** Whether what a client wrote through another replica is waited for. */
  readonly consistent: boolean;
}

/** The error answers of an endpoint: one a status, with an example of every code it may carry. */
export function failures(endpoint: Answering): Record<string, ZodOpenApiResponseObject> {
  const byStatus: Record<string, ErrorCode[]> = {};
  for (const code of endpoint.errors) {
    const { status } = ERRORS[code];
    byStatus[status] = [...(byStatus[status] ?? []), code];
  }
  return Object.fromEntries(
    Object.entries(byStatus).map(([status, those]) => [status, failure(those, answerHeaders(endpoint, those))]),
  );
}

/**
 * The headers of an answer that carries one of these codes, or of a success: where an endpoint may answer
 * `rate_limited`, all but who is not let in are told what is left. Nothing but what was found, or not found, can be
 * behind.
 */
export function answerHeaders({ errors, consistent }: Answering, ofAnswer: readonly ErrorCode[] = []) {
  const refused = ofAnswer.includes('unauthorized');
  const found = ofAnswer.length === 0 || ofAnswer.includes('not_found');
  return z.object({
    'X-Request-Id': RequestIdHeader,
    ...(refused && { 'WWW-Authenticate': WwwAuthenticateHeader }),
    ...(ofAnswer.includes('rate_limited') && { 'Retry-After': RetryAfterHeader }),
    ...(errors.includes('rate_limited') && !refused && rateLimitHeaders),
    ...(consistent && found && consistencyHeaders),
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

/** Optional on every request. The form is the one `callMiddleware` takes over. */
export const RequestIdParameter = z
  .string()
  .optional()
  .meta({
    description: 'Taken over as the id of this request when it has this form; anything else is replaced.',
    pattern: REQUEST_ID.source,
    param: { id: 'RequestId' },
  });

/** Decision 19. */
export const UserIdParameter = z
  .string()
  .optional()
  .meta({
    description: 'When given, a memory of another user counts as absent.',
    param: { id: 'UserId' },
  });

/** Decision 20. */
export const IdempotencyKeyParameter = z
  .string()
  .optional()
  .meta({
    description: `Makes the request repeatable: for ${ONCE_TTL_MS / 3_600_000} hours the same key of the same caller, with an equal memory, gets
the first answer again and creates nothing; with another memory it is refused with 400. May be written as a quoted
string. Where \`features.idempotency\` is false, a request with a key is \`unsupported_capability\`.`,
    pattern: IDEMPOTENCY_KEY.source,
  });

/** Decision 23. */
export const ConsistencyTokenParameter = z
  .string()
  .optional()
  .meta({
    description: `The \`X-Consistency-Token\` of this client's latest answer that had one: what it names is waited for a
moment, on every replica. A token that is none is ignored, and so is every token where \`features.consistency_tokens\` is
false.`,
    param: { id: 'ConsistencyToken' },
  });

export const RequestIdHeader = z.string().meta({
  description: 'Identifies the request; the same in error bodies and in the log.',
  header: { id: 'RequestId' },
});

export const WwwAuthenticateHeader = z.string().meta({
  description: 'The scheme a credential is sent by, `Bearer`.',
  header: { id: 'WwwAuthenticate' },
});

export const RetryAfterHeader = z
  .string()
  .optional()
  .meta({
    description: 'Seconds to wait; missing when a backend refused without saying so.',
    header: { id: 'RetryAfter' },
  });

const told = (id: string, description: string) => z.string().optional().meta({ description, header: { id } });

const limit = (id: string, description: string) => told(id, `${description} Only where requests are limited.`);

/** Decision 17. */
export const rateLimitHeaders = {
  'RateLimit-Policy': limit('RateLimitPolicy', 'The limit: `q` requests in `w` seconds.'),
  RateLimit: limit('RateLimit', 'What is left of it: `r` requests, more in `t` seconds.'),
  'X-RateLimit-Limit': limit('XRateLimitLimit', 'Requests a minute.'),
  'X-RateLimit-Remaining': limit('XRateLimitRemaining', 'Requests left.'),
  'X-RateLimit-Reset': limit('XRateLimitReset', 'Seconds until there are more.'),
};

/** Decision 23. */
export const consistencyHeaders = {
  'X-Consistency-Token': told(
    'ConsistencyToken',
    'After a change: names it, and what the token of the request named. Only where `features.consistency_tokens` is true.',
  ),
  'X-Consistency': told('Consistency', '`behind`: what the token of the request names may be missing here.'),
};
