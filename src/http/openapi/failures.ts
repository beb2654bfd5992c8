import { z } from 'zod';
import type { ZodOpenApiResponseObject } from 'zod-openapi';
import { type ErrorCode, OmpError } from '#contract';
import { ERRORS, toEnvelope } from '../error-envelope.ts';
import { ErrorEnvelope } from '../schemas/responses.ts';
import {
  consistencyHeaders,
  RequestIdHeader,
  RetryAfterHeader,
  rateLimitHeaders,
  WwwAuthenticateHeader,
} from './headers.ts';

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
