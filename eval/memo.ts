import type { Call, Embedder } from '#contract';

/** The same embedder, called once per text, so that providers and modes share every vector. The caller closes it. */
export function memoised(embedder: Embedder): Embedder {
  const vectors = new Map<string, Float32Array>();
  return {
    model: embedder.model,
    dimensions: embedder.dimensions,
    async embed(texts, purpose, call) {
      const fresh = [...new Set(texts)].filter((text) => !vectors.has(text));
      const made = fresh.length === 0 ? [] : await embedder.embed(fresh, purpose, call);
      for (const [index, text] of fresh.entries()) vectors.set(text, made[index] as Float32Array);
      return texts.map((text) => vectors.get(text) as Float32Array);
    },
    async close() {},
  };
}

/** Embeds in batches what would otherwise be embedded one by one. */
export async function embedAll(embedder: Embedder, texts: readonly string[], call: Call): Promise<void> {
  const batch = 64;
  for (let start = 0; start < texts.length; start += batch) {
    await embedder.embed(texts.slice(start, start + batch), 'document', call);
  }
}
