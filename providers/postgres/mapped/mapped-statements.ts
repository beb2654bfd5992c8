import {
  type Call,
  type EraseRequest,
  type ExportQuery,
  hasWildcard,
  invalidRequest,
  type ListQuery,
  OmpError,
  type Ref,
  type SearchQuery,
  type Times,
  type Visible,
} from '#provider';
import { type Query, queriesOf, type Row, rememberStatements, type Weight } from '../client/connections.ts';
import { PROVIDER } from '../postgres-errors.ts';
import { type Conditions, conditions, firstWithin, isWithin, toLikePattern, whereWithin } from '../sql/conditions.ts';
import { toTextArray } from '../sql/values.ts';
import type { Layout } from './layout.ts';
import { type Reading, scopeOf } from './row-reading.ts';
import { newestRows } from './time-index.ts';
import { type Changes, type NewRow, newRow, rowChanges } from './write-sql.ts';

export const unsupported = (message: string): OmpError =>
  new OmpError('unsupported_capability', message, { provider: PROVIDER });

/** Throws `unsupported_capability` for a filter by tags if tags are not mapped. */
export function requireTags({ hasTags }: Layout, tags: readonly string[]): void {
  if (tags.length > 0 && !hasTags) throw unsupported('tag: the table has no column for tags');
}

/** The statements of every verb but search. Texts differ only by the present filters and fields, so each is prepared once. */
export type MappedStatements = ReturnType<typeof createMappedStatements>;

/** Runs a statement with the settings that its weight asks for, and more. */
export type RunMapped = (query: Query, call: Call, settings?: string) => Promise<Row[]>;

/** Twice the limit: other applications may store numbers with more digits than records show. */
export const doubledBytes = ({ max_bytes }: Pick<ListQuery, 'max_bytes'>): number => 2 * max_bytes;

interface Rows extends Pick<ListQuery, 'limit' | 'max_bytes'> {
  /** SQL of what they are sorted by. */
  readonly order: readonly string[];
  readonly direction: 'asc' | 'desc';
  readonly selected?: string;
  /** Where the rows are, if not all that match the conditions are read. */
  readonly among?: ReturnType<typeof newestRows> | undefined;
}

