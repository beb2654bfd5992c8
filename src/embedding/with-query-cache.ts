import { LRUCache } from 'lru-cache';
import type { Embedder } from '#contract';

/**
 * Remembers the vectors of the `size` queries used last (0: none); documents pass through, they are seen once.
 * A cached vector is shared between its callers, who must not change it.
 */
export function withQueryCache(inner: Embedder, size: number): Embedder {
  if (size === 0) return inner;
  const cache = new LRUCache<string, Float32Array>({ max: size });
  let [hits, misses] = [0, 0];
  return {
    model: inner.model,
    dimensions: inner.dimensions,
    async embed(texts, purpose, call) {
      if (purpose === 'document') return inner.embed(texts, purpose, call);
      const known = texts.map((text) => cache.get(text));
      const missing = texts.filter((_, i) => known[i] === undefined);
      misses += missing.length;
      hits += texts.length - missing.length;
      if (missing.length === 0) return known as Float32Array[];
      const fresh = await inner.embed(missing, purpose, call);
      missing.forEach((text, i) => {
        cache.set(text, fresh[i] as Float32Array);
      });
      const next = fresh.values();
      return known.map((vector) => vector ?? (next.next().value as Float32Array));
    },
    stats: () => ({ waiting: inner.stats?.().waiting ?? 0, cache_hits: hits, cache_misses: misses }),
    close: () => inner.close(),
  };
}
