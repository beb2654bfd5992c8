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
  /** `memory` counts in this process; the others count for all replicas that use the same store. */
  readonly store: 'memory' | 'postgres' | 'redis';
  /** Required by the store `postgres`. */
  readonly postgres: PostgresStoreOptions | undefined;
  /** Required by the store `redis`. */
  readonly redis_url: string | undefined;
  readonly log: Log;
  /** Epoch milliseconds. */
  readonly now?: () => number;
  /** Deadline of a request to the store, in milliseconds. */
  readonly wait_ms?: number;
}

/** The limiters never reject: while the store is down, each process counts on its own. */
export interface RateLimits {
  readonly requests: RateLimiter | undefined;
  readonly failures: RateLimiter | undefined;
  close(): Promise<void>;
}

/** Starts even if the store is down. Rejects if an option is missing or malformed. */
export async function openRateLimits(options: RateLimitOptions): Promise<RateLimits> {
  const { requests_per_minute = 0, failures_per_minute, log, now, wait_ms } = options;
  if (requests_per_minute === 0 && failures_per_minute === 0) {
    return { requests: undefined, failures: undefined, close: async () => {} };
  }
  const local = memoryStore();
  const sharedStore = await openStore(options);
  const orElse = createFallback(options.store, log, wait_ms);
  if (sharedStore) await orElse(sharedStore.connect, local.connect);
  const limiter = (purpose: string, limit: number): RateLimiter | undefined => {
    if (limit === 0) return undefined;
    const fallback = slidingWindow(local.counters(purpose), limit, now);
    if (!sharedStore) return fallback;
    const { take } = slidingWindow(sharedStore.counters(purpose), limit, now);
    const either = (key: string) =>
      orElse(
        () => take(key),
        () => fallback.take(key),
      );
    return { limit, take: either };
  };
  return {
    requests: limiter('requests', requests_per_minute),
    failures: limiter('failures', failures_per_minute),
    close: async () => sharedStore?.close(),
  };
}

async function openStore({ store, postgres, redis_url, wait_ms }: RateLimitOptions): Promise<CounterStore | undefined> {
  if (store === 'memory') return undefined;
  if (store === 'postgres' && postgres) return postgresStore(postgres, wait_ms);
  if (store === 'redis' && redis_url !== undefined) return redisStore(redis_url, wait_ms);
  throw new Error(`the rate limit store ${store} has no address`);
}

/** How often a store that is down is tried again, in milliseconds. */
const RETRY_MS = 1_000;

/** Asks the store, or runs the fallback if the store fails or is too slow. */
export type OrElse = <Result>(ask: () => Promise<Result>, fallback: () => Promise<Result>) => Promise<Result>;

/**
 * A circuit breaker for the store. It opens at the first failure; while it is open, one request per second tries the store
 * and all others run the fallback at once. It logs one line when it opens and one when it closes.
 *
 * The `insuranceLimiter` of rate-limiter-flexible would try the failed store on every request, and a breaker of cockatiel
 * lets concurrent requests wait for the trial.
 */
export function createFallback(store: string, log: Log, wait_ms = WAIT_MS): OrElse {
  let open = false;
  let retryAt = 0;
  return async (ask, fallback) => {
    const trial = open;
    if (trial) {
      if (performance.now() < retryAt) return fallback();
      retryAt = performance.now() + RETRY_MS;
    }
    try {
      const result = await inTime(ask(), wait_ms);
      // Only a trial closes it: other requests may have been answered before the failure.
      if (trial && open) {
        open = false;
        log.info({ store }, 'the rate limit store answers again');
      }
      return result;
    } catch (error) {
      if (!open) log.warn({ err: error, store }, 'the rate limit store fails; each process counts on its own');
      open = true;
      retryAt = performance.now() + RETRY_MS;
      return fallback();
    }
  };
}

async function inTime<Result>(work: Promise<Result>, wait_ms: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // One turn of the event loop later: an answer that arrived while the process was busy is in time.
    const giveUp = () => setImmediate(() => reject(new Error(`no answer within ${wait_ms} ms`)));
    timer = setTimeout(giveUp, wait_ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
