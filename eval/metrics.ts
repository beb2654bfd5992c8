/** The quality of one answer; means of many have the same shape. All 0 to 1. */
export interface Metrics {
  readonly recall1: number;
  readonly recall5: number;
  readonly recall10: number;
  readonly mrr: number;
}

/** The share of the evidence among the first `k` of the ranking. */
export const recallAt = (k: number, ranking: readonly string[], evidence: readonly string[]): number => {
  const top = ranking.slice(0, k);
  return evidence.filter((key) => top.includes(key)).length / evidence.length;
};

/** One over the rank of the first piece of evidence; 0 when the ranking holds none. */
export const reciprocalRank = (ranking: readonly string[], evidence: readonly string[]): number => {
  const rank = ranking.findIndex((key) => evidence.includes(key)) + 1;
  return rank === 0 ? 0 : 1 / rank;
};

export const measure = (ranking: readonly string[], evidence: readonly string[]): Metrics => ({
  recall1: recallAt(1, ranking, evidence),
  recall5: recallAt(5, ranking, evidence),
  recall10: recallAt(10, ranking, evidence),
  mrr: reciprocalRank(ranking, evidence),
});

/** Every question has the same weight. Throws on an empty list: a mean of nothing would pass any comparison. */
export function mean(metrics: readonly Metrics[]): Metrics {
  if (metrics.length === 0) throw new Error('There are no questions to average over.');
  const of = (name: keyof Metrics): number => metrics.reduce((sum, one) => sum + one[name], 0) / metrics.length;
  return { recall1: of('recall1'), recall5: of('recall5'), recall10: of('recall10'), mrr: of('mrr') };
}

/** Better in every respect, equal in none. */
export const beats = (a: Metrics, b: Metrics): boolean =>
  a.recall1 > b.recall1 && a.recall5 > b.recall5 && a.recall10 > b.recall10 && a.mrr > b.mrr;
