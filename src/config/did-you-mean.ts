/** Fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  let above: number[] = [];
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const replaced = (row[j] as number) + (a[i] === b[j] ? 0 : 1);
      const swapped = a[i] === b[j - 1] && a[i - 1] === b[j] ? (above[j - 1] as number) + 1 : Number.POSITIVE_INFINITY;
      next.push(Math.min(replaced, swapped, (row[j + 1] as number) + 1, (next[j] as number) + 1));
    }
    above = row;
    row = next;
  }
  return row.at(-1) as number;
}

export interface Near {
  readonly name: string;
  /** Edits between what was written and the spelling that was meant. */
  readonly edits: number;
}

/**
 * `candidates` maps each spelling that may have been meant to the name to suggest; a spelling is near when at most a third
 * of it differs.
 */
export function nearest(word: string, candidates: Iterable<readonly [spelling: string, name: string]>) {
  const lowerCased = word.toLowerCase();
  let best: Near | undefined;
  for (const [spelling, name] of candidates) {
    const edits = distance(lowerCased, spelling.toLowerCase());
    if (edits <= spelling.length / 3 && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { name, edits };
  }
  return best;
}

/** `; did you mean X?` or nothing, ready to append. */
export const suggested = (near: Near | undefined): string => (near ? `; did you mean ${near.name}?` : '');

export const didYouMean = (word: string, candidates: Parameters<typeof nearest>[1]): string =>
  suggested(nearest(word, candidates));
