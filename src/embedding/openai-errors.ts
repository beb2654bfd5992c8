import { APIConnectionTimeoutError, APIError } from 'openai';
import { OmpError } from '#contract';
import { BadAnswer } from './openai-answer.ts';

const PROVIDER = 'openai';

/** Statuses by which a service says that the text itself is at fault: too long, empty, not admitted. */
const REFUSALS: ReadonlySet<number | undefined> = new Set([400, 413, 422]);

export const isRefusal = (error: unknown): boolean => error instanceof APIError && REFUSALS.has(error.status);

/** What a failed request means to our caller. The messages name nothing of the service but that it is one. */
export function toOmpError(failed: unknown): OmpError {
  const cause = forTheLog(failed);
  if (isRefusal(failed)) {
    return new OmpError('invalid_request', 'The embedding service refused this text.', { provider: PROVIDER, cause });
  }
  if (failed instanceof APIError && failed.status === 429 && failed.code !== 'insufficient_quota') {
    const retryAfter = secondsToWait(failed.headers?.get('retry-after'));
    const message = 'The embedding service limits the rate of requests.';
    return new OmpError('rate_limited', message, { provider: PROVIDER, cause, ...(retryAfter && { retryAfter }) });
  }
  const message =
    failed instanceof APIConnectionTimeoutError
      ? 'The embedding service did not answer in time.'
      : 'The embedding service failed.';
  return new OmpError('provider_error', message, { provider: PROVIDER, cause, down: !isAnswer(failed) });
}

/** What the service writes may repeat what it was sent: of an answer, only the status and a code that is one are kept. */
function forTheLog(failed: unknown): unknown {
  if (!(failed instanceof APIError) || failed.status === undefined) return failed;
  const code = /^[a-z0-9_.-]{1,64}$/i.test(failed.code ?? '') ? `, ${failed.code}` : '';
  return new Error(`the service answered HTTP ${failed.status}${code}`);
}

/** A status by which the service says that it works, and that something else is wrong: the key, the model, the quota. */
const isAnswer = (cause: unknown): boolean =>
  cause instanceof APIError && cause.status !== undefined && cause.status < 500 && cause.status !== 408;

/** `Retry-After` is a number of seconds or a date. */
function secondsToWait(header: string | null | undefined): number | undefined {
  if (!header) return undefined;
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - Date.now()) / 1000);
  return seconds > 0 ? seconds : undefined;
}

/** The same for the operator who starts the gateway: what to look at, never the key or what the service wrote. */
export function toStartError(cause: unknown): Error {
  return new Error(`The embedding service does not work: ${complaint(cause)}`, { cause });
}

function complaint(cause: unknown): string {
  if (cause instanceof BadAnswer) return `${cause.message}. Is OPENAI_BASE_URL an OpenAI-compatible API?`;
  if (cause instanceof APIConnectionTimeoutError) {
    return 'no answer in time. Check OPENAI_BASE_URL and OMP_EMBEDDING_TIMEOUT_MS.';
  }
  const status = cause instanceof APIError ? cause.status : undefined;
  if (status === undefined) return 'it cannot be reached. Check OPENAI_BASE_URL.';
  if (status === 401 || status === 403) return `it refused the key (HTTP ${status}). Check OPENAI_API_KEY.`;
  if (status === 429) return 'its rate limit or quota is used up (HTTP 429). Check the account behind OPENAI_API_KEY.';
  return `it answered HTTP ${status}. Check OPENAI_BASE_URL and OMP_EMBEDDING_MODEL.`;
}
