import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Call, type Collection, FIELDS, type Filter, type Point } from '#provider';
import { toObject } from '../../providers/collections/points/weaviate.ts';
import provider, { Options, weaviate } from '../../providers/collections/weaviate.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLog } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call } from '../support/requests.ts';
import { NO_WEAVIATE, openWeaviate } from './server.ts';

/** The adapter alone, on a server of its own. */
async function opened({ env = {}, prepared = true, ...options }: { env?: Record<string, string>; prepared?: boolean }) {
  const server = await openWeaviate(env);
  onTestFinished(server.close);
  const adapter = await weaviate.open(
    Options.parse({ url: server.url, grpc_url: server.grpc_url, ...options }),
    {} as never,
  );
  onTestFinished(() => adapter.close());
  if (prepared) await adapter.prepare({ dimensions: 2, fields: FIELDS }, call);
  return { adapter, server };
}

const uuid = (n: number): string => `0193b4a0-0000-7000-8000-${String(n).padStart(12, '0')}`;
const point = (n: number, fields: Partial<Point['fields']> = {}, vector = Float32Array.of(1, n)): Point => ({
  ...{ id: uuid(n), vector },
  fields: {
    ...{ memory_id: `mem_${n}`, user_id: 'u', content: 'tea', scope: '', tags: [], created: n, updated: n },
    ...{ place: n, user_place: 0, bytes: 3, written: [], conversation: '', blank: 0, rest: '{}' },
    ...(fields as Point['fields']),
  },
});
const ALL = { fields: undefined, vector: false };
const mine: Filter = { op: 'equals', field: 'user_id', value: 'u' };
const equals = (field: string, value: string | number): Filter => ({ op: 'equals', field, value });
const idsOf = async (adapter: Collection, filter: Filter) =>
  (await adapter.scan({ filter, limit: 99, select: ALL }, call)).map(({ id }) => Number(id.slice(-4))).sort();
const request = (path: string, body: unknown) =>
  fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
const meaning = (work: Promise<unknown>) =>
  work.then(
    () => expect.unreachable('it did not fail'),
    (error: unknown) => weaviate.failure(error),
  );

