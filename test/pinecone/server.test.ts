import { Pinecone as Sdk } from '@pinecone-database/pinecone';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { post, refused } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';

let server: Pinecone;
let namespace = '';
let made = 0;
const indexOf = (url: string, name: string) =>
  new Sdk({ apiKey: 'key', maxRetries: 0 }).index({ host: url, namespace: name });
const index = () => indexOf(server.url, namespace);

beforeAll(async () => {
  server = await startPinecone({ dimension: 2 });
});
afterAll(() => server.close());
beforeEach(() => {
  made += 1;
  namespace = `n${made}`;
});

describe('records', () => {
  it('upsert makes the namespace, and replaces a record with all its values and metadata', async () => {
    await index().upsert({ records: [{ id: 'a', values: [1, 0], metadata: { kept: 'no', n: 1 } }] });
    await index().upsert({ records: [{ id: 'a', values: [0, 1], metadata: { n: 2 } }] });
    expect(await server.namespaces()).toContain(namespace);
    expect((await index().fetch({ ids: ['a'] })).records).toEqual({
      a: { id: 'a', values: [0, 1], metadata: { n: 2 } },
    });
    expect(await post(server, '/vectors/upsert', { vectors: [{ id: 'a', values: [1, 1] }], namespace })).toMatchObject({
      status: 200,
      body: { upsertedCount: 1 },
    });
    expect(await server.records(namespace)).toEqual({ a: { values: [1, 1] } });
  });

  it('values are kept as 32-bit floats', async () => {
    await index().upsert({ records: [{ id: 'a', values: [0.1, 0.2] }] });
    const { records } = await index().fetch({ ids: ['a'] });
    expect(records.a?.values).toEqual([Math.fround(0.1), Math.fround(0.2)]);
  });

  it('"setMetadata" merges keys and removes none; values are replaced whole', async () => {
    await index().upsert({ records: [{ id: 'a', values: [1, 0], metadata: { a: 1, b: ['x'] } }] });
    await index().update({ id: 'a', metadata: { b: ['y'], c: true } });
    await index().update({ id: 'a', values: [0, 1] });
    expect(await server.records(namespace)).toEqual({ a: { values: [0, 1], metadata: { a: 1, b: ['y'], c: true } } });
  });

  it('update of a missing id is a 200 without effect', async () => {
    await index().upsert({ records: [{ id: 'a', values: [1, 0] }] });
    await index().update({ id: 'b', metadata: { n: 1 }, values: [1, 1] });
    expect(Object.keys(await server.records(namespace))).toEqual(['a']);
  });

  it('update by filter sets metadata wherever it matches; a dry run only counts', async () => {
    const of = (id: string, kind: string) => ({ id, values: [1, 0], metadata: { kind } });
    await index().upsert({ records: [of('a', 'x'), of('b', 'x'), of('c', 'y')] });
    const asked = { filter: { kind: 'x' }, setMetadata: { seen: true }, namespace };
    expect((await post(server, '/vectors/update', { ...asked, dryRun: true })).body).toEqual({ matchedRecords: 2 });
    expect((await server.records(namespace)).a?.metadata).toEqual({ kind: 'x' });
    expect((await post(server, '/vectors/update', asked)).body).toEqual({ matchedRecords: 2 });
    const stored = await server.records(namespace);
    expect([stored.a, stored.b, stored.c].map((record) => record?.metadata)).toEqual([
      { kind: 'x', seen: true },
      { kind: 'x', seen: true },
      { kind: 'y' },
    ]);
  });

  it('delete takes ids (missing ones too), a filter, or everything', async () => {
    const records = ['a', 'b', 'c', 'd'].map((id) => ({ id, values: [1, 0], metadata: { id } }));
    await index().upsert({ records });
    const left = async () => Object.keys(await server.records(namespace));
    await index().deleteMany({ ids: ['a', 'zz'] });
    expect(await left()).toEqual(['b', 'c', 'd']);
    await index().deleteMany({ filter: { id: { $in: ['b', 'zz'] } } });
    expect(await left()).toEqual(['c', 'd']);
    await index().deleteAll();
    expect(await left()).toEqual([]);
  });

  it('delete in a missing namespace is a 404 "Namespace not found"; fetch, query and list there find nothing', async () => {
    const missing = { status: 404, body: refused('Namespace not found', 5) };
    expect(await post(server, '/vectors/delete', { ids: ['a'], namespace })).toMatchObject(missing);
    expect(await post(server, '/vectors/delete', { deleteAll: true, namespace })).toMatchObject(missing);
    // Not established of an update: the harsher of the two answers there could be.
    expect(await post(server, '/vectors/update', { id: 'a', setMetadata: {}, namespace })).toMatchObject(missing);
    expect((await index().fetch({ ids: ['a'] })).records).toEqual({});
    expect((await index().query({ vector: [1, 0], topK: 1 })).matches).toEqual([]);
    expect((await index().listPaginated()).vectors).toEqual([]);
    expect(await server.namespaces()).not.toContain(namespace);
  });

  it('fetch leaves out ids that are missing', async () => {
    await index().upsert({ records: [{ id: 'a', values: [1, 0] }] });
    expect(Object.keys((await index().fetch({ ids: ['a', 'b'] })).records)).toEqual(['a']);
  });

  it('fetch_by_metadata pages through what matches, with a token for the same question only', async () => {
    const records = Array.from({ length: 7 }, (_, i) => ({ id: `${i}`, values: [1, 0], metadata: { odd: i % 2 } }));
    await index().upsert({ records });
    const asked = { filter: { odd: 0 }, limit: 3 };
    const first = await index().fetchByMetadata(asked);
    const paginationToken = first.pagination?.next ?? '';
    const second = await index().fetchByMetadata({ ...asked, paginationToken });
    expect(second.pagination).toBeUndefined();
    const ids = [...Object.keys(first.records), ...Object.keys(second.records)];
    expect(ids.sort()).toEqual(['0', '2', '4', '6']);
    const other = { filter: { odd: 1 }, limit: 3, paginationToken, namespace };
    expect(await post(server, '/vectors/fetch_by_metadata', other)).toMatchObject({
      status: 400,
      body: refused('Invalid pagination token'),
    });
  });

  it('stats count what each namespace holds', async () => {
    await index().upsert({ records: [{ id: 'a', values: [1, 0] }] });
    const stats = await index().describeIndexStats();
    expect(stats.dimension).toBe(2);
    expect(stats.namespaces?.[namespace]).toEqual({ recordCount: 1 });
  });
});

