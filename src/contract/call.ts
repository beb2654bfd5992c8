/** The client that a call is made for. */
export interface Caller {
  /** Unique among callers of every kind, such as `key:k3j2h1g0f9e8`. */
  readonly id: string;
  /** Name in the audit log: the name of a key or the subject of a token. Null: anonymous. */
  readonly app: string | null;
}

/**
 * Lets a client read its own writes on a backend where other gateways see them with a delay
 * (`ProviderCapabilities.consistency_tokens`).
 */
export interface Consistency {
  /** The token that the client sent, opaque and untrusted; undefined: none. */
  readonly token: string | undefined;
  /** Sets the token of the response. */
  answer(token: string): void;
  /** Called when the backend does not show all writes of the token in time. */
  behind(): void;
}

/** The distributed trace that a request is part of. */
export interface Trace {
  /** Also in the log lines of the request; 32 hexadecimal digits. */
  readonly id: string;
  /** Headers that propagate the trace to another service. */
  headers(): Readonly<Record<string, string>>;
}

/** The context of a request, passed down to the backend. Required everywhere, since an optional signal would be forgotten. */
export interface Call {
  /** Aborted when the client disconnects or the request's deadline passes; `reason` is the error. */
  readonly signal: AbortSignal;
  /** The same as `signal.aborted`, but does not create a lazy `signal`, which is expensive. Absent: ask the signal. */
  readonly aborted?: boolean;
  readonly requestId: string;
  readonly caller: Caller;
  /** Absent: the caller uses no consistency tokens. */
  readonly consistency?: Consistency;
  /** Absent: the request is not traced. */
  readonly trace?: Trace;
  /**
   * Resolves with the work, or rejects with the signal's reason once it aborts. For work that ignores the signal.
   * Does not create a lazy `signal`. `withGuard` uses it.
   */
  readonly unlessAborted?: <Result>(work: Promise<Result>) => Promise<Result>;
  /**
   * Does this once the client has taken the answer or is gone; at once if it has. Absent: the call has no client that takes an
   * answer.
   */
  afterAnswer?(work: () => void): void;
}

/** Whether the call was aborted. Does not create a lazy `signal`. */
export const isAborted = (call: Call): boolean => call.aborted ?? call.signal.aborted;

/** The gateway itself, as the caller of background work. */
export const GATEWAY: Caller = { id: 'gateway', app: null };

/** A call of the gateway itself, with a deadline of 10 s that does not depend on any request. */
export const gatewayCall = (requestId: string): Call => ({
  signal: AbortSignal.timeout(10_000),
  requestId,
  caller: GATEWAY,
});
