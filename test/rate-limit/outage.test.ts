import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { admitted, freshKey, HELD_MS, openLimits, type Where } from './limits.ts';
import { createTables } from './postgres-table.ts';
import { createRedis, NO_REDIS } from './redis-server.ts';

interface Stoppable {
  readonly where: Where;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const KINDS: Readonly<Record<string, { missing: string; create(): Promise<Stoppable> }>> = {
  redis: {
    missing: NO_REDIS,
    async create() {
      const redis = await createRedis();
      return { ...redis, where: { store: 'redis', redis_url: redis.url } };
    },
  },
  postgres: {
    missing: POSTGRES_BIN === '' ? NO_POSTGRES_BIN : '',
    async create() {
      const cluster = await createCluster();
      await cluster.start();
      await createTables(cluster.url, 'omp');
      await cluster.stop();
      return {
        start: cluster.start,
        stop: () => cluster.stop(),
        where: { store: 'postgres', postgres: { url: cluster.url, schema: 'omp' } },
      };
    },
  },
};

const FAILS = { level: 'warn', message: 'the rate limit store fails; each process counts on its own' };
const ANSWERS = { level: 'info', message: 'the rate limit store answers again' };

type Limits = Awaited<ReturnType<typeof openLimits>>;

/** Goes on asking, as clients do, until a limiter has found out that its store is back. */
async function untilShared({ requests, lines }: Limits): Promise<void> {
  while (lines.at(-1)?.message !== ANSWERS.message) {
    await requests.take(freshKey());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe.for(Object.entries(KINDS))('[Decision 17] while %s is down', ([, { missing, create }]) => {
  it('each process limits on its own, says so once, and goes back when it can', async ({ skip }) => {
    skip(missing !== '', missing);
    const { where, start, stop } = await create();
    await start();
    const replicas = [await openLimits(where), await openLimits(where)];
    const limiters = replicas.map(({ requests }) => requests);
    expect(await admitted(limiters, freshKey(), 40)).toBe(10);

    await stop();
    for (let i = 0; i < 2; i++) expect(await admitted(limiters, freshKey(), 40)).toBe(20);
    for (const { lines } of replicas) expect(lines).toMatchObject([FAILS]);

    await start();
    for (const replica of replicas) await untilShared(replica);
    expect(await admitted(limiters, freshKey(), 40)).toBe(10);
    for (const { lines } of replicas) expect(lines).toMatchObject([FAILS, ANSWERS]);
  });

  it('a gateway starts nevertheless', async ({ skip }) => {
    skip(missing !== '', missing);
    const { where, start } = await create();
    // The client of Redis goes on trying.
    const limits = await holdTimers(HELD_MS).passUntil(openLimits(where));
    expect(limits.lines).toMatchObject([FAILS]);
    expect(await admitted([limits.requests], freshKey(), 40)).toBe(10);
    await start();
    await untilShared(limits);
    expect(limits.lines).toMatchObject([FAILS, ANSWERS]);
  });
});

describe('[Decision 17] a store that hangs', () => {
  it('is not waited for: redis that stops answering', async ({ skip }) => {
    skip(NO_REDIS !== '', NO_REDIS);
    const waits = holdTimers(HELD_MS);
    const redis = await createRedis();
    await redis.start();
    const limits = await openLimits({ store: 'redis', redis_url: redis.url });
    await limits.requests.take(freshKey());
    redis.freeze();
    expect(await waits.passUntil(admitted([limits.requests], freshKey(), 40))).toBe(10);
    expect(limits.lines).toMatchObject([FAILS]);
    redis.thaw();
    await untilShared(limits);
  });

  // A server that takes connections and says nothing.
  it.for(['redis', 'postgres'] as const)('is not waited for: %s that never answered', async (store) => {
    const waits = holdTimers(HELD_MS);
    const sockets = new Set<Socket>();
    const server = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const opening = openLimits({
      store,
      redis_url: `redis://127.0.0.1:${port}`,
      postgres: { url: `postgres://omp@127.0.0.1:${port}/omp`, schema: 'omp' },
    });
    const limits = await waits.passUntil(opening);
    expect(sockets.size).toBeGreaterThan(0);
    expect(await waits.passUntil(admitted([limits.requests], freshKey(), 40))).toBe(10);
    expect(limits.lines).toMatchObject([FAILS]);
  });
});
