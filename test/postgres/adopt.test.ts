import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Embedder } from '#contract';
import { toUnitHalf } from '#ranking';
import { randomVector } from '../ranking/random-vectors.ts';
import { recordingLog } from '../support/subject.ts';
import { call, memoryOf, openStore, refTo, type Store, until } from './store.ts';

/** Any dimensions; equal texts are equal, others are not alike. */
const embedderOf = (model: string, dimensions: number): Embedder => ({
  model,
  dimensions,
  embed: async (texts) =>
    texts.map((text) =>
      toUnitHalf(
        randomVector(
          dimensions,
          [...text].reduce((sum, c) => sum * 31 + c.charCodeAt(0), 7),
        ),
      ),
    ),
  close: async () => {},
});

let store: Store;
beforeEach(async () => {
  store = await openStore();
});
afterEach(() => store.close());

const firstOpen = async (embedder?: Embedder) => {
  const provider = await store.open(embedder ? { embedder } : { mode: 'keyword' });
  const memory = await provider.add(memoryOf('u', 'kept from before'), call);
  return { provider, memory };
};
const storedAs = () => store.sql(`select embedding_model, dimensions from ${store.names.store}`);

describe('the embedder of stored vectors', () => {
  it('is the first one that is configured, and may be opened again', async () => {
    const { memory } = await firstOpen(embedderOf('one', 8));
    expect(await storedAs()).toEqual([{ embedding_model: 'one', dimensions: 8 }]);
    const again = await store.open({ embedder: embedderOf('one', 8) });
    expect(await again.get(refTo(memory.id), call)).toEqual({ ...memory, embedding_model: 'one' });
  });

  it.each([
    ['another model', embedderOf('two', 8), /"one" \(8 dimensions\).*"two" \(8 dimensions\)/],
    ['other dimensions', embedderOf('one', 16), /"one" \(8 dimensions\).*"one" \(16 dimensions\)/],
  ])('refuses %s, names both and the settings', async (_, other, both) => {
    const { memory } = await firstOpen(embedderOf('one', 8));
    const refusal = expect(store.open({ embedder: other })).rejects;
    await refusal.toThrow(both);
    await expect(store.open({ embedder: other })).rejects.toThrow(
      /"omp-gateway reembed".*OMP_EMBEDDING_MODEL.*OMP_EMBEDDING_DIMENSIONS/,
    );
    expect(await storedAs()).toEqual([{ embedding_model: 'one', dimensions: 8 }]);
    const again = await store.open({ embedder: embedderOf('one', 8) });
    expect(await again.get(refTo(memory.id), call)).toEqual(memory);
  });

  it('cannot be added to memories without vectors, and the attempt leaves everything as it was', async () => {
    const { memory } = await firstOpen();
    await expect(store.open({ embedder: embedderOf('one', 8) })).rejects.toThrow(
      /OMP_SEARCH_MODE=keyword.*"omp-gateway reembed"/,
    );
    expect(await storedAs()).toEqual([{ embedding_model: null, dimensions: null }]);
    const again = await store.open({ mode: 'keyword' });
    expect(await again.get(refTo(memory.id), call)).toEqual(memory);
    // Without any memory nothing stands in the way.
    await again.delete?.(refTo(memory.id), call);
    await store.open({ embedder: embedderOf('one', 8) });
    expect(await storedAs()).toEqual([{ embedding_model: 'one', dimensions: 8 }]);
  });

  it('may be left out for a while, as long as nothing is added meanwhile', async () => {
    await firstOpen(embedderOf('one', 8));
    await store.open({ mode: 'keyword' });
    const back = await store.open({ embedder: embedderOf('one', 8) });
    expect(
      (await back.search?.({ user_id: 'u', text: 'kept', tags: [], within: null, max_bytes: 1e9, limit: 1 }, call))?.[0]
        ?.score,
    ).toBeGreaterThan(0.4);
    const keyword = await store.open({ mode: 'keyword' });
    await keyword.add(memoryOf('u', 'added without a vector'), call);
    await expect(store.open({ embedder: embedderOf('one', 8) })).rejects.toThrow(
      /have no vector.*"omp-gateway reembed"/,
    );
  });
});

describe('the text analyser of stored keywords', () => {
  it('must be the one of this gateway', async () => {
    await firstOpen(embedderOf('one', 8));
    await store.sql(`update ${store.names.store} set analyser_version = 999`);
    await expect(store.open({ embedder: embedderOf('one', 8) })).rejects.toThrow(/analyser 999/);
  });
});

describe('long vectors', () => {
  it.each([
    { dimensions: 2_000, storage: 'p', indexed: true },
    { dimensions: 2_001, storage: 'e', indexed: true },
    { dimensions: 3_000, storage: 'e', indexed: true },
    { dimensions: 4_500, storage: 'e', indexed: false },
  ])('of $dimensions dimensions are kept and searched, index: $indexed', async ({ dimensions, storage, indexed }) => {
    const log = recordingLog();
    const embedder = embedderOf('long', dimensions);
    const provider = await store.open({ embedder, log, mode: 'vector', options: { large_user_rows: 4 } });
    const texts = ['one', 'two', 'three', 'four', 'five', 'six'];
    for (const text of texts) await provider.add(memoryOf('u', text, { scope: 's'.repeat(512) }), call);

    const indexes = await store.sql('select indexname from pg_indexes where schemaname = $1 and indexname = $2', [
      store.schema,
      'memories_embedding',
    ]);
    expect(indexes).toHaveLength(indexed ? 1 : 0);
    expect(log.lines.some(({ message }) => /too long for an index/.test(message))).toBe(!indexed);
    const column = `select attstorage from pg_attribute where attrelid = '${store.names.memories}'::regclass and attname = 'embedding'`;
    expect(await store.sql(column)).toEqual([{ attstorage: storage }]);

    const search = async (text: string) =>
      provider.search?.({ user_id: 'u', text, tags: [], within: null, max_bytes: 1e9, limit: 10 }, call);
    const before = await search('four');
    expect(before?.[0]).toMatchObject({ memory: { content: 'four' }, score: 1 });
    expect(before).toHaveLength(texts.length);
    const ready = `select from ${store.names.largeUsers} where ready`;
    await until(async () => (await store.sql(ready)).length === 1);
    expect(await search('four')).toEqual(before);
    await provider.update?.(refTo(before?.[0]?.memory.id ?? ''), { content: 'seven' }, call);
    expect((await search('seven'))?.[0]).toMatchObject({ memory: { content: 'seven' }, score: 1 });
  });
});

describe('a schema made by a newer gateway', () => {
  it('is refused and left alone', async () => {
    await firstOpen(embedderOf('one', 8));
    await store.sql(`insert into ${store.names.migrations} (version, name) values (99, 'from the future')`);
    await expect(store.open({ embedder: embedderOf('one', 8) })).rejects.toThrow(/version 99, newer.*upgrade/);
    expect(await store.sql(`select max(version) as version from ${store.names.migrations}`)).toEqual([{ version: 99 }]);
  });
});
