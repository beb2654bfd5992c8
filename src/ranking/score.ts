import type { RankingOptions } from '#contract';

/** Rarity of a term among one user's memories; positive even if every memory has the term. */
export const inverseDocumentFrequency = (memories: number, memoriesWithTerm: number): number =>
  Math.log(1 + (memories - memoriesWithTerm + 0.5) / (memoriesWithTerm + 0.5));

/** Resolution of scores in comparisons and responses: finer differences are rounding errors of the store. */
const RESOLUTION = 1e6;
export const roundScore = (score: number): number => Math.floor(score * RESOLUTION + 0.5) / RESOLUTION;

/**
 * Weights of one query: `score = vector·max(0, cosine) + keyword·coverage`. A query of stop words has no terms; hybrid mode
 * then uses the vector alone, so that a text equal to the query still scores 1.
 */
export function weights(ranking: RankingOptions, queryTerms: number): { vector: number; keyword: number } {
  if (ranking.mode === 'keyword') return { vector: 0, keyword: 1 };
  if (ranking.mode === 'vector' || queryTerms === 0) return { vector: 1, keyword: 0 };
  return { vector: 1 - ranking.keyword_weight, keyword: ranking.keyword_weight };
}
