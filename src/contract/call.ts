/** On whose behalf something is done. */
export interface Caller {
  /** Unique among callers of every kind, such as `key:k3j2h1g0f9e8`; keeps what belongs to each of them apart. */
  readonly id: string;
  /** What the audit log and the access log call it: a key's name, a token's subject. Null: nobody in particular. */
  readonly app: string | null;
}

/**
 * What a client knows of its own writes, on a backend that shows them late to other gateways
 * (`ProviderCapabilities.consistency_tokens`).
 */
export interface Consistency {
  /** The token that came with the client's latest answer, opaque and not to be trusted; undefined: it sent none. */
  readonly token: string | undefined;
  /** Takes the token that goes out with the answer. */
  answer(token: string): void;
  /** Called when the backend does not yet show everything the token names and waiting any longer is too long. */
  behind(): void;
}

/** The distributed trace that a request is part of. */
export interface Trace {
  /** By which logs and traces find each other; 32 hexadecimal digits. */
  readonly id: string;
  /** Headers that carry it on to another service. */
  headers(): Readonly<Record<string, string>>;
}

/** What accompanies every request down to the backend. Required everywhere: an optional signal gets forgotten. */
export interface Call {
  /** Aborted when the client goes away or the request's deadline passes; its `reason` tells which. */
  readonly signal: AbortSignal;
  readonly requestId: string;
  readonly caller: Caller;
  /** Absent: nobody to tell. */
  readonly consistency?: Consistency;
  /** Absent: nobody follows this request. */
  readonly trace?: Trace;
  /**
   * The work, or the signal's reason as soon as that fires: for work that does not listen to the signal. Offered by
   * callers for whom making a signal for every call is too dear; the guard around every provider uses it.
   */
  readonly unlessAborted?: <Result>(work: Promise<Result>) => Promise<Result>;
}

/** The gateway itself, for what it does without being asked. */
export const GATEWAY: Caller = { id: 'gateway', app: null };

/** A call of the gateway itself. It ends after 10 s, whatever happens to the request that caused it. */
export const gatewayCall = (requestId: string): Call => ({
  signal: AbortSignal.timeout(10_000),
  requestId,
  caller: GATEWAY,
});
