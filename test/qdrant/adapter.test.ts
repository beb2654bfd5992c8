import { getEventListeners } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Call, type Collection, FIELDS, type Filter, type Point } from '#provider';
import provider, { Options, qdrant } from '../../providers/collections/qdrant.ts';
import { type Fault, type QdrantServer, startQdrant } from '../qdrant-server/start.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call } from '../support/requests.ts';
import { freshCollection, openQdrant, tell } from './server.ts';

/** The adapter alone, on either server. */
async function opened(options: object = {}) {
  const server = await openQdrant();
  onTestFinished(server.close);
  const collection = freshCollection();
  const adapter = await open({ url: server.url, collection, ...options });
  return { adapter, url: server.url, path: `${server.url}/collections/${collection}` };
}

/** The same on the test server, which fails as a test says. */
async function failing(): Promise<{ adapter: Collection; server: QdrantServer }> {
  const server = await startQdrant();
  onTestFinished(server.close);
  const adapter = await open({ url: server.url });
  await adapter.prepare({ dimensions: 2, fields: FIELDS }, call);
  server.calls.length = 0;
  return { adapter, server };
}

const open = async (options: object): Promise<Collection> => {
  const adapter = await qdrant.open(Options.parse(options), {} as never);
  onTestFinished(() => adapter.close());
  return adapter;
};

const uuid = (n: number): string => `0193b4a0-0000-7000-8000-${String(n).padStart(12, '0')}`;
const point = (n: number, fields: object = {}): Point => ({
  id: uuid(n),
  vector: Float32Array.of(1, n),
  fields: {
    memory_id: `mem_${n}`,
    user_id: 'u',
    content: 'tea',
    scope: '',
    tags: [],
    created: n,
    updated: n,
    ...fields,
  },
});
const ALL = { fields: undefined, vector: false };
const mine: Filter = { op: 'equals', field: 'user_id', value: 'u' };

describe('a collection', () => {
  it('is made once by several gateways, with an index for each field that filters name', async () => {
    const { adapter, path } = await opened();
    expect(await adapter.describe(call)).toBeUndefined();
    const wanted = { dimensions: 2, fields: FIELDS };
    await Promise.all([adapter.prepare(wanted, call), adapter.prepare(wanted, call)]);
    await adapter.prepare(wanted, call);
    expect(await adapter.describe(call)).toMatchObject({
      dimensions: 2,
      empty: true,
      mistake: undefined,
      unindexed: [],
    });
    const { payload_schema } = (await tell('GET', path)).body.result;
    expect(Object.keys(payload_schema).sort()).toEqual(
      FIELDS.flatMap(({ name, filtered }) => (filtered ? [name] : [])).sort(),
    );
    expect(payload_schema.user_id).toMatchObject({ data_type: 'keyword', params: { is_tenant: true } });
    expect(payload_schema.created).toMatchObject({ data_type: 'float' });
  });

  it.each([
    [{ size: 2, distance: 'Dot' }, 2, /Dot/],
    [{ size: { size: 2, distance: 'Cosine' } }, 0, /names/],
  ])('of another form is described: %j', async (vectors, dimensions, mistake) => {
    const { adapter, path } = await opened();
    await tell('PUT', path, { vectors });
    expect(await adapter.describe(call)).toMatchObject({ dimensions, mistake: expect.stringMatching(mistake) });
    const { unindexed } = (await adapter.describe(call)) ?? {};
    expect(unindexed).toContain('user_id');
  });
});

it('[Decision 64] a collection that another application fills is refused, and stays as it is', async () => {
  const { adapter, url, path } = await opened();
  const collection = path.slice(path.lastIndexOf('/') + 1);
  await tell('PUT', path, { vectors: { size: 4, distance: 'Cosine' } });
  const points = [{ id: 1, vector: [1, 0, 0, 0], payload: { user_id: 'ana', data: 'tea' } }];
  await tell('PUT', `${path}/points?wait=true`, { points });
  const context = {
    ...{ embedder: { ...hashingEmbedder(), model: 'one', dimensions: 4 }, audit: undefined, data_dir: '' },
    ...{ ranking: { mode: 'vector', keyword_weight: 0 } as const, log: recordingLog() },
  };
  const refused = 'the collection was not made by the gateway; name another one';
  await expect(provider.open({ url, collection }, context)).rejects.toThrow(refused);
  expect(await provider.diagnose?.({ url, collection }, context)).toContainEqual(
    expect.objectContaining({ level: 'problem', message: refused }),
  );
  expect((await tell('GET', path)).body.result).toMatchObject({ points_count: 1, payload_schema: {} });
  expect(await adapter.describe(call)).toMatchObject({ empty: false });
});

