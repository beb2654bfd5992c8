import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { globMatcher, globsOverlap, patternsOverlap } from '#toolbox';

const ALPHABET = ['a', 'b', '/'];
/** Every text over the alphabet up to this length. */
const textsUpTo = (length: number): string[] =>
  length === 0 ? [''] : ['', ...textsUpTo(length - 1).flatMap((text) => ALPHABET.map((next) => next + text))];

const LONGEST_GLOB = 4;
/** Two globs that match a text together match one no longer than both: each of its characters is named by one of them. */
const TEXTS = [...new Set(textsUpTo(2 * LONGEST_GLOB))];
const glob = fc.string({ unit: fc.constantFrom(...ALPHABET, '*', '*', '?'), maxLength: LONGEST_GLOB });

/** A pattern that counts how often one of its characters is looked at. */
const counted = (text: string) => {
  let looks = 0;
  const pattern = new Proxy<readonly string[]>([...text], {
    get(target, key) {
      if (typeof key === 'string' && /^\d+$/.test(key)) looks++;
      return Reflect.get(target, key);
    },
  });
  return { pattern, looks: () => looks };
};

describe('two globs overlap', () => {
  it('exactly if they match a common text', () => {
    fc.assert(
      fc.property(glob, glob, (one, other) => {
        const [matchesOne, matchesOther] = [globMatcher(one), globMatcher(other)];
        const met = TEXTS.some((text) => matchesOne(text) && matchesOther(text));
        expect(globsOverlap(one, other)).toBe(met);
        expect(globsOverlap(other, one)).toBe(met);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['coding/*', 'coding/*', true],
    ['coding/*', 'coding*', true],
    ['coding/*', 'coding', false],
    ['coding/*', 'coding-secret/*', false],
    ['coding/*', '*/x', true],
    ['coding/*', '', false],
    ['', '', true],
    ['', '*', true],
    ['', '?', false],
    ['a?c', 'ab*', true],
    ['a?c', 'a😀c', true],
    ['a??c', 'a😀c', false],
    ['*a', '*b', false],
    ['a*', '*b', true],
    ['*a*b', 'b*a*', true],
    ['[a]', 'a', false],
    ['a.c', 'abc', false],
  ])('%j and %j: %j', (one, other, expected) => {
    expect(globsOverlap(one, other)).toBe(expected);
    expect(globsOverlap(other, one)).toBe(expected);
  });
});

describe('the work', () => {
  it.each([
    ['*a'.repeat(256), '*b'.repeat(256)],
    ['*'.repeat(512), `${'*'.repeat(511)}b`],
    [`${'a*'.repeat(256)}b`, `${'*a'.repeat(256)}c`],
    ['?'.repeat(512), '*?'.repeat(256)],
    [`${'*a'.repeat(250)}*b`, `${'*a'.repeat(250)}*c*d`],
    ['a'.repeat(512), 'a'.repeat(512)],
  ])('of %.12j… and %.12j… grows with the product of their lengths, no faster', (one, other) => {
    const [left, right] = [counted(one), counted(other)];
    patternsOverlap(left.pattern, right.pattern);
    const places = (one.length + 1) * (other.length + 1);
    expect(left.looks() + right.looks()).toBeGreaterThan(0);
    expect(left.looks() + right.looks()).toBeLessThanOrEqual(3 * places);
  });
});
