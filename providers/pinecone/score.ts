import { roundScore } from '#provider';

export type Metric = 'cosine' | 'dotproduct' | 'euclidean';

/** What the index's metric gives a vector for this query, which is not all zero. */
export function measureOf(metric: Metric, query: Float32Array): (vector: Float32Array) => number {
  const square = dot(query, query);
  if (metric === 'cosine') return (vector) => dot(query, vector) / Math.sqrt(square * dot(vector, vector));
  if (metric === 'dotproduct') return (vector) => dot(query, vector);
  return (vector) => square + dot(vector, vector) - 2 * dot(query, vector);
}

/** Scores of one query, from 0 to 1. Both kinds are comparable. */
export interface Scoring {
  /** The score of a match, from the number that the index gave it. */
  ofMatch(score: number): number;
  /** The score of a vector: what `ofMatch` would return if the index had it. */
  ofVector(vector: Float32Array): number;
}

/**
 * `max(0, cosine)`, computed as the index's metric does, so that both kinds of scores order alike. With the metrics that
 * depend on lengths this is the cosine if both vectors have the same length (`toUnit`). `query` is not the zero vector.
 */
export function createScoring(metric: Metric, query: Float32Array): Scoring {
  const square = dot(query, query);
  const toCosine: Record<Metric, (score: number) => number> = {
    cosine: (cosine) => cosine,
    dotproduct: (product) => product / square,
    euclidean: (squaredDistance) => 1 - squaredDistance / (2 * square),
  };
  const measure = measureOf(metric, query);
  // The index computes with fewer digits: 1.00112152 was seen.
  const ofMatch = (score: number) => Math.min(1, roundScore(Math.max(0, toCosine[metric](score))));
  return {
    ofMatch,
    ofVector: (vector) => (isZero(vector) ? 0 : ofMatch(measure(vector))),
  };
}

/** Whether the embedder found nothing in the text. */
export const isZero = (vector: Float32Array): boolean => vector.every((component) => component === 0);

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}

/** Pinecone rejects a vector of zeros: it is replaced by another one, and the record is marked. */
export function toValues(vector: Float32Array): { values: Float32Array; embedded: boolean } {
  if (!isZero(vector)) return { values: vector, embedded: true };
  return { values: vector.map((_, index) => (index === 0 ? 1 : 0)), embedded: false };
}
