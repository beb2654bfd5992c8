import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, OmpError } from '#provider';
import { PROVIDER } from '../client/pinecone-errors.ts';

/** Pinecone takes five a second for a namespace. One is left to the application, and some time to the network. */
export const RATE_LIMIT = { count: 4, window_ms: 1_100, longest_wait_ms: 5_000 };

export interface RateLimitOptions {
  /** Maximum number of starts within the window; `window_ms` is its length in milliseconds. */
  readonly count: number;
  readonly window_ms: number;
  /** A caller that would wait longer, in milliseconds, gets `rate_limited`. */
  readonly longest_wait_ms: number;
}

export type RateLimit = (call: Call) => Promise<void>;

/** Delays callers so that the rate is kept, first come, first served. Throws `rate_limited` if the wait is too long. */
export function createRateLimit({ count, window_ms, longest_wait_ms }: RateLimitOptions): RateLimit {
  /** The latest `count` starts, including future ones. */
  const starts: number[] = [];
  return async ({ signal }) => {
    const now = performance.now();
    const start = Math.max(now, (starts.at(-count) ?? Number.NEGATIVE_INFINITY) + window_ms);
    const wait = start - now;
    if (wait > longest_wait_ms) {
      throw new OmpError('rate_limited', 'too many concurrent lists for the rate limit of the backend', {
        provider: PROVIDER,
        retryAfter: Math.ceil(wait / 1_000),
      });
    }
    starts.push(start);
    if (starts.length > count) starts.shift();
    if (wait > 0) await sleep(wait, undefined, { signal }).catch(() => signal.throwIfAborted());
  };
}
