import { afterEach, expect, it, vi } from 'vitest';
import type { Call, Provider } from '#contract';
import { compose } from '../../src/core/compose.ts';
import { ALL_GRANTS, type Authenticator } from '../../src/core/grants.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { until } from '../postgres/store.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { contextOf, openMemory } from '../support/requests.ts';
import { type ServerOptions, serverForTest } from '../support/server.ts';

const authenticator: Authenticator = {
  authenticate: async (credential) => ({ id: `key:${credential}`, app: null, users: null, grants: ALL_GRANTS }),
};

afterEach(() => vi.restoreAllMocks());

/** A server whose reads of the user `big` wait until `goOn`, and how many of them have begun and are taken. */
async function floodedServer(options: ServerOptions) {
  const { opened, open: goOn } = gate();
  const reads = { begun: 0, open: 0, most: 0 };
  const followed =
    <Query extends { readonly user_id?: string | undefined }, Result>(
      verb: (query: Query, call: Call) => Promise<Result>,
    ) =>
    async (query: Query, call: Call): Promise<Result> => {
      if (query.user_id === 'big') {
        reads.begun++;
        reads.open++;
        reads.most = Math.max(reads.most, reads.open);
        call.afterAnswer(() => reads.open--);
        await opened;
      }
      return verb(query, call);
    };
  const embedder = hashingEmbedder();
  const context = contextOf({ embedder, ranking: { mode: 'hybrid', keyword_weight: 0.5 } });
  const inner = (await openMemory('native', context)) as Required<Provider>;
  const provider = compose({ ...inner, list: followed(inner.list), export: followed(inner.export) }, context);
  const server = await serverForTest({ provider, compat: { interface: 'mem0', infer: 'reject' }, ...options });
  for (let i = 0; i < 40; i++) await server.client.add({ user_id: 'big', content: `${i} `.padEnd(100_000, 'word ') });
  await server.client.add({ user_id: 'quiet', content: 'lives in Porto' });
  return { ...server, reads, goOn };
}

/** What one caller may ask many times at once, and how many of them may be open at a time. */
const FLOODS = [
  ['lists of 4 MiB', '/memories?user_id=big&limit=500', 2],
  ['mem0 lists', '/compat/mem0/memories?user_id=big&limit=100', 2],
  ['exports', '/export?user_id=big&limit=500', 1],
] as const;
const MANY = 40;

it.each(FLOODS)('[Decision 29] %s by one caller leave the others as quick as alone', async (_, path, most) => {
  const { url, reads, goOn } = await floodedServer({ authenticator });
  const statusOf = async (key: string, asked: string) => {
    const response = await fetch(url + asked, { headers: { 'x-api-key': key } });
    await response.arrayBuffer();
    return response.status;
  };
  const small = '/memories?user_id=quiet&limit=1';
  // However long this machine takes, no read has waited too long.
  vi.spyOn(performance, 'now').mockReturnValue(performance.now());
  let answered = 0;
  const flood = Array.from({ length: MANY }, () => statusOf('flood', path).finally(() => answered++));
  await until(async () => reads.begun >= most);
  expect(await statusOf('quiet', small)).toBe(200);
  expect(reads.begun).toBe(most);
  goOn();
  let meanwhile = 0;
  for (let i = 0; i < 5; i++) {
    const before = answered;
    expect(await statusOf('quiet', small)).toBe(200);
    meanwhile = Math.max(meanwhile, answered - before);
  }
  expect(meanwhile).toBeLessThan(MANY / 5);
  expect(new Set(await Promise.all(flood))).toEqual(new Set([200]));
  expect(reads.most).toBe(most);
});

it('[Decision 29] on an open gateway every client address has its own share', async () => {
  const { client, reads, goOn } = await floodedServer({ trusted_proxies: ['127.0.0.1'] });
  const list = (address: string) =>
    client.ask('/memories', { user_id: 'big', limit: 500 }, { 'x-forwarded-for': address });
  const flood = Array.from({ length: 10 }, () => list('203.0.113.1'));
  await until(async () => reads.begun === 2);
  const other = list('203.0.113.2');
  await until(async () => reads.begun === 3);
  goOn();
  for (const reply of await Promise.all([...flood, other])) expect(reply.status).toBe(200);
});

it('[Decision 29] an import leaves the event loop turns while it reads the versions of its memories', async () => {
  const { client } = await serverForTest();
  const created_at = '2026-01-01T00:00:00.000Z';
  const body = (name: string, memories: number, count: number) => ({
    memories: Array.from({ length: memories }, (_, n) => {
      const memory = { id: `${name}${n}`, user_id: 'u', content: 'x', created_at };
      const versions = Array.from({ length: count / memories }, (_, n) => ({ version: n + 1, memory }));
      return { ...memory, versions };
    }),
  });
  /** Turns between what arrives and what is sent, while nothing else is done. */
  const turnsOf = async (name: string, memories: number, count: number) => {
    const sent = body(name, memories, count);
    let [turns, counting] = [0, true];
    const tick = () => {
      turns++;
      if (counting) setImmediate(tick);
    };
    setImmediate(tick);
    const { status } = await client.tell('POST', '/import', sent);
    counting = false;
    expect(status).toBe(200);
    return turns;
  };
  expect(await turnsOf('many', 1, 6_000)).toBeGreaterThan((await turnsOf('one', 1, 1)) + 40);
  expect(await turnsOf('few', 100, 6_000)).toBeGreaterThan((await turnsOf('single', 100, 100)) + 40);
});
