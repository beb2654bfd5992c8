import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  failureOfConnection,
  failureOfStatus,
  loadPackage,
  type Memory,
  type Provider,
  setPath,
  type Traits,
} from '#provider';
import libsql from '../../providers/collections/libsql.ts';
import { recordingLog } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, listOf, memoryOf, searchFor } from '../support/requests.ts';
import { type Asked, inMemory } from './in-memory.ts';

const context = (model = 'one', dimensions = 4) => ({
  embedder: { ...hashingEmbedder(), model, dimensions },
  ranking: { mode: 'vector', keyword_weight: 0 } as const,
  audit: undefined,
  data_dir: tmpdir(),
  log: recordingLog(),
});
const vector = (...components: number[]) => Float32Array.from(components);

const memories = (user_id: string, count: number, more: Partial<Memory> = {}) =>
  Array.from({ length: count }, (_, i) => {
    const created_at = new Date(1_600_000_000_000 + i * 60_000).toISOString();
    const input = memoryOf(user_id, `note ${i}`, more);
    const memory: Memory = {
      ...input,
      id: `${user_id}-${i}`,
      created_at,
      updated_at: created_at,
      embedding_model: 'one',
      status: 'done',
      ...more,
    };
    return { memory, vector: vector(1, i, 0, 0) };
  });

const KINDS: Readonly<Record<string, Partial<Traits>>> = {
  position: { order: 'position' },
  number: { order: 'number' },
  none: { order: 'none', filters: [] },
};

