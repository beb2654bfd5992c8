/** The error codes of the protocol. */
export type ErrorCode =
  | 'unauthorized'
  | 'scope_denied'
  | 'not_found'
  | 'invalid_request'
  | 'rate_limited'
  | 'unsupported_capability'
  | 'provider_error'
  | 'payload_too_large';

/** Base of everything that this client throws, except the reason of the caller's own signal. */
export class MemoryError extends Error {
  override name = 'MemoryError';
}

/** No answer arrived: the network failed. */
export class ConnectionError extends MemoryError {
  override name = 'ConnectionError';
}

/** No complete answer arrived in time: `timeout` for one attempt or `totalTimeout` for all. */
export class TimeoutError extends MemoryError {
  override name = 'TimeoutError';
}

/** The answer is not the protocol's, for example the page of a proxy. */
export class InvalidResponseError extends MemoryError {
  override name = 'InvalidResponseError';

  readonly status: number;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;

  constructor(message: string, details: Pick<ErrorDetails, 'status' | 'requestId' | 'retryAfter'>) {
    super(message);
    this.status = details.status;
    this.requestId = details.requestId;
    this.retryAfter = details.retryAfter;
  }
}

export interface ErrorDetails {
  readonly code: ErrorCode;
  /** Category of the code, such as `invalid`. */
  readonly type: string;
  /** HTTP status. */
  readonly status: number;
  /** Names the request in the gateway's logs. */
  readonly requestId: string | undefined;
  /** Seconds until a retry may succeed. */
  readonly retryAfter: number | undefined;
  /** The backend at fault. */
  readonly provider: string | undefined;
}

/** The gateway answered with an error. There is a subclass for each code. */
export class ApiError extends MemoryError {
  override name = 'ApiError';

  readonly code: ErrorCode;
  readonly type: string;
  readonly status: number;
  readonly requestId: string | undefined;
  readonly retryAfter: number | undefined;
  readonly provider: string | undefined;

  constructor(message: string, details: ErrorDetails) {
    super(message);
    this.code = details.code;
    this.type = details.type;
    this.status = details.status;
    this.requestId = details.requestId;
    this.retryAfter = details.retryAfter;
    this.provider = details.provider;
  }
}

export class UnauthorizedError extends ApiError {
  override name = 'UnauthorizedError';
}
export class ScopeDeniedError extends ApiError {
  override name = 'ScopeDeniedError';
}
export class NotFoundError extends ApiError {
  override name = 'NotFoundError';
}
export class InvalidRequestError extends ApiError {
  override name = 'InvalidRequestError';
}
/** The memory has changed since the version that `ifMatch` names: read it again. */
export class PreconditionFailedError extends InvalidRequestError {
  override name = 'PreconditionFailedError';
}
/** The gateway does not know the changes after this cursor any more: copy the memories again, and follow from `now`. */
export class CursorGoneError extends InvalidRequestError {
  override name = 'CursorGoneError';
}
export class RateLimitedError extends ApiError {
  override name = 'RateLimitedError';
}
export class UnsupportedCapabilityError extends ApiError {
  override name = 'UnsupportedCapabilityError';
}
export class ProviderError extends ApiError {
  override name = 'ProviderError';
}
export class PayloadTooLargeError extends ApiError {
  override name = 'PayloadTooLargeError';
}

const CLASSES: Readonly<Record<ErrorCode, typeof ApiError>> = {
  unauthorized: UnauthorizedError,
  scope_denied: ScopeDeniedError,
  not_found: NotFoundError,
  invalid_request: InvalidRequestError,
  rate_limited: RateLimitedError,
  unsupported_capability: UnsupportedCapabilityError,
  provider_error: ProviderError,
  payload_too_large: PayloadTooLargeError,
};

/** Special cases of a code. */
const BY_STATUS: Readonly<Record<number, typeof ApiError>> = { 410: CursorGoneError, 412: PreconditionFailedError };

/** The error of an envelope; undefined if the body is not the protocol's envelope. */
export function errorOf(
  body: unknown,
  details: Pick<ErrorDetails, 'status' | 'requestId' | 'retryAfter'>,
): ApiError | undefined {
  const { error } = (body ?? {}) as {
    error?: { code?: ErrorCode; message?: string; type?: string; provider?: string };
  };
  if (!error?.code || !Object.hasOwn(CLASSES, error.code)) return undefined;
  const Class = BY_STATUS[details.status] ?? CLASSES[error.code];
  const { code, message = code, type = '', provider } = error;
  return new Class(message, { ...details, code, type, provider });
}
