import fc from 'fast-check';

/** Records are named by number: the n-th add of the sequence, wrapped round. Ids differ between stores. */
export type Operation =
  | { readonly do: 'add'; readonly user: number; readonly supersedes: readonly number[]; readonly fields: object }
  | { readonly do: 'patch'; readonly record: number; readonly supersedes?: readonly number[]; readonly fields: object }
  | { readonly do: 'delete' | 'get'; readonly record: number; readonly as: number | null }
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

/** A moment relative to the creation of a record, in milliseconds; null: no bound. */
export type Bound = { readonly record: number; readonly by: number } | null;

export const USERS = 3;

const WORDS = [
  ...[
    'coffee',
    'Coffee',
    'COFFEES',
    'tea',
    'the',
    'and',
    'not',
    'running',
    'runs',
    'ran',
    'naïve',
    'naive',
    '42',
    'x1',
  ],
  ...[
    '記録',
    '緑茶',
    '緑',
    '😀',
    '👩‍👩‍👧',
    'C++',
    'e-mail',
    "it's",
    "user's",
    'ＦＵＬＬ',
    'ß',
    'İstanbul',
    'ﬁne',
    'fine',
    '%',
    '_',
    '\\',
    "'",
  ],
];
const SEGMENTS = [
  'a',
  'A',
  'ab',
  'a_b',
  'a%b',
  'a\\b',
  'axb',
  '[a]',
  'é',
  'e\u0301',
  '😀',
  '.',
  'coding',
  'coding-secret',
  'omp:scope:a',
];
const TAGS = [
  't',
  'T',
  't ',
  'omp:scope:a',
  'omp:under:a',
  'omp:tag:omp:x',
  'omp:x',
  'omp:',
  'é',
  'e\u0301',
  '*',
  '%',
  'a,b',
  '{}',
  '"',
  '😀',
];

const index = fc.nat({ max: 60 });
const user = fc.nat({ max: USERS - 1 });
const someone = fc.option(user, { freq: 2 });
const oneOf = <T>(values: readonly T[]) => fc.constantFrom(...values);

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

const scope = fc.array(oneOf(SEGMENTS), { minLength: 1, maxLength: 3 }).map((segments) => segments.join('/'));
const glob = fc.oneof(
  scope,
  scope.map((path) => `${path}/*`),
  scope.map((path) => `${path}*`),
  fc
    .array(oneOf([...SEGMENTS, '*', '*', '?', '/', 'a*', 'co']), { minLength: 1, maxLength: 4 })
    .map((parts) => parts.join('')),
);
const prefix = fc
  .tuple(scope, fc.nat({ max: 12 }), fc.boolean())
  .map(([path, length, star]) => ([...path].slice(0, length + 1).join('') || path) + (star ? '*' : ''));
const tags = fc.uniqueArray(oneOf(TAGS), { maxLength: 4 });
const expiry = oneOf(['2001-01-01', '2999-01-01T00:00:00+02:00']);
const confidence = fc.double({ min: 0, max: 1, noNaN: true });
const extensions = fc.dictionary(
  oneOf(['x-a', 'x-b', 'x-ü']),
  fc.jsonValue({ maxDepth: 2 }).filter((value) => value !== null),
  { maxKeys: 2 },
);
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const bound = fc.option(fc.record({ record: index, by: fc.integer({ min: -1, max: 1 }) }), { freq: 1 });
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

export const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('add' as const),
      user,
      supersedes: superseded,
      fields: newFields.map(merged),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record(
      { do: fc.constant('patch' as const), record: index, supersedes: superseded, fields: patchFields.map(merged) },
      { requiredKeys: ['do', 'record', 'fields'] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), record: index, as: someone }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('get' as const), record: index, as: someone }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('list' as const),
      user,
      since: bound,
      until: bound,
      query: fc.record({ scope: optional(glob), tag: optional(oneOf(TAGS)), limit: fc.integer({ min: 1, max: 8 }) }),
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

export const changes = (wanted: Operation): boolean => ['add', 'patch', 'delete'].includes(wanted.do);