/** A statement about one row is undefined for a text that cannot be an id of this table. */
export function createMappedStatements(layout: Layout, reading: Reading) {
  const { from, table, timeIndex } = layout;
  const { columns, created, embedded, updated } = reading;
  const make = queriesOf(rememberStatements());
  const query = (weight: Weight, text: string, { values }: Conditions): Query => make(weight, text, values);
  const sameFor = (ref: Ref, write: (where: Conditions) => string): Query | undefined => {
    const where = whereOne(layout, ref);
    return where && query('small', write(where), where);
  };
  /** The same for a change, which checks the version and returns `recheck`. */
  const changeFor = (ref: Ref, write: (where: Conditions, rechecked: (more?: string) => string) => string) =>
    sameFor(ref, (where) => {
      const named = `(select count(*) from ${table} as t where ${where})`;
      if (ref.versions) where.and(`${updated} = any(${where.bind(toTextArray(ref.versions))}::timestamptz[])`);
      return write(where, (more = 'true') =>
        recheck(layout, where, { ...rowOf(ref), and: `${named} = 1 and ${more}` }),
      );
    });

  /** The first rows in this order, up to the limits. */
  const firstRows = (
    where: Conditions,
    { order, direction, selected = columns, among, limit, max_bytes }: Rows,
  ): Query => {
    const sorts = order.map((sql, at) => ({ sql, name: `sort_${at}` }));
    const sorted = sorts.map(({ name }) => `${name} ${direction}`).join(', ');
    const most = where.bind(limit);
    const chosen = `${selected}, ${sorts.map(({ sql, name }) => `${sql} as ${name}`).join(', ')}`;
    const { first, rows } = among?.(chosen, most) ?? {
      first: '',
      rows: `select ${chosen} from ${from} where ${where}`,
    };
    const sized = `select *, ${reading.bytes} as bytes from (${rows} order by ${sorted} limit ${most}) as rows`;
    const kept = firstWithin(sized, sorted, where.bind(max_bytes));
    return query('heavy', `${first} select * from ${kept} as kept order by ${sorted}`, where);
  };

  const rowOf = ({ id, users, within }: Ref) => ({
    id,
    owners: users === null ? null : users.flatMap((user) => layout.owner.toStored(user) ?? []),
    within,
  });

  return {
    query,

    select: (ref: Ref) => sameFor(ref, (where) => `select ${columns} from ${from} where ${where}`),

    list(wanted: ListQuery): Query {
      const where = whereUser(layout, wanted);
      whereScopeGlob(layout, where, wanted);
      whereInTime(where, wanted, created);
      whereAfter(layout, where, { after: wanted.after, created });
      return firstRows(where, {
        order: reading.order,
        direction: 'desc',
        among: timeIndex && created ? newestRows(timeIndex, where, { ...wanted, from, created }) : undefined,
        limit: wanted.limit,
        max_bytes: doubledBytes(wanted),
      });
    },

    /** Rows in the order of their ids. Of several with one id, some may be left out. */
    export({ after, ids, user_id, since, vectors, ...limits }: ExportQuery): Query {
      const where = conditions();
      if (user_id !== undefined) where.and(layout.owner.is(where, [user_id]));
      where.and(layout.always(where));
      if (ids) where.and(hasId(layout, where, ids));
      if (since !== undefined) {
        if (updated === undefined) throw unsupported('since: the table has no time of change');
        where.and(`${updated} >= ${where.bind(since)}::timestamptz`);
      }
      const key = layout.id.columns.map(({ sql }) => sql);
      if (after !== undefined) where.and(`(${key.join(', ')}) > (${keyAt(layout, where, after).join(', ')})`);
      const { comparable, read } = layout.vector;
      const vector = vectors ? `, case when ${comparable} then ${read} end as vector` : '';
      return firstRows(where, { order: key, direction: 'asc', selected: columns + vector, ...limits });
    },

    /** Returns the stored row; none if its collection was deleted. */
    insert(row: NewRow): Query {
      const where = conditions();
      const values = newRow(layout, where, row);
      const into = `insert into ${table} as t (${[...values.keys()].join(', ')})`;
      // A deleted collection has no key, and a row without one would belong to no collection.
      const required = layout.newColumns(where).map(({ value }) => `${value} is not null`);
      const when = required.length > 0 ? `where ${required.join(' and ')}` : '';
      const { user_id, scope } = row.input;
      const kept = recheck(layout, where, { id: row.id, owners: [user_id], within: scope === null ? null : [scope] });
      return query(
        'small',
        `${into} select ${[...values.values()].join(', ')} ${when} returning ${columns}, ${kept}`,
        where,
      );
    },

    /** Returns the row if it was changed. Sets the given fields, and the time of change if it is mapped. */
    update: (ref: Ref, changes: Changes) =>
      changeFor(ref, (where, rechecked) => {
        const sets = rowChanges({ layout, reading, where }, changes);
        return `update ${table} as t set ${sets.join(', ')} where ${where} returning ${columns}, ${rechecked()}`;
      }),

    /** Returns a row if one was deleted, or marked as deleted. */
    remove: (ref: Ref) =>
      changeFor(ref, (where, rechecked) => {
        const { mark } = layout;
        const gone = mark ? `update ${table} as t set ${mark.column} = ${mark.value}` : `delete from ${table} as t`;
        return `${gone} where ${where} returning ${rechecked(mark && `not (${mark.absent})`)}`;
      }),

    /**
     * Deletes at most this many rows of a user, those marked as deleted too, and returns whether each had a vector. A writable table has
     * one key column.
     */
    erase(user_id: string, most: number): Query {
      const where = whereUser(layout, { user_id, tags: [], within: null }, layout.stored);
      const key = layout.id.columns[0]?.sql;
      const some = `${key} = any(array(select ${key} from ${table} as t where ${where} limit ${where.bind(most)}))`;
      const owners = [layout.owner.toStored(user_id) ?? ''];
      const kept = recheck(layout, where, { id: undefined, owners, within: null });
      return query(
        'heavy',
        `delete from ${table} as t where ${where} and ${some} returning ${embedded}, ${kept}`,
        where,
      );
    },

    holdings({ user_id }: EraseRequest): Query {
      const where = whereUser(layout, { user_id, tags: [], within: null }, layout.stored);
      const counts = 'count(*)::float8 as memories, (count(*) filter (where embedded))::float8 as vectors';
      return query('heavy', `select ${counts} from (select ${embedded} from ${from} where ${where}) as mine`, where);
    },
  };
}

// Conditions

type Filters = Pick<ListQuery, 'user_id' | 'tags'> & Visible;

/** The one row that a `Ref` names, if the caller may see it. Undefined if no row can have such an id. */
function whereOne(layout: Layout, ref: Ref): Conditions | undefined {
  const { id, users } = ref;
  const parts = layout.id.parts(id);
  if (!parts) return undefined;
  const where = conditions();
  for (const [part, column] of layout.id.columns.entries()) where.and(column.is(where.bind(parts[part])));
  where.and(layout.always(where));
  if (users !== null) where.and(layout.owner.is(where, users));
  whereVisible(layout, where, ref);
  return where;
}

/** The row that a write is meant for; `owners` as the table stores them. */
interface RowTarget extends Pick<Ref, 'within'> {
  readonly id: string | undefined;
  readonly owners: readonly string[] | null;
  /** What else must hold. */
  readonly and?: string;
}

