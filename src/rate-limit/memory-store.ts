import { RateLimiterMemory } from 'rate-limiter-flexible';
import { type CounterStore, countersOf, counting } from './counters.ts';

/** Counters of this process. */
export const memoryStore = (): CounterStore => ({
  counters: (purpose) => countersOf(new RateLimiterMemory(counting(purpose))),
  connect: async () => {},
  close: async () => {},
});
