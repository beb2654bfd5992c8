import { LRUCache } from 'lru-cache';
import { type RateLimiterAbstract, RateLimiterPostgres, RateLimiterRedis } from 'rate-limiter-flexible';

/** Named counters, in this process or shared. Every operation rejects if the store fails. */
export interface Counters {
  /** Adds 1 or -1 atomically; returns the sum. */
  add(name: string, amount: 1 | -1): Promise<number>;
  /** 0 for an unknown name. */
  read(name: string): Promise<number>;
}

export interface CounterStore {
  /** Counters of different purposes are separate. */
  counters(purpose: string): Counters;
  /** Resolves once the store answers. */
  connect(): Promise<unknown>;
  close(): Promise<void>;
}

/** A counter is used for two minutes; the clocks of replicas may differ by one. */
const LIFETIME_MS = 180_000;

/**
 * Options of every limiter of rate-limiter-flexible. Only its counters are used, because it has fixed windows only; the
 * limit is checked in `sliding-window.ts`, so `points` has no effect.
 */
export const counting = (purpose: string) => ({
  keyPrefix: `omp:${purpose}`,
  points: 0,
  duration: LIFETIME_MS / 1_000,
});

/** The library's fixed windows as plain counters: each name is used for one window. */
export const countersOf = (library: RateLimiterAbstract): Counters => ({
  add: async (name, amount) =>
    (await (amount === 1 ? library.penalty(name, 1) : library.reward(name, 1))).consumedPoints,
  read: async (name) => (await library.get(name))?.consumedPoints ?? 0,
});

/** Maximum counters of one purpose, about 20 MB. A caller uses two. */
const MAX_COUNTERS = 100_000;

/** Counters of this process; beyond the maximum, the least recently used are evicted. */
export const memoryStore = (): CounterStore => ({
  counters() {
    const sums = new LRUCache<string, number>({
      // By size, because `max` allocates memory for all entries up front.
      maxSize: MAX_COUNTERS,
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
  /** The schema with the provider's migrations, which create the table. */
  readonly schema: string;
}

/** Measured: a second connection adds half of the throughput, a third nothing. */
const CONNECTIONS = 2;

/** Deadline of a request to a store, in milliseconds: counting must not delay requests. */
export const WAIT_MS = 500;

/** Counters in the table `rate_limits`. The library deletes them an hour after they expire. */
export async function postgresStore({ url, schema }: PostgresStoreOptions, wait_ms = WAIT_MS): Promise<CounterStore> {
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: wait_ms,
    // This deadline also closes a connection that hangs.
    query_timeout: wait_ms,
    keepAlive: true,
    application_name: 'omp-gateway',
  });
  // Without a listener, losing an idle connection would end the process. The next statement gets a new one.
  pool.on('error', () => {});
  // The names of the library's statements are left out: behind a transaction pooler, those of several gateways collide.
  const client = { query: ({ text, values }: { text: string; values: unknown[] }) => pool.query(text, values) };
  return {
    counters: (purpose) =>
      countersOf(
        new RateLimiterPostgres({
          ...counting(purpose),
          storeClient: client,
          storeType: 'client',
          tableName: 'rate_limits',
          // The library quotes the name but does not double the quotes inside it.
          schemaName: schema.replaceAll('"', '""'),
          tableCreated: true,
        }),
      ),
    connect: () => pool.query('select 1'),
    close: () => pool.end(),
  };
}

/** Counters in Redis or a compatible server. */
export async function redisStore(url: string, wait_ms = WAIT_MS): Promise<CounterStore> {
  const { createClient } = await import('@redis/client');
  const client = createClient({
    url,
    // Commands fail at once while the client reconnects.
    disableOfflineQueue: true,
    socket: { connectTimeout: wait_ms, reconnectStrategy: (retries) => Math.min(50 * 2 ** retries, 1_000) },
  });
  // Failing commands report what happens later; without a listener it would end the process.
  client.on('error', () => {});
  return {
    counters: (purpose) =>
      countersOf(new RateLimiterRedis({ ...counting(purpose), storeClient: client, useRedisPackage: true })),
    // The client goes on trying, and would keep the reason to itself.
    connect: () =>
      Promise.race([client.connect(), new Promise((_, reject) => client.once('error', (error) => reject(error)))]),
    close: async () => client.destroy(),
  };
}
