import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { globMatcher, globsBelow, withinBelow, withinMatcher } from '#toolbox';

const ALPHABET = ['a', 'b', '/', '😀'];
const glob = fc.string({ unit: fc.constantFrom(...ALPHABET, '*', '*', '?'), maxLength: 8 });
const scope = fc
  .array(fc.string({ unit: fc.constantFrom('a', 'b', '😀'), minLength: 1, maxLength: 2 }), {
    minLength: 1,
    maxLength: 3,
  })
  .map((segments) => segments.join('/'));

describe('what is left of a glob below a scope', () => {
  it('[Decision 48] matches the rest exactly where the glob matches the whole', () => {
    fc.assert(
      fc.property(glob, scope, fc.array(scope, { minLength: 1, maxLength: 20 }), (pattern, top, rests) => {
        const [matches, below] = [globMatcher(pattern), withinMatcher(globsBelow(pattern, top))];
        expect(below(null)).toBe(matches(top));
        for (const rest of rests) expect(below(rest), `${top}/${rest}`).toBe(matches(`${top}/${rest}`));
      }),
      { numRuns: 4_000 },
    );
  });

  it.each([
    ['*', 'docs/handbook', ['', '*']],
    ['docs/*', 'docs/handbook', ['', '*']],
    ['docs/handbook', 'docs/handbook', ['']],
    ['docs/handbook/*', 'docs/handbook', ['*']],
    ['docs/handbook/a/b', 'docs/handbook', ['a/b']],
    ['*k', 'docs/handbook', ['', '*k']],
    ['*k/x', 'docs/handbook', ['*k/x', 'x']],
    ['docs', 'docs/handbook', []],
    ['docs/handbook-2/*', 'docs/handbook', []],
    ['???', 'ab', []],
    ['????', 'ab', ['?']],
  ])('[Decision 48] of %j below %j is %j', (pattern, top, expected) => {
    expect(globsBelow(pattern, top)).toEqual(expected);
  });

  it('[Decision 48] of all scopes is all records', () => {
    expect(withinBelow(null, 'a')).toBeNull();
    expect(withinBelow(['*'], 'a')).toBeNull();
    expect(withinBelow(['a', 'a/*'], 'a')).toBeNull();
    expect(withinBelow(['a/*'], 'a')).toEqual(['*']);
    expect(withinBelow(['b*'], 'a')).toEqual([]);
  });
});
