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
}

/**
 * The one error type that may reach a client. `message` is public text: it names fields and limits,
 * never SQL, hosts, keys or record contents.
 */
export class OmpError extends Error {
  readonly code: ErrorCode;
  readonly provider: string | undefined;
  readonly retryAfter: number | undefined;

  constructor(code: ErrorCode, message: string, options: OmpErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'OmpError';
    this.code = code;
    this.provider = options.provider;
    this.retryAfter = options.retryAfter;
  }
}

/** The caller's mistake, caught before or by the backend (400). */
export const invalidRequest = (message: string): OmpError => new OmpError('invalid_request', message);

/** The backend failed, is down, or is too slow (502). */
export const providerError = (provider: string, message: string, cause?: unknown): OmpError =>
  new OmpError('provider_error', message, { provider, cause });
