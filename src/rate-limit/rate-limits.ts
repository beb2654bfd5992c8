import type { Log } from '#contract';
import type { RateLimiter } from '../core/rate-limiter.ts';
import { slidingWindow } from './sliding-window.ts';
import {
  type CounterStore,
  memoryStore,
  type PostgresStoreOptions,
  postgresStore,
  redisStore,
  WAIT_MS,
} from './stores.ts';

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

/** How often a store that is down is tried again, in milliseconds. */
const RETRY_MS = 1_000;

/** Asks the store; where it fails or is too slow, does the other thing. */
export type OrElse = <Result>(ask: () => Promise<Result>, otherwise: () => Promise<Result>) => Promise<Result>;

/**
 * While a store is down, one request in a while tries it and all others do without it at once. The log has one line
 * when an outage begins and one when it ends.
 */
export function watchOutages(store: string, log: Log, wait_ms = WAIT_MS): OrElse {
  let down = false;
  let retryAt = 0;
  return async (ask, otherwise) => {
    const trying = down;
    if (trying) {
      if (performance.now() < retryAt) return otherwise();
      retryAt = performance.now() + RETRY_MS;
    }
    try {
      const result = await inTime(ask(), wait_ms);
      // Only an attempt made while it was down tells that it is back: others may have been answered before.
      if (trying && down) {
        down = false;
        log.info({ store }, 'the store of rate limits answers again');
      }
      return result;
    } catch (error) {
      if (!down) log.warn({ err: error, store }, 'the store of rate limits fails: every process limits on its own');
      down = true;
      retryAt = performance.now() + RETRY_MS;
      return otherwise();
    }
  };
}

async function inTime<Result>(work: Promise<Result>, wait_ms: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // After a turn of the event loop: what arrived while this process was busy counts as in time.
    const giveUp = () => setImmediate(() => reject(new Error(`no answer within ${wait_ms} ms`)));
    timer = setTimeout(giveUp, wait_ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
