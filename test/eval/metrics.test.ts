import { describe, expect, it } from 'vitest';
import { beats, mean, measure, recallAt, reciprocalRank } from '../../eval/metrics.ts';

const ranking = ['a', 'b', 'c', 'd', 'e', 'f'];

describe('metrics', () => {
  it('counts the share of the evidence in the top k', () => {
    expect(recallAt(1, ranking, ['a', 'c'])).toBe(0.5);
    expect(recallAt(3, ranking, ['a', 'c'])).toBe(1);
    expect(recallAt(5, ranking, ['f', 'x', 'e'])).toBeCloseTo(1 / 3);
    expect(recallAt(5, [], ['a'])).toBe(0);
  });

  it('takes the rank of the first evidence', () => {
    expect(reciprocalRank(ranking, ['a'])).toBe(1);
    expect(reciprocalRank(ranking, ['f', 'd'])).toBe(0.25);
    expect(reciprocalRank(ranking, ['x'])).toBe(0);
  });

  it('averages over questions', () => {
    const metrics = [measure(ranking, ['a']), measure(ranking, ['f', 'b'])];
    expect(mean(metrics)).toEqual({ recall1: 0.5, recall5: 0.75, recall10: 1, mrr: 0.75 });
    expect(() => mean([])).toThrow('no questions');
  });

  it('calls better only what is better in every respect', () => {
    const low = { recall1: 0.1, recall5: 0.2, recall10: 0.3, mrr: 0.2 };
    const high = { recall1: 0.2, recall5: 0.3, recall10: 0.4, mrr: 0.3 };
    expect(beats(high, low)).toBe(true);
    expect(beats(low, low)).toBe(false);
    for (const name of ['recall1', 'recall5', 'recall10', 'mrr'] as const) {
      expect(beats({ ...high, [name]: low[name] }, low), name).toBe(false);
    }
  });
});
