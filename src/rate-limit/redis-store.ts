import { RateLimiterRedis } from 'rate-limiter-flexible';
import { type CounterStore, countersOf, counting } from './counters.ts';
import { WAIT_MS } from './outage.ts';

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
