import { RateLimiterCluster, RateLimiterClusterMaster } from 'rate-limiter-flexible';
import { type CounterStore, countersOf, counting, WAIT_MS } from './stores.ts';

/** In the primary process of several: counts for its workers. */
export const countForWorkers = (): void => void new RateLimiterClusterMaster();

/** In a worker: counters of the primary process. */
export const primaryStore = (): CounterStore => ({
  counters: (purpose) => countersOf(new RateLimiterCluster({ ...counting(purpose), timeoutMs: WAIT_MS })),
  connect: async () => {},
  close: async () => {},
});
