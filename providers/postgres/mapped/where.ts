import { hasWildcard, invalidRequest, type ListQuery, type Ref, type SearchQuery, type Within } from '#contract';
import { toTextArray } from '../rows.ts';
import { type Conditions, conditions, toLikePattern } from '../tables/conditions.ts';
import type { Layout } from './layout.ts';
import { scopeOf } from './record.ts';

type Wanted = Pick<ListQuery, 'user_id' | 'tags' | 'within'>;

/** Conditions of the one row that this names, for whoever may see it. Undefined: no row has such an id. */
export function whereOne(layout: Layout, { id, users, within }: Ref): Conditions | undefined {
  const parts = layout.id.parts(id);
  if (!parts) return undefined;
  const where = conditions();
  for (const [part, column] of layout.id.columns.entries()) where.and(column.is(where.place(parts[part])));
  where.and(layout.always(where));
  if (users !== null) where.and(layout.owner.is(where, users));
  whereWithin(layout, where, within);
  return where;
}

/** A row as it was asked for; `owners` are stored ones. */
interface Written extends Pick<Ref, 'within'> {
  readonly id: string | undefined;
  readonly owners: readonly string[] | null;
}

/**
 * SQL for `returning` that fails a statement, and so undoes it, when it wrote another row: a collation, a trigger or a
 * rule may know more rows as equal than there are. What is constant needs no look, and would fail while it is planned.
 */
export function recheck(layout: Layout, where: Conditions, { id, owners, within }: Written): string {
  const { user_id, scope } = layout.fields;
  const list = (texts: readonly string[]) => `any(${where.place(toTextArray(texts))}::text[])`;
  const same: string[] = [];
  if (id !== undefined) same.push(`(${layout.id.read}) collate "C" = ${where.place(id)}::text`);
  if (owners && user_id?.constant === undefined) same.push(`(${user_id?.read}) collate "C" = ${list(owners)}`);
  if (within && scope && scope.constant === undefined) {
    same.push(`(${scopeOf(scope.read)}) like ${list(within.map(toLikePattern))}`);
  }
  return `1 / coalesce(${same.join(' and ') || 'true'}, false)::int`;
}

/** Conditions of a user's rows that the caller may see and that carry these tags. */
export function whereUser(layout: Layout, { user_id, tags, within }: Wanted): Conditions {
  const where = conditions();
  where.and(layout.owner.is(where, [user_id]));
  where.and(layout.always(where));
  whereWithin(layout, where, within);
  if (tags.length > 0 && layout.hasTags) where.and(layout.hasTags(where, tags));
  return where;
}

function whereWithin(layout: Layout, where: Conditions, within: Within): void {
  const scope = scopeIn(layout);
  // Without a place for scopes the gateway sees to them.
  if (within === null || scope === undefined) return;
  where.and(`${scope} like any(${where.place(toTextArray(within.map(toLikePattern)))}::text[])`);
}

/** List: glob. */
export function whereScopeGlob(layout: Layout, where: Conditions, { scope: glob }: ListQuery): void {
  const scope = scopeIn(layout);
  if (glob === undefined || scope === undefined) return;
  if (hasWildcard(glob)) where.and(`${scope} like ${where.place(toLikePattern(glob))}`);
  else where.and(`${scope} = ${where.place(glob)}`);
}

/** Search: plain string prefix; the empty one is that of every scope. */
export function whereScopePrefix(layout: Layout, where: Conditions, { scope: prefix }: SearchQuery): void {
  const scope = scopeIn(layout);
  if (prefix === undefined || scope === undefined) return;
  where.and(`starts_with(${scope}, ${where.place(prefix)})`);
}

/** Only rows that come after this one in the order of lists. */
export function whereAfter(layout: Layout, where: Conditions, { after, created }: After): void {
  if (!after) return;
  const parts = layout.id.parts(after.id);
  if (!parts) throw invalidRequest('cursor: malformed; pass next_cursor of the previous page as it is');
  const places = layout.id.columns.map(({ cast }, part) => `${where.place(parts[part])}${cast}`);
  const columns = layout.id.columns.map(({ sql }) => sql);
  if (created !== undefined) {
    columns.unshift(created);
    places.unshift(`${where.place(after.created_at)}::timestamptz`);
  }
  where.and(`(${columns.join(', ')}) < (${places.join(', ')})`);
}

interface After extends Pick<ListQuery, 'after'> {
  /** SQL of the time that lists are sorted by, if there is one. */
  readonly created: string | undefined;
}

const scopeIn = ({ fields }: Layout): string | undefined => fields.scope && `(${scopeOf(fields.scope.read)})`;
