import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BatchOutcome, Memory, Provider, ProviderMethods } from '#contract';
import type { Chroma } from '../../examples/provider-chroma/test/chroma-server.ts';
import { freshUser } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { type ChromaCollection, chromaClient, load, NO_CHROMA, openChroma, openChromaProvider } from './start.ts';

const embedder = hashingEmbedder();
const vectorOf = async (text: string) => (await embedder.embed([text], 'document', call))[0] as Float32Array;

type Opened = Required<Provider>;

describe.skipIf(NO_CHROMA !== '')(`the provider for Chroma${NO_CHROMA && ` (${NO_CHROMA})`}`, () => {
  let chroma: Chroma & { close(): Promise<void> };
  beforeAll(async () => {
    chroma = await openChroma();
  });
  afterAll(() => chroma?.close());

  /** A collection of its own. */
  const open = async (options: object = {}): Promise<{ provider: Opened; name: string }> => {
    const name = `c-${randomUUID()}`;
    return { name, provider: await openChromaProvider({ url: chroma.url, collection: name, ...options }) };
  };
  const add = async (provider: Opened, user_id: string, contents: readonly string[]): Promise<Memory[]> => {
    const added: BatchOutcome[] = [];
    for (let start = 0; start < contents.length; start += 100) {
      const items = contents.slice(start, start + 100).map(async (content) => ({
        input: memoryOf(user_id, content, {}),
        vector: await vectorOf(content),
      }));
      added.push(...((await provider.batch({ items: await Promise.all(items) }, call)) ?? []));
    }
    return added as Memory[];
  };
  const ids = (memories: readonly Memory[]) => memories.map(({ id }) => id);

  it('[SPEC Errors provider_error] a server that is down is told, also to the circuit breaker, until it answers again', async () => {
    const { provider } = await open();
    const [memory] = (await add(provider, 'ana', ['tea'])) as [Memory];
    await chroma.kill();
    const down = { code: 'provider_error', message: 'Chroma cannot be reached', down: true, retry: 'reads' };
    for (const work of [
      () => provider.get(refTo(memory.id), call),
      () => provider.delete(refTo(memory.id), call),
      () => add(provider, 'ana', ['coffee']),
      () => provider.ping(call),
      () => open(),
    ]) {
      await expect(work()).rejects.toMatchObject(down);
    }
    await chroma.start();
    expect(await provider.get(refTo(memory.id), call)).toEqual(memory);
  });

  it('[SPEC Errors provider_error] a rejection does not count as down, and no text of Chroma reaches the log', async () => {
    const { provider, name } = await open();
    await add(provider, 'ana', ['tea']);
    const rejected = await provider.search(searchFor('ana', 'tea', { vector: new Float32Array(3).fill(1) }), call).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(rejected).toMatchObject({ code: 'provider_error', down: false, retry: undefined });
    expect((rejected as Error).cause).toMatchObject({ message: expect.stringMatching(/^\w+$/) });
    await (await chromaClient(chroma.url)).deleteCollection({ name });
    await expect(provider.ping(call)).rejects.toMatchObject({ message: 'Chroma has no such collection', down: false });
  });

  it('[SPEC Errors payload_too_large] what Chroma takes in no request is too large', async () => {
    const { provider } = await open();
    await expect(add(provider, 'ana', ['x'.repeat(41 * 1024 * 1024)])).rejects.toMatchObject({
      code: 'payload_too_large',
    });
  });

  it('[Decision 50] options are checked, and no value is repeated', async () => {
    const options = { url: 'secret', token: '', preset: 'x', max_listed: 1.5, path: '/' };
    await expect(openChromaProvider(options)).rejects.toThrow(
      'the provider chroma rejects its options: ' +
        [
          'url: must be the address of a server',
          'token: must be a text',
          'preset: must be langchain or mem0',
          'max_listed: must be a whole number above 0',
          'path: is no option of this provider',
        ].join('; '),
    );
  });

  it('[Decision 50] vectors of another model are not mixed with these', async () => {
    const { name } = await open();
    const other = { embedder: { ...embedder, model: 'another' } };
    await expect(openChromaProvider({ url: chroma.url, collection: name }, other)).rejects.toThrow(
      `the vectors of the collection "${name}" are from "${embedder.model}" (64 dimensions), not from "another" (64)`,
    );
  });

  it('[Decision 7] gateways keep what each other changes, and revive nothing that one deleted', async () => {
    const { provider, name } = await open();
    const another = await openChromaProvider({ url: chroma.url, collection: name });
    const [memory] = (await add(provider, 'ana', ['tea'])) as [Memory];
    const patched = (on: Opened, patch: object) => on.update({ ref: refTo(memory.id), patch, vector: null }, call);
    await Promise.all([
      patched(provider, { tags: ['a,b', 'c'], extensions: { 'x-a': 1 } }),
      patched(another, { confidence: 0.5, extensions: { 'x-b': [null] } }),
    ]);
    const both = { tags: ['a,b', 'c'], confidence: 0.5, extensions: { 'x-a': 1, 'x-b': [null] } };
    expect(await provider.get(refTo(memory.id), call)).toMatchObject(both);
    await patched(another, { tags: ['a', 'b,c'], confidence: null, extensions: { 'x-a': null } });
    expect(await provider.get(refTo(memory.id), call)).toMatchObject({
      ...{ tags: ['a', 'b,c'], confidence: null },
      extensions: { 'x-b': [null] },
    });

    const { createMemories } = await load<{
      createMemories(collection: ChromaCollection, options: object): ProviderMethods;
    }>('dist/memories.js');
    const collection = await (await chromaClient(chroma.url)).getCollection({ name });
    const late = createMemories(
      {
        get: (query) => collection.get(query),
        async update(records) {
          await another.delete(refTo(memory.id), call);
          await collection.update(records);
        },
      } as ChromaCollection,
      { model: embedder.model, max_listed: 10, max_record_bytes: 1_000_000 },
    );
    const update = { ref: refTo(memory.id), patch: { confidence: 1 }, vector: null };
    expect(await late.update?.(update, call)).toBeUndefined();
    expect(await collection.count()).toBe(0);
  });

  it('[Decision 43] an import replaces all of a memory, also its time of creation', async () => {
    const { provider, name } = await open();
    const vector = await vectorOf('tea');
    const imported = (memory: Memory, replace = true) =>
      provider.import({ items: [{ memory, vector }], replace }, call);
    const [added] = (await add(provider, 'ana', ['tea'])) as [Memory];
    const full = { ...added, tags: ['t'], confidence: 0.5, extensions: { 'x-a': 1 } };
    const plain = { ...added, tags: [], extensions: { 'x-b': 2 } };
    const earlier = { ...plain, created_at: '0001-01-01T00:00:00.000Z', content: 'coffee' };
    for (const memory of [full, plain, earlier, full]) {
      expect(await imported(memory, false)).toEqual([false]);
      expect(await imported(memory)).toEqual([true]);
      expect(await provider.get(refTo(added.id), call)).toEqual(memory);
      expect(await (await (await chromaClient(chroma.url)).getCollection({ name })).count()).toBe(1);
    }
    expect(await imported({ ...full, user_id: 'ben' })).toEqual([false]);
  });

  it('[SPEC GET /memories/search order] equal scores are newest first, however many there are', async () => {
    const { provider } = await open();
    const user_id = freshUser();
    const added = await add(provider, user_id, [...Array.from({ length: 300 }, () => 'likes tea'), 'plays the piano']);
    await add(provider, freshUser(), ['likes tea']);
    const newest = ids(added.slice(0, 300)).sort().reverse();
    for (const limit of [1, 60, 120]) {
      const query = searchFor(user_id, 'likes tea', { limit, vector: await vectorOf('likes tea') });
      const hits = await provider.search(query, call);
      expect(ids(hits.map(({ memory }) => memory))).toEqual(newest.slice(0, limit));
    }
  });

  it('[Decision 1] a list that cannot be put in order is rejected, and can be narrowed', async () => {
    const { provider } = await open({ max_listed: 3 });
    const [first] = await add(provider, 'ana', ['one']);
    await add(provider, 'ana', ['two', 'three', 'four']);
    await expect(provider.list(listOf('ana', {}), call)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('more than 3 memories cannot be put in order'),
    });
    expect(ids(await provider.list(listOf('ana', { until: first?.created_at as string }), call))).toEqual(
      ids([first as Memory]),
    );
  });

  it('[Decision 43] [Decision 37] walks over windows of users meet each memory once, also when others are deleted', async () => {
    const { provider } = await open();
    const counts = new Map(Array.from({ length: 20 }, (_, i) => [`user ${i}`, i === 7 ? 520 : 15]));
    const all: Memory[] = [];
    for (const [user, count] of counts) {
      all.push(
        ...(await add(
          provider,
          user,
          Array.from({ length: count }, (_, i) => `note ${i}`),
        )),
      );
    }
    const users = new Map<string, number>();
    for (let after: string | undefined, pages = 0; pages === 0 || after !== undefined; pages++) {
      const part = await provider.users({ users: null, within: null, limit: 7, ...(after && { after }) }, call);
      expect(part.items.length).toBeLessThanOrEqual(7);
      for (const { user_id, count } of part.items) users.set(user_id, (users.get(user_id) ?? 0) + count);
      after = part.next;
    }
    expect(users).toEqual(counts);

    const deleted = all.filter((_, i) => i % 9 === 0);
    const seen: string[] = [];
    for (let after: string | undefined, pages = 0; pages === 0 || after !== undefined; pages++) {
      const query = { limit: 90, max_bytes: 1_000_000, vectors: false, ...(after && { after }) };
      const part = await provider.export(query, call);
      seen.push(...part.items.map(({ memory }) => memory.id));
      after = part.next;
      const [next] = deleted.splice(0, 1);
      if (next) await provider.delete(refTo(next.id), call);
    }
    expect(new Set(seen).size).toBe(seen.length);
    const kept = all.filter((_, i) => i % 9 !== 0);
    expect(ids(kept).filter((id) => !seen.includes(id))).toEqual([]);
  });
});
