import { inverseDocumentFrequency } from '#provider';

/** The slots that a caller may see. */
export interface Visible {
  /** 1 for each visible slot. */
  readonly mask: Uint8Array;
  readonly count: number;
}

/** Inverted index of one user's texts. */
export interface Keywords {
  set(slot: number, terms: readonly string[]): void;
  delete(slot: number): void;
  /**
   * For every slot up to `slots`: the share of the query's rarity that its text covers, 0 to 1. With `visible`, only those
   * slots count for the rarity, and the results of the others are meaningless.
   */
  coverages(terms: readonly string[], slots: number, visible?: Visible): Float64Array;
}

export function createKeywords(): Keywords {
  const postings = new Map<string, Set<number>>();
  const termsOf = new Map<number, readonly string[]>();

  const remove = (slot: number) => {
    for (const term of termsOf.get(slot) ?? []) {
      const posting = postings.get(term);
      posting?.delete(slot);
      if (posting?.size === 0) postings.delete(term);
    }
    termsOf.delete(slot);
  };

  return {
    set(slot, terms) {
      remove(slot);
      termsOf.set(slot, terms);
      for (const term of terms) {
        const posting = postings.get(term);
        if (posting) posting.add(slot);
        else postings.set(term, new Set([slot]));
      }
    },
    delete: remove,
    coverages(terms, slots, visible) {
      const sums = new Float64Array(slots);
      let whole = 0;
      for (const term of terms) {
        const posting = postings.get(term) ?? NOWHERE;
        const idf = visible
          ? inverseDocumentFrequency(visible.count, countIn(posting, visible))
          : inverseDocumentFrequency(termsOf.size, posting.size);
        whole += idf;
        for (const slot of posting) sums[slot] = (sums[slot] as number) + idf;
      }
      return whole > 0 ? sums.map((sum) => sum / whole) : sums;
    },
  };
}

const NOWHERE: ReadonlySet<number> = new Set();

function countIn(slots: ReadonlySet<number>, { mask }: Visible): number {
  let count = 0;
  for (const slot of slots) count += mask[slot] as number;
  return count;
}
