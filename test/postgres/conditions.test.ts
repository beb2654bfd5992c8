import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { globMatcher, visibleMatcher, withinMatcher } from '#toolbox';
import { type Conditions, conditions, whereWithin } from '../../providers/postgres/sql/conditions.ts';
import {
  successor,
  whereScopeGlob,
  whereScopePrefix,
  whereTags,
  whereWithinRanges,
} from '../../providers/postgres/tables/conditions.ts';
import { storeForAll } from './store.ts';

/** Characters at the edges of UTF-8 lengths, around the surrogates, at the end of Unicode, and special to LIKE. */
const CHARACTERS = [
  ...['a', 'b', 'A', '/', '%', '_', '\\', '"', "'", '{', '~', '\u007f', '\u0080', '\u07ff', '\u0800', 'e\u0301', 'é'],
  ...['\ud7ff', '\ue000', '\uffff', '\u{10000}', '😀', '\u{10fffe}', '\u{10ffff}'],
];
const text = fc.string({ unit: fc.constantFrom(...CHARACTERS), maxLength: 6 });
const glob = fc.string({ unit: fc.constantFrom(...CHARACTERS, '*', '?', '*', '?'), maxLength: 6 });
const scopes = fc.array(fc.oneof(text, fc.string({ unit: 'binary' }).map(storable)), { minLength: 1, maxLength: 30 });

function storable(value: string): string {
  return value.replaceAll('\0', '').toWellFormed();
}

const store = storeForAll();

/** Which of these scopes a WHERE clause lets through, by Postgres; one more row has none at all. */
const admitted = async (all: readonly string[], write: (where: Conditions) => void): Promise<(string | null)[]> => {
  const where = conditions();
  const place = where.bind(all);
  write(where);
  const rows = await store.sql<{ scope: string | null }>(
    `select scope from (
       select 'u'::text as user_id, given collate "C" as scope, number from unnest(${place}::text[]) with ordinality as t(given, number)
       union all select 'u', null, 0
     ) as m where ${where} order by number`,
    where.values,
  );
  return rows.map(({ scope }) => scope);
};
const query = { user_id: 'u', tags: [], within: null, max_bytes: 1e9, limit: 1, text: '', vector: null };

