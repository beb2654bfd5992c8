import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, listenForAbort, OmpError } from '#provider';
import { Failure, type FailureKind, PROVIDER, toOmpError } from './pinecone-errors.ts';
import { type Answer, exchange } from './transport.ts';

/*
 * A 429 is mapped to `rate-limited` in `pinecone-errors.ts`. It is sent again at most twice, with backoff (`RETRY_RULES`), after at
 * most one second of `Retry-After`. After the last attempt, or at once for a longer `Retry-After`, the client of the gateway
 * receives `rate_limited`.
 */

/** One request and how to read its answer. */
interface Request<Result> {
  /** Calls the SDK. */
  readonly send: () => Promise<unknown>;
  /** If it throws, the answer is not in Pinecone's API. */
  readonly read: (answer: Answer) => Result;
  /** Harmless when carried out twice, also late: reads and deletes. */
  readonly idempotent: boolean;
  /** The result that a failure stands for, such as a missing namespace; or throws the failure. */
  readonly onFailure?: (failure: Failure) => Result;
}

/** Rejects with an `OmpError`, or with the reason of the call's signal. */
export type SendRequest = <Result>(request: Request<Result>, call: Call) => Promise<Result>;

/**
 * Sends requests with retries. Every attempt first waits for a free slot of the limit; then its answer has `timeout_ms`
 * milliseconds to arrive.
 */
export function createSendRequest(timeout_ms: number, limit: ConcurrencyLimit): SendRequest {
  return async ({ send, read, idempotent, onFailure }, call) => {
    const { signal } = call;
    const exchangeOnce = async (limited: AbortSignal) =>
      parse(read, await exchange(send, { signal: limited, headers: call.trace?.headers() }));
    const attempt = () => limit.run(signal, () => withDeadline(timeout_ms, signal, exchangeOnce));
    try {
      return await withRetries(attempt, { idempotent, signal }).catch((error) => {
        if (error instanceof Failure && onFailure) return onFailure(error);
        throw error;
      });
    } catch (error) {
      signal.throwIfAborted();
      throw toOmpError(error);
    }
  };
}

function parse<Result>(read: (answer: Answer) => Result, answer: Answer): Result {
  try {
    return read(answer);
  } catch {
    throw new Failure('malformed', 'the answer is not in the API');
  }
}

interface RetryRule {
  readonly retry: 'always' | 'if-idempotent' | 'never';
  /** Maximum attempts, including the first. */
  readonly attempts: number;
}

/**
 * What is retried. A request that was not sent, or was answered, is over: it may be sent again. Without an answer Pinecone
 * may still carry it out, after a later change: only an idempotent request is sent again. After a deadline only one retry
 * follows: the caller has waited long already, and more requests make an overloaded service slower.
 */
const RETRY_RULES = {
  unreachable: { retry: 'always', attempts: 3 },
  'rate-limited': { retry: 'always', attempts: 3 },
  'server-error': { retry: 'always', attempts: 3 },
  'connection-lost': { retry: 'if-idempotent', attempts: 3 },
  malformed: { retry: 'if-idempotent', attempts: 3 },
  deadline: { retry: 'if-idempotent', attempts: 2 },
  insecure: { retry: 'never', attempts: 1 },
  rejected: { retry: 'never', attempts: 1 },
} as const satisfies Record<FailureKind, RetryRule>;

/** A longer `Retry-After`, in seconds, is passed on to the client instead of waited for. */
const LONGEST_RETRY_AFTER = 1;
const BASE_MS = 100;

export interface RetryOptions {
  readonly idempotent: boolean;
  readonly signal: AbortSignal;
}

/**
 * Runs the attempt and repeats it as `RETRY_RULES` say. Rejects with the last `Failure`, or with the signal's reason as
 * soon as the signal fires. (The retry policy of cockatiel 3 fits neither: a signal does not end its pauses, and the number
 * of attempts cannot depend on the failure.)
 */
export async function withRetries<Result>(
  attempt: () => Promise<Result>,
  { idempotent, signal }: RetryOptions,
): Promise<Result> {
  for (let count = 1; ; count++) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      const pause = error instanceof Failure ? pauseAfter(error, count, idempotent) : undefined;
      if (pause === undefined) throw error;
      await sleep(pause, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}

/** Milliseconds before the next attempt: exponential backoff with full jitter. Undefined: no more attempts. */
export function pauseAfter({ kind, retryAfter = 0 }: Failure, count: number, idempotent: boolean): number | undefined {
  const { retry, attempts }: RetryRule = RETRY_RULES[kind];
  if (count >= attempts || retry === 'never' || (retry === 'if-idempotent' && !idempotent)) return undefined;
  if (retryAfter > LONGEST_RETRY_AFTER) return undefined;
  return retryAfter * 1000 + Math.random() * BASE_MS * 2 ** (count - 1);
}

/** Runs the work with a signal that fires with the given one, or with a `Failure` after the deadline. */
async function withDeadline<Result>(
  milliseconds: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  outer.throwIfAborted();
  const inner = new AbortController();
  const stop = () => inner.abort(outer.reason);
  const expire = () => inner.abort(new Failure('deadline', `no answer within ${milliseconds} ms`));
  const deadline = setTimeout(expire, milliseconds);
  listenForAbort(outer, stop);
  try {
    return await work(inner.signal);
  } finally {
    clearTimeout(deadline);
    outer.removeEventListener('abort', stop);
  }
}

export interface ConcurrencyLimit {
  /** Runs the work in a free slot. Rejects with the signal's reason if the signal fires before one is free. */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result>;
  queueLength(): number;
}

/**
 * Runs at most `slots` at once, first come, first served. At most `queueLimit` wait; beyond that the error is `rate_limited`.
 * An aborted request leaves the queue at once, so that it takes no room from others. (In cockatiel's bulkhead it would.)
 */
export function createConcurrencyLimit(slots: number, queueLimit: number): ConcurrencyLimit {
  const queue = new Set<() => void>();
  let running = 0;

  const freeSlot = (signal: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      const start = () => {
        queue.delete(start);
        signal.removeEventListener('abort', leave);
        running++;
        resolve();
      };
      const leave = () => {
        queue.delete(start);
        reject(signal.reason);
      };
      queue.add(start);
      listenForAbort(signal, leave);
    });

  return {
    async run(signal, work) {
      signal.throwIfAborted();
      if (running < slots) running++;
      else if (queue.size < queueLimit) await freeSlot(signal);
      else throw queueFull();
      try {
        return await work();
      } finally {
        running--;
        const [next] = queue;
        next?.();
      }
    },
    queueLength: () => queue.size,
  };
}

const queueFull = () =>
  new OmpError('rate_limited', 'too many requests wait for Pinecone; retry in 1 s', {
    provider: PROVIDER,
    retryAfter: 1,
  });
