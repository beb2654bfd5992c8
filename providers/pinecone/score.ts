import type { Measure } from '#provider';

/** What the metrics of Pinecone measure. */
export const MEASURES = {
  cosine: 'cosine',
  dotproduct: 'product',
  euclidean: 'squared distance',
} as const satisfies Record<string, Measure>;
export type Metric = keyof typeof MEASURES;

/** What the index's metric gives a vector for this query, which is not all zero. */
export function measureOf(metric: Metric, query: Float32Array): (vector: Float32Array) => number {
  const square = dot(query, query);
  if (metric === 'cosine') return (vector) => dot(query, vector) / Math.sqrt(square * dot(vector, vector));
  if (metric === 'dotproduct') return (vector) => dot(query, vector);
  return (vector) => square + dot(vector, vector) - 2 * dot(query, vector);
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}

/** Some vector of this length: Pinecone rejects one of zeros. */
export const someVector = (dimensions: number): Float32Array =>
  Float32Array.from({ length: dimensions }, (_, at) => (at === 0 ? 1 : 0));
