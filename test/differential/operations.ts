import fc from 'fast-check';

/**
 * Records are named by number: the n-th add of the sequence, wrapped round. Ids differ between stores. `by` is who asks:
 * 0 may do everything, the others are the callers of the sequence, wrapped round.
 */
export type Operation = { readonly by: number } & (
  | {
      readonly do: 'add';
      readonly user: number;
      readonly key?: number;
      readonly supersedes: readonly number[];
      readonly fields: object;
    }
  | {
      readonly do: 'batch';
      readonly user: number;
      readonly key?: number;
      readonly items: readonly { readonly supersedes: readonly number[]; readonly fields: object }[];
    }
  | { readonly do: 'again'; readonly add: number }
  | {
      readonly do: 'patch';
      readonly record: number;
      readonly match?: Version;
      readonly supersedes?: readonly number[];
      readonly fields: object;
    }
  | { readonly do: 'delete'; readonly record: number; readonly as: Asserted; readonly match?: Version }
  | { readonly do: 'get'; readonly record: number; readonly as: Asserted }
  | { readonly do: 'versions'; readonly record: number; readonly limit: number; readonly pages: number }
  | { readonly do: 'version'; readonly record: number; readonly version: number }
  | { readonly do: 'restore'; readonly record: number; readonly version: number; readonly match?: Version }
  | { readonly do: 'purge'; readonly record: number }
  | {
      readonly do: 'rollback';
      readonly user: number;
      readonly since: Bound;
      readonly until: Bound;
      readonly key?: number;
      readonly dry_run: boolean;
      readonly limit: number;
    }
  | { readonly do: 'list'; readonly user: number; readonly since: Bound; readonly until: Bound; readonly query: object }
  | { readonly do: 'turn'; readonly page: number }
  | {
      readonly do: 'search';
      readonly user: number;
      /** Users that are searched with it. */
      readonly others?: readonly number[];
      readonly limit: number;
      readonly min_score?: number;
      readonly explain?: true | undefined;
      readonly since: Bound;
      readonly until: Bound;
      readonly query: { q: string };
    }
  | {
      readonly do: 'context';
      readonly user: number;
      readonly others?: readonly number[];
      readonly since: Bound;
      readonly until: Bound;
      readonly fields: { query: string };
    }
  | {
      readonly do: 'erase' | 'stats';
      readonly user: number;
    }
  | { readonly do: 'users' }
  | {
      readonly do: 'audit';
      readonly user: number;
      readonly since: Bound;
      readonly app?: number;
      readonly limit: number;
    }
);

/** What a caller may do; users by number. */
export interface Right {
  readonly users: readonly number[] | null;
  readonly grants: readonly string[];
  readonly untrusted: boolean;
}

export interface Sequence {
  readonly callers: readonly Right[];
  readonly operations: readonly Operation[];
}

/** What X-User-Id says; null: nothing. */
export type Asserted = 'first user' | 'stranger' | null;

/** What If-Match says: the last version seen of the record, or one before. */
export type Version = 'last' | 'old';

/** A moment relative to the creation of a record, in milliseconds; null: no bound. */
export type Bound = { readonly record: number; readonly by: number } | null;

export const USERS = 3;
const CALLERS = 3;

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
const asserted = oneOf([null, 'first user', 'stranger'] as const);
/** The number of a version: few records are changed more often. */
const number = fc.integer({ min: 1, max: 5 });
const match = oneOf(['last', 'old'] as const);
const by = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: CALLERS }) },
);

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
/** The entry of an add is made a moment after the record's time: only what comes before both is told apart for certain. */
const auditBound = seldom(fc.record({ record: index, by: fc.constant(0) }), null);
/** Filters by who wrote a memory. */
const written = {
  origin: seldom(
    oneOf(['key:caller 0', 'key:caller 1', 'key:caller 2', 'via:http', 'via:unknown', 'via:mcp']),
    undefined,
  ),
  untrusted: seldom(oneOf([true, false]), undefined),
};
const others = seldom(fc.uniqueArray(fc.nat({ max: USERS - 1 })), []);
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

const addFields = {
  do: fc.constant('add' as const),
  by,
  user,
  supersedes: superseded,
  fields: newFields.map(merged),
};
const add: fc.Arbitrary<Operation> = fc.record(addFields);
/** Few keys, so that they meet. */
const keyedAdd: fc.Arbitrary<Operation> = fc.record({ ...addFields, key: fc.nat({ max: 3 }) });