describe.skipIf(NO_WEAVIATE !== '')(`a collection of Weaviate${NO_WEAVIATE && ` (${NO_WEAVIATE})`}`, () => {
  it('is made once by several gateways', async () => {
    const { adapter } = await opened({ prepared: false });
    expect(await adapter.describe(call)).toBeUndefined();
    const wanted = { dimensions: 2, fields: FIELDS };
    await Promise.all([adapter.prepare(wanted, call), adapter.prepare(wanted, call)]);
    expect(await adapter.describe(call)).toEqual({ dimensions: 2, empty: true });
  });

  it('[Decision 64] that another application fills is refused, and stays as it is', async () => {
    const { server } = await opened({ prepared: false });
    const { url, grpc_url } = server;
    await request(`${url}/v1/schema`, { class: 'OmpMemories', multiTenancyConfig: { enabled: true } });
    const before = await (await fetch(`${url}/v1/schema`)).text();
    const context = {
      ...{ embedder: { ...hashingEmbedder(), model: 'one', dimensions: 2 }, audit: undefined, data_dir: '' },
      ...{ ranking: { mode: 'vector', keyword_weight: 0 } as const, log: recordingLog() },
    };
    const refused = /OmpMemories was not made by the gateway; name another one by OMP_WEAVIATE_COLLECTION/;
    await expect(provider.open({ url, grpc_url }, context)).rejects.toThrow(refused);
    expect(await provider.diagnose?.({ url, grpc_url }, context)).toContainEqual(
      expect.objectContaining({ level: 'problem', message: expect.stringMatching(refused) }),
    );
    expect(await (await fetch(`${url}/v1/schema`)).text()).toBe(before);
  });

  it('keeps texts apart that differ in spaces at their ends, in case or in wildcards', async () => {
    const { adapter } = await opened({});
    const texts = ['a', ' a', 'a ', 'A', 'a\n', 'a*', 'a?', 'a b', '', ' ', '%20', 'ä😀"\\'];
    const points = texts.map((text, n) => point(n, { user_id: text, scope: text, tags: [text, 'all'] }));
    await adapter.upsert(points, call);
    const expected = texts.map((_, n) => [n]);
    const found = (filterOf: (text: string) => Filter) =>
      Promise.all(texts.map((text) => idsOf(adapter, filterOf(text))));
    expect(await found((text) => equals('user_id', text))).toEqual(expected);
    expect(await found((text) => ({ op: 'anyOf', field: 'scope', values: [text] }))).toEqual(expected);
    expect(await found((text) => ({ op: 'allOf', field: 'tags', values: ['all', text] }))).toEqual(expected);
    expect(await found((value) => ({ op: 'prefix', field: 'scope', value: value || 'a' }))).toEqual(
      texts.map((text) => texts.flatMap((other, n) => (other.startsWith(text || 'a') ? [n] : [])).sort()),
    );
    const back = await adapter.fetch([uuid(2), uuid(11)], { fields: undefined, vector: true }, call);
    expect([...back].sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual([points[2], points[11]]);
  });

  it('is not made anew by a write after it was deleted', async () => {
    const { adapter, server } = await opened({});
    await adapter.upsert([point(1)], call);
    await fetch(`${server.url}/v1/schema/OmpMemories`, { method: 'DELETE' });
    await expect(adapter.upsert([point(2)], call)).rejects.toThrow();
    expect(await adapter.describe(call)).toBeUndefined();
    expect(await meaning(adapter.count(mine, call))).toEqual({ message: 'Weaviate has no such collection' });
    await adapter.ping(call);
  });

  it('refuses a vector of another length, and stores a batch as large as the traits say', async () => {
    const { adapter } = await opened({ prepared: false });
    const dimensions = 1_536;
    await adapter.prepare({ dimensions, fields: FIELDS }, call);
    const vector = new Float32Array(dimensions).fill(0.1);
    const { max_batch, max_batch_bytes } = adapter.traits;
    const content = 'x'.repeat(max_batch_bytes / max_batch - 4 * dimensions - 1_000);
    await adapter.upsert(
      Array.from({ length: max_batch }, (_, n) => point(n, { content }, vector)),
      call,
    );
    expect(await adapter.count(mine, call)).toBe(max_batch);
    expect(
      await adapter.fetch(
        Array.from({ length: max_batch }, (_, n) => uuid(n)),
        ALL,
        call,
      ),
    ).toHaveLength(max_batch);
    await expect(adapter.upsert([point(1)], call)).rejects.toThrow(/dimensions/);
  });

  const vector = Float32Array.of(1, 1);
  const search = (adapter: Collection) => adapter.query({ vector, filter: mine, limit: 99, select: ALL }, call);

  it('shows a write to searches once it is answered, also with ASYNC_INDEXING', async () => {
    const { adapter } = await opened({ env: { ASYNC_INDEXING: 'true' } });
    for (let n = 1; n <= 4; n++) {
      await adapter.upsert([point(n)], call);
      expect(await search(adapter)).toHaveLength(n);
    }
  });

  it('shows to searches after kill -9 what was stored last', async () => {
    const { adapter, server } = await opened({});
    for (const n of [1, 2]) await adapter.upsert([point(n)], call);
    await server.kill();
    await server.start();
    await eventually(async () => expect(await adapter.count(mine, call)).toBe(2));
    expect(await search(adapter)).toHaveLength(2);
  });

  it('keeps in searches the memories of a change whose caller gave up while Weaviate stored it', async () => {
    const { adapter } = await opened({});
    const turn = (by: number) =>
      Array.from({ length: 1_000 }, (_, n) =>
        point(n, { updated: by, content: 'tea'.repeat(500) }, Float32Array.of(by, n)),
      );
    await adapter.upsert(turn(1), call);
    const given = new AbortController();
    const late = adapter.upsert(turn(2), new Call('given up', undefined, given.signal));
    const begun = async () => (await adapter.count(equals('updated', 2), call)) > 0;
    while (!(await begun()));
    given.abort(new Error('too late'));
    await expect(late).rejects.toThrow();
    // Follows the first, and changes what it changed.
    await adapter.upsert([point(0, { updated: 3 })], call);
    expect(await adapter.count(mine, call)).toBe(1_000);
    expect(await adapter.query({ vector, filter: mine, limit: 9_999, select: ALL }, call)).toHaveLength(1_000);
    expect(await adapter.count(equals('updated', 3), call)).toBe(1);
  });

  it('shows to searches again what a crash took out of them, at the next start and once Weaviate is back', async () => {
    const { adapter, server } = await opened({});
    const reopened = await weaviate.open(Options.parse({ url: server.url, grpc_url: server.grpc_url }), {} as never);
    onTestFinished(() => reopened.close());
    await adapter.upsert(
      [1, 2, 3].map((n) => point(n)),
      call,
    );
    /** Ends Weaviate before it has written the log of a change again. */
    const crash = async () => {
      const stored = await (await fetch(`${server.url}/v1/objects/OmpMemories/${uuid(2)}?include=vector`)).json();
      const [x, y] = (stored as { vector: [number, number] }).vector;
      await request(`${server.url}/v1/batch/objects`, { objects: [{ ...(stored as object), vector: [x + 1, y] }] });
      await server.kill();
    };
    await crash();
    await server.start();
    await eventually(async () => expect(await reopened.count(mine, call)).toBe(3));
    // Searches find two, unless Weaviate wrote its log by itself before it was killed.
    await reopened.prepare({ dimensions: 2, fields: FIELDS }, call);
    expect(await search(reopened)).toHaveLength(3);
    await crash();
    await expect(reopened.count(mine, call)).rejects.toThrow();
    await server.start();
    await eventually(async () => expect(await search(reopened)).toHaveLength(3));
    const [back] = await reopened.fetch([uuid(2)], { fields: undefined, vector: true }, call);
    expect(back).toEqual(point(2, {}, Float32Array.of(3, 2)));
  });

  it('shows to searches again more than a thousand that one crash took', async () => {
    const { adapter, server } = await opened({});
    const turn = (by: number) => Array.from({ length: 1_200 }, (_, n) => point(n, {}, Float32Array.of(by, n + 1)));
    const found = async () => (await adapter.query({ vector, filter: mine, limit: 9_999, select: ALL }, call)).length;
    for (const some of [turn(1).slice(0, 600), turn(1).slice(600)]) await adapter.upsert(some, call);
    const objects = turn(2).map((each) => ({ class: 'OmpMemories', ...toObject(each), vector: [...each.vector] }));
    for (const each of objects) Reflect.deleteProperty(each, 'vectors');
    await request(`${server.url}/v1/batch/objects`, { objects });
    await server.kill();
    await expect(adapter.count(mine, call)).rejects.toThrow();
    await server.start();
    await eventually(async () => expect(await found()).toBe(1_200));
  });

  it('that cannot be reached fails at once, in silence, and is seen when it is back', async () => {
    const { adapter, server } = await opened({});
    await adapter.upsert([point(1)], call);
    const written = (['log', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name).mockReturnValue());
    onTestFinished(() => {
      for (const spy of written) spy.mockRestore();
    });
    await server.kill();
    // A connection that was open already breaks.
    expect(await meaning(adapter.count(mine, call))).toMatchObject({ down: true });
    expect(await meaning(adapter.count(mine, call))).toMatchObject({ retry: 'safe', down: true });
    expect(await meaning(adapter.upsert([point(2)], call))).toMatchObject({ retry: 'safe', down: true });
    await server.start();
    expect(await adapter.count(mine, call)).toBe(1);
    expect(written.flatMap(({ mock }) => mock.calls)).toEqual([]);
  });

  it('is seen when it is back, also if something else answered at its address meanwhile', async () => {
    const { adapter, server } = await opened({});
    await adapter.upsert([point(1)], call);
    await server.kill();
    const other = createServer((_, response) => response.writeHead(503).end('starting'));
    other.listen(Number(new URL(server.url).port), '127.0.0.1');
    await once(other, 'listening');
    await expect(adapter.count(mine, call)).rejects.toThrow();
    // By a new connection, which cannot be made.
    await expect(adapter.count(mine, call)).rejects.toThrow(/503/);
    other.closeAllConnections();
    await new Promise((closed) => other.close(closed));
    await server.start();
    expect(await adapter.count(mine, call)).toBe(1);
  });

  it('that was deleted while Weaviate was away is missing, and Weaviate answers', async () => {
    const { adapter, server } = await opened({});
    await server.kill();
    await expect(adapter.count(mine, call)).rejects.toThrow();
    await server.start();
    await fetch(`${server.url}/v1/schema/OmpMemories`, { method: 'DELETE' });
    await adapter.ping(call);
    expect(await adapter.describe(call)).toBeUndefined();
  });

  it('is not served by a connection that broke while it was looked at', async () => {
    const server = await openWeaviate();
    onTestFinished(server.close);
    let broken = 0;
    let breaks = false;
    const between = createTcpServer((client) => {
      const upstream = connect(Number(new URL(server.grpc_url).port), '127.0.0.1');
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        socket.on('error', () => {}).on('close', () => other.destroy());
      }
      client.pipe(upstream);
      upstream.on('data', (piece) => {
        // An answer; what is shorter opens the connection.
        if (breaks && piece.length > 100) {
          breaks = false;
          broken += 1;
          client.resetAndDestroy();
        } else client.write(piece);
      });
    }).listen(0, '127.0.0.1');
    await once(between, 'listening');
    const grpc_url = `http://127.0.0.1:${(between.address() as AddressInfo).port}`;
    const adapter = await weaviate.open(Options.parse({ url: server.url, grpc_url }), {} as never);
    onTestFinished(async () => {
      await adapter.close();
      between.close();
    });
    await adapter.prepare({ dimensions: 2, fields: FIELDS }, call);
    await adapter.upsert([point(1)], call);
    await server.kill();
    await expect(adapter.count(mine, call)).rejects.toThrow();
    await server.start();
    breaks = true;
    // Else what a crash took out of searches would stay out.
    expect(await meaning(adapter.count(mine, call))).toMatchObject({ retry: 'reads', down: true });
    expect(broken).toBe(1);
    expect(await adapter.count(mine, call)).toBe(1);
  });

  it('that does not answer holds no call that ended', async () => {
    const { adapter, server } = await opened({});
    await adapter.count(mine, call);
    server.freeze();
    const aborted = new AbortController();
    const waiting = [
      adapter.count(mine, new Call('aborted', undefined, aborted.signal)),
      adapter.upsert([point(1)], new Call('aborted', undefined, aborted.signal)),
    ];
    aborted.abort(new Error('too late'));
    for (const each of waiting) await expect(each).rejects.toThrow();
  });

  it('is read-only when Weaviate says so', async () => {
    const { adapter, server } = await opened({});
    const shards = `${server.url}/v1/schema/OmpMemories/shards`;
    const [{ name }] = (await (await fetch(shards)).json()) as [{ name: string }];
    const init = { method: 'PUT', headers: { 'content-type': 'application/json' } };
    await fetch(`${shards}/${name}`, { ...init, body: JSON.stringify({ status: 'READONLY' }) });
    expect(await meaning(adapter.upsert([point(1)], call))).toMatchObject({
      message: expect.stringMatching(/read-only/),
    });
  });
});
