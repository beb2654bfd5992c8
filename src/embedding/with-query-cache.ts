import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Embedder } from '#contract';

const MAX_BYTES = 64 * 1024 * 1024;
/** Size of an entry without its vector. */
const ENTRY_BYTES = 300;

/** A digest, since a text may be a mebibyte long. */
const keyOf = (text: string): string => createHash('sha256').update(text).digest('base64');

/**
 * Caches the vectors of the `size` most recently used queries (0: none), in at most 64 MiB. Does not cache documents, which
 * are embedded once. Callers share a cached vector and must not change it.
 */
export function withQueryCache(inner: Embedder, size: number): Embedder {
  if (size === 0) return inner;
  const cache = new LRUCache<string, Float32Array>({
    max: size,
    maxSize: MAX_BYTES,
    sizeCalculation: ({ byteLength }) => ENTRY_BYTES + byteLength,
  });
  let [hits, misses] = [0, 0];
  return {
    model: inner.model,
    dimensions: inner.dimensions,
    async embed(texts, purpose, call) {
      if (purpose === 'document') return inner.embed(texts, purpose, call);
      const keys = texts.map(keyOf);
      const known = keys.map((key) => cache.get(key));
      const missing = texts.filter((_, i) => known[i] === undefined);
      misses += missing.length;
      hits += texts.length - missing.length;
      if (missing.length === 0) return known as Float32Array[];
      const fresh = await inner.embed(missing, purpose, call);
      const next = fresh.values();
      return known.map((vector, i) => {
        if (vector) return vector;
        const computed = next.next().value as Float32Array;
        cache.set(keys[i] as string, computed);
        return computed;
      });
    },
    stats: () => ({ queue_length: inner.stats?.().queue_length ?? 0, cache_hits: hits, cache_misses: misses }),
    close: () => inner.close(),
  };
}
