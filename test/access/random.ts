import fc from 'fast-check';
import type { Key } from './rule.ts';

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED to look elsewhere or to repeat what a failure printed. */
export const RUNS = Number(process.env.OMP_TEST_RUNS ?? 30);
export const SEED = Number(process.env.OMP_TEST_SEED ?? 20_250_501);

/** Whose records there are, by number; the names are made for each run. */
const PEOPLE = 3;

/** Users whose names a careless store would take for one another. */
export const namesOf = (run: string): readonly string[] => [run, `${run}*`, `${run}é`];

/** Scopes that a careless store would take for one another. */
const SCOPES = [
  ...['a', 'a/b', 'ab', 'a-b', 'a/b/c', 'A', 'A/b', 'ä', 'a\u0308', 'a%2Fb', 'a_b', 'a%', 'a\\b', 'axb', 'a b', 'b'],
  ...['b/a', 'aa', '[ab]', '.', 'a.b', '😀', '😀/b', 'omp:scope:a', 'omp:under:a', '^a$', 'a|b', 'a:b'],
];
const WORDS = ['coffee', 'tea', 'note', 'red', 'blue', 'running', 'Lisbon'];
const TAGS = ['t', 'T', 'omp:scope:a', 'omp:under:a'];

const oneOf = <T>(values: readonly T[]) => fc.constantFrom(...values);
/** Mostly the same one: what is spread over many has no neighbours. */
const person = fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat({ max: PEOPLE - 1 }));
const scope = oneOf(SCOPES);
export const text = fc.array(oneOf(WORDS), { minLength: 1, maxLength: 4 }).map((words) => words.join(' '));
const index = fc.nat({ max: 40 });

/** What a whole neighbourhood matches, or a scope with a run of its characters replaced by a wildcard, or none. */
export const glob = fc.oneof(
  oneOf(['a*', 'a/*', '*b', '*/*', '?', '??', 'a?b', '**', '[ab]*', 'a%*', 'a_*']),
  fc
    .tuple(scope, fc.nat({ max: 5 }), fc.nat({ max: 3 }), oneOf(['', '', '*', '*', '?', '/*']))
    .map(([path, from, length, wildcard]) => {
      const characters = [...path];
      return [...characters.slice(0, from), wildcard, ...characters.slice(from + length)].join('') || '*';
    }),
);
export const prefix = fc
  .tuple(scope, fc.integer({ min: 1, max: 5 }), oneOf(['', '', '*', '/']))
  .map(([path, length, end]) => [...path].slice(0, length).join('') + end);

const grantOf = (actions: readonly string[]) =>
  fc
    .tuple(oneOf(actions), fc.oneof({ weight: 1, arbitrary: fc.constant('*') }, { weight: 6, arbitrary: glob }))
    .map(([action, granted]) => `${action}:${granted}`);
const binding = fc.option(fc.uniqueArray(person, { minLength: 1, maxLength: 2 }), { freq: 3 });

/** A key, its users by number. */
export interface RandomKey extends Omit<Key, 'users'> {
  readonly users: readonly number[] | null;
}
export const keyWith = (actions: readonly string[]): fc.Arbitrary<RandomKey> =>
  fc.record({ grants: fc.array(grantOf(actions), { minLength: 1, maxLength: 4 }), users: binding });
export const keyOf = ({ grants, users }: RandomKey, names: readonly string[]): Key => ({
  grants,
  users: users?.map((user) => names[user] as string) ?? null,
});

/** A record, its owner and what it supersedes by number. */
export interface RandomRecord {
  readonly user: number;
  readonly scope: string | null;
  readonly content: string;
  readonly tags: readonly string[];
  readonly expired: boolean;
  /** Records of one conversation are neighbours. */
  readonly source: { readonly ref: string } | null;
  readonly supersedes: readonly number[];
}
export const record: fc.Arbitrary<RandomRecord> = fc.record({
  user: person,
  scope: fc.option(scope, { freq: 5 }),
  content: text,
  tags: fc.uniqueArray(oneOf(TAGS), { maxLength: 2 }),
  expired: fc.boolean(),
  source: fc.option(fc.record({ ref: oneOf(['r', 's']) }), { freq: 3 }),
  supersedes: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, fc.uniqueArray(index, { maxLength: 2 })),
});

/** What happened to the records before anybody looks: a record by number is patched, or deleted. */
export type Later =
  | { readonly record: number; readonly patch: { readonly scope?: string; readonly content?: string } }
  | { readonly record: number; readonly patch: null };
export const later: fc.Arbitrary<Later> = fc.record({
  record: index,
  patch: fc.option(fc.record({ scope, content: text }, { requiredKeys: [] }), { freq: 3 }),
});

export const tag = fc.option(oneOf(TAGS), { nil: undefined, freq: 1 });
export const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
export { person };