describe.each(Object.keys(KINDS))('on a database that orders by: %s', (kind) => {
  const openWith = async (count: number) => {
    const asked: Asked[] = [];
    const provider = (await inMemory(KINDS[kind], asked).open(
      { collection: randomUUID() },
      context(),
    )) as Required<Provider>;
    const add = (items: ReturnType<typeof memories>) => provider.import({ items, replace: false }, call);
    const all = memories('ana', count);
    for (let start = 0; start < count; start += 1_000) await add(all.slice(start, start + 1_000));
    const cost = async (work: () => Promise<unknown>) => {
      asked.length = 0;
      await work();
      return { requests: asked.length, points: asked.reduce((sum, { points }) => sum + points, 0) };
    };
    return { provider, add, cost, asked };
  };

  it('[Decision 64] a page, the next one and a page of users cost no more for a user with ten times as many memories', async () => {
    const costs = [];
    for (const count of [2_000, 20_000]) {
      const { provider, add, cost } = await openWith(count);
      await add(memories('ben', 3));
      const middle = memories('ana', count)[count / 2]?.memory as Memory;
      costs.push([
        await cost(() => provider.list(listOf('ana', { limit: 20 }), call)),
        await cost(() => provider.list(listOf('ana', { limit: 20, after: middle }), call)),
        await cost(() => provider.users({ users: null, within: null, limit: 10 }, call)),
        await cost(() => provider.export({ vectors: false, limit: 20, max_bytes: 1e6 }, call)),
      ]);
    }
    const [few = [], many = []] = costs;
    for (const [i, { requests, points }] of many.entries()) {
      expect(requests, `requests of ${i}`).toBeLessThanOrEqual((few[i]?.requests ?? 0) + 8);
      expect(points, `points of ${i}`).toBeLessThanOrEqual((few[i]?.points ?? 0) + 8_000);
    }
  });

  it('[Decision 64] a read of memories asks for no field that they are not made of', async () => {
    const { provider, cost, asked } = await openWith(300);
    await cost(async () => {
      await provider.get({ id: 'ana-1', users: null, within: null }, call);
      await provider.list(listOf('ana', { limit: 20 }), call);
      await provider.search({ ...searchFor('ana', ''), vector: vector(1, 0, 0, 0) }, call);
    });
    const unneeded = ['tags', 'written', 'user_place', 'bytes', 'conversation'];
    expect(asked.length).toBeGreaterThanOrEqual(3);
    for (const { fields = unneeded } of asked) expect(fields.filter((name) => unneeded.includes(name))).toEqual([]);
  });

  it('[Decision 64] a page of users takes a few reads, and all pages have each of them with its memories, many or few', async () => {
    const { provider, add, cost } = await openWith(2_500);
    const others = Array.from({ length: 300 }, (_, n) => memories(`user ${n}`, 1 + (n % 3)));
    await add(others.flat());
    const query = { users: null, within: null, limit: 100 };
    const found = new Map<string, number>();
    const costs: number[] = [];
    for (let after: string | undefined, more = true; more; ) {
      const { requests } = await cost(async () => {
        const { items, next } = await provider.users({ ...query, ...(after !== undefined && { after }) }, call);
        for (const { user_id, count } of items) found.set(user_id, count);
        after = next;
        more = next !== undefined;
      });
      costs.push(requests);
    }
    expect(Object.fromEntries(found)).toEqual(
      Object.fromEntries([['ana', 2_500], ...others.map((own, n) => [`user ${n}`, own.length])]),
    );
    // Before the first one nobody knows how many there are, and one of the pages has the user with many.
    expect(Math.max(...costs)).toBeLessThanOrEqual(40);
    expect(costs.toSorted((a, b) => a - b)[0]).toBeLessThanOrEqual(2);
  });

  it('[Decision 64] a page after the first one takes two reads, of a list and of an export', async () => {
    const { provider, cost } = await openWith(5_000);
    const position = memories('ana', 5_000)[3_000]?.memory as Memory;
    await provider.list(listOf('ana', { limit: 50 }), call);
    await provider.list(listOf('ana', { limit: 50, after: position }), call);
    const next = listOf('ana', { limit: 50, after: memories('ana', 5_000)[2_950]?.memory as Memory });
    expect((await cost(() => provider.list(next, call))).requests).toBeLessThanOrEqual(3);
    const of = { vectors: false, limit: 100, max_bytes: 1e9 };
    const first = await provider.export(of, call);
    const costs: number[] = [];
    for (let after = first.next; after !== undefined && costs.length < 20; )
      costs.push(
        (
          await cost(async () => {
            after = (await provider.export({ ...of, after }, call)).next;
          })
        ).requests,
      );
    expect(costs.toSorted((a, b) => a - b)[10]).toBeLessThanOrEqual(3);
  });

  it('[Decision 64] memories of one moment come in order of their ids, page by page', async () => {
    const { provider, add } = await openWith(0);
    const at = '2024-01-01T00:00:00.000Z';
    const items = memories('ana', 1_200, {}).map(({ memory, vector }) => ({
      memory: { ...memory, created_at: at },
      vector,
    }));
    await add(items);
    const seen: string[] = [];
    for (let after: Memory | undefined; ; ) {
      const page = await provider.list(listOf('ana', { limit: 300, ...(after && { after }) }), call);
      seen.push(...page.map(({ id }) => id));
      after = page.at(-1);
      if (page.length < 300) break;
    }
    expect(seen).toEqual(
      items
        .map(({ memory }) => memory.id)
        .sort()
        .reverse(),
    );
  });

  it('[Decision 64] [SPEC GET /memories/search order] equal scores are newest first, however many there are', async () => {
    const { provider, add } = await openWith(0);
    const items = memories('ana', 300).map(({ memory }) => ({ memory, vector: vector(1, 0, 0, 0) }));
    await add(items);
    const newest = items.map(({ memory }) => memory.id).reverse();
    for (const limit of [1, 20, 200]) {
      const hits = await provider.search({ ...searchFor('ana', ''), vector: vector(1, 1, 0, 0), limit }, call);
      expect(hits.map(({ memory }) => memory.id)).toEqual(newest.slice(0, limit));
    }
  });

  it('[Decision 64] the few that match are found, however many others are nearer', async () => {
    const { provider, add } = await openWith(3_000);
    await add(memories('ana', 3, { id: 'rare', tags: ['rare'] }).slice(2));
    const nearest = { ...searchFor('ana', ''), vector: vector(0, 1, 0, 0), limit: 2, tags: ['rare'] };
    expect((await provider.search(nearest, call)).map(({ memory }) => memory.id)).toEqual(['rare']);
  });
});

it('[Decision 64] a page for which more than 10,000 memories would be read in vain is refused', async () => {
  const module = inMemory({ order: 'none', filters: [] });
  const store = (await module.open({ collection: randomUUID() }, context())) as Required<Provider>;
  const items = memories('ana', 11_000);
  for (let start = 0; start < items.length; start += 1_000)
    await store.import({ items: items.slice(start, start + 1_000), replace: false }, call);
  const refused = { code: 'invalid_request', message: expect.stringContaining('narrow the request by tags') };
  await expect(store.list(listOf('ana', { tags: ['absent'] }), call)).rejects.toMatchObject(refused);
  const query = { ...searchFor('ana', 'note'), vector: vector(1, 0, 0, 0), tags: ['absent'] };
  await expect(store.search(query, call)).rejects.toMatchObject(refused);
});

