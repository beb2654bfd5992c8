/** What can become of a request, as far as it matters for repeating it and for what a client is told. */
export type FailureKind =
  /** It was never sent: no connection. */
  | 'unreachable'
  /** It was never sent: no secure connection. */
  | 'insecure'
  /** It was sent, and the connection ended before the whole answer was there. */
  | 'lost'
  /** The deadline passed. */
  | 'late'
  /** It was answered, with something else than the interface promises. */
  | 'unreadable'
  /** Too many requests, said the service. */
  | 'busy'
  /** The service failed (5xx, 408). */
  | 'failed'
  /** Any other status. */
  | 'refused';

export interface FailureFacts {
  /** Of the answer, where there was one. */
  readonly status?: number;
  /** Seconds the service asks to wait. */
  readonly retryAfter?: number;
  /** The namespace does not exist. */
  readonly namespaceMissing?: boolean;
}

/**
 * One request that did not succeed. It is logged, so its message is made of statuses, codes of the system and, of an
 * answer about the account, what the service said: nothing that was sent.
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
