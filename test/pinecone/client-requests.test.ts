import { getEventListeners } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { OmpError } from '#contract';
import { connect, type Service } from '../../providers/pinecone/client/client.ts';
import { indexUrl } from '../../providers/pinecone/client/transport.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { call, callBy } from '../support/requests.ts';

describe('requests', () => {
  const API_KEY = 'pcsk_right';
  const namespace = 'n';
  let server: Pinecone;
  let service: Service;

  beforeAll(async () => {
    server = await startPinecone({ dimension: 2, apiKey: API_KEY });
    service = connectTo(server);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await server.clearFaults();
    await server.resetCalls();
  });
  afterAll(() => server.close());

  const connectTo = ({ url }: Pinecone, api_key = API_KEY): Service =>
    connect({ api_key, index_host: url, timeout_ms: 10_000 });
  const record = (id: string, metadata: Record<string, string | readonly string[]> = {}) => ({
    id,
    values: Float32Array.of(0.5, 0.25),
    metadata,
  });
  const query = (user_id: string, includeMetadata = true) => ({
    vector: Float32Array.of(1, 0),
    topK: 10,
    filter: { user_id },
    includeMetadata,
  });
  const operations = async () => (await server.calls()).map(({ operation }) => operation);

  describe('records', () => {
    it('without metadata have none, not undefined', async () => {
      await service.upsert('bare', [record('a')], call);
      expect((await service.fetch('bare', ['a'], call)).get('a')?.metadata).toEqual({});
    });

    it('are listed in pages of at most 99 ids', async () => {
      await service.upsert('listed', [record('a')], call);
      expect(await service.list('listed', { prefix: '', limit: 1_000 }, call)).toEqual({ ids: ['a'], next: undefined });
      expect((await server.calls()).at(-1)?.path).toContain('limit=99&');
    });
  });

  it('a namespace that does not exist holds nothing, and takes deletes and changes as done', async () => {
    const nowhere = 'nowhere';
    expect(await service.remove(nowhere, ['a'], call)).toBeUndefined();
    expect(await service.update(nowhere, { id: 'a', metadata: { content: 'x' } }, call)).toBeUndefined();
    expect(await service.fetch(nowhere, ['a'], call)).toEqual(new Map());
    expect((await service.query(nowhere, query('u'), call)).matches).toEqual([]);
    expect(await service.list(nowhere, { prefix: '', limit: 9 }, call)).toEqual({ ids: [], next: undefined });
    expect(await service.fetchByMetadata(nowhere, { filter: { a: 'b' }, limit: 9 }, call)).toEqual({
      records: [],
      next: undefined,
    });
    expect(await server.namespaces()).not.toContain(nowhere);
    const statuses = (await server.calls()).map(({ operation, status }) => [operation, status]);
    expect(statuses.slice(0, 2)).toEqual([
      ['delete', 404],
      ['update', 404],
    ]);
  });

  it('log sequence numbers stay with their own call where many are under way', async () => {
    const ids = Array.from({ length: 60 }, (_, at) => `c${at}`);
    const told = await Promise.all(ids.map((id) => service.upsert('many', [record(id, { own: id })], call)));
    expect([...told].sort((a, b) => Number(a) - Number(b))).toEqual(ids.map((_, at) => at + 1));
    const read = await Promise.all(ids.map((id) => service.fetch('many', [id], call)));
    expect(read.map((found) => [...found.values()].map(({ metadata }) => metadata.own))).toEqual(ids.map((id) => [id]));
  });

  it('a signal may be shared by many requests, and keeps nothing of them', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    const shared = callBy();
    await Promise.all(Array.from({ length: 30 }, () => service.stats(shared)));
    process.off('warning', note);
    expect(warnings).toEqual([]);
    expect(getEventListeners(shared.signal, 'abort')).toEqual([]);
  });

  it('a filter without a condition is never sent: it would show the records of everybody', async () => {
    const unbound = { ...query('u'), filter: {} };
    await expect(service.query(namespace, unbound, call)).rejects.toThrow(OmpError);
    await expect(service.fetchByMetadata(namespace, { filter: {}, limit: 1 }, call)).rejects.toThrow(OmpError);
    expect(await server.calls()).toEqual([]);
  });

  describe('the address', () => {
    it.each([
      ['index-abc.svc.pinecone.io', 'https://index-abc.svc.pinecone.io'],
      ['https://index-abc.svc.pinecone.io//', 'https://index-abc.svc.pinecone.io'],
      ['http://127.0.0.1:5081/', 'http://127.0.0.1:5081'],
      ['localhost:5081', 'https://localhost:5081'],
    ])('%s becomes %s', (given, address) => {
      expect(indexUrl(given)).toBe(address);
    });

    it('is rejected without being quoted if no URL has it', () => {
      expect(() => indexUrl('hunter2%')).toThrow('index_host is not the address of an index');
      expect(() => indexUrl('hunter2%')).not.toThrow('hunter2');
    });
  });

  describe('variables of the SDK', () => {
    it('for its own key and controller mean nothing', async () => {
      vi.stubEnv('PINECONE_API_KEY', 'pcsk_other');
      vi.stubEnv('PINECONE_CONTROLLER_HOST', 'http://127.0.0.1:1');
      expect(await connectTo(server).stats(call)).toMatchObject({ dimension: 2 });
      expect(await operations()).toEqual(['stats']);
    });

    it.each(['PINECONE_DEBUG', 'PINECONE_DEBUG_CURL'])('%s, which prints, stops the start', (name) => {
      vi.stubEnv(name, '1');
      expect(() => connectTo(server)).toThrow(name);
      vi.stubEnv(name, '');
      expect(() => connectTo(server)).not.toThrow();
    });
  });

  const idsUpTo = (count: number): string[] => Array.from({ length: count }, (_, at) => `id-${at}`);
  const store = (id: string) => service.upsert(namespace, [record(id)], call);
  const pathsOf = async (operation: string) =>
    (await server.calls()).filter((made) => made.operation === operation).map(({ path }) => path);

  describe('ids that Pinecone cannot hold', () => {
    const IMPOSSIBLE = ['', 'ünï', 'a b', 'a\0b', 'a\nb', '記憶', 'x'.repeat(513)];

    it('are absent without being asked for', async () => {
      expect(await service.fetch(namespace, IMPOSSIBLE, call)).toEqual(new Map());
      expect(await service.remove(namespace, IMPOSSIBLE, call)).toBeUndefined();
      expect(await service.fetch(namespace, [], call)).toEqual(new Map());
      expect(await service.remove(namespace, [], call)).toBeUndefined();
      expect(await server.calls()).toEqual([]);
    });

    it('do not keep others from being found and removed', async () => {
      const longest = `~${'!'.repeat(511)}`;
      await store(longest);
      await store('a');
      const found = await service.fetch(namespace, [...IMPOSSIBLE, longest, 'a', 'a'], call);
      expect([...found.keys()].sort()).toEqual(['a', longest]);
      await service.remove(namespace, [...IMPOSSIBLE, longest, 'a'], call);
      expect(await server.records(namespace)).toEqual({});
    });

    it('with what a query string gives a meaning are held', async () => {
      const odd = ['a&ids=b', 'a#b', 'a%20b', 'a+b', 'a/b?c', '"', '__proto__', 'constructor'];
      for (const id of odd) await store(id);
      expect([...(await service.fetch(namespace, odd, call)).keys()].sort()).toEqual([...odd].sort());
    });
  });

  describe('many ids', () => {
    it('are fetched a hundred at a time', async () => {
      const ids = idsUpTo(250);
      for (const id of [ids[0], ids[99], ids[100], ids[249]]) await store(id as string);
      const found = await service.fetch(namespace, ids, call);
      expect([...found.keys()]).toEqual(['id-0', 'id-99', 'id-100', 'id-249']);
      const asked = (await pathsOf('fetch')).map((path) => new URLSearchParams(path.split('?')[1]).getAll('ids'));
      expect(asked.map(({ length }) => length).sort()).toEqual([100, 100, 50]);
      expect(asked.flat().sort()).toEqual([...ids].sort());
    });

    it('of the greatest length are fetched by addresses of at most 8 KB', async () => {
      const ids = idsUpTo(40).map((id) => id.padEnd(512, '%'));
      await store(ids[39] as string);
      expect([...(await service.fetch(namespace, ids, call)).keys()]).toEqual([ids[39]]);
      const paths = await pathsOf('fetch');
      expect(Math.max(...paths.map(({ length }) => length))).toBeLessThanOrEqual(8_000);
      expect(paths.length).toBeLessThan(ids.length);
    });

    it('are removed a thousand at a time, and the latest sequence number is returned', async () => {
      await store('id-1500');
      const lsn = await service.remove(namespace, idsUpTo(2_001), call);
      const removed = (await server.calls()).filter(({ operation }) => operation === 'delete');
      expect(removed.map(({ body }) => (body as { ids: string[] }).ids.length).sort()).toEqual([1, 1_000, 1_000]);
      expect(await store('a')).toBe((lsn as number) + 1);
      expect(Object.keys(await server.records(namespace))).not.toContain('id-1500');
    });

    it('fail as one when one request fails, and those not begun are not sent', async () => {
      await server.fail({ operation: 'fetch', kind: '401' });
      await expect(service.fetch(namespace, idsUpTo(5_000), call)).rejects.toMatchObject({ code: 'provider_error' });
      for (let turn = 0; turn < 20; turn++) await service.stats(call);
      expect((await pathsOf('fetch')).length).toBeLessThan(20);
    });
  });
});
