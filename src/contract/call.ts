import { setMaxListeners } from 'node:events';
import type { OmpError } from './errors.ts';

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
  /** 32 hexadecimal digits. The log lines of the request have it too. */
  readonly id: string;
  /** Headers that propagate the trace to another service. */
  headers(): Readonly<Record<string, string>>;
}

/**
 * The stores that an answer lacks, by the name of the answer's field and header: `x-partial`: an optional store failed;
 * `x-without`: a store does not support the verb (Decision 49).
 */
export type LeftOut = { readonly [Name in 'x-partial' | 'x-without']?: readonly string[] };

/** What a call is about. Calls that are made from it share these, unless they have their own (`Call.with`). */
export interface CallFields {
  readonly requestId: string;
  readonly caller: Caller;
  /** Undefined: the caller uses no consistency tokens. */
  readonly consistency: Consistency | undefined;
  /** Undefined: the request is not traced. */
  readonly trace: Trace | undefined;
  /** When the call is aborted, in milliseconds of `performance.now()`; undefined: not at a known time. */
  readonly deadline: number | undefined;
}

/** What a call has of its own that is made from another one. */
export interface OwnFields extends Partial<CallFields> {
  /** What aborts it instead of the other call: a signal; `itself`: nothing but its `abort`. Then it has no deadline but its own. */
  readonly abortedBy?: AbortSignal | 'itself';
}

/** The gateway itself, as the caller of background work. */
export const GATEWAY: Caller = { id: 'gateway', app: null };

/**
 * The context of a request, passed down to the backend. A provider stops its work when the call is aborted: the client has
 * disconnected, or the deadline of the request has passed.
 *
 * The signal is made when it is first read: see docs/performance-notes.md.
 */
export class Call implements CallFields {
  readonly requestId: string;
  readonly caller: Caller;
  readonly consistency: Consistency | undefined;
  readonly trace: Trace | undefined;
  readonly deadline: number | undefined;
  /** The call that aborts this one: the one it was made from, else itself. */
  readonly #root: Call;
  readonly #source: AbortSignal | undefined;
  #controller: AbortController | undefined = undefined;
  #reason: unknown = undefined;
  readonly #listeners: (() => void)[] = [];
  #leftOut: LeftOut | undefined = undefined;

  /** `from`: a signal or another call that aborts this one; undefined: only `abort` does. */
  constructor(
    requestId: string,
    caller: Caller = GATEWAY,
    from?: AbortSignal | Call,
    { consistency, trace, deadline }: Omit<Partial<CallFields>, 'requestId' | 'caller'> = {},
  ) {
    this.requestId = requestId;
    this.caller = caller;
    this.consistency = consistency;
    this.trace = trace;
    this.deadline = deadline;
    this.#root = from instanceof Call ? from.#root : this;
    this.#source = from instanceof Call ? undefined : from;
  }

  /** Aborted when the call is; `reason` is the error. */
  get signal(): AbortSignal {
    const root = this.#root;
    if (root.#source) return root.#source;
    root.#controller ??= new AbortController();
    if (root.#reason !== undefined) root.#controller.abort(root.#reason);
    return root.#controller.signal;
  }

  /** Whether the call is aborted. Does not make the signal. */
  get aborted(): boolean {
    const root = this.#root;
    return root.#source ? root.#source.aborted : root.#reason !== undefined;
  }

  throwIfAborted(): void {
    if (this.aborted) this.signal.throwIfAborted();
  }

  /** Resolves with the work, or rejects with the signal's reason once the call is aborted. For work that ignores the signal. */
  unlessAborted<Result>(work: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const stop = this.onAbort(() => reject(this.signal.reason));
      void work.then(resolve, reject).then(stop);
    });
  }

  /** Runs the work when the call aborts; at once if it has. Returns a function that removes the work. */
  onAbort(work: () => void): () => void {
    const source = this.#root.#source;
    const listeners = this.#root.#listeners;
    if (source) {
      listenForAbort(source, work);
      return () => source.removeEventListener('abort', work);
    }
    if (this.aborted) work();
    else listeners.push(work);
    return () => {
      const index = listeners.indexOf(work);
      if (index >= 0) listeners.splice(index, 1);
    };
  }

  abort(reason: unknown): void {
    const root = this.#root;
    root.#reason ??= reason;
    root.#controller?.abort(root.#reason);
    for (const work of root.#listeners.splice(0)) work();
  }

  /**
   * A call for a part of the work of this one: with the same fields but its own, and aborted with this one. It speaks to no client:
   * what it leaves out or ignores is told through this one, and its answer is taken at once.
   */
  with({ abortedBy, ...own }: OwnFields): Call {
    const shared: CallFields = {
      requestId: this.requestId,
      caller: this.caller,
      consistency: this.consistency,
      trace: this.trace,
      deadline: abortedBy ? undefined : this.deadline,
    };
    const { requestId, caller, ...others } = { ...shared, ...own };
    return new Call(requestId, caller, abortedBy === 'itself' ? undefined : (abortedBy ?? this), others);
  }

  /** Runs the work once the client has taken the answer or has disconnected; at once if no client takes an answer. */
  afterAnswer(work: () => void): void {
    work();
  }

  /**
   * Waits for an event instead of work: meanwhile the request has no deadline, and the time counts for nothing. Over HTTP it then
   * rejects with `unauthorized` if the credential of the caller is not valid any more.
   */
  idle<Result>(event: Promise<Result>): Promise<Result> {
    return event;
  }

  /** Tells the client that a name in its input was ignored (Decision 6). */
  ignored(_name: string): void {}

  /** Undefined: the answer is complete. */
  get leftOut(): LeftOut | undefined {
    return this.#leftOut;
  }

  /** Tells the client that the answer lacks a store, and the log why, if it failed. */
  leaveOut(name: keyof LeftOut, store: string, _failure?: OmpError): void {
    const stores = this.#leftOut?.[name] ?? [];
    if (!stores.includes(store)) this.#leftOut = { ...this.#leftOut, [name]: [...stores, store].sort() };
  }
}

/** A call of the gateway itself, with a deadline of 10 s unless a signal ends it. `name` stands for the id of a request. */
export const backgroundCall = (name: string, signal: AbortSignal = AbortSignal.timeout(10_000)): Call =>
  new Call(name, GATEWAY, signal);

/** Calls the listener when the signal aborts; at once if it has. */
export function listenForAbort(signal: AbortSignal, listener: () => void): void {
  // Much work may share a signal; Node warns of a leak from the eleventh listener on.
  setMaxListeners(0, signal);
  if (signal.aborted) listener();
  else signal.addEventListener('abort', listener, { once: true });
}
