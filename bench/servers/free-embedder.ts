import type { Embedder } from '#contract';

const DIMENSIONS = 512;
const VECTORS = 4_096;

/** Precomputed: 256 components of ±1/16 have length 1 and are exact in half precision. */
const vectors = Array.from({ length: VECTORS }, (_, seed) => {
  const vector = new Float32Array(DIMENSIONS);
  let state = Math.imul(seed + 1, 0x9e3779b1) >>> 0;
  for (let pair = 0; pair < DIMENSIONS / 2; pair++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    vector[pair * 2 + ((state >>> 31) & 1)] = (state >>> 30) & 1 ? 1 / 16 : -1 / 16;
  }
  return vector;
});

/** A vector of the text for a few multiplications. */
export function vectorOf(text: string): Float32Array {
  let hash = text.length;
  for (let i = 0; i < text.length; i += 7) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return vectors[(hash >>> 0) % VECTORS] as Float32Array;
}

/** An embedder that costs nothing, so that only the gateway is measured. */
export const freeEmbedder: Embedder = {
  model: 'benchmark',
  dimensions: DIMENSIONS,
  embed: async (texts) => texts.map(vectorOf),
  close: async () => {},
};
