import { LRUCache } from 'lru-cache';
import { describe, expect, it, vi } from 'vitest';
import { withQueryCache } from '../../src/embedding/with-batching.ts';
import { callOf, observedEmbedder } from './observed-embedder.ts';

const numbers = (vectors: Float32Array[]) => vectors.map((vector) => vector[0]);

function caching(size: number) {
  const { embedder, batches } = observedEmbedder();
  return { cached: withQueryCache(embedder, size), batches };
}

describe('query cache', () => {
  it('answers a repeated query without asking again', async () => {
    const { cached, batches } = caching(10);
    const first = await cached.embed(['coffee'], 'query', callOf());
    const second = await cached.embed(['coffee'], 'query', callOf());
    expect(numbers(first)).toEqual([6]);
    expect(second).toEqual(first);
    expect(batches).toHaveLength(1);
  });

  it('asks for the missing queries only and keeps the order', async () => {
    const { cached, batches } = caching(10);
    await cached.embed(['bb'], 'query', callOf());
    expect(numbers(await cached.embed(['a', 'bb', 'ccc'], 'query', callOf()))).toEqual([1, 2, 3]);
    expect(batches.map(({ texts }) => texts)).toEqual([['bb'], ['a', 'ccc']]);
  });

  it('passes every document through, also one that equals a cached query', async () => {
    const { cached, batches } = caching(10);
    await cached.embed(['coffee'], 'query', callOf());
    await cached.embed(['coffee'], 'document', callOf());
    await cached.embed(['coffee'], 'document', callOf());
    expect(batches.map(({ purpose }) => purpose)).toEqual(['query', 'document', 'document']);
  });

  it('forgets the query that was used longest ago', async () => {
    const { cached, batches } = caching(2);
    for (const text of ['a', 'b', 'a', 'c', 'a', 'b']) await cached.embed([text], 'query', callOf());
    expect(batches.map(({ texts }) => texts[0])).toEqual(['a', 'b', 'c', 'b']);
  });

  it('[Decision 29] keeps no long text, and no more than 64 MiB of vectors', async () => {
    const asked: string[] = [];
    const vector = new Float32Array(1024 * 1024);
    const cached = withQueryCache(
      {
        ...observedEmbedder().embedder,
        embed: async (texts) => {
          asked.push(...texts);
          return texts.map(() => vector);
        },
      },
      10_000,
    );
    const set = vi.spyOn(LRUCache.prototype, 'set');
    const texts = Array.from({ length: 17 }, (_, i) => `${i} ${'a'.repeat(100_000)}`);
    for (const text of texts) await cached.embed([text], 'query', callOf());
    expect(Math.max(...set.mock.calls.map(([key]) => String(key).length))).toBeLessThan(100);
    set.mockRestore();
    // Vectors of 4 MiB: of seventeen, the latest fifteen.
    for (const text of [...texts.slice(2), ...texts.slice(0, 2)]) await cached.embed([text], 'query', callOf());
    expect(asked).toEqual([...texts, ...texts.slice(0, 2)]);
  });

  it('counts the queries it knew and those it did not', async () => {
    const { embedder } = observedEmbedder();
    const cached = withQueryCache(
      { ...embedder, stats: () => ({ queue_length: 7, cache_hits: 0, cache_misses: 0 }) },
      10,
    );
    await cached.embed(['a', 'bb'], 'query', callOf());
    await cached.embed(['a', 'ccc', 'bb'], 'query', callOf());
    await cached.embed(['a'], 'document', callOf());
    expect(cached.stats?.()).toEqual({ queue_length: 7, cache_hits: 2, cache_misses: 3 });
  });

  it('is off at size 0', async () => {
    const { cached, batches } = caching(0);
    await cached.embed(['coffee'], 'query', callOf());
    await cached.embed(['coffee'], 'query', callOf());
    expect(batches).toHaveLength(2);
  });

  it('does not remember a failure', async () => {
    let failing = true;
    const { embedder } = observedEmbedder(() => {
      if (failing) throw new Error('down');
    });
    const cached = withQueryCache(embedder, 10);
    await expect(cached.embed(['coffee'], 'query', callOf())).rejects.toThrow('down');
    failing = false;
    expect(numbers(await cached.embed(['coffee'], 'query', callOf()))).toEqual([6]);
  });
});