describe('query', () => {
  const records = [
    { id: 'd', values: [3, 4] },
    { id: 'b', values: [2, 0], metadata: { n: 1 } },
    { id: 'a', values: [4, 0] },
    { id: 'c', values: [-1, 0] },
  ];

  it('sorts by cosine, ties by id; values and metadata come when they are asked for', async () => {
    await index().upsert({ records });
    const { matches } = await index().query({ vector: [5, 0], topK: 3 });
    expect(matches.map(({ id, score }) => [id, score])).toEqual([
      ['a', 1],
      ['b', 1],
      ['d', 0.6],
    ]);
    const asked = { vector: [5, 0], topK: 2, namespace };
    const { body } = await post(server, '/query', { ...asked, includeValues: true, includeMetadata: true });
    expect((body as { matches: object[] }).matches).toEqual([
      { id: 'a', score: 1, values: [4, 0] },
      { id: 'b', score: 1, values: [2, 0], metadata: { n: 1 } },
    ]);
    const { body: bare } = await post(server, '/query', asked);
    expect((bare as { matches: object[] }).matches).toEqual([
      { id: 'a', score: 1 },
      { id: 'b', score: 1 },
    ]);
  });

  it('takes the vector of a record by its id; of a missing one it finds nothing', async () => {
    await index().upsert({ records });
    expect((await index().query({ id: 'c', topK: 1 })).matches).toMatchObject([{ id: 'c', score: 1 }]);
    expect((await index().query({ id: 'zz', topK: 1 })).matches).toEqual([]);
  });

  it('accepts a query vector of zeros', async () => {
    await index().upsert({ records });
    const { matches } = await index().query({ vector: [0, 0], topK: 4 });
    expect(matches.map(({ id, score }) => [id, score])).toEqual([
      ['a', 0],
      ['b', 0],
      ['c', 0],
      ['d', 0],
    ]);
  });

  it.each([
    [
      'dotproduct',
      [
        ['a', 4],
        ['d', 3],
        ['b', 2],
        ['c', -1],
      ],
    ],
    // Lower is better: the squared distance.
    [
      'euclidean',
      [
        ['b', 1],
        ['c', 4],
        ['a', 9],
        ['d', 20],
      ],
    ],
  ] as const)('scores by %s', async (metric, scores) => {
    const other = await startPinecone({ dimension: 2, metric });
    const there = indexOf(other.url, 'n');
    await there.upsert({ records });
    const { matches } = await there.query({ vector: [1, 0], topK: 10 });
    expect(matches.map(({ id, score }) => [id, score])).toEqual(scores);
    await other.close();
  });
});

