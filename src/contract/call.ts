import { setMaxListeners } from 'node:events';

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

/** The gateway itself, as the caller of background work. */
export const GATEWAY: Caller = { id: 'gateway', app: null };

/**
 * The context of a request, passed down to the backend. A provider stops its work when the call is aborted: the client has
 * disconnected, or the deadline of the request has passed.
 *
 * The signal is made when it is first read: most requests never read it, and making one takes a sixth of the time of a get.
 */
export class Call {
  readonly requestId: string;
  /** Known after authentication; until then, the gateway acts for itself. */
  caller: Caller;
  /** Undefined: the caller uses no consistency tokens. */
  consistency: Consistency | undefined = undefined;
  /** Undefined: the request is not traced. */
  trace: Trace | undefined = undefined;
  readonly #abortion: Abortion;

  /** `signal` aborts the call; undefined: only `abort` does. A call made from another one ends with it. */
  constructor(requestId: string, caller: Caller = GATEWAY, signal?: AbortSignal | Call) {
    this.requestId = requestId;
    this.caller = caller;
    this.#abortion = signal instanceof Call ? signal.#abortion : new Abortion(signal);
  }

  /** Aborted when the call is; `reason` is the error. */
  get signal(): AbortSignal {
    return this.#abortion.signal;
  }

  /** The same as `signal.aborted`, without making the signal. */
  get aborted(): boolean {
    return this.#abortion.aborted;
  }

  throwIfAborted(): void {
    if (this.aborted) this.signal.throwIfAborted();
  }

  /** Resolves with the work, or rejects with the signal's reason once the call is aborted. For work that ignores the signal. */
  unlessAborted<Result>(work: Promise<Result>): Promise<Result> {
    return this.#abortion.race(work);
  }

  /** Does this once the call is aborted; at once if it is. Returns what ends that. */
  onAbort(work: () => void): () => void {
    return this.#abortion.listen(work);
  }

  abort(reason: unknown): void {
    this.#abortion.abort(reason);
  }

  /** The same call in another trace. */
  within(trace: Trace): Call {
    const call = new Call(this.requestId, this.caller, this);
    call.consistency = this.consistency;
    call.trace = trace;
    return call;
  }

  /** Does this once the client has taken the answer or is gone; at once if no client takes an answer. */
  afterAnswer(work: () => void): void {
    work();
  }

  /** Tells the client that a name in its input was ignored (Decision 6). */
  ignored(_name: string): void {}
}

/** A call of the gateway itself, with a deadline of 10 s unless a signal ends it. `name` stands for the id of a request. */
export const backgroundCall = (name: string, signal: AbortSignal = AbortSignal.timeout(10_000)): Call =>
  new Call(name, GATEWAY, signal);

/** Ends the work of one or several calls. */
class Abortion {
  readonly #given: AbortSignal | undefined;
  #controller: AbortController | undefined = undefined;
  #reason: unknown = undefined;
  readonly #listeners: ((reason: unknown) => void)[] = [];

  constructor(given: AbortSignal | undefined) {
    this.#given = given;
  }

  get signal(): AbortSignal {
    if (this.#given) return this.#given;
    this.#controller ??= new AbortController();
    if (this.aborted && !this.#controller.signal.aborted) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#given ? this.#given.aborted : this.#reason !== undefined;
  }

  abort(reason: unknown): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
    for (const listener of this.#listeners.splice(0)) listener(this.#reason);
  }

  race<Result>(work: Promise<Result>): Promise<Result> {
    if (this.#given) return unlessAborted(work, this.#given);
    return new Promise((resolve, reject) => {
      work.then(resolve, reject);
      if (this.aborted) reject(this.#reason);
      else this.#listeners.push(reject);
    });
  }

  listen(work: () => void): () => void {
    const given = this.#given;
    if (given) {
      listenForAbort(given, work);
      return () => given.removeEventListener('abort', work);
    }
    if (this.aborted) work();
    else this.#listeners.push(work);
    return () => {
      const place = this.#listeners.indexOf(work);
      if (place >= 0) this.#listeners.splice(place, 1);
    };
  }
}

/** Resolves with the work, or rejects with the signal's reason once it aborts. For work that ignores the signal. */
export async function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
  });
  listenForAbort(signal, stop);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** Does this when the signal aborts; at once if it has. */
export function listenForAbort(signal: AbortSignal, listener: () => void): void {
  // Much work may share a signal; Node warns of a leak from the eleventh listener on.
  setMaxListeners(0, signal);
  if (signal.aborted) listener();
  else signal.addEventListener('abort', listener, { once: true });
}
