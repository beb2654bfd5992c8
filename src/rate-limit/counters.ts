import type { RateLimiterAbstract } from 'rate-limiter-flexible';

/** Numbers under names, in this process or shared. Every operation rejects when the store does. */
export interface Counters {
  /** Adds 1 or -1 at once with what others add; returns the sum. */
  add(name: string, amount: 1 | -1): Promise<number>;
  /** 0 for what was never counted. */
  read(name: string): Promise<number>;
}

/** Where counters are kept. */
export interface CounterStore {
  /** Counters of one purpose, apart from those of others. */
  counters(purpose: string): Counters;
  /** Resolves when the store answers. */
  connect(): Promise<unknown>;
  close(): Promise<void>;
}

/** A counter is of use for two minutes; replicas' clocks may differ by one. */
export const LIFETIME_MS = 180_000;

/**
 * What every limiter of the library is told. Only its counting is used: whether a sum is too large is decided in
 * `sliding-window.ts`, so `points` means nothing.
 */
export const counting = (purpose: string) => ({
  keyPrefix: `omp:${purpose}`,
  points: 0,
  duration: LIFETIME_MS / 1_000,
});

/** The library's fixed windows as plain counters: every name is counted in once and for all. */
export const countersOf = (library: RateLimiterAbstract): Counters => ({
  add: async (name, amount) =>
    (await (amount === 1 ? library.penalty(name, 1) : library.reward(name, 1))).consumedPoints,
  read: async (name) => (await library.get(name))?.consumedPoints ?? 0,
});
