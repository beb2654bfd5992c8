import { LRUCache } from 'lru-cache';
import { type CounterStore, LIFETIME_MS } from './counters.ts';

/** Of each purpose; a caller takes two. Some 20 MB. */
const MOST_COUNTERS = 100_000;

/** Counters of this process. Where there are too many, those used longest ago are forgotten. */
export const memoryStore = (): CounterStore => ({
  counters() {
    const sums = new LRUCache<string, number>({
      // By size, since a `max` takes the memory for all at once.
      maxSize: MOST_COUNTERS,
      sizeCalculation: () => 1,
      ttl: LIFETIME_MS,
      noUpdateTTL: true,
    });
    return {
      async add(name, amount) {
        const sum = (sums.get(name) ?? 0) + amount;
        sums.set(name, sum);
        return sum;
      },
      read: async (name) => sums.get(name) ?? 0,
    };
  },
  connect: async () => {},
  close: async () => {},
});
