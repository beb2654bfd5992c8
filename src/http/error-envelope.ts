import type { Context } from 'hono';
import { ERROR_TYPES, type ErrorCode, OmpError } from '#contract';
import { naming } from '../core/telemetry.ts';
import { etagOf } from '../verbs/wire-memory.ts';
import { COMMON_HEADERS, type Env } from './request.ts';

/** The status of each error code (SPEC, Errors). */
export const STATUS = {
  unauthorized: 401,
  scope_denied: 403,
  not_found: 404,
  invalid_request: 400,
  rate_limited: 429,
  unsupported_capability: 400,
  provider_error: 502,
  payload_too_large: 413,
} as const satisfies Record<ErrorCode, number>;

/** The protocol's error envelope. Every error response is built here. */
export const toEnvelope = (error: OmpError, requestId: string) => ({
  error: { ...toWire(error), request_id: requestId },
});
const toWire = ({ code, message, provider }: OmpError) => ({
  code,
  message,
  type: ERROR_TYPES[code],
  ...(provider !== undefined && { provider }),
});

/** The error of one memory in a batch; logged like that of a request. */
export function itemError(failure: OmpError, c: Context<Env>) {
  const error = naming(c.get('provider'), failure);
  logError(error, c);
  return toWire(error);
}

/** The error that the client gets. One that is no `OmpError` is a bug: the client gets 502, the log the whole error. */
export function reportError(failure: unknown, c: Context<Env>): OmpError {
  const error =
    failure instanceof OmpError
      ? naming(c.get('provider'), failure)
      : new OmpError('provider_error', 'the gateway failed to process this request', { cause: failure });
  logError(error, c);
  return error;
}

/** Answers with the envelope. */
export function errorResponse(failure: unknown, c: Context<Env>): Response {
  const call = c.get('call');
  const error = reportError(failure, c);
  if (error.code === 'unauthorized') {
    const metadata = c.get('resourceMetadata');
    c.header('www-authenticate', `Bearer realm="memories"${metadata ? `, resource_metadata="${metadata}"` : ''}`);
  }
  if (error.retryAfter !== undefined) c.header('retry-after', String(Math.ceil(error.retryAfter)));
  if (error.version !== undefined) c.header('etag', etagOf({ updated_at: error.version, status: null }));
  const envelope = toEnvelope(error, call.requestId);
  // mem0's clients read `detail`.
  const body = c.req.path.startsWith('/compat/') ? { detail: error.message, ...envelope } : envelope;
  return c.json(body, statusOf(error));
}

/** An error of the protocol may have another status that clients of HTTP understand (Decisions 36, 51 and 53). */
function statusOf({ code, version, gone, frozen }: OmpError) {
  if (version !== undefined) return 412;
  if (gone) return 410;
  return frozen ? 503 : STATUS[code];
}

/** Logs what the client does not see. An error without a cause is complete in its response. */
function logError(error: OmpError, c: Context<Env>): void {
  const { requestId } = c.get('call');
  const { code, cause, provider, message, retryAfter } = error;
  const log = c.get('log');
  if (cause === undefined) {
    // With a time to retry, such as that of an open circuit breaker, the failure behind it is in the log already.
    const isNews = code === 'provider_error' && retryAfter === undefined;
    if (isNews) log.error({ request_id: requestId, provider, reason: message }, 'request failed');
  } else if (code === 'provider_error') log.error({ request_id: requestId, provider, err: error }, 'request failed');
  // One line without a stack, because anyone can cause it any number of times.
  else if (code === 'unauthorized' && cause instanceof Error) {
    log.warn({ request_id: requestId, reason: cause.message }, 'not authenticated');
  } else log.warn({ request_id: requestId, provider, err: error }, 'request failed');
}

/** The response to a request that never reached the app and has no `Context`. */
export function plainResponse(error: OmpError, requestId: string) {
  return {
    status: STATUS[error.code],
    headers: { 'content-type': 'application/json', 'x-request-id': requestId, ...COMMON_HEADERS },
    body: JSON.stringify(toEnvelope(error, requestId)),
  };
}
