import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Memory } from '#contract';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { openMemoriesOf } from '../support/memories.ts';
import { call, contextOf, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { freshUser, laterMoment } from '../support/subject.ts';
import { type Gateway, openGateway } from './gateways.ts';

let server: Pinecone;
let gateway: Gateway;
let user: string;
beforeAll(async () => {
  server = await startPinecone();
  gateway = await openGateway(server);
});
beforeEach(() => {
  user = freshUser();
});
afterEach(() => void vi.useRealTimers());
afterAll(async () => {
  await gateway?.close();
  await server?.close();
});

/** What a verb asks of the service. */
async function requests(verb: () => Promise<unknown>): Promise<string[]> {
  await server.resetCalls();
  await verb();
  return (await server.calls()).map(({ operation }) => operation);
}
const update = (memory: Memory, content: string) => gateway.update(refTo(memory.id), { content }, call);

it('[SPEC Capabilities features] what it can do is said as it is', () => {
  expect(gateway.capabilities).toEqual({
    vector_search: true,
    keyword_search: false,
    temporal: true,
    scopes: 'tags',
    tags: true,
    max_content_length: 9_000,
    supports_supersession: true,
    max_search_results: 10_000,
    max_list_scan: 10_000,
    consistency_tokens: true,
  });
  expect([gateway.addOnce, gateway.audit, gateway.keys]).toEqual([undefined, undefined, undefined]);
});

it('hybrid ranking counts as vector: there are no keywords', async () => {
  const ranking = { mode: 'hybrid', keyword_weight: 1 } as const;
  const context = contextOf({ embedder: hashingEmbedder(), ranking });
  const hybrid = (await openMemoriesOf('pinecone', { api_key: 'k', index_host: server.url }, context)) as Gateway;
  expect(hybrid.capabilities).toMatchObject({ vector_search: true, keyword_search: false });
  const memory = await hybrid.add(memoryOf(user, 'the cat sleeps'), call);
  expect(await hybrid.search(searchFor(user, 'the cat sleeps'), call)).toEqual([{ memory, score: 1 }]);
  await hybrid.close();
});

describe('each verb takes as many requests as docs/backends/pinecone.md says', () => {
  it('add, get, update, delete, search, ping', async () => {
    let memory = {} as Memory;
    expect(
      await requests(async () => {
        memory = await gateway.add(memoryOf(user, 'the cat sleeps'), call);
      }),
    ).toEqual(['upsert']);
    expect(await requests(() => gateway.get(refTo(memory.id), call))).toEqual(['fetch']);
    // The first look decides whether there is something to embed.
    expect(await requests(() => update(memory, 'a dog barks'))).toEqual(['fetch', 'fetch', 'update']);
    expect(await requests(() => update(memory, 'a dog barks'))).toEqual(['fetch', 'fetch']);
    expect(await requests(() => gateway.search(searchFor(user, 'a dog'), call))).toEqual(['query']);
    expect(await requests(() => gateway.list(listOf(user), call))).toEqual(['list', 'fetch']);
    expect(await requests(() => gateway.delete(refTo(memory.id), call))).toEqual(['fetch', 'delete']);
    expect(await requests(() => gateway.get(refTo(memory.id), call))).toEqual([]);
    expect(await requests(() => gateway.ping(call))).toEqual(['fetch']);
  });

  it('an id that is not of our making costs none', async () => {
    for (const id of [
      '',
      'mem_',
      'omp-index',
      'x'.repeat(600),
      'ü',
      `mem_${'a'.repeat(51)}`,
      'mem_01ARZ3NDEKTSV4RRFFQ69G5FAV',
    ]) {
      const asked = await requests(async () => {
        expect(await gateway.get(refTo(id), call)).toBeUndefined();
        expect(await gateway.update(refTo(id), { content: 'x' }, call)).toBeUndefined();
        expect(await gateway.delete(refTo(id), call)).toBe(false);
      });
      expect(asked).toEqual([]);
    }
  });
});

describe('[Decision 14] a memory of somebody else', () => {
  it.each([
    ['written here', () => gateway],
    ['read from the service', () => openGateway(server)],
  ])('is absent and stays as it is, %s', async (_, open) => {
    const memory = await gateway.add(memoryOf(user, 'the cat sleeps'), call);
    const other = await open();
    for (const users of [[], ['somebody else'], ['', 'a', 'b']]) {
      const ref = refTo(memory.id, { users });
      expect(await other.get(ref, call)).toBeUndefined();
      const asked = await requests(async () => {
        expect(await other.update(ref, { content: 'seized' }, call)).toBeUndefined();
        expect(await other.delete(ref, call)).toBe(false);
      });
      // The id tells whose it is.
      expect(asked).toEqual([]);
    }
    expect(await other.get(refTo(memory.id, { users: ['a', user] }), call)).toEqual(memory);
    if (other !== gateway) await other.close();
  });
});

describe('[Decision 7] a patch', () => {
  it('that changes nothing leaves updated_at and writes nothing', async () => {
    const given = { tags: ['a'], confidence: 0.5, supersedes: ['mem_x'], extensions: { 'x-a': { b: [1] } } } as const;
    const memory = await gateway.add(memoryOf(user, 'the cat sleeps', given), call);
    await laterMoment();
    const { tags, confidence, supersedes, extensions } = memory;
    const patch = { content: memory.content, tags, confidence, supersedes, extensions };
    expect(await gateway.update(refTo(memory.id), patch, call)).toEqual(memory);
    expect(await gateway.get(refTo(memory.id), call)).toEqual(memory);
  });

  it('sends what changes and nothing else', async () => {
    const memory = await gateway.add(memoryOf(user, 'the cat sleeps', { tags: ['a'], confidence: 0.5 }), call);
    await server.resetCalls();
    await gateway.update(refTo(memory.id), { content: memory.content, tags: ['b'] }, call);
    const sent = (await server.calls()).find(({ operation }) => operation === 'update')?.body as {
      setMetadata: object;
      values?: unknown;
    };
    expect(sent.setMetadata).toEqual({ tags: ['b'], updated_at: expect.any(String) });
    expect(sent.values).toBeUndefined();
  });

  it('that empties fields leaves them empty, and they can be filled again', async () => {
    const full = { tags: ['a'], valid_to: '2030-01-01T00:00:00.000Z', supersedes: ['mem_x'] };
    const { id } = await gateway.add(memoryOf(user, 'the cat sleeps', full), call);
    const empty = { tags: [], valid_to: null, supersedes: [] };
    await gateway.update(refTo(id), empty, call);
    const other = await openGateway(server);
    expect(await other.get(refTo(id), call)).toMatchObject(empty);
    expect(await other.list(listOf(user, { tags: ['a'] }), call)).toEqual([]);
    expect(await other.update(refTo(id), empty, call)).toEqual(await other.get(refTo(id), call));
    await other.update(refTo(id), full, call);
    expect(await gateway.get(refTo(id), call)).toMatchObject(full);
    await other.close();
  });

  it('of a text without signal to one with it, and back, is found as it should be', async () => {
    const silent = '\u00a0.';
    const { id } = await gateway.add(memoryOf(user, 'the cat sleeps'), call);
    const other = await openGateway(server);
    const scores = async () => (await other.search(searchFor(user, 'the cat sleeps'), call)).map(({ score }) => score);
    const emptied = await openGateway(server, {
      embedder: {
        ...hashingEmbedder(),
        embed: async (texts) => texts.map(() => new Float32Array(64)),
      },
    });
    await emptied.update(refTo(id), { content: silent }, call);
    expect(await scores()).toEqual([0]);
    await gateway.update(refTo(id), { content: 'the cat sleeps' }, call);
    expect(await scores()).toEqual([1]);
    await other.close();
    await emptied.close();
  });

  it('[SPEC Errors payload_too_large] that makes the memory too large changes nothing', async () => {
    const memory = await gateway.add(
      memoryOf(user, 'the cat sleeps', { extensions: { 'x-a': 'a'.repeat(30_000) } }),
      call,
    );
    const asked = await requests(async () => {
      await expect(
        gateway.update(refTo(memory.id), { extensions: { 'x-b': 'b'.repeat(9_000) } }, call),
      ).rejects.toMatchObject({ code: 'payload_too_large' });
    });
    expect(asked).toEqual(['fetch']);
    expect(await gateway.get(refTo(memory.id), call)).toEqual(memory);
  });
});

it('[SPEC Memory created_at] ever later within one gateway, also when the clock is set back', async () => {
  const first = await gateway.add(memoryOf(user, 'one'), call);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 });
  const second = await gateway.add(memoryOf(user, 'two'), call);
  const changed = (await gateway.update(refTo(first.id), { content: 'three' }, call)) as Memory;
  expect(second.created_at > first.created_at).toBe(true);
  expect(changed.updated_at > first.updated_at).toBe(true);
  expect(await gateway.list(listOf(user), call)).toEqual([second, changed]);
});
