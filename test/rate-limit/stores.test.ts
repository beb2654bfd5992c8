import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createClient } from '@redis/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { randomName } from '../postgres/store.ts';
import { NO_PGBOUNCER, startPgBouncer } from '../process/pgbouncer.ts';
import { createCluster, NO_POSTGRES_BIN, POSTGRES_BIN } from '../process/postgres-cluster.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { admitted, freshKey, HELD_MS, openLimits, type Where } from './limits.ts';
import { createTables, temporaryTables } from './postgres-table.ts';
import { createRedis, NO_REDIS } from './redis-server.ts';

interface Tested {
  /** Why it is skipped; empty: it is not. */
  readonly missing: string;
  open(): Promise<Where>;
}

const postgres = async (url: string, schema = randomName()): Promise<Where> => {
  await temporaryTables(SERVER_URL, schema);
  return { store: 'postgres', postgres: { url, schema } };
};

const STORES: Readonly<Record<string, Tested>> = {
  postgres: { missing: SERVER_URL === '' ? NO_SERVER : '', open: () => postgres(SERVER_URL) },
  'postgres behind PgBouncer': {
    missing: SERVER_URL === '' ? NO_SERVER : NO_PGBOUNCER,
    open: async () => postgres(await startPgBouncer(SERVER_URL)),
  },
  redis: {
    missing: NO_REDIS,
    open: async () => {
      const redis = await createRedis();
      await redis.start();
      return { store: 'redis', redis_url: redis.url };
    },
  },
};

const MINUTE = 60_000;
/** The time of the limiters' clock, so that no test depends on the real time. */
const START = 1_000_000 * MINUTE;

describe.for(Object.entries(STORES))('[Decision 17] rate limits in %s', ([, { missing, open }]) => {
  const openFour = async (options: { limit?: number; clock?: { time: number } } = {}) => {
    const where = await open();
    const { limit = 10, clock = { time: START } } = options;
    const replicas: Awaited<ReturnType<typeof openLimits>>[] = [];
    for (let i = 0; i < 4; i++) {
      replicas.push(await openLimits(where, { requests_per_minute: limit, now: () => clock.time }));
    }
    onTestFinished(() => expect(replicas.flatMap(({ lines }) => lines)).toEqual([]));
    return replicas.map(({ requests }) => requests);
  };

  it('four replicas admit exactly the limit concurrently', async ({ skip }) => {
    skip(missing !== '', missing);
    const key = freshKey();
    expect(await admitted(await openFour(), key, 40)).toBe(10);
  });

  it('replicas agree as the window slides, and do not count rejected requests', async ({ skip }) => {
    skip(missing !== '', missing);
    const clock = { time: START + 59_000 };
    const replicas = await openFour({ limit: 20, clock });
    const key = freshKey();
    expect(await admitted(replicas, key, 40)).toBe(20);
    for (const [elapsed, expected] of [
      [0, 0],
      [15_001, 5 + 1],
      [30_001, 5],
      [59_999, 9],
    ] as const) {
      clock.time = START + MINUTE + elapsed;
      expect(await admitted(replicas, key, 40), `after ${elapsed} ms`).toBe(expected);
    }
    clock.time = START + 3 * MINUTE;
    for (const [i, replica] of replicas.entries()) expect((await replica.take(key)).remaining).toBe(19 - i);
  });

  it('callers of any length and alphabet are separate', async ({ skip }) => {
    skip(missing !== '', missing);
    const replicas = await openFour({ limit: 2 });
    const keys = ['', '\0', '%', "'; --", '\u{1f600}', 'a'.repeat(300), `${'a'.repeat(300)}b`].map(
      (key) => freshKey() + key,
    );
    for (const key of keys) expect(await admitted(replicas, key, 5)).toBe(2);
  });

  it('requests and failed authentications are counted separately', async ({ skip }) => {
    skip(missing !== '', missing);
    const { requests, failures } = await openLimits(await open(), { requests_per_minute: 1, failures_per_minute: 1 });
    const key = freshKey();
    expect((await requests.take(key)).allowed).toBe(true);
    expect((await failures?.take(key))?.allowed).toBe(true);
    expect((await requests.take(key)).allowed).toBe(false);
    expect((await failures?.take(key))?.allowed).toBe(false);
  });
});

describe('[Decision 17] rate limits in postgres', () => {
  it('schemas of any name behind a shared pooler are separate', async ({ skip }) => {
    skip(SERVER_URL === '', NO_SERVER);
    skip(NO_PGBOUNCER !== '', NO_PGBOUNCER);
    const url = await startPgBouncer(SERVER_URL);
    const names = [randomName(), `${randomName()} "quoted"; drop`];
    const limits: Awaited<ReturnType<typeof openLimits>>[] = [];
    for (const name of names) limits.push(await openLimits(await postgres(url, name), { requests_per_minute: 3 }));
    const key = freshKey();
    for (const { requests, lines } of limits) {
      expect(await admitted([requests], key, 10)).toBe(3);
      expect(lines).toEqual([]);
    }
  });
});

