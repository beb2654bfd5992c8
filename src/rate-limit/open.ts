import type { Log } from '#contract';
import type { RateLimiter } from '../core/rate-limiter.ts';
import type { CounterStore } from './counters.ts';
import { memoryStore } from './memory-store.ts';
import { type OrElse, watchOutages } from './outage.ts';
import { type PostgresStoreOptions, postgresStore } from './postgres-store.ts';
import { redisStore } from './redis-store.ts';
import { slidingWindow } from './sliding-window.ts';

export interface RateLimitOptions {
  /** Undefined: no limit. */
  readonly requests_per_minute: number | undefined;
  /** 0: no limit. */
  readonly failures_per_minute: number;
  /** `memory` counts in this process, the others for all replicas that use the same store. */
  readonly store: 'memory' | 'postgres' | 'redis';
  /** Needed by the store of this name. */
  readonly postgres: PostgresStoreOptions | undefined;
  /** Needed by the store of this name. */
  readonly redis_url: string | undefined;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** Longest wait for the store, in milliseconds. */
  readonly wait_ms?: number;
}

/** The limiters never reject: while the store is down, requests are limited in each process. */
export interface RateLimits {
  readonly requests: RateLimiter | undefined;
  readonly failures: RateLimiter | undefined;
  close(): Promise<void>;
}

/** A store that is down at the start is waited for no longer than later. Rejects when an option is missing or malformed. */
export async function openRateLimits(options: RateLimitOptions): Promise<RateLimits> {
  const { requests_per_minute = 0, failures_per_minute, log, now, wait_ms } = options;
  if (requests_per_minute === 0 && failures_per_minute === 0) {
    return { requests: undefined, failures: undefined, close: async () => {} };
  }
  const alone = memoryStore();
  const shared = await openStore(options);
  const orElse = watchOutages(options.store, log, wait_ms);
  if (shared) await orElse(shared.connect, alone.connect);
  const limiter = (purpose: string, limit: number): RateLimiter | undefined => {
    if (limit === 0) return undefined;
    const own = slidingWindow(alone.counters(purpose), limit, now);
    return shared ? insured(slidingWindow(shared.counters(purpose), limit, now), own, orElse) : own;
  };
  return {
    requests: limiter('requests', requests_per_minute),
    failures: limiter('failures', failures_per_minute),
    close: async () => shared?.close(),
  };
}

async function openStore({ store, postgres, redis_url, wait_ms }: RateLimitOptions): Promise<CounterStore | undefined> {
  if (store === 'memory') return undefined;
  if (store === 'postgres' && postgres) return postgresStore(postgres, wait_ms);
  if (store === 'redis' && redis_url !== undefined) return redisStore(redis_url, wait_ms);
  throw new Error(`rate limits are to be kept in ${store}, but where it is was not said`);
}

const insured = (shared: RateLimiter, own: RateLimiter, orElse: OrElse): RateLimiter => ({
  limit: shared.limit,
  take: (key) =>
    orElse(
      () => shared.take(key),
      () => own.take(key),
    ),
});
