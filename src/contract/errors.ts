/** Every error code of the protocol (SPEC, Errors). The list is closed: clients branch on it. */
export type ErrorCode =
  | 'unauthorized'
  | 'scope_denied'
  | 'not_found'
  | 'invalid_request'
  | 'rate_limited'
  | 'unsupported_capability'
  | 'provider_error'
  | 'payload_too_large';

export interface OmpErrorOptions {
  /** What really happened. Logged, never sent. */
  readonly cause?: unknown;
  /** The backend or embedding service at fault; becomes `error.provider`. */
  readonly provider?: string;
  /** Seconds the caller should wait, where that is known; becomes `Retry-After`. */
  readonly retryAfter?: number;
  /**
   * Whether trying again may help. `safe`: nothing has happened, so that anything may be sent again; `reads`: what it did is
   * not known, so that only what changes nothing may be. Unset: it would fail again.
   */
  readonly retry?: 'safe' | 'reads';
  /** It could not be asked, or gave no proper answer: enough of these in a row, and it is taken for down. */
  readonly down?: boolean;
}

/**
 * The one error type that may reach a client. `message` is public text: it names fields and limits,
 * never SQL, hosts, keys or record contents.
 */
export class OmpError extends Error {
  readonly code: ErrorCode;
  readonly provider: string | undefined;
  readonly retryAfter: number | undefined;
  readonly retry: OmpErrorOptions['retry'];
  readonly down: boolean;

  constructor(code: ErrorCode, message: string, options: OmpErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'OmpError';
    this.code = code;
    this.provider = options.provider;
    this.retryAfter = options.retryAfter;
    this.retry = options.retry;
    this.down = options.down ?? false;
  }
}

/** The caller's mistake, caught before or by the backend (400). */
export const invalidRequest = (message: string): OmpError => new OmpError('invalid_request', message);

/** The backend failed, is down, or is too slow (502). */
export const providerError = (provider: string, message: string, cause?: unknown): OmpError =>
  new OmpError('provider_error', message, { provider, cause });
