import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toUnitHalf } from '#ranking';
import { createScoring, isZero } from '../../providers/pinecone/score.ts';
import { score as asIndexed } from '../pinecone-server/score.ts';

const METRICS = ['cosine', 'dotproduct', 'euclidean'] as const;
const vector = fc
  .array(fc.integer({ min: -9, max: 9 }), { minLength: 6, maxLength: 6 })
  .map(toUnitHalf)
  .filter((made) => !isZero(made));

describe.each(METRICS)('scores of an index by %s', (metric) => {
  it('are the cosine where it is positive, else 0', () => {
    fc.assert(
      fc.property(vector, vector, (query, stored) => {
        const found = createScoring(metric, query).ofMatch(asIndexed[metric](query, stored));
        expect(found).toBeCloseTo(Math.max(0, asIndexed.cosine(query, stored)), 2);
        expect(found).toBeGreaterThanOrEqual(0);
        expect(found).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('are the same whether the index or this process computed them', () => {
    fc.assert(
      fc.property(vector, vector, (query, stored) => {
        const { ofMatch, ofVector } = createScoring(metric, query);
        expect(ofVector(stored)).toBe(ofMatch(asIndexed[metric](query, stored)));
      }),
    );
  });

  it('[SPEC SearchResult score] are 1 for an equal text, 0 for one without signal', () => {
    fc.assert(
      fc.property(vector, (query) => {
        const { ofVector } = createScoring(metric, query);
        expect(ofVector(query)).toBe(1);
        expect(ofVector(new Float32Array(query.length))).toBe(0);
      }),
    );
  });
});

describe('a score', () => {
  it('[SPEC SearchResult score] is 1 at the most: the service answered 1.00112152', () => {
    expect(createScoring('cosine', Float32Array.of(1)).ofMatch(1.00112152)).toBe(1);
  });

  it('[SPEC SearchResult score] is 0 at the least, -0 not being one', () => {
    for (const metric of METRICS) {
      expect(createScoring(metric, Float32Array.of(1)).ofVector(Float32Array.of(-1))).toBe(0);
    }
  });
});