describe('points', () => {
  it('come back as they went in: fields, texts of any letters, vectors of length 1', async () => {
    const { adapter } = await opened();
    await adapter.prepare({ dimensions: 2, fields: FIELDS }, call);
    const fields = { content: 'ä😀"\\\n', tags: ['a', 'ä'], created: -1, updated: 2 ** 52, rest: '{"a":1}' };
    await adapter.upsert([point(1, fields), { ...point(2), vector: Float32Array.of(0.6, 0.8) }], call);
    const found = await adapter.fetch([uuid(1), uuid(2), uuid(9)], { fields: undefined, vector: true }, call);
    expect(found).toHaveLength(2);
    expect(found.find(({ id }) => id === uuid(1))?.fields).toEqual(point(1, fields).fields);
    expect(found.find(({ id }) => id === uuid(2))?.vector).toEqual(Float32Array.of(0.6, 0.8));
    const [named] = await adapter.fetch([uuid(1)], { fields: ['created'], vector: false }, call);
    expect(named).toEqual({ id: uuid(1), fields: { created: -1 } });
    expect(await adapter.fetch([uuid(1)], { fields: [], vector: false }, call)).toEqual([{ id: uuid(1), fields: {} }]);
  });

  it('are found by every filter that the traits name, and by numbers that are no integers', async () => {
    const { adapter } = await opened();
    await adapter.prepare({ dimensions: 2, fields: FIELDS }, call);
    await adapter.upsert(
      [point(1, { tags: ['a', 'b'] }), point(2, { tags: ['a'], user_id: 'v' }), point(3, { created: 1.5 })],
      call,
    );
    const ids = async (filter: Filter) =>
      (await adapter.scan({ filter, limit: 9, select: ALL }, call))
        .map(({ fields }) => String(fields.memory_id).slice(-1))
        .join('');
    expect(await ids(mine)).toBe('13');
    expect(await ids({ op: 'anyOf', field: 'user_id', values: ['u', 'v'] })).toBe('123');
    expect(await ids({ op: 'allOf', field: 'tags', values: ['a', 'b'] })).toBe('1');
    expect(await ids({ op: 'range', field: 'created', from: 1, to: 1.5 })).toBe('13');
    expect(await ids({ op: 'range', field: 'created', from: 2 })).toBe('2');
    expect(await ids({ op: 'equals', field: 'created', value: 1.5 })).toBe('3');
    expect(await ids({ op: 'equals', field: 'created', value: 1 })).toBe('1');
    expect(await ids({ op: 'not', filter: { op: 'allOf', field: 'tags', values: ['a'] } })).toBe('3');
    expect(
      await ids({ op: 'and', filters: [mine, { op: 'not', filter: { op: 'equals', field: 'scope', value: 'x' } }] }),
    ).toBe('13');
    expect(await adapter.count(mine, call)).toBe(2);
    const order = { by: 'created', descending: true };
    const newest = await adapter.scan({ filter: mine, order, limit: 1, select: ALL }, call);
    expect(newest.map(({ id }) => id)).toEqual([uuid(3)]);
    const [nearest] = await adapter.query({ vector: Float32Array.of(1, 3), filter: mine, limit: 1, select: ALL }, call);
    expect(nearest).toMatchObject({ id: uuid(3), measure: expect.closeTo(1, 5) });
    await adapter.remove([uuid(1), uuid(9)], call);
    expect(await ids(mine)).toBe('3');
  });

  it('are compared all, unless the options say that the index may be used', async () => {
    for (const exact of [true, false]) {
      const { server } = await failing();
      const adapter = await open({ url: server.url, exact });
      expect(adapter.traits.exact).toBe(exact);
      await adapter.query({ vector: Float32Array.of(1, 3), filter: mine, limit: 1, select: ALL }, call);
      expect(server.calls.at(-1)?.body).toMatchObject({ params: { exact } });
    }
  });

  it('of the largest batch fit into one request', async () => {
    const { adapter } = await opened();
    const dimensions = 1_536;
    await adapter.prepare({ dimensions, fields: FIELDS }, call);
    const { max_batch_bytes } = adapter.traits;
    // Numbers of 32 bits with the longest text.
    const vector = new Float32Array(dimensions).fill(-1.000_000_1e-7);
    const count = Math.floor(max_batch_bytes / (dimensions * 4));
    await adapter.upsert(
      Array.from({ length: count }, (_, n) => ({ ...point(n), vector })),
      call,
    );
    await adapter.upsert(
      [{ ...point(1, { content: '\u0001'.repeat(Math.floor(max_batch_bytes / 6)) }), vector }],
      call,
    );
    expect(await adapter.count(mine, call)).toBe(count);
  });
});

