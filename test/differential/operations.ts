import fc from 'fast-check';

/** Records are named by number: the n-th add of the sequence, wrapped round. Ids differ between stores. */
export type Operation =
  | { readonly do: 'add'; readonly user: number; readonly supersedes: readonly number[]; readonly fields: object }
  | { readonly do: 'patch'; readonly record: number; readonly supersedes?: readonly number[]; readonly fields: object }
  | { readonly do: 'delete' | 'get'; readonly record: number; readonly as: Caller }
  | { readonly do: 'list'; readonly user: number; readonly since: Bound; readonly until: Bound; readonly query: object }
  | { readonly do: 'turn'; readonly page: number }
  | {
      readonly do: 'search';
      readonly user: number;
      readonly limit: number;
      readonly min_score?: number;
      readonly query: { q: string };
    }
  | { readonly do: 'context'; readonly user: number; readonly fields: { query: string } };

/** What X-User-Id says; null: nothing. */
export type Caller = 'first user' | 'stranger' | null;

/** A moment relative to the creation of a record, in milliseconds; null: no bound. */
export type Bound = { readonly record: number; readonly by: number } | null;

export const USERS = 3;

const split = (text: string): string[] => text.split(' ');
const WORDS = [
  ...split('coffee Coffee COFFEES tea the and not running runs ran naïve naive 42 x1 記録 緑茶 緑 😀 👩‍👩‍👧'),
  ...split("C++ e-mail it's user's ＦＵＬＬ ß İstanbul ﬁne fine % _ \\ '"),
];
/** Few, so that they meet often, and each near another: by case, by a pattern character, by a segment cut short. */
const SCOPES = [
  ...split('coding coding/preferences coding/preferences/editor coding-secret coding-secret/keys Coding/preferences'),
  ...split('a/b a/b/c a_b a%b a\\b axb [a]/b é/x e\u0301/x 😀/x/y omp:scope:a omp:under:coding'),
];
const TAGS = ['t', 'T', 't ', 'omp:scope:a', 'omp:under:a', 'omp:tag:omp:x', 'omp:x', 'é', 'e\u0301', '*'];

const index = fc.nat({ max: 60 });
const user = fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.nat({ max: USERS - 1 }));
const oneOf = <T>(values: readonly T[]) => fc.constantFrom(...values);
const caller = oneOf([null, 'first user', 'stranger'] as const);

const phrase = fc
  .array(fc.tuple(oneOf(WORDS), oneOf([' ', ' ', ' ', '  ', '-', '\n', '/', ', '])), { minLength: 1, maxLength: 6 })
  .map((parts) => parts.flat().join(''));
const anyText = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  .map((text) => `q${text.replaceAll('\0', '')}`);
/** Often the very same text again: equal scores have to come in list order. */
const text = fc.oneof(
  { weight: 3, arbitrary: oneOf(['a coffee note', 'the tea', '緑茶']) },
  { weight: 4, arbitrary: phrase },
  anyText,
);

const scope = oneOf(SCOPES);
/** A scope with some of its characters replaced by wildcards, or cut and continued by one. */
const glob = fc
  .tuple(scope, fc.nat({ max: 24 }), fc.nat({ max: 8 }), oneOf(['', '*', '*', '?', '/*', '**', '*?']), fc.boolean())
  .map(([path, from, length, wildcard, open]) => {
    const characters = [...path];
    const tail = open ? [] : characters.slice(from + length);
    return [...characters.slice(0, from), wildcard, ...tail].join('') || '*';
  });
const prefix = fc
  .tuple(scope, fc.nat({ max: 24 }), oneOf(['', '', '*', '/']))
  .map(([path, length, end]) => [...path].slice(0, length + 1).join('') + end);
const tags = fc.uniqueArray(oneOf(TAGS), { maxLength: 4 });
const expiry = oneOf(['2001-01-01', '2999-01-01T00:00:00+02:00']);
const confidence = fc.double({ min: 0, max: 1, noNaN: true });
const extensions = fc.dictionary(
  oneOf(['x-a', 'x-b', 'x-ü']),
  fc.jsonValue({ maxDepth: 2 }).filter((value) => value !== null),
  { maxKeys: 2 },
);
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
/** Each filter is mostly left out: together they would leave nothing to compare. */
const seldom = <T, Nil>(arbitrary: fc.Arbitrary<T>, nil: Nil) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(nil) }, { weight: 1, arbitrary });
const bound = seldom(fc.record({ record: index, by: oneOf([-1, 0, 0, 1]) }), null);
const superseded = fc.uniqueArray(index, { maxLength: 3 });

const merged = ([fields, extra]: readonly [object, object]): object => ({ ...extra, ...fields });
const newFields = fc.tuple(
  fc.record({
    content: text,
    scope: optional(scope),
    tags: optional(tags),
    confidence: optional(confidence),
    valid_to: optional(expiry),
  }),
  extensions,
);
const patchFields = fc.tuple(
  fc.record({ content: text, scope, tags, confidence, valid_to: fc.option(expiry) }, { requiredKeys: [] }),
  extensions,
);

const add: fc.Arbitrary<Operation> = fc.record({
  do: fc.constant('add' as const),
  user,
  supersedes: superseded,
  fields: newFields.map(merged),
});

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 5, arbitrary: add },
  {
    weight: 3,
    arbitrary: fc.record(
      { do: fc.constant('patch' as const), record: index, supersedes: superseded, fields: patchFields.map(merged) },
      { requiredKeys: ['do', 'record', 'fields'] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), record: index, as: caller }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('get' as const), record: index, as: caller }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('list' as const),
      user,
      since: bound,
      until: bound,
      query: fc.record({
        scope: seldom(glob, undefined),
        tag: seldom(oneOf(TAGS), undefined),
        limit: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constant(50)),
      }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('turn' as const), page: index }) },
  {
    weight: 4,
    arbitrary: fc.record(
      {
        do: fc.constant('search' as const),
        user,
        limit: fc.integer({ min: 1, max: 12 }),
        min_score: oneOf([0, 0.05, 0.25, 0.4, 0.5, 0.75, 1]),
        query: fc.record({ q: text, scope: optional(prefix) }),
      },
      { requiredKeys: ['do', 'user', 'limit', 'query'] },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('context' as const),
      user,
      fields: fc.record({ query: text, scope: optional(prefix), token_budget: fc.integer({ min: 1, max: 60 }) }),
    }),
  },
);

/** Some records to begin with, then anything. */
export const operations: fc.Arbitrary<readonly Operation[]> = fc
  .tuple(fc.array(add, { minLength: 4, maxLength: 12 }), fc.array(operation, { minLength: 10, maxLength: 40 }))
  .map(([first, then]) => [...first, ...then]);

export const changes = (wanted: Operation): boolean => ['add', 'patch', 'delete'].includes(wanted.do);
