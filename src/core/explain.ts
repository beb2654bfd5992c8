import { type Call, providerError, type ScoreParts, type SearchHit } from '#contract';
import { matchedTerms, roundScore } from '#ranking';
import type { MarkedHit } from './current-memories.ts';
import type { Store } from './store.ts';

/**
 * Why a memory was found (Decision 39): `score = weights.vector · cosine + weights.keyword · coverage`. Null: has no weight.
 *
 * @public The declarations of the package name it.
 */
export interface Explanation {
  readonly cosine: number | null;
  readonly coverage: number | null;
  /** The terms of the query that the content has, as the query writes them. */
  readonly terms: readonly string[] | null;
  readonly weights: ScoreParts['weights'];
  /** The store of the memory, and the factor of its scores; absent: the root store. */
  readonly store?: string | undefined;
  readonly store_weight?: number | undefined;
}

/** With the store that they come from, if it is mounted. */
export type StoreParts = ScoreParts & Pick<Explanation, 'store' | 'store_weight'>;

export interface ExplainedHit extends MarkedHit {
  readonly explanation?: Explanation;
}

/** Adds the explanation of each hit. */
export async function explainHits(
  hits: readonly MarkedHit[],
  text: string,
  provider: Pick<Store, 'name' | 'capabilities'>,
  call: Call,
): Promise<ExplainedHit[]> {
  const scores = hits.map((hit) => ({ hit, ...partsOfScore(hit, provider) }));
  const hasWords = scores.some(({ weights }) => weights.keyword > 0);
  const contents = hasWords ? hits.map(({ memory }) => memory.content) : [];
  const terms = await matchedTerms(text, contents, call);
  return scores.map(({ hit, cosine, coverage, weights: { vector, keyword }, store, store_weight }, i) => ({
    ...hit,
    explanation: {
      cosine: vector > 0 ? round(cosine) : null,
      coverage: keyword > 0 ? round(coverage) : null,
      terms: keyword > 0 ? (terms[i] ?? []) : null,
      weights: { vector: roundScore(vector), keyword: roundScore(keyword) },
      ...(store !== undefined && { store, store_weight }),
    },
  }));
}

const round = (part: number): number => Math.min(1, roundScore(part));

/** What a score is made of. */
export function partsOfScore(
  { score, parts }: SearchHit,
  { name, capabilities }: Pick<Store, 'name' | 'capabilities'>,
): StoreParts {
  if (parts) return parts;
  if (!capabilities.keyword_search) return { cosine: score, coverage: 0, weights: { vector: 1, keyword: 0 } };
  if (!capabilities.vector_search) return { cosine: 0, coverage: score, weights: { vector: 0, keyword: 1 } };
  throw providerError(name, 'the backend returned hits without the parts of their scores');
}
