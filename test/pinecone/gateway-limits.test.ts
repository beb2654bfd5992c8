import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Embedder, Memory } from '#contract';
import { toUnitHalf } from '#ranking';
import { MAX_CONTENT_LENGTH } from '../../providers/pinecone/client/client.ts';
import { type Call, type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { type AllMemories, openMemoriesOf } from '../support/memories.ts';
import { call, contextOf, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { freshUser } from '../support/subject.ts';
import { anyMemory, changed } from './any-memory.ts';

/** Blank for the embedder: a text of digits alone has no signal. */
const embedderOf = (dimensions: number): Embedder => ({
  model: 'letters',
  dimensions,
  embed: async (texts) =>
    texts.map((text) =>
      toUnitHalf(Array.from({ length: dimensions }, (_, i) => (/\d/.test(text) ? 0 : Math.sin(i + text.length)))),
    ),
  close: async () => {},
});

const open = (server: Pinecone, dimensions: number, options: object = {}): Promise<AllMemories> =>
  openMemoriesOf(
    'pinecone',
    { api_key: 'key', index_host: server.url, ...options },
    contextOf({ embedder: embedderOf(dimensions), ranking: { mode: 'vector', keyword_weight: 0 } }),
  );

const bodies = (calls: readonly Call[]) => calls.flatMap(({ body }) => (body === undefined ? [] : [body]));

const DIMENSIONS = 8;
let server: Pinecone;
let provider: AllMemories;
/** A gateway that knows nothing of what the first one wrote. */
let other: AllMemories;
let user: string;
beforeAll(async () => {
  server = await startPinecone({ dimension: DIMENSIONS });
  provider = await open(server, DIMENSIONS);
  other = await open(server, DIMENSIONS, { settle_ms: 0 });
});
beforeEach(async () => {
  user = freshUser();
  await server.resetCalls();
});
afterAll(async () => {
  await provider.close();
  await other.close();
  await server.close();
});

/** What the protocol lets a caller set of it. */
const settable = ({ id: _, created_at: __, updated_at: ___, embedding_model: ____, status: _____, ...input }: Memory) =>
  input;

describe('the 40 KB of metadata', () => {
  it('[SPEC Errors payload_too_large] are told before anything is sent, by add and by update', async () => {
    const filling = { 'x-notes': 'n'.repeat(30_000) };
    const kept = await provider.add(memoryOf(user, 'text', { extensions: filling }), call);
    await server.resetCalls();
    const tooLarge = { code: 'payload_too_large', message: expect.stringContaining('38000') };
    const input = memoryOf(user, '😀'.repeat(2_000), { extensions: filling });
    await expect(provider.add(input, call)).rejects.toMatchObject(tooLarge);
    await expect(provider.update(refTo(kept.id), { content: 'long '.repeat(1_700) }, call)).rejects.toMatchObject(
      tooLarge,
    );
    await expect(
      provider.update(refTo(kept.id), { extensions: { 'x-more': 'm'.repeat(9_000) } }, call),
    ).rejects.toMatchObject(tooLarge);
    expect((await server.calls()).map(({ operation }) => operation)).not.toContain('upsert');
    expect((await server.calls()).map(({ operation }) => operation)).not.toContain('update');
    expect(await other.get(refTo(kept.id), call)).toEqual(kept);
  });

  it('[SPEC Limits features.max_content_length] hold the longest content of any script', async () => {
    for (const character of ['a', 'é', '語', '😀']) {
      const added = await provider.add(memoryOf(user, character.repeat(MAX_CONTENT_LENGTH)), call);
      expect(await other.get(refTo(added.id), call)).toEqual(added);
    }
  });

  it('of every hit fit into 4 MB: a hundred of the largest are found', async () => {
    for (let i = 0; i < 100; i += 1) {
      await provider.add(
        memoryOf(user, '語'.repeat(MAX_CONTENT_LENGTH), { extensions: { 'x-more': 'm'.repeat(10_600) } }),
        call,
      );
    }
    for (const limit of [10, 50, 96, 97, 100]) {
      const hits = await other.search(searchFor(user, '語'.repeat(MAX_CONTENT_LENGTH), { limit }), call);
      expect(hits).toHaveLength(limit);
      expect(hits.every(({ score }) => score === 1)).toBe(true);
    }
    expect(await other.list(listOf(user, { limit: 100 }), call)).toHaveLength(100);
  });

  it('of every match may be used up: two gateways may have changed one record at once', async () => {
    const { id } = await provider.add(memoryOf(user, 'text'), call);
    const [namespace] = await server.namespaces();
    const { metadata, values } = (await server.records(namespace as string))[id] as {
      metadata: object;
      values: number[];
    };
    const size = Buffer.byteLength(JSON.stringify({ ...metadata, 'x-more': '' }));
    const full = { ...metadata, 'x-more': 'm'.repeat(40_960 - size) };
    const headers = { 'content-type': 'application/json', 'api-key': 'key', 'x-pinecone-api-version': '2026-04' };
    const copies = Array.from({ length: 120 }, (_, i) => ({
      id: id.slice(0, -3) + String(i).padStart(3, '0'),
      values,
      metadata: full,
    }));
    for (let at = 0; at < copies.length; at += 40) {
      const body = JSON.stringify({ namespace, vectors: copies.slice(at, at + 40) });
      const { status } = await fetch(`${server.url}/vectors/upsert`, { method: 'POST', headers, body });
      expect(status).toBe(200);
    }
    for (const limit of [96, 100]) {
      expect(await other.search(searchFor(user, 'text', { limit }), call)).toHaveLength(limit);
    }
  });
});

describe('metadata values', () => {
  const inputs = anyMemory.chain((before) => fc.tuple(fc.constant(before), changed(before)));

  it('are never null, nested, empty lists or lists of other than strings, whatever is added and changed', async () => {
    await fc.assert(
      fc.asyncProperty(inputs, async ([first, second]) => {
        const added = await provider.add({ ...settable(first), user_id: user }, call);
        const { content, tags, confidence, valid_to, supersedes, extensions } = second;
        const patch = { content, tags, valid_to, supersedes, extensions, ...(confidence !== null && { confidence }) };
        const updated = await provider.update(refTo(added.id), patch, call);
        expect(await other.get(refTo(added.id), call)).toEqual(updated);
      }),
      { numRuns: 100 },
    );
    const sent = bodies(await server.calls()).flatMap((body) => {
      const { vectors = [], setMetadata } = body as { vectors?: { metadata: object }[]; setMetadata?: object };
      return [...vectors.map(({ metadata }) => metadata), ...(setMetadata ? [setMetadata] : [])];
    });
    expect(sent.length).toBeGreaterThan(190);
    for (const [key, value] of sent.flatMap(Object.entries)) {
      expect(key).toMatch(/^[^$]/);
      const list = Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
      expect(list || ['string', 'number', 'boolean'].includes(typeof value), `${key}: ${JSON.stringify(value)}`).toBe(
        true,
      );
    }
  });

  it('cannot be removed, so a field that a patch empties reads as empty and is found by nothing', async () => {
    const full = { tags: ['a'], valid_to: '2030-01-01T00:00:00.000Z', supersedes: ['mem_0'] };
    const added = await provider.add(memoryOf(user, 'text', full), call);
    await provider.update(refTo(added.id), { tags: [], valid_to: null, supersedes: [] }, call);
    const emptied = await other.get(refTo(added.id), call);
    expect(emptied).toMatchObject({ tags: [], valid_to: null, supersedes: [] });
    expect(await other.list(listOf(user), call)).toEqual([emptied]);
    expect(await other.list(listOf(user, { tags: ['a'] }), call)).toEqual([]);
    expect(await other.search(searchFor(user, 'text', { tags: ['a'] }), call)).toEqual([]);
    await other.update(refTo(added.id), full, call);
    expect(await provider.get(refTo(added.id), call)).toMatchObject(full);
    expect(await other.search(searchFor(user, 'text', { tags: ['a'] }), call)).toHaveLength(1);
  });

  it('that were never set read as empty, and records without them are not found by tags', async () => {
    const bare = await provider.add(memoryOf(user, 'text'), call);
    expect(await other.get(refTo(bare.id), call)).toEqual(bare);
    expect(bare).toMatchObject({
      tags: [],
      source: null,
      confidence: null,
      valid_from: null,
      supersedes: [],
      extensions: {},
    });
    expect(await other.search(searchFor(user, 'text'), call)).toEqual([{ memory: bare, score: 1 }]);
    expect(await other.search(searchFor(user, 'text', { tags: ['a'] }), call)).toEqual([]);
  });
});

describe('vectors', () => {
  it('are never all zero: a text without signal is kept, listed and found last', async () => {
    const silent = await provider.add(memoryOf(user, '12345'), call);
    const heard = await provider.add(memoryOf(user, 'text'), call);
    for (const gateway of [provider, other]) {
      expect(await gateway.get(refTo(silent.id), call)).toEqual(silent);
      expect(await gateway.search(searchFor(user, 'text'), call)).toEqual([
        { memory: heard, score: 1 },
        { memory: silent, score: 0 },
      ]);
    }
    const spoken = await other.update(refTo(silent.id), { content: 'text' }, call);
    const silenced = await other.update(refTo(heard.id), { content: '1' }, call);
    expect(await other.search(searchFor(user, 'text'), call)).toEqual([
      { memory: spoken, score: 1 },
      { memory: silenced, score: 0 },
    ]);
  });

  it('of the largest index and the largest metadata stay below the 2 MB of an upsert', async () => {
    const wide = await startPinecone({ dimension: 20_000 });
    const gateway = await open(wide, 20_000);
    const input = memoryOf(user, '語'.repeat(MAX_CONTENT_LENGTH), { extensions: { 'x-more': 'm'.repeat(10_000) } });
    const added = await gateway.add(input, call);
    expect(await gateway.search(searchFor(user, input.content), call)).toEqual([{ memory: added, score: 1 }]);
    await gateway.close();
    await wide.close();
  });
});

describe('ids and pages', () => {
  it('[SPEC GET /memories/{id} unknown] an id that Pinecone cannot hold names nothing, and is not asked for', async () => {
    for (const id of ['é', 'a b', '', 'a\0', 'i'.repeat(513), 'mem_é', `mem_${'0'.repeat(52)} `, 'mem_', 'omp-index']) {
      expect(await provider.get(refTo(id), call), id).toBeUndefined();
      expect(await provider.update(refTo(id), { content: 'text' }, call), id).toBeUndefined();
      expect(await provider.delete(refTo(id), call), id).toBe(false);
    }
    expect(await server.calls()).toEqual([]);
  });

  it('a list asks for 99 ids at the most, and a fetch for 100', async () => {
    for (let i = 0; i < 230; i += 1) await provider.add(memoryOf(user, 'text', { tags: i % 3 ? [] : ['a'] }), call);
    await server.resetCalls();
    expect(await other.list(listOf(user, { limit: 500 }), call)).toHaveLength(230);
    expect(await other.list(listOf(user, { limit: 500, tags: ['a'] }), call)).toHaveLength(77);
    expect(await other.search(searchFor(user, 'text', { limit: 400 }), call)).toHaveLength(230);
    const asked = (await server.calls()).map(({ operation, path }) => ({
      operation,
      query: new URL(path, 'http://host').searchParams,
    }));
    const limits = asked.filter(({ operation }) => operation === 'list').map(({ query }) => Number(query.get('limit')));
    const fetched = asked
      .filter(({ operation }) => operation === 'fetch')
      .map(({ query }) => query.getAll('ids').length);
    expect(limits.length).toBeGreaterThan(2);
    for (const limit of limits) expect(limit).toBeLessThanOrEqual(99);
    expect(fetched.length).toBeGreaterThan(2);
    for (const count of fetched) expect(count).toBeLessThanOrEqual(100);
  });
});

describe('a namespace that does not exist yet', () => {
  it('holds nothing: reads find none, and there is nothing to delete', async () => {
    const fresh = await open(server, DIMENSIONS, { layout: 'per-user', namespace: freshUser() });
    const elsewhere = await provider.add(memoryOf(user, 'text'), call);
    expect(await fresh.list(listOf(user), call)).toEqual([]);
    expect(await fresh.search(searchFor(user, 'text'), call)).toEqual([]);
    expect(await fresh.get(refTo(elsewhere.id), call)).toBeUndefined();
    expect(await fresh.update(refTo(elsewhere.id), { content: 'b' }, call)).toBeUndefined();
    expect(await fresh.delete(refTo(elsewhere.id), call)).toBe(false);
    await fresh.close();
  });
});