describe('[Decision 17] rate limits in redis', () => {
  it('a rejected caller that retries does not load the store', async ({ skip }) => {
    skip(NO_REDIS !== '', NO_REDIS);
    const redis = await createRedis();
    await redis.start();
    const { requests } = await openLimits({ store: 'redis', redis_url: redis.url }, { now: () => START });
    const onlooker = createClient({ url: redis.url });
    await onlooker.connect();
    onTestFinished(() => onlooker.destroy());
    const counted = async () => /cmdstat_eval:calls=(\d+)/.exec(await onlooker.info('commandstats'))?.[1];

    const key = freshKey();
    expect(await admitted([requests], key, 20)).toBe(10);
    // Ten are admitted, ten counted and subtracted again.
    expect(await counted()).toBe('30');
    expect(await admitted([requests], key, 1_000)).toBe(0);
    expect((await requests.take(key)).allowed).toBe(false);
    expect(await counted()).toBe('30');
  });
});

describe('[Decision 17] rate limits', () => {
  it('in memory are per process', async () => {
    const key = freshKey();
    for (let i = 0; i < 2; i++) {
      const { requests } = await openLimits({ store: 'memory' }, { requests_per_minute: 4 });
      expect(await admitted([requests], key, 10)).toBe(4);
    }
  });

  it('that are off open no store', async () => {
    const nobodyListens = { store: 'redis', redis_url: 'redis://127.0.0.1:1' } as const;
    const none = await openLimits(nobodyListens, { requests_per_minute: undefined });
    expect(none).toMatchObject({ requests: undefined, failures: undefined, lines: [] });
    const some = await openLimits({ store: 'memory' }, { requests_per_minute: undefined, failures_per_minute: 3 });
    expect(some.requests).toBeUndefined();
    expect(some.failures?.limit).toBe(3);
  });

  it('without an address of their store are rejected', async () => {
    await expect(openLimits({ store: 'redis' })).rejects.toThrow('redis');
    await expect(openLimits({ store: 'postgres' })).rejects.toThrow('postgres');
  });
});

interface Stoppable {
  readonly where: Where;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const STOPPABLE: Readonly<Record<string, { missing: string; create(): Promise<Stoppable> }>> = {
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

/** Sends requests until the limiter uses its store again. */
async function untilShared({ requests, lines }: Limits): Promise<void> {
  while (lines.at(-1)?.message !== ANSWERS.message) {
    await requests.take(freshKey());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe.for(Object.entries(STOPPABLE))('[Decision 17] while %s is down', ([, { missing, create }]) => {
  it('each process counts on its own, logs it once, and returns to the store', async ({ skip }) => {
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

  it('a gateway starts', async ({ skip }) => {
    skip(missing !== '', missing);
    const { where, start } = await create();
    // The Redis client keeps connecting.
    const limits = await holdTimers(HELD_MS).passUntil(openLimits(where));
    expect(limits.lines).toMatchObject([FAILS]);
    expect(await admitted([limits.requests], freshKey(), 40)).toBe(10);
    await start();
    await untilShared(limits);
    expect(limits.lines).toMatchObject([FAILS, ANSWERS]);
  });
});

describe('[Decision 17] the log says why redis cannot be used:', () => {
  const url = async (port: number, host = '127.0.0.1') => `redis://${host}:${port}`;
  const answering = async (line: string) => {
    const server = createServer((socket) => socket.once('data', () => socket.end(`${line}\r\n`)).on('error', () => {}));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    return url((server.address() as AddressInfo).port);
  };

  it.for<[string, RegExp, () => Promise<string>]>([
    ['nothing listens', /ECONNREFUSED/, () => url(1)],
    ['there is no such host', /ENOTFOUND|EAI_AGAIN/, () => url(6379, 'no-such-host.invalid')],
    ['the password is wrong', /WRONGPASS/, () => answering('-WRONGPASS invalid username-password pair')],
    ['it is in protected mode', /DENIED/, () => answering('-DENIED Redis is running in protected mode')],
  ])('%s', async ([, reason, create]) => {
    // Never passed: the deadline is not what ends the attempt.
    holdTimers(HELD_MS);
    const { lines } = await openLimits({ store: 'redis', redis_url: await create() });
    expect(lines).toMatchObject([{ ...FAILS, fields: { err: { message: expect.stringMatching(reason) } } }]);
  });
});

describe('[Decision 17] a store that hangs', () => {
  it('delays no request: redis that stops answering', async ({ skip }) => {
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

  // A server that accepts connections and never answers.
  it.for(['redis', 'postgres'] as const)('delays no request: %s that never answers', async (store) => {
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