describe('namespaces', () => {
  it('are created, described, listed in pages in byte order, and deleted with all they hold', async () => {
    const names = ['b', 'B', 'a'].map((end) => `${namespace}-${end}`);
    for (const name of names) await index().createNamespace({ name });
    const host = index();
    const first = await host.listNamespaces({ limit: 2, prefix: `${namespace}-` });
    expect(first.namespaces?.map(({ name }) => name)).toEqual([`${namespace}-B`, `${namespace}-a`]);
    expect(first.totalCount).toBe(3);
    const second = await host.listNamespaces({
      limit: 2,
      prefix: `${namespace}-`,
      paginationToken: first.pagination?.next,
    });
    expect(second.namespaces?.map(({ name }) => name)).toEqual([`${namespace}-b`]);
    expect(second.pagination).toBeUndefined();

    const a = indexOf(server.url, `${namespace}-a`);
    await a.upsert({ records: [{ id: 'x', values: [1, 0] }] });
    expect(await host.describeNamespace(`${namespace}-a`)).toMatchObject({ name: `${namespace}-a`, recordCount: 1 });
    await host.deleteNamespace(`${namespace}-a`);
    await expect(host.describeNamespace(`${namespace}-a`)).rejects.toThrow();
    expect((await a.fetch({ ids: ['x'] })).records).toEqual({});
    expect(await post(server, '/vectors/delete', { ids: ['x'], namespace: `${namespace}-a` })).toMatchObject({
      status: 404,
    });
  });

  it('of a name that is taken is a 409', async () => {
    await index().createNamespace({ name: namespace });
    expect(await post(server, '/namespaces', { name: namespace })).toMatchObject({
      status: 409,
      body: refused(`Namespace ${namespace} already exists`, 6),
    });
  });

  it('with a schema let only its fields be filtered by', async () => {
    await index().createNamespace({ name: namespace, schema: { fields: { user: { filterable: true } } } });
    await index().upsert({ records: [{ id: 'x', values: [1, 0], metadata: { user: 'u', other: 'o' } }] });
    const matching = async (filter: object) => post(server, '/query', { vector: [1, 0], topK: 1, filter, namespace });
    expect((await matching({ user: 'u' })).body).toMatchObject({ matches: [{ id: 'x' }] });
    expect((await matching({ other: 'o' })).body).toEqual(refused('the field other is not filterable'));
  });

  it('"__default__" and "" are the same', async () => {
    const vectors = [{ id: namespace, values: [1, 0] }];
    await post(server, '/vectors/upsert', { vectors, namespace: '' });
    expect((await indexOf(server.url, '__default__').fetch({ ids: [namespace] })).records).toHaveProperty(namespace);
  });
});
