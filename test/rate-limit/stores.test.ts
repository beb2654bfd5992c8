import { createClient } from '@redis/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { randomName } from '../postgres/store.ts';
import { NO_PGBOUNCER, startPgBouncer } from '../process/pgbouncer.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { admitted, freshKey, openLimits, type Where } from './limits.ts';
import { temporaryTables } from './postgres-table.ts';
import { createRedis, NO_REDIS } from './redis-server.ts';

interface Kind {
  /** Why it cannot be tested here; empty: it can. */
  readonly missing: string;
  open(): Promise<Where>;
}

const postgres = async (url: string, schema = randomName()): Promise<Where> => {
  await temporaryTables(SERVER_URL, schema);
  return { store: 'postgres', postgres: { url, schema } };
};

const KINDS: Readonly<Record<string, Kind>> = {
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
/** The limiters' clock stands wherever a test puts it, so that no test depends on when it runs. */
const START = 1_000_000 * MINUTE;

describe.for(Object.entries(KINDS))('[Decision 17] limits kept in %s', ([, { missing, open }]) => {
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

  it('four replicas that are asked at once admit exactly the limit', async ({ skip }) => {
    skip(missing !== '', missing);
    const key = freshKey();
    expect(await admitted(await openFour(), key, 40)).toBe(10);
  });

  it('replicas agree on what is left as the window slides, and what they refused is not counted', async ({ skip }) => {
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

  it('one replica sees what another counted', async ({ skip }) => {
    skip(missing !== '', missing);
    const [one, other] = await openFour({ limit: 5 });
    const key = freshKey();
    await one?.take(key);
    expect(await other?.take(key)).toMatchObject({ allowed: true, remaining: 3 });
    expect(await one?.take(key)).toMatchObject({ allowed: true, remaining: 2 });
  });

  it('takes callers of any length and alphabet, and keeps them apart', async ({ skip }) => {
    skip(missing !== '', missing);
    const replicas = await openFour({ limit: 2 });
    const keys = ['', '\0', '%', "'; --", '\u{1f600}', 'a'.repeat(300), `${'a'.repeat(300)}b`].map(
      (key) => freshKey() + key,
    );
    for (const key of keys) expect(await admitted(replicas, key, 5)).toBe(2);
  });

  it('counts requests and failed authentications apart', async ({ skip }) => {
    skip(missing !== '', missing);
    const { requests, failures } = await openLimits(await open(), { requests_per_minute: 1, failures_per_minute: 1 });
    const key = freshKey();
    expect((await requests.take(key)).allowed).toBe(true);
    expect((await failures?.take(key))?.allowed).toBe(true);
    expect((await requests.take(key)).allowed).toBe(false);
    expect((await failures?.take(key))?.allowed).toBe(false);
  });
});

describe('[Decision 17] limits kept in postgres', () => {
  it('schemas of any name that share the sessions of a pooler are counted apart', async ({ skip }) => {
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

describe('[Decision 17] limits kept in redis', () => {
  it('a caller that goes on although refused does not burden the store', async ({ skip }) => {
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
    // Ten admitted, ten counted and given back.
    expect(await counted()).toBe('30');
    expect(await admitted([requests], key, 1_000)).toBe(0);
    expect((await requests.take(key)).allowed).toBe(false);
    expect(await counted()).toBe('30');
  });
});

describe('[Decision 17] limits', () => {
  it('kept in memory are those of each process', async () => {
    const key = freshKey();
    for (let i = 0; i < 2; i++) {
      const { requests } = await openLimits({ store: 'memory' }, { requests_per_minute: 4 });
      expect(await admitted([requests], key, 10)).toBe(4);
    }
  });

  it('that are not wanted are not there, and no store is opened for them', async () => {
    const nobodyListens = { store: 'redis', redis_url: 'redis://127.0.0.1:1' } as const;
    const none = await openLimits(nobodyListens, { requests_per_minute: undefined });
    expect(none).toMatchObject({ requests: undefined, failures: undefined, lines: [] });
    const some = await openLimits({ store: 'memory' }, { requests_per_minute: undefined, failures_per_minute: 3 });
    expect(some.requests).toBeUndefined();
    expect(some.failures?.limit).toBe(3);
  });

  it('without the address of their store are refused', async () => {
    await expect(openLimits({ store: 'redis' })).rejects.toThrow('redis');
    await expect(openLimits({ store: 'postgres' })).rejects.toThrow('postgres');
  });
});