it('[Decision 64] users are listed whose memories, more than one read returns, changed in one moment; nobody else is counted', async () => {
  const asked: Asked[] = [];
  const traits = { order: 'number', max_limit: 1_000 } as const;
  const provider = (await inMemory(traits, asked).open({ collection: randomUUID() }, context())) as Required<Provider>;
  const updated_at = '2024-01-01T00:00:00.000Z';
  await provider.import({ items: memories('ana', 1_200, { updated_at }), replace: false }, call);
  await provider.import({ items: memories('ben', 1), replace: false }, call);
  asked.length = 0;
  const { items } = await provider.users({ users: null, within: null, limit: 10 }, call);
  expect(items).toContainEqual({ user_id: 'ana', count: 1_200, last_write: updated_at });
  expect(asked.filter(({ method }) => method === 'count')).toHaveLength(1);
});

it('[Decision 64] an erasure leaves a memory whose id an import gave to another user', async () => {
  const provider = (await inMemory().open({ collection: randomUUID() }, context())) as Required<Provider>;
  const [[mine], [other]] = [memories('ana', 1, { id: 'x' }), memories('ben', 1, { id: 'x' })];
  if (!mine || !other) throw new Error('no memories');
  await provider.import({ items: [mine], replace: false }, call);
  const done = await Promise.all([
    provider.delete({ id: 'x', users: null, within: null }, call),
    provider.import({ items: [other], replace: false }, call),
    provider.erase({ user_id: 'ana' }, call),
  ]);
  expect(done).toEqual([true, [true], { memories: 0, vectors: 0 }]);
  expect(await provider.get({ id: 'x', users: null, within: null }, call)).toMatchObject({ user_id: 'ben' });
});

it('[Decision 64] what a database cannot answer at once is read in parts: nothing is missing, and all is in order', async () => {
  const [whole, small] = await Promise.all(
    [{}, { max_answer_bytes: 4_000 }].map(async (limits) => {
      const provider = (await inMemory(limits).open({ collection: randomUUID() }, context())) as Required<Provider>;
      const items = memories('ana', 30, { content: 'x'.repeat(1_000) });
      await provider.import({ items, replace: false }, call);
      const search = (limit: number) =>
        provider.search({ ...searchFor('ana', ''), vector: vector(0, 1, 0, 0), limit }, call);
      return {
        provider,
        answers: {
          list: await provider.list({ ...listOf('ana'), limit: 20 }, call),
          search: [await search(10), await search(30)],
          export: await provider.export({ vectors: true, limit: 30, max_bytes: 1e9 }, call),
        },
      };
    }),
  );
  expect(small?.answers).toEqual(whole?.answers);
  expect(small?.answers.list).toHaveLength(20);
  const [{ memory } = { memory: undefined }] = memories('ben', 1, { content: 'x'.repeat(5_000) });
  if (!memory || !small) throw new Error('no memory');
  await small.provider.import({ items: [{ memory, vector: vector(1, 0, 0, 0) }], replace: false }, call);
  // No answer is small enough. The request of the client is not to blame.
  await expect(small.provider.get({ id: memory.id, users: null, within: null }, call)).rejects.toMatchObject({
    ...{ code: 'provider_error', message: 'the answer is too large', retry: 'reads' },
  });
});

it('[Decision 64] vectors of any length are found by their direction', async () => {
  const data_dir = await mkdtemp(join(tmpdir(), 'omp-kit-'));
  onTestFinished(() => rm(data_dir, { recursive: true }));
  const provider = (await libsql.open({}, { ...context(), data_dir })) as Required<Provider>;
  onTestFinished(() => provider.close());
  const lengths = { huge: 1e30, large: 1e6, one: 1, small: 1e-6, tiny: 1e-25 };
  const items = Object.entries(lengths).flatMap(([id, length]) =>
    memories('ana', 1, { id }).map(({ memory }) => ({ memory, vector: vector(length, length, 0, 0) })),
  );
  await provider.import({ items, replace: false }, call);
  for (const [towards, score] of [
    [vector(1, 1, 0, 0), 1],
    [vector(0, 0, 1, 0), 0],
  ] as const) {
    const hits = await provider.search({ ...searchFor('ana', ''), vector: towards, limit: 9 }, call);
    expect(Object.fromEntries(hits.map((hit) => [hit.memory.id, hit.score]))).toEqual(
      Object.fromEntries(Object.keys(lengths).map((id) => [id, score])),
    );
  }
});

