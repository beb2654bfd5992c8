import { hasWildcard, type ListQuery, literalPrefix, ORIGIN, type SearchQuery, type Times, UNTRUSTED } from '#provider';
import type { Located } from '../scaling/placement.ts';
import { type Conditions, conditionOf, conditions, toLikePattern, whereWithin } from '../sql/conditions.ts';
import { toTextArray } from '../sql/values.ts';

/** The user in a form that keeps the planner from using the index on user and time. */
export const UNINDEXED_USER = `user_id || ''`;

/**
 * The conversation of a row that has a `source.ref`, as the migration of conversations indexes it: as good as unique. The lengths tell
 * `a/b` and `c` from `a` and `b/c`.
 */
export const CONVERSATION = `hashtextextended(coalesce(char_length(scope), -1)::text || '/' || coalesce(char_length(source ->> 'app'), -1)::text || '/' || char_length(source ->> 'ref')::text || '/' || coalesce(scope, '') || coalesce(source ->> 'app', '') || (source ->> 'ref') || user_id, 0)`;

export function whereTags(where: Conditions, tags: readonly string[]): void {
  if (tags.length > 0) where.and(`tags @> ${where.bind(toTextArray(tags))}::text[]`);
}

export function whereInTime(where: Conditions, { since, until }: Times): void {
  if (since !== undefined) where.and(`created_at >= ${where.bind(since)}::timestamptz`);
  if (until !== undefined) where.and(`created_at <= ${where.bind(until)}::timestamptz`);
}

/** No parameter, so that the text of a search by an agent is made once (`searchStatements`). */
const IS_TRUSTED = `not extensions @> '${JSON.stringify({ [UNTRUSTED]: true })}'::jsonb`;

export function whereWritten(where: Conditions, { origin, trusted }: ListQuery['written'] = {}): void {
  if (trusted) where.and(IS_TRUSTED);
  if (!origin) return;
  const isUnknown = 'via' in origin && origin.via === 'unknown';
  where.and(
    isUnknown
      ? `not extensions ? ${where.bind(ORIGIN)}`
      : `extensions @> ${where.bind(JSON.stringify({ [ORIGIN]: origin }))}::jsonb`,
  );
}

/** Lets the planner use the index on the tags of large users, for statements about one of them. */
export function whereTagsOfLargeUser(where: Conditions, { user_id, tags }: ListQuery | SearchQuery): void {
  if (tags.length > 0) where.and(`large and array[user_id] @> array[${where.bind(user_id)}]`);
}

/** The scope of a search is a plain string prefix. */
export function whereScopePrefix(where: Conditions, { user_id, scope }: SearchQuery): void {
  if (scope === undefined) return;
  where.and('scope is not null');
  if (scope !== '') where.and(`${sameUserHash(where, user_id)} and ${startsWith(where, scope)}`);
}

/** The scope of a list is a glob. The literal text before the first wildcard becomes an index range, the pattern decides. */
export function whereScopeGlob(where: Conditions, { user_id, scope }: ListQuery): void {
  if (scope === undefined) return;
  if (typeof scope !== 'string') {
    whereWithin(where, { within: scope });
    return;
  }
  where.and('scope is not null');
  if (!hasWildcard(scope)) {
    where.and(`${sameUserHash(where, user_id)} and scope = ${where.bind(scope)}`);
    return;
  }
  const prefix = literalPrefix(scope);
  if (prefix !== '') where.and(`${sameUserHash(where, user_id)} and ${startsWith(where, prefix)}`);
  where.and(`scope like ${where.bind(toLikePattern(scope))}`);
}

/** The condition that a row is the record of a reference. */
export function whereOne(ref: Located): Conditions {
  const { id, users } = ref;
  const where = conditions(ref.shard);
  where.and(where.inShard());
  where.and(`id = ${where.bind(id)}`);
  if (users !== null) where.and(`user_id = any(${where.bind(toTextArray(users))}::text[])`);
  whereWithin(where, ref);
  return where;
}

/** The same for a change, which checks the version. */
export function whereVersion(ref: Located): Conditions {
  const where = whereOne(ref);
  if (ref.versions) where.and(`updated_at = any(${where.bind(toTextArray(ref.versions))}::timestamptz[])`);
  return where;
}

/** More ranges would make more and more statement texts and exclude less and less. */
const MAX_RANGES = 4;

/**
 * Adds index ranges that `whereWithin` implies, for statements that read everything a caller may see of one user. Only if
 * there are few globs and all begin with literal text.
 */
export function whereWithinRanges(where: Conditions, { user_id, within }: SearchQuery): void {
  const prefixes = [...new Set(within?.map(literalPrefix))];
  if (prefixes.length === 0 || prefixes.length > MAX_RANGES || prefixes.includes('')) return;
  const ranges = prefixes.map((prefix) => `(${startsWith(where, prefix)})`).join(' or ');
  where.and(`scope is not null and ${sameUserHash(where, user_id)} and (${ranges})`);
}

/** All memories of a user within the ranges of `whereWithinRanges`. `user`: the user's parameter. */
export function whereUser(where: Conditions, query: SearchQuery, user: string): void {
  const ranges = conditionOf(where, (inner) => whereWithinRanges(inner, query));
  // Otherwise the planner might combine two indexes, and read all of the user in one of them.
  where.and(ranges === 'true' ? `user_id = ${user}` : `${UNINDEXED_USER} = ${user} and ${ranges}`);
}

function startsWith(where: Conditions, prefix: string): string {
  const from = `scope >= ${where.bind(prefix)}`;
  const end = successor(prefix);
  return end === undefined ? from : `${from} and scope < ${where.bind(end)}`;
}

/** Lets the planner use the index on user and scope. */
const sameUserHash = (where: Conditions, userId: string): string =>
  `hashtextextended(user_id, 0) = hashtextextended(${where.bind(userId)}, 0)`;

const LAST_CODE_POINT = 0x10ffff;

/** The first string after all that start with `prefix`, in UTF-8 byte order; undefined if there is none. */
export function successor(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) as number);
  while (points.at(-1) === LAST_CODE_POINT) points.pop();
  const last = points.pop();
  if (last === undefined) return undefined;
  // Skips the surrogates, which are no characters.
  return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
}
