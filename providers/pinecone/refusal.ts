import { Failure, type FailureKind } from './failure.ts';

/** Whose text is about the account or the service; that of others may quote what was sent. */
const TELLING = [401, 402, 403, 404, 429];
const NOT_FOUND = 5;

/** An answer with a status that is not one of success, and with this body. */
export function refusal({ status, headers, url }: Response, text: string): Failure {
  const { code, message } = statusOf(text);
  const telling = TELLING.includes(status) || status >= 500;
  const retryAfter = secondsOf(headers.get('retry-after'));
  const said = telling && message ? `: ${message.slice(0, 200)}` : '';
  return new Failure(kindOf(status), `${new URL(url).pathname}: status ${status}${said}`, {
    status,
    ...(retryAfter !== undefined && { retryAfter }),
    // The same status without this text may mean that the whole index is gone.
    namespaceMissing: status === 404 && code === NOT_FOUND && /namespace/i.test(message),
  });
}

function kindOf(status: number): FailureKind {
  if (status === 429) return 'busy';
  return status >= 500 || status === 408 ? 'failed' : 'refused';
}

/** The body as the interface has it; layers in front of the service answer in plain text, which nobody vouches for. */
function statusOf(text: string): { code: unknown; message: string } {
  try {
    const { code, message } = JSON.parse(text) as { code?: unknown; message?: unknown };
    return { code, message: typeof message === 'string' ? message : '' };
  } catch {
    return { code: undefined, message: '' };
  }
}

const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
const DAY = 86_400;

/** Whole seconds of a `Retry-After`, a number or a date. Undefined: there is none, or it makes no sense. */
export function secondsOf(value: string | null): number | undefined {
  if (value === null) return undefined;
  const seconds = HTTP_DATE.test(value)
    ? Math.max(0, Math.ceil((Date.parse(value) - Date.now()) / 1000))
    : Number(/^\d+$/.test(value) ? value : Number.NaN);
  return seconds <= DAY ? seconds : undefined;
}
