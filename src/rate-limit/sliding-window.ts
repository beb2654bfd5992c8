import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { RateLimiter, Taken } from '../core/rate-limiter.ts';
import type { Counters } from './stores.ts';

const WINDOW_MS = 60_000;
/** Callers of whom something is remembered here to spare the store; of others it is asked again. */
const MOST_REMEMBERED = 10_000;

interface Remembered {
  readonly window: number;
  /** Requests of the window before: they do not change any more. */
  readonly previous: number;
  /** Time in milliseconds before which nothing is admitted; 0: not known. */
  readonly fullUntil: number;
}

/**
 * At most `limit` requests a minute, counted in windows of a minute that begin with the clock's, so that all replicas
 * mean the same ones. What was used is the count of this window plus the count of the one before, the latter fading
 * evenly while this one passes. No burst is ever larger than `limit`, also around a border; in any T seconds at most
 * `limit × (1 + T / 60)` are admitted, and one by rounding, as from a token bucket that holds `limit` and is refilled
 * in a minute.
 *
 * Counting comes first and decides: of concurrent requests on all replicas just those within the limit are admitted.
 * What is refused is given back, and until the next request can be admitted this process refuses without asking the
 * store: hammering neither prolongs the wait nor burdens the store. Rejects when the counters do.
 */
export function slidingWindow(counters: Counters, limit: number, now: () => number = Date.now): RateLimiter {
  const remembered = new LRUCache<string, Remembered>({ max: MOST_REMEMBERED });

  return {
    limit,
    async take(key) {
      const time = now();
      const window = Math.floor(time / WINDOW_MS);
      const known = remembered.get(key);
      const current = known?.window === window ? known : undefined;
      if (current && time < current.fullUntil) return refused(current.fullUntil - time);

      const stored = digest(key);
      const name = `${stored}:${window}`;
      const [used, previous] = await Promise.all([
        counters.add(name, 1),
        // Above the limit is what was not given back yet, or was admitted under another limit.
        current?.previous ?? counters.read(`${stored}:${window - 1}`).then((sum) => Math.min(sum, limit)),
      ]);
      const end = (window + 1) * WINDOW_MS;
      const fading = Math.floor((previous * (end - time)) / WINDOW_MS);
      const remaining = limit - fading - used;
      // The first moment at which one less counts: of the window before, else of this one.
      const next = end + 1 - (fading > 0 ? Math.ceil((fading * WINDOW_MS) / previous) : 0);
      if (remaining >= 0) {
        if (!current) remembered.set(key, { window, previous, fullUntil: 0 });
        return { allowed: true, remaining, reset: seconds(next - time) };
      }
      remembered.set(key, { window, previous, fullUntil: next });
      await counters.add(name, -1);
      return refused(next - time);
    },
  };
}

const seconds = (ms: number): number => Math.ceil(ms / 1000);
const refused = (ms: number): Taken => ({ allowed: false, remaining: 0, reset: seconds(ms) });

/** Of one length whatever the caller is called, and not readable in the store. */
const digest = (key: string): string => createHash('sha256').update(key).digest('base64url');