describe('doctor', () => {
  const findings = (adapter: Collection) => qdrant.diagnose?.(adapter, {} as never, call);

  it('tells the version, and what of the collection keeps the gateway from its promises', async () => {
    const { adapter, path } = await opened();
    const server = { area: 'connection', level: 'ok', message: expect.stringMatching(/^Qdrant 1\.\d+\.\d+ answers$/) };
    expect(await findings(adapter)).toEqual([server]);
    const vectors = { size: 2, distance: 'Cosine' };
    await tell('PUT', path, { vectors, replication_factor: 2, strict_mode_config: { enabled: true } });
    const warning = (message: RegExp) => ({
      area: 'configuration',
      level: 'warning',
      message: expect.stringMatching(message),
    });
    expect(await findings(adapter)).toEqual([server, warning(/1 of 2 replicas/), warning(/strict mode/)]);
  });
});

describe('the client', () => {
  it('is made for the port and path of the address; the port is 6333 unless one is named', async () => {
    const uri = async (url: string) => {
      const { QdrantClient } = await import('@qdrant/js-client-rest');
      const made = vi.spyOn(QdrantClient.prototype, 'api');
      onTestFinished(() => made.mockRestore());
      await open({ url });
      return (made.mock.contexts.at(-1) as unknown as { _restUri: string })._restUri;
    };
    expect(await uri('https://q.example.com')).toBe('https://q.example.com:6333');
    expect(await uri('https://q.example.com:443/')).toBe('https://q.example.com:443');
    expect(await uri('http://q.example.com:80/qdrant/')).toBe('http://q.example.com:80/qdrant');
    expect(await uri('http://[::1]:7000')).toBe('http://[::1]:7000');
  });

  it('sends the key, and writes nothing to the console', async () => {
    const server = await openQdrant({ apiKey: 'a-key' });
    onTestFinished(server.close);
    const written = (['log', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name).mockReturnValue());
    const adapter = await open({ url: server.url, api_key: 'a-key' });
    await adapter.ping(call);
    expect(written.flatMap(({ mock }) => mock.calls)).toEqual([]);
    for (const spy of written) spy.mockRestore();
    const wrong = await open({ url: server.url, api_key: 'another' });
    expect(await meaning(wrong.ping(call))).toMatchObject({ message: expect.stringMatching(/rejected the key/) });
  });
});

const meaning = (work: Promise<unknown>) =>
  work.then(
    () => expect.unreachable('it did not fail'),
    (error: unknown) => qdrant.failure(error),
  );

describe('a failure', () => {
  const count = (adapter: Collection) => adapter.count(mine, call);

  it.each<[Fault['kind'], object]>([
    [408, { retry: 'reads', down: true }],
    [429, { code: 'rate_limited', retry: 'safe' }],
    ['strict', { message: expect.stringMatching(/strict mode/) }],
    [500, { retry: 'reads', down: true }],
    [503, { retry: 'reads', down: true }],
    ['reset', { retry: 'reads', down: true }],
    ['garbage', { retry: 'reads', down: true }],
    ['empty', { retry: 'reads', down: true }],
  ])('%s is told by what helps', async (kind, wanted) => {
    const { adapter, server } = await failing();
    server.fail({ kind });
    expect(await meaning(count(adapter))).toMatchObject(wanted);
    server.fail({ kind, retryAfter: '30' });
    expect(await meaning(count(adapter))).toMatchObject(wanted);
    await count(adapter);
  });

  it('of a server that is away, of a collection that is gone and of a vector of another length', async () => {
    const { adapter, server } = await failing();
    const gone = await open({ url: server.url, collection: 'gone' });
    expect(await meaning(count(gone))).toEqual({ message: 'Qdrant has no such collection' });
    expect(await meaning(adapter.upsert([{ ...point(1), vector: Float32Array.of(1) }], call))).toBeUndefined();
    await server.close();
    // A connection that was open already breaks.
    expect(await meaning(count(adapter))).toMatchObject({ down: true });
    expect(await meaning(count(adapter))).toMatchObject({ retry: 'safe', down: true });
  });

  it('of a write that is stored and not to be read yet is no success', async () => {
    const { adapter, server } = await failing();
    server.fail({ kind: 'acknowledged' });
    expect(await meaning(adapter.upsert([point(1)], call))).toMatchObject({
      message: expect.stringMatching(/too slow/),
      down: true,
    });
  });

  it('of a call that makes very many requests is none of listeners: each goes with its request', async () => {
    const { adapter } = await failing();
    const { signal } = new AbortController();
    const listeners = async () => {
      await adapter.count(mine, new Call('many', undefined, signal));
      return getEventListeners(signal, 'abort').length;
    };
    const once = await listeners();
    await listeners();
    expect(await listeners()).toBe(once);
  });

  it('ends with the call: no request outlives it', async () => {
    const { adapter, server } = await failing();
    server.fail({ kind: 'hang' });
    const aborted = new AbortController();
    const waiting = adapter.count(mine, new Call('aborted', undefined, aborted.signal));
    await eventually(() => expect(server.calls).toHaveLength(1));
    aborted.abort(new Error('too late'));
    await expect(waiting).rejects.toThrow('too late');
  });
});
