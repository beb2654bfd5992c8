import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inverseDocumentFrequency, roundScore, weights } from '#ranking';

describe('inverseDocumentFrequency', () => {
  it('is ln(1 + (N - n + 0.5) / (n + 0.5))', () => {
    expect(inverseDocumentFrequency(0, 0)).toBeCloseTo(Math.log(2), 12);
    expect(inverseDocumentFrequency(1, 1)).toBeCloseTo(Math.log(4 / 3), 12);
    expect(inverseDocumentFrequency(100, 3)).toBeCloseTo(Math.log(1 + 97.5 / 3.5), 12);
  });

  it('is positive, and larger for rarer terms', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e6 }), fc.nat(), (memories, random) => {
        const having = random % memories;
        const idf = inverseDocumentFrequency(memories, having + 1);
        expect(idf).toBeGreaterThan(0);
        expect(inverseDocumentFrequency(memories, having)).toBeGreaterThan(idf);
      }),
    );
  });
});

describe('roundScore', () => {
  it.each([
    [0, 0],
    [1, 1],
    [0.1234564, 0.123456],
    [0.1234566, 0.123457],
    [0.0000005, 0.000001],
    [0.00000049, 0],
    [0.9999999, 1],
  ])('of %d is %d', (score, rounded) => {
    expect(roundScore(score)).toBe(rounded);
  });

  it('keeps the order, changes by at most half a step, and is idempotent', () => {
    const score = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(score, score, (a, b) => {
        expect(Math.abs(roundScore(a) - a)).toBeLessThanOrEqual(0.5e-6 + 1e-15);
        expect(roundScore(roundScore(a))).toBe(roundScore(a));
        if (a <= b) expect(roundScore(a)).toBeLessThanOrEqual(roundScore(b));
      }),
    );
  });
});

describe('weights', () => {
  it.each([
    ['keyword', 0.5, 3, { vector: 0, keyword: 1 }],
    ['keyword', 0.5, 0, { vector: 0, keyword: 1 }],
    ['vector', 0.5, 3, { vector: 1, keyword: 0 }],
    ['vector', 0.5, 0, { vector: 1, keyword: 0 }],
    ['hybrid', 0.25, 3, { vector: 0.75, keyword: 0.25 }],
    ['hybrid', 0.25, 0, { vector: 1, keyword: 0 }],
    ['hybrid', 0, 1, { vector: 1, keyword: 0 }],
    ['hybrid', 1, 1, { vector: 0, keyword: 1 }],
  ] as const)('in %s mode, keyword weight %d, %d terms', (mode, keyword_weight, terms, expected) => {
    expect(weights({ mode, keyword_weight }, terms)).toEqual(expected);
  });
});
