import { hasWildcard, type ListQuery, literalPrefix, type SearchQuery } from '#contract';
import { toTextArray } from './rows.ts';

/** A WHERE clause under construction: text with `$n` places, and what goes there. Values never enter the text. */
export interface Conditions {
  readonly values: unknown[];
  /** Adds a value and gives its place. */
  place(value: unknown): string;
  and(condition: string): void;
  toString(): string;
}

export function conditions(): Conditions {
  const values: unknown[] = [];
  const parts: string[] = [];
  return {
    values,
    place: (value) => `$${values.push(value)}`,
    and: (condition) => void parts.push(condition),
    toString: () => parts.join(' and '),
  };
}

export function whereTags(where: Conditions, tags: readonly string[]): void {
  if (tags.length > 0) where.and(`tags @> ${where.place(toTextArray(tags))}::text[]`);
}

/** Search: plain string prefix. */
export function whereScopePrefix(where: Conditions, { user_id, scope }: SearchQuery): void {
  if (scope === undefined) return;
  where.and('scope is not null');
  if (scope !== '') whereStartsWith(where, user_id, scope);
}

/** List: glob. The literal text before the first wildcard becomes an index range, the pattern decides. */
export function whereScopeGlob(where: Conditions, { user_id, scope }: ListQuery): void {
  if (scope === undefined) return;
  where.and('scope is not null');
  if (!hasWildcard(scope)) {
    where.and(`${sameUserHash(where, user_id)} and scope = ${where.place(scope)}`);
    return;
  }
  const prefix = literalPrefix(scope);
  if (prefix !== '') whereStartsWith(where, user_id, prefix);
  where.and(`scope like ${where.place(toLikePattern(scope))}`);
}

function whereStartsWith(where: Conditions, userId: string, prefix: string): void {
  where.and(`${sameUserHash(where, userId)} and scope >= ${where.place(prefix)}`);
  const end = successor(prefix);
  if (end !== undefined) where.and(`scope < ${where.place(end)}`);
}

/** Lets the planner use the index on user and scope. */
const sameUserHash = (where: Conditions, userId: string): string =>
  `hashtextextended(user_id, 0) = hashtextextended(${where.place(userId)}, 0)`;

const toLikePattern = (glob: string): string =>
  glob.replace(/[\\%_*?]/g, (character) => (character === '*' ? '%' : character === '?' ? '_' : `\\${character}`));

const LAST_CODE_POINT = 0x10ffff;

/** The first string, byte by byte in UTF-8, after all that start with `prefix`; undefined when nothing comes after. */
export function successor(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) as number);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  // Surrogates are no characters.
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
}
