import type { EmbeddingUsage } from '#contract';

export type Used = Pick<EmbeddingUsage, 'texts' | 'tokens' | 'requests'>;

export const NOTHING_USED: Used = { texts: 0, tokens: 0, requests: 0 };

/** Unknown tokens make the sum unknown: a part would pass for the whole. */
export const sumOf = (a: Used, b: Used): Used => ({
  texts: a.texts + b.texts,
  tokens: a.tokens === null || b.tokens === null ? null : a.tokens + b.tokens,
  requests: a.requests + b.requests,
});

/** Sums of rows: one for each day, app and model, in the order in which they came. */
export function createTally() {
  let rows = new Map<string, EmbeddingUsage>();
  return {
    add(row: EmbeddingUsage): void {
      const key = JSON.stringify([row.day, row.app, row.model]);
      const before = rows.get(key);
      rows.set(key, before ? { ...before, ...sumOf(before, row) } : row);
    },
    rows: (): EmbeddingUsage[] => [...rows.values()],
    clear(): void {
      rows = new Map();
    },
  };
}
