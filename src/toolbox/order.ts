import type { Position, SearchHit } from '#contract';

/** The order of lists; ids are ASCII. */
export function newestFirst(a: Position, b: Position): number {
  if (a.created_at !== b.created_at) return a.created_at > b.created_at ? -1 : 1;
  if (a.id === b.id) return 0;
  return a.id > b.id ? -1 : 1;
}

/** The order of hits. */
export const byScore = (a: SearchHit, b: SearchHit): number => b.score - a.score || newestFirst(a.memory, b.memory);

/** Merges two parts of one ranking, each best first, up to `limit` hits. Keeps the order within each part. */
export function mergeHits(a: readonly SearchHit[], b: readonly SearchHit[], limit: number): SearchHit[] {
  const merged: SearchHit[] = [];
  for (let [i, j] = [0, 0]; merged.length < limit && (i < a.length || j < b.length); ) {
    const [left, right] = [a[i], b[j]];
    if (left && (!right || byScore(left, right) <= 0)) {
      merged.push(left);
      i++;
    } else if (right) {
      merged.push(right);
      j++;
    }
  }
  return merged;
}
