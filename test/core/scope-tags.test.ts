import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { globMatcher, literalPrefix } from '#toolbox';
import { escapeTag, fromStoredTags, tagsOfExactScope, tagsOfLiteral, toStoredTags } from '../../src/core/scope-tags.ts';

/** Tags a caller may choose, with a liking for those that try to pass for ours. */
const tag = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1 }),
  fc
    .array(fc.constantFrom('omp:', 'scope:', 'under:', 'tag:', 'a', 'a/b', ''), { minLength: 1, maxLength: 4 })
    .map((parts) => parts.join('')),
);
const segment = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '😀', ':', ' ', '%'), minLength: 1, maxLength: 3 });
const scope = fc.array(segment, { minLength: 1, maxLength: 5 }).map((segments) => segments.join('/'));
const optionalScope = fc.option(scope);

const carries = (stored: readonly string[], wanted: readonly string[]): boolean =>
  wanted.every((one) => stored.includes(one));

describe('a scope as tags', () => {
  it('is stored as the scope and its ancestors', () => {
    expect(toStoredTags(['t'], 'a/b/c')).toEqual(['t', 'omp:under:a', 'omp:under:a/b', 'omp:scope:a/b/c']);
    expect(toStoredTags(['t'], 'a')).toEqual(['t', 'omp:scope:a']);
    expect(toStoredTags(['t'], null)).toEqual(['t']);
  });

  it('decodes together with the original tags', () => {
    fc.assert(
      fc.property(fc.array(tag), optionalScope, (tags, place) => {
        expect(fromStoredTags(toStoredTags(tags, place))).toEqual({ tags, scope: place });
      }),
      { numRuns: 1000 },
    );
  });

  it('is never among the decoded tags', () => {
    fc.assert(
      fc.property(fc.array(tag), scope, (tags, place) => {
        expect(fromStoredTags(toStoredTags(tags, place)).tags).toHaveLength(tags.length);
      }),
    );
  });

  it('cannot be forged: no tag of a caller decodes to a scope or matches a scope filter', () => {
    fc.assert(
      fc.property(fc.array(tag, { minLength: 1 }), optionalScope, scope, scope, (tags, place, posing, wanted) => {
        const forged = [...tags, `omp:scope:${posing}`, `omp:under:${posing}`, `omp:tag:omp:scope:${posing}`];
        const stored = toStoredTags(forged, place);
        expect(fromStoredTags(stored).scope).toBe(place);
        const honest = toStoredTags([], place);
        for (const filter of [tagsOfExactScope(wanted), tagsOfLiteral(`${wanted}/`)]) {
          expect(carries(stored, filter)).toBe(carries(honest, filter));
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('keeps each tag of a caller findable by itself only', () => {
    fc.assert(
      fc.property(fc.array(tag), optionalScope, tag, (tags, place, wanted) => {
        expect(toStoredTags(tags, place).includes(escapeTag(wanted))).toBe(tags.includes(wanted));
      }),
      { numRuns: 1000 },
    );
  });
});

describe('the tags that narrow a filter', () => {
  it('of an exact scope belong to that scope only', () => {
    fc.assert(
      fc.property(scope, scope, (place, wanted) => {
        expect(carries(toStoredTags([], place), tagsOfExactScope(wanted))).toBe(place === wanted);
      }),
    );
  });

  it.each([
    ['', []],
    ['a', []],
    ['a/', ['omp:under:a']],
    ['a/b', ['omp:under:a']],
    ['a/b/', ['omp:under:a/b']],
    ['/', []],
  ])('of what begins with %j are %j', (literal, tags) => {
    expect(tagsOfLiteral(literal)).toEqual(tags);
  });

  it('never exclude a matching scope', () => {
    const anything = fc.string({ unit: fc.constantFrom('a', 'b', '/', '😀', '*', '?'), maxLength: 8 });
    fc.assert(
      fc.property(scope, anything, fc.nat(), (place, pattern, cut) => {
        const stored = toStoredTags([], place);
        const prefix = place.slice(0, cut % (place.length + 1));
        expect(carries(stored, tagsOfLiteral(prefix))).toBe(true);
        for (const glob of [pattern, `${prefix}*`, `${prefix}?*`]) {
          if (globMatcher(glob)(place)) expect(carries(stored, tagsOfLiteral(literalPrefix(glob)))).toBe(true);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