/** At most three: each takes a millisecond on some stores, and the next change comes three later. Some are invalid. */
const batch: fc.Arbitrary<Operation> = fc.record(
  {
    do: fc.constant('batch' as const),
    by,
    user,
    key: fc.nat({ max: 3 }),
    items: fc.array(
      fc.record({
        supersedes: superseded,
        fields: fc.oneof({ weight: 6, arbitrary: newFields.map(merged) }, fc.constant({ content: '' })),
      }),
      { minLength: 1, maxLength: 3 },
    ),
  },
  { requiredKeys: ['do', 'by', 'user', 'items'] },
);

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 5, arbitrary: add },
  { weight: 2, arbitrary: keyedAdd },
  { weight: 2, arbitrary: batch },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('again' as const), by, add: index }) },
  {
    weight: 3,
    arbitrary: fc.record(
      {
        do: fc.constant('patch' as const),
        by,
        record: index,
        match,
        supersedes: superseded,
        fields: patchFields.map(merged),
      },
      { requiredKeys: ['do', 'by', 'record', 'fields'] },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record(
      { do: fc.constant('delete' as const), by, record: index, as: asserted, match },
      { requiredKeys: ['do', 'by', 'record', 'as'] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('get' as const), by, record: index, as: asserted }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('versions' as const),
      ...{ by, record: index, limit: fc.integer({ min: 1, max: 4 }), pages: fc.integer({ min: 1, max: 3 }) },
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('version' as const), by, record: index, version: number }) },
  {
    weight: 2,
    arbitrary: fc.record(
      { do: fc.constant('restore' as const), by, record: index, version: number, match },
      { requiredKeys: ['do', 'by', 'record', 'version'] },
    ),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('purge' as const), by, record: index }) },
  {
    weight: 2,
    arbitrary: fc.record(
      {
        do: fc.constant('rollback' as const),
        ...{ by, user, since: auditBound, until: auditBound, dry_run: fc.boolean() },
        ...{ key: fc.nat({ max: CALLERS }), limit: fc.integer({ min: 1, max: 4 }) },
      },
      { requiredKeys: ['do', 'by', 'user', 'since', 'until', 'dry_run', 'limit'] },
    ),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('list' as const),
      by,
      user,
      since: bound,
      until: bound,
      query: fc.record({
        scope: seldom(glob, undefined),
        tag: seldom(oneOf(TAGS), undefined),
        limit: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constant(50)),
        ...written,
      }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('turn' as const), by, page: index }) },
  {
    weight: 4,
    arbitrary: fc.record(
      {
        do: fc.constant('search' as const),
        by,
        user,
        others,
        limit: fc.integer({ min: 1, max: 12 }),
        min_score: oneOf([0, 0.05, 0.25, 0.4, 0.5, 0.75, 1]),
        explain: oneOf([true, undefined] as const),
        since: bound,
        until: bound,
        query: fc.record({ q: text, scope: optional(prefix), tag: seldom(oneOf(TAGS), undefined), ...written }),
      },
      { requiredKeys: ['do', 'by', 'user', 'limit', 'since', 'until', 'query'] },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('context' as const),
      by,
      user,
      others,
      since: bound,
      until: bound,
      fields: fc.record({
        query: text,
        scope: optional(prefix),
        token_budget: fc.integer({ min: 1, max: 100 }),
        ...written,
      }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('erase' as const), by, user: fc.nat({ max: USERS - 1 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stats' as const), by, user }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('users' as const), by }) },
  {
    weight: 2,
    arbitrary: fc.record(
      {
        do: fc.constant('audit' as const),
        by,
        user,
        since: auditBound,
        app: fc.nat({ max: CALLERS }),
        limit: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constant(100)),
      },
      { requiredKeys: ['do', 'by', 'user', 'since', 'limit'] },
    ),
  },
);

/** Some of many scopes, so that much is seen and much is hidden. */
const wide = oneOf([...split('coding* *e* *i* ?* */* c*'), '*']);
const granted = (scopes: fc.Arbitrary<string>) =>
  fc.tuple(oneOf(['read', 'write', 'delete', '*', '*', '*']), scopes).map(([action, glob]) => `${action}:${glob}`);
const right: fc.Arbitrary<Right> = fc.record({
  users: fc.oneof(fc.constant(null), fc.constant([0]), fc.uniqueArray(fc.nat({ max: USERS - 1 }), { maxLength: 2 })),
  grants: fc
    .tuple(fc.array(granted(wide), { minLength: 1, maxLength: 2 }), fc.array(granted(glob), { maxLength: 3 }))
    .map((parts) => parts.flat()),
  untrusted: fc.oneof({ weight: 2, arbitrary: fc.constant(false) }, fc.constant(true)),
});

/** Some records to begin with, then anything. */
export const sequences: fc.Arbitrary<Sequence> = fc
  .tuple(
    fc.array(right, { minLength: CALLERS, maxLength: CALLERS }),
    fc.array(
      add.map((one) => ({ ...one, by: 0 })),
      { minLength: 4, maxLength: 12 },
    ),
    fc.array(operation, { minLength: 10, maxLength: 40 }),
  )
  .map(([callers, first, then]) => ({ callers, operations: [...first, ...then] }));

/** What only a store with versions can do. */
export const needsVersions = (wanted: Operation): boolean =>
  ['versions', 'version', 'restore', 'purge', 'rollback'].includes(wanted.do);

export const changes = (wanted: Operation): boolean =>
  ['add', 'batch', 'again', 'patch', 'delete', 'erase', 'restore', 'purge', 'rollback'].includes(wanted.do);

/** For stores that know no idempotency keys, ETags or origins, or cannot search by time. Nothing is left that `again` could repeat. */
export const within = (
  drawn: Operation,
  { once = false, etags = false, origins = false, times = false } = {},
): Operation => {
  const searches = drawn.do === 'search' || drawn.do === 'context';
  const wanted: Operation = searches && !times ? { ...drawn, since: null, until: null } : drawn;
  if (!origins && 'query' in wanted) return { ...wanted, query: withoutWritten(wanted.query) } as Operation;
  if (!origins && wanted.do === 'context') return { ...wanted, fields: withoutWritten(wanted.fields) };
  if (!once && 'key' in wanted) {
    const { key: _, ...rest } = wanted;
    return rest;
  }
  if (!etags && 'match' in wanted) {
    const { match: _, ...rest } = wanted;
    return rest;
  }
  return wanted;
};

const withoutWritten = <Fields extends object>(fields: Fields): Fields => {
  const { origin: _, untrusted: __, ...rest } = fields as Fields & { origin?: unknown; untrusted?: unknown };
  return rest as Fields;
};
