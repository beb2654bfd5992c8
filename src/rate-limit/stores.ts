import { LRUCache } from 'lru-cache';
import { type RateLimiterAbstract, RateLimiterPostgres, RateLimiterRedis } from 'rate-limiter-flexible';

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

export interface PostgresStoreOptions {
  readonly url: string;
  /** Where the provider's migrations made the table. */
  readonly schema: string;
}

/** Measured: a second one is worth half as much again, more are worth nothing. */
const CONNECTIONS = 2;

/** Longest wait for a store, in milliseconds: a request is not held up for being counted. */
export const WAIT_MS = 500;

/** Counters in the table `rate_limits`. The library removes them an hour after they are of no use any more. */
export async function postgresStore({ url, schema }: PostgresStoreOptions, wait_ms = WAIT_MS): Promise<CounterStore> {
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: wait_ms,
    // Takes a connection that hangs down with it.
    query_timeout: wait_ms,
    keepAlive: true,
    application_name: 'omp-gateway',
  });
  // A connection lost while idle would end the process otherwise; the next statement gets a new one.
  pool.on('error', () => {});
  // Without the library's names for statements: a transaction pooler would mix those of several gateways up.
  const client = { query: ({ text, values }: { text: string; values: unknown[] }) => pool.query(text, values) };
  return {
    counters: (purpose) =>
      countersOf(
        new RateLimiterPostgres({
          ...counting(purpose),
          storeClient: client,
          storeType: 'client',
          tableName: 'rate_limits',
          // The library puts quotes around it but does not double those inside.
          schemaName: schema.replaceAll('"', '""'),
          tableCreated: true,
        }),
      ),
    connect: () => pool.query('select 1'),
    close: () => pool.end(),
  };
}

/** Counters in Redis, or what speaks its protocol. */
export async function redisStore(url: string, wait_ms = WAIT_MS): Promise<CounterStore> {
  const { createClient } = await import('@redis/client');
  const client = createClient({
    url,
    // Commands fail while there is no connection; one is tried for until there is.
    disableOfflineQueue: true,
    socket: { connectTimeout: wait_ms, reconnectStrategy: (retries) => Math.min(50 * 2 ** retries, 1_000) },
  });
  // Told by the commands that fail; without a listener it would end the process.
  client.on('error', () => {});
  return {
    counters: (purpose) =>
      countersOf(new RateLimiterRedis({ ...counting(purpose), storeClient: client, useRedisPackage: true })),
    connect: () => client.connect(),
    close: async () => client.destroy(),
  };
}