it('[Decision 64] a collection of another model, of other dimensions or of somebody else is refused', async () => {
  const data_dir = await mkdtemp(join(tmpdir(), 'omp-kit-'));
  onTestFinished(() => rm(data_dir, { recursive: true }));
  const url = `file:${join(data_dir, 'some.db')}`;
  await (await libsql.open({ url }, context())).close();
  await expect(libsql.open({ url }, context('two'))).rejects.toThrow(
    'the vectors of the collection are from "one", not from "two"',
  );
  await expect(libsql.open({ url }, context('one', 8))).rejects.toThrow(
    'has vectors of 4 dimensions, and "one" makes 8',
  );
  const client = createClient({ url });
  await client.execute('CREATE TABLE other (id TEXT)');
  await expect(libsql.open({ url, table: 'other' }, context())).rejects.toThrow('name another by OMP_LIBSQL_TABLE');
  await client.execute('DROP INDEX omp_memories_list');
  expect(await libsql.diagnose?.({ url }, context())).toEqual([
    expect.objectContaining({ area: 'connection', level: 'ok' }),
    { area: 'embedding', level: 'ok', message: 'the vectors are of "one"' },
    { area: 'indexes', level: 'warning', message: expect.stringContaining('no index for list') },
  ]);
  expect(await libsql.diagnose?.({ url }, context('two'))).toContainEqual(
    expect.objectContaining({ area: 'embedding', level: 'problem' }),
  );
  await client.execute("DELETE FROM omp_memories WHERE id = '.'");
  await client.execute({
    sql: "INSERT INTO omp_memories SELECT 'x', 'x', 'u', '', '[]', 0, 0, 1, 1, 1, '[]', '', zeroblob(16), '', 0, '{}'",
    args: [],
  });
  await expect(libsql.open({ url }, context())).rejects.toThrow('the collection was not made by the gateway');
  client.close();
});

it('[Decision 64] what is wrong with a file is said with the setting that helps', async () => {
  const data_dir = await mkdtemp(join(tmpdir(), 'omp-kit-'));
  onTestFinished(() => rm(data_dir, { recursive: true }));
  await writeFile(join(data_dir, 'text.db'), 'no database '.repeat(500));
  await expect(libsql.open({ url: `file:${data_dir}/none/x.db` }, context())).rejects.toThrow(
    'the file of OMP_LIBSQL_URL cannot be opened',
  );
  await expect(libsql.open({ url: `file:${data_dir}/text.db` }, context())).rejects.toThrow(
    'the file is no libSQL database',
  );
  const refused = { code: 'provider_error', message: 'libSQL cannot be reached', down: true, retry: 'safe' };
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await expect(libsql.open({ url: `http://127.0.0.1:${port}` }, context())).rejects.toMatchObject(refused);
});

it('[Decision 64] a client library that is missing is said with the command that installs it', async () => {
  const name = 'no-such-package';
  await expect(loadPackage(() => import(name), `${name}@1`)).rejects.toThrow('npm install no-such-package@1');
  const broken = () =>
    Promise.reject(Object.assign(new Error("Cannot find package 'other'"), { code: 'ERR_MODULE_NOT_FOUND' }));
  await expect(loadPackage(broken, `${name}@1`)).rejects.toThrow("Cannot find package 'other'");
});

it('[Decision 27] connections and statuses say whether a retry may help', () => {
  const caused = new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) });
  expect(failureOfConnection('X', caused)).toMatchObject({ retry: 'reads', down: true });
  expect(failureOfConnection('X', new Error('no'))).toBeUndefined();
  expect(
    [400, 401, 404, 413, 429, 503].map(
      (status) => failureOfStatus('X', status)?.retry ?? failureOfStatus('X', status)?.code ?? null,
    ),
  ).toEqual([...[null, null, null, 'payload_too_large', 'safe', 'reads']]);
});

it('a field may have the name of what every object inherits', () => {
  const fields: Record<string, unknown> = { given: null };
  for (const name of ['constructor.user', '__proto__.user', 'given.user']) setPath(fields, name, name);
  expect(fields.constructor).toEqual({ user: 'constructor.user' });
  expect(fields.given).toEqual({ user: 'given.user' });
  expect([Object.hasOwn(Object, 'user'), 'user' in {}]).toEqual([false, false]);
});
