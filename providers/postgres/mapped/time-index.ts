import pg from 'pg';
import type { ListQuery } from '#provider';
import type { Conditions } from '../sql/conditions.ts';
import { hasIndexOn, type Table } from './catalogue.ts';
import type { ResolvedMapping } from './mapping.ts';

/**
 * Lists through an index on the owner and then the time. It orders by what is stored, records and cursors by milliseconds, and a row without
 * a time that records can show counts as of 1970: so the index bounds what a page can hold, and the page sorts that.
 */
export interface TimeIndex {
  /** SQL of what the index orders by. */
  readonly stored: string;
  /** SQL of a time as such a value. Earlier times never give a later value. */
  at(time: string): string;
  /** The condition that records show the time of a row. */
  readonly timed: string;
  /** The opposite, in the form that the index serves. */
  readonly untimed: string;
}

/** By the type of the column. */
const CONVERSIONS: Readonly<Record<string, (time: string) => string>> = {
  timestamptz: (time) => time,
  timestamp: (time) => `(${time} at time zone 'UTC')`,
  date: (time) => `(${time} at time zone 'UTC')::date`,
};

/** The columns of the index that lists want, first the owner. Undefined: no index orders by what the table holds, or the order is of ids. */
export function listKeys(table: Table, { fields, id }: Pick<ResolvedMapping, 'fields' | 'id'>) {
  const owner = fields.get('user_id');
  const created = fields.get('created_at');
  if (created && (created.kind !== 'column' || !((table.columns.get(created.column)?.base ?? '') in CONVERSIONS)))
    return undefined;
  return [
    ...(owner && owner.kind !== 'constant' ? [owner] : []),
    ...(created ? [created] : []),
    ...id.map((column) => ({ kind: 'column', column }) as const),
  ];
}

/** Undefined if the table has no such index. */
export function timeIndex(table: Table, mapping: ResolvedMapping): TimeIndex | undefined {
  const created = mapping.fields.get('created_at');
  const keys = listKeys(table, mapping)?.slice(0, -mapping.id.length);
  if (created?.kind !== 'column' || !keys || !hasIndexOn(table, ...keys)) return undefined;
  const at = CONVERSIONS[table.columns.get(created.column)?.base ?? ''] as TimeIndex['at'];
  const stored = `t.${pg.escapeIdentifier(created.column)}`;
  const [first, end] = ['0001', '10000'].map((year) => at(`timestamptz '${year}-01-01 00:00:00+00'`));
  return {
    stored,
    at,
    timed: `${stored} >= ${first} and ${stored} < ${end}`,
    untimed: `(${stored} is null or ${stored} < ${first} or ${stored} >= ${end})`,
  };
}

/**
 * Session settings of such a list. With a general plan the planner counts on few rows of a user, and would sort all that a large user has.
 */
export const TIME_INDEX_SETTINGS = 'set local enable_sort = off';

interface NewestRows extends Pick<ListQuery, 'since' | 'until' | 'after'> {
  /** Follows `from`. */
  readonly from: string;
  /** SQL of the time of creation, to the millisecond. */
  readonly created: string;
}

/**
 * Statements of rows that hold the first `most` in the order of lists, and few others. Any `most` rows that match bound the page: none of it is
 * older than the oldest of them. The first by the index are nearly the page itself.
 */
export function newestRows(
  { stored, at, timed, untimed }: TimeIndex,
  where: Conditions,
  { from, created, since, until, after }: NewestRows,
) {
  const bounds = [timed];
  if (since !== undefined) bounds.push(`${stored} >= ${at(`${where.bind(since)}::timestamptz`)}`);
  for (const time of [until, after?.created_at]) {
    // Of one millisecond, the index knows the end only.
    if (time !== undefined)
      bounds.push(`${stored} <= ${at(`(${where.bind(time)}::timestamptz + interval '1 millisecond')`)}`);
  }
  const matching = `${where} and ${bounds.join(' and ')}`;
  return (selected: string, most: string) => ({
    first: `with newest as materialized (select min(ms) as bound, count(*) as found
      from (select ${created} as ms from ${from} where ${matching} order by ${stored} desc limit ${most}) as first_rows)`,
    rows: `select ${selected} from ${from} where ${matching} and ${stored} >= (select ${at('bound')} from newest)
      union all select ${selected} from ${from} where ${where} and ${untimed}
        and (select found < ${most} or bound <= to_timestamp(0) from newest)`,
  });
}
