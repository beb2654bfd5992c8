import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { analyse } from '#ranking';
import { toBigintArray, toKeys } from '../../providers/postgres/tables/search-terms.ts';

const keywordsOf = (user: string, text: string) => toKeys(user, analyse(text));
const WORDS = Array.from({ length: 20_000 }, (_, i) => `w${i}`);

describe('toKeys', () => {
  it('gives one key a term, the same for text and query', () => {
    const text = 'She prefers green tea; the teas of XK-4471';
    const keys = keywordsOf('u', text);
    expect(keys).toHaveLength(analyse(text).length);
    expect(keywordsOf('u', 'tea')).toEqual([keys[analyse(text).indexOf('tea')]]);
  });

  it('gives whole numbers that JavaScript and bigint hold exactly, and hardly ever the same one twice', () => {
    const keys = toKeys('u', WORDS);
    expect(keys.every((key) => Number.isSafeInteger(key) && key >= 0)).toBe(true);
    expect(new Set(keys).size).toBe(20_000);
  });

  it('shares no key between users, however alike their names', () => {
    const keys = ['u', 'U', 'u ', 'v', 'uu', 'é', 'e\u0301', '😀', '\u{1f601}', ''].map((user) => toKeys(user, WORDS));
    expect(new Set(keys.flat()).size).toBe(keys.length * 20_000);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, other) => {
        fc.pre(one !== other);
        expect(keywordsOf(one, 'tea')).not.toEqual(keywordsOf(other, 'tea'));
      }),
      { numRuns: 1000 },
    );
  });

  it('is written as Postgres reads arrays', () => {
    expect(toBigintArray([])).toBe('{}');
    expect(toBigintArray([1, 2 ** 53 - 1])).toBe('{1,9007199254740991}');
  });

  // What is stored has to be found by every later release.
  it('never changes', () => {
    expect(keywordsOf('user-1', 'green tea')).toMatchInlineSnapshot(`
      [
        6317997042037202,
        2470708501998228,
      ]
    `);
  });
});