describe('successor', () => {
  it.each([
    ['a', 'b'],
    ['coding/', 'coding0'],
    ['\u007f', '\u0080'],
    ['a\ud7ff', 'a\ue000'],
    ['a\uffff', 'a\u{10000}'],
    ['a\u{10ffff}', 'b'],
    ['\ud7ff\u{10ffff}\u{10ffff}', '\ue000'],
    ['\u{10ffff}', undefined],
    ['', undefined],
  ])('of %j is %j', (prefix, next) => {
    expect(successor(prefix)).toBe(next);
  });

  it('is well-formed, and the least of all strings behind those with the prefix', () => {
    const points = fc.string({ unit: 'binary', minLength: 1 }).map(storable);
    fc.assert(
      fc.property(points, points, (prefix, other) => {
        const end = successor(prefix);
        const precedes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0;
        const inRange = !precedes(other, prefix) && (end === undefined || precedes(other, end));
        expect(end?.isWellFormed() ?? true).toBe(true);
        expect(inRange).toBe(other.startsWith(prefix));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('a scope filter in SQL', () => {
  it('admits by prefix what startsWith admits', async () => {
    await fc.assert(
      fc.asyncProperty(scopes, text, fc.nat(), async (random, ending, pick) => {
        const all = [...random, ending, `${ending}\u{10ffff}`, `${ending}/x`];
        // Prefixes of what is there hit more often than any others.
        const prefix = Array.from(all[pick % all.length] as string)
          .slice(0, 1 + (pick % 3))
          .join('');
        const expected = all.filter((scope) => scope.startsWith(prefix));
        expect(await admitted(all, (where) => whereScopePrefix(where, { ...query, scope: prefix }))).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  it('admits by glob what globMatcher admits', async () => {
    await fc.assert(
      fc.asyncProperty(scopes, glob, text, async (random, pattern, filling) => {
        const all = [...random, pattern.replace(/[*?]/g, 'a'), pattern.replace(/\*/g, filling).replace(/\?/g, '😀')];
        const expected = all.filter(globMatcher(pattern));
        expect(await admitted(all, (where) => whereScopeGlob(where, { ...query, scope: pattern }))).toEqual(expected);
      }),
      { numRuns: 400 },
    );
  });

  it.each([
    ['*', ['a%b', 'a_b', 'a\\b', 'ab', '[a]'], ['a%b', 'a_b', 'a\\b', 'ab', '[a]']],
    ['a%b*', ['a%b', 'axb', 'a%b/c'], ['a%b', 'a%b/c']],
    ['a_?', ['a_b', 'axb', 'a_'], ['a_b']],
    ['a\\*', ['a\\', 'a\\b', 'a*', 'a'], ['a\\', 'a\\b']],
    ['?', ['😀', 'é', 'e\u0301', '\u{10ffff}'], ['😀', 'é', '\u{10ffff}']],
    ['a', ['a', 'A', 'a/b'], ['a']],
  ])('%j lets through of %j exactly %j', async (pattern, all, expected) => {
    expect(await admitted(all, (where) => whereScopeGlob(where, { ...query, scope: pattern }))).toEqual(expected);
  });

  it('without a scope lets everything through, with the empty prefix everything that has one', async () => {
    expect(await admitted(['a'], (where) => where.and('true'))).toEqual([null, 'a']);
    expect(await admitted(['a', ''], (where) => whereScopePrefix(where, { ...query, scope: '' }))).toEqual(['a', '']);
    expect(
      await admitted(['a'], (where) => {
        where.and('true');
        whereScopePrefix(where, query);
        whereScopeGlob(where, query);
      }),
    ).toEqual([null, 'a']);
  });
});

describe('a grant in SQL', () => {
  it('[Decision 14] admits what withinMatcher admits, and its index ranges leave none of that out', async () => {
    const globs = fc.array(fc.oneof(glob, text), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(scopes, globs, text, async (random, within, filling) => {
        const matching = within.map((pattern) => pattern.replace(/\*/g, filling).replace(/\?/g, '😀'));
        const all = [...random, ...matching, ...matching.map((scope) => `${scope}/x`)];
        const expected = [null, ...all].filter(withinMatcher(within));
        expect(await admitted(all, (where) => whereWithin(where, { within }))).toEqual(expected);
        const byRanges = (where: Conditions) => {
          whereWithin(where, { within });
          whereWithinRanges(where, { ...query, within });
        };
        expect(await admitted(all, byRanges)).toEqual(expected);
      }),
      { numRuns: 400 },
    );
  });

  it('[Decision 48] leaves out what is hidden, and takes several globs for a list', async () => {
    const globs = fc.array(fc.oneof(glob, text, fc.constant('')), { minLength: 1, maxLength: 3 });
    const tops = fc.array(
      text.filter((top) => top !== ''),
      { maxLength: 3 },
    );
    await fc.assert(
      fc.asyncProperty(scopes, globs, tops, async (random, scope, outside) => {
        const all = [...random, ...outside, ...outside.flatMap((top) => [`${top}/x`, `${top}x`])];
        const listed = (where: Conditions) => {
          whereScopeGlob(where, { ...query, scope });
          whereWithin(where, { within: null, outside });
        };
        const expected = [null, ...all].filter(
          (one) => withinMatcher(scope)(one) && visibleMatcher({ within: null, outside })(one),
        );
        expect(await admitted(all, listed)).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });

  it('makes ranges of a few globs with a beginning, and of no others', () => {
    const rangesOf = (within: readonly string[] | null): string => {
      const where = conditions();
      whereWithinRanges(where, { ...query, within });
      return `${where}`;
    };
    expect(rangesOf(['a/*'])).toContain('scope >= ');
    expect(rangesOf(['a/*', 'b', 'c?', 'd*e']).match(/scope >= /g)).toHaveLength(4);
    for (const none of [null, [], ['*a'], ['a', '?'], ['a', 'b', 'c', 'd', 'e']]) expect(rangesOf(none)).toBe('true');
  });

  it('lets everything through where there is none', async () => {
    const free = (where: Conditions) => {
      where.and('true');
      whereWithin(where, { within: null });
    };
    expect(await admitted(['a'], free)).toEqual([null, 'a']);
  });
});

it('a tag filter in SQL takes tags as they are', async () => {
  const tag = fc.oneof(text, fc.constantFrom('NULL', 'null', '', ' ', ',', '{}', '"', '\\'));
  await fc.assert(
    fc.asyncProperty(fc.array(tag, { maxLength: 4 }), fc.array(tag, { maxLength: 2 }), async (tags, wanted) => {
      const where = conditions();
      const place = where.bind(tags);
      where.and('true');
      whereTags(where, wanted);
      const rows = await store.sql(`select from (select ${place}::text[] as tags) as m where ${where}`, where.values);
      expect(rows.length === 1).toBe(wanted.every((each) => tags.includes(each)));
    }),
    { numRuns: 200 },
  );
});
