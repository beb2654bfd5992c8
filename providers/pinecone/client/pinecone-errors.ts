import { OmpError, providerError } from '#provider';

export const PROVIDER = 'pinecone';

/**
 * Why a request failed. `retry.ts` decides by it whether to send the request again, `toOmpError` which error the
 * client of the gateway receives.
 */
export type FailureKind =
  /** Not sent: no connection. */
  | 'unreachable'
  /** Not sent: no secure connection. */
  | 'insecure'
  /** Sent; the connection ended before the whole answer arrived. */
  | 'connection-lost'
  /** No answer before the deadline. */
  | 'deadline'
  /** Answered with something that is not in Pinecone's API. */
  | 'malformed'
  /** Status 429. */
  | 'rate-limited'
  /** Status 5xx or 408. */
  | 'server-error'
  /** Any other status. */
  | 'rejected';

interface FailureFacts {
  /** Status of the answer, if there was one. */
  readonly status?: number;
  /** From the header `Retry-After`, in seconds. */
  readonly retryAfter?: number;
  /** The namespace does not exist. */
  readonly namespaceMissing?: boolean;
}

/**
 * One failed request. It is logged, so its message never repeats what was sent: it has statuses, system error codes, and
 * Pinecone's own text where that is about the account.
 */
export class Failure extends Error {
  readonly kind: FailureKind;
  readonly status: number | undefined;
  readonly retryAfter: number | undefined;
  readonly namespaceMissing: boolean;

  constructor(kind: FailureKind, message: string, facts: FailureFacts = {}) {
    super(message);
    this.name = 'PineconeFailure';
    this.kind = kind;
    this.status = facts.status;
    this.retryAfter = facts.retryAfter;
    this.namespaceMissing = facts.namespaceMissing ?? false;
  }
}

/** The failed request behind an `OmpError`. */
export function failureBehind(error: unknown): Failure | undefined {
  return error instanceof OmpError && error.cause instanceof Failure ? error.cause : undefined;
}

/** Statuses whose text is about the account or the service. The text of others may quote the request. */
const SAFE_TO_LOG = [401, 402, 403, 404, 429];
/** gRPC's code in a JSON error. */
const NOT_FOUND = 5;

/** The failure that an unsuccessful answer means. */
export function failureOf({ status, headers, url }: Response, text: string): Failure {
  const { code, message } = parseError(text);
  const isSafe = SAFE_TO_LOG.includes(status) || status >= 500;
  const retryAfter = parseRetryAfter(headers.get('retry-after'));
  const detail = isSafe && message ? `: ${message.slice(0, 200)}` : '';
  return new Failure(kindOf(status), `${new URL(url).pathname}: status ${status}${detail}`, {
    status,
    ...(retryAfter !== undefined && { retryAfter }),
    // A 404 without this text may mean that the index does not exist.
    namespaceMissing: status === 404 && code === NOT_FOUND && /namespace/i.test(message),
  });
}

function kindOf(status: number): FailureKind {
  if (status === 429) return 'rate-limited';
  return status >= 500 || status === 408 ? 'server-error' : 'rejected';
}

/** Proxies in front of Pinecone answer in plain text, which is not logged. */
function parseError(text: string): { code: unknown; message: string } {
  try {
    const { code, message } = JSON.parse(text) as { code?: unknown; message?: unknown };
    return { code, message: typeof message === 'string' ? message : '' };
  } catch {
    return { code: undefined, message: '' };
  }
}

const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
const DAY = 86_400;

/** Whole seconds of a `Retry-After`, a number or a date. Undefined: absent, malformed or longer than a day. */
function parseRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const seconds = HTTP_DATE.test(value)
    ? Math.max(0, Math.ceil((Date.parse(value) - Date.now()) / 1000))
    : Number(/^\d+$/.test(value) ? value : Number.NaN);
  return seconds <= DAY ? seconds : undefined;
}

/** Messages for clients, by status or else by kind. The texts of Pinecone and of the system stay in the log. */
const BY_STATUS: Readonly<Record<number, string>> = {
  401: 'Pinecone rejected the API key of the gateway',
  402: 'Pinecone requires a payment from the account of the gateway',
  403: 'Pinecone does not allow this request, or a quota of the account is used up',
  404: 'Pinecone does not have what the gateway requested',
  408: 'Pinecone took too long',
  503: 'Pinecone is not available at the moment',
};
const BY_KIND: Readonly<Record<FailureKind, string>> = {
  unreachable: 'Pinecone cannot be reached',
  insecure: 'no secure connection to Pinecone could be made',
  'connection-lost': 'the connection to Pinecone was lost',
  deadline: 'Pinecone took too long',
  malformed: 'Pinecone sent an answer that cannot be read',
  'rate-limited': 'Pinecone accepts no more requests at the moment',
  'server-error': 'Pinecone failed',
  rejected: 'Pinecone rejected a request of the gateway',
};

/** The error for the client after the last attempt: `rate_limited` for a 429, otherwise `provider_error`. */
export function toOmpError(cause: unknown): OmpError {
  if (cause instanceof OmpError) return cause;
  if (!(cause instanceof Failure)) return providerError(PROVIDER, 'the request to Pinecone could not be made', cause);
  const { kind, status = 0, retryAfter } = cause;
  const message = BY_STATUS[status] ?? BY_KIND[kind];
  if (kind !== 'rate-limited') {
    // A rejection proves that Pinecone answers. All others were retried already (`retry.ts`).
    const down = kind === 'deadline' ? 'suspected' : kind !== 'rejected';
    return new OmpError('provider_error', message, { provider: PROVIDER, cause, down });
  }
  return new OmpError('rate_limited', message, {
    provider: PROVIDER,
    cause,
    ...(retryAfter !== undefined && { retryAfter }),
  });
}
