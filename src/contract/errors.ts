/** Every error code of the protocol (SPEC, Errors). The list is closed: clients branch on it. */
export const ERROR_CODES = [
  'unauthorized',
  'scope_denied',
  'not_found',
  'invalid_request',
  'rate_limited',
  'unsupported_capability',
  'provider_error',
  'payload_too_large',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** The category of each code (SPEC, Errors). */
export const ERROR_TYPES = {
  unauthorized: 'auth',
  scope_denied: 'auth',
  not_found: 'not_found',
  invalid_request: 'invalid',
  rate_limited: 'rate_limited',
  unsupported_capability: 'invalid',
  provider_error: 'provider_error',
  payload_too_large: 'invalid',
} as const satisfies Record<ErrorCode, string>;

export interface OmpErrorOptions {
  /** The original error. Logged, never sent. */
  readonly cause?: unknown;
  /** The backend or embedding service at fault; becomes `error.provider`. */
  readonly provider?: string;
  /** Seconds until a retry may succeed, if known; becomes `Retry-After`. */
  readonly retryAfter?: number;
  /**
   * Whether a retry may help. `safe`: the operation had no effect, so every operation may be retried. `reads`: its effect
   * is unknown, so only reads may be retried. Unset: a retry would fail again.
   */
  readonly retry?: 'safe' | 'reads';
  /** Counts towards the circuit breaker. `suspected`: there was no answer in time, which counts only if a probe gets none either. */
  readonly down?: boolean | 'suspected';
  /** The version (`updated_at`) of a record of which the request named others. */
  readonly version?: string;
  /** The store takes no changes at the moment. */
  readonly frozen?: boolean;
  /** Whether what the request refers to existed once. */
  readonly gone?: boolean;
  /** The limit of the user that the change would exceed. */
  readonly limit?: 'memories' | 'bytes' | 'adds_per_day';
}

/** Characters of an error's message. */
const MAX_MESSAGE_LENGTH = 1_000;

/** The beginning of a text, without half of a surrogate pair; the whole text if it has at most `length` characters. */
export const beginningOf = (text: string, length = MAX_MESSAGE_LENGTH): string =>
  text.length <= length ? text : `${text.slice(0, length).replace(/[\ud800-\udbff]$/, '')}…`;

const BRAND: unique symbol = Symbol.for('omp-gateway.OmpError');

/**
 * The only error type that may reach a client. `message` is public: it may name fields and limits, but never SQL, hosts,
 * keys or record contents. Only its first 1,000 characters are kept: it may name what a client sent.
 */
export class OmpError extends Error {
  /** A provider of others may come with a copy of this class. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && BRAND in value;
  }

  readonly [BRAND] = true;
  readonly code: ErrorCode;
  readonly provider: string | undefined;
  readonly retryAfter: number | undefined;
  readonly retry: OmpErrorOptions['retry'];
  readonly down: NonNullable<OmpErrorOptions['down']>;
  readonly version: string | undefined;
  readonly frozen: boolean;
  readonly gone: boolean;
  readonly limit: OmpErrorOptions['limit'];

  constructor(code: ErrorCode, message: string, options: OmpErrorOptions = {}) {
    super(beginningOf(message), options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'OmpError';
    this.code = code;
    this.provider = options.provider;
    this.retryAfter = options.retryAfter;
    this.retry = options.retry;
    this.down = options.down ?? false;
    this.version = options.version;
    this.frozen = options.frozen ?? false;
    this.gone = options.gone ?? false;
    this.limit = options.limit;
  }
}

/** The request is invalid. */
export const invalidRequest = (message: string): OmpError => new OmpError('invalid_request', message);

/** A record has changed since the client read it (Decision 36). */
export const versionChanged = (version: string): OmpError =>
  new OmpError('invalid_request', 'If-Match: the memory has changed; read it again and repeat the change', { version });

/** The feed of changes does not reach back to a cursor, or its log is another one by now (Decision 51). */
export const beginAnew = (reason: string): OmpError =>
  new OmpError('invalid_request', `after: ${reason}; copy the memories again, and go on from after=now`, {
    gone: true,
  });

/** The backend failed, is down, or is too slow. */
export const providerError = (provider: string, message: string, cause?: unknown): OmpError =>
  new OmpError('provider_error', message, { provider, cause });
