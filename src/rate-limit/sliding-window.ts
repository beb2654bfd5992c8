import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { RateLimiter, RateLimitResult } from '../core/rate-limiter.ts';
import type { Counters } from './stores.ts';

const WINDOW_MS = 60_000;
/** Number of callers whose state is cached to spare the store. */
const MAX_CACHED = 10_000;

interface WindowState {
  readonly window: number;
  /** Requests of the previous window; they no longer change. */
  readonly previous: number;
  /** Epoch milliseconds before which no request is admitted; 0: unknown. */
  readonly fullUntil: number;
}

/**
 * At most `limit` requests per minute. Windows are the minutes of the clock, so that all replicas use the same ones. The
 * usage is the count of the current window plus that of the previous one, which fades linearly during the current one.
 * No burst is larger than `limit`, even across a border; in any T seconds at most `limit × (1 + T / 60)` requests are
 * admitted, plus one by rounding, like a token bucket of size `limit` that refills in a minute.
 *
 * Requests are counted first and checked then, so concurrent requests on all replicas stay within the limit. A rejected
 * request is subtracted again, and until the next one can be admitted this process rejects without asking the store:
 * retrying neither prolongs the wait nor loads the store. Rejects if the counters do.
 */
export function slidingWindow(counters: Counters, limit: number, now: () => number = Date.now): RateLimiter {
  const cache = new LRUCache<string, WindowState>({ max: MAX_CACHED });

  return {
    limit,
    async take(key) {
      const time = now();
      const window = Math.floor(time / WINDOW_MS);
      const entry = cache.get(key);
      const current = entry?.window === window ? entry : undefined;
      if (current && time < current.fullUntil) return rejection(current.fullUntil - time);

      const prefix = digest(key);
      const name = `${prefix}:${window}`;
      const [count, previous] = await Promise.all([
        counters.add(name, 1),
        // A count above the limit has requests not subtracted yet, or admitted under another limit.
        current?.previous ?? counters.read(`${prefix}:${window - 1}`).then((sum) => Math.min(sum, limit)),
      ]);
      const end = (window + 1) * WINDOW_MS;
      const fading = Math.floor((previous * (end - time)) / WINDOW_MS);
      const remaining = limit - fading - count;
      // When the usage falls by one: by a request of the previous window, else of this one.
      const next = end + 1 - (fading > 0 ? Math.ceil((fading * WINDOW_MS) / previous) : 0);
      if (remaining >= 0) {
        if (!current) cache.set(key, { window, previous, fullUntil: 0 });
        return { allowed: true, remaining, reset: seconds(next - time) };
      }
      cache.set(key, { window, previous, fullUntil: next });
      await counters.add(name, -1);
      return rejection(next - time);
    },
  };
}

const seconds = (ms: number): number => Math.ceil(ms / 1000);
const rejection = (ms: number): RateLimitResult => ({ allowed: false, remaining: 0, reset: seconds(ms) });

/** Has a fixed length, and hides the key in the store. */
const digest = (key: string): string => createHash('sha256').update(key).digest('base64url');
