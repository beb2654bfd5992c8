import { analyse, inverseDocumentFrequency } from '#ranking';

/** Inverted index of one user's texts. */
export interface Keywords {
  set(slot: number, text: string): void;
  delete(slot: number): void;
  /** For every slot up to `slots`: the share of the query's rarity that its text covers, 0 to 1. */
  coverages(terms: readonly string[], slots: number): Float64Array;
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
    set(slot, text) {
      remove(slot);
      const terms = analyse(text);
      termsOf.set(slot, terms);
      for (const term of terms) {
        const posting = postings.get(term);
        if (posting) posting.add(slot);
        else postings.set(term, new Set([slot]));
      }
    },
    delete: remove,
    coverages(terms, slots) {
      const sums = new Float64Array(slots);
      let whole = 0;
      for (const term of terms) {
        const posting = postings.get(term);
        const idf = inverseDocumentFrequency(termsOf.size, posting?.size ?? 0);
        whole += idf;
        for (const slot of posting ?? []) sums[slot] = (sums[slot] as number) + idf;
      }
      return whole > 0 ? sums.map((sum) => sum / whole) : sums;
    },
  };
}