/**
 * SQL for `returning` that fails the statement, and so undoes it, if it wrote another row or several: under some collations,
 * triggers or rules more rows match than the one, and an application may drop the unique index of a table that is served. Constants need no check; a constant division by zero would fail during planning.
 */
function recheck(layout: Layout, where: Conditions, { id, owners, within, and }: RowTarget): string {
  const { user_id, scope } = layout.fields;
  const list = (texts: readonly string[]) => `any(${where.bind(toTextArray(texts))}::text[])`;
  const same = and === undefined ? [] : [and];
  if (id !== undefined) same.push(`(${layout.id.read}) collate "C" = ${where.bind(id)}::text`);
  if (owners && user_id?.constant === undefined) same.push(`(${user_id?.read}) collate "C" = ${list(owners)}`);
  if (within && scope && scope.constant === undefined) {
    same.push(isWithin(where, within, `(${scopeOf(scope.read)})`));
  }
  return `1 / coalesce(${same.join(' and ') || 'true'}, false)::int`;
}

/** The rows of a user that the caller may see and that carry these tags. */
export function whereUser(layout: Layout, filters: Filters, always = layout.always): Conditions {
  const { user_id, tags } = filters;
  const where = conditions();
  where.and(layout.owner.is(where, [user_id]));
  where.and(always(where));
  whereVisible(layout, where, filters);
  if (tags.length > 0 && layout.hasTags) where.and(layout.hasTags(where, tags));
  return where;
}

function whereVisible(layout: Layout, where: Conditions, visible: Visible): void {
  const scope = scopeIn(layout);
  // If scopes are not mapped, the gateway applies them.
  if (scope !== undefined) whereWithin(where, visible, scope);
}

/** List: glob. */
function whereScopeGlob(layout: Layout, where: Conditions, { scope: glob }: ListQuery): void {
  const scope = scopeIn(layout);
  if (glob === undefined || scope === undefined) return;
  if (typeof glob !== 'string') where.and(isWithin(where, glob, scope));
  else if (hasWildcard(glob)) where.and(`${scope} like ${where.bind(toLikePattern(glob))}`);
  else where.and(`${scope} = ${where.bind(glob)}`);
}

/** Search: plain string prefix; the empty one matches every scope. */
export function whereScopePrefix(layout: Layout, where: Conditions, { scope: prefix }: SearchQuery): void {
  const scope = scopeIn(layout);
  if (prefix === undefined || scope === undefined) return;
  where.and(`starts_with(${scope}, ${where.bind(prefix)})`);
}

/** `created`: SQL of the time of creation. */
export function whereInTime(where: Conditions, wanted: Times, created: string | undefined): void {
  for (const [name, is] of [
    ['since', '>='],
    ['until', '<='],
  ] as const) {
    const bound = wanted[name];
    if (bound === undefined) continue;
    if (created === undefined) throw unsupported(`${name}: the table has no time of creation`);
    where.and(`${created} ${is} ${where.bind(bound)}::timestamptz`);
  }
}

/** The rows after this one in the order of lists. */
function whereAfter(layout: Layout, where: Conditions, { after, created }: After): void {
  if (!after) return;
  const values = keyAt(layout, where, after.id);
  const columns = layout.id.columns.map(({ sql }) => sql);
  if (created !== undefined) {
    columns.unshift(created);
    values.unshift(`${where.bind(after.created_at)}::timestamptz`);
  }
  where.and(`(${columns.join(', ')}) < (${values.join(', ')})`);
}

/** SQL of the key's values at a cursor. */
function keyAt({ id: { columns, parts } }: Layout, where: Conditions, id: string): string[] {
  const values = parts(id);
  if (!values) throw invalidRequest('cursor: malformed; pass next_cursor of the previous page as it is');
  return columns.map(({ cast }, part) => `${where.bind(values[part])}${cast}`);
}

/** The condition that a row has one of these ids, in the form that the index of the key serves. */
function hasId({ id: { columns, parts } }: Layout, where: Conditions, ids: readonly string[]): string {
  const keys = ids.map(parts).filter((key) => key !== undefined);
  const values = columns.map(({ cast }, part) => {
    const list = where.bind(toTextArray(keys.map((key) => key[part] as string)));
    return `${list}::text[]::${cast.slice(2)}[]`;
  });
  return `(${columns.map(({ sql }) => sql).join(', ')}) in (select * from unnest(${values.join(', ')}))`;
}

interface After extends Pick<ListQuery, 'after'> {
  /** SQL of the time that lists are sorted by, if any. */
  readonly created: string | undefined;
}

const scopeIn = ({ fields }: Layout): string | undefined => fields.scope && `(${scopeOf(fields.scope.read)})`;
