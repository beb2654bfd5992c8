import { type ListQuery, literalPrefix } from '#provider';
import { type Query, queriesOf, type Statement, type Weight } from '../client/connections.ts';
import { type Conditions, conditionOf, conditions, firstWithin, whereWithin } from '../sql/conditions.ts';
import {
  UNINDEXED_USER,
  whereInTime,
  whereScopeGlob,
  whereTags,
  whereTagsOfLargeUser,
  whereWritten,
} from './conditions.ts';
import { BYTES, columnsOf, queueStatusOfMany } from './memory-rows.ts';
import type { Names } from './names.ts';

/**
 * Makes the statements of lists. They are without the contents of large rows. If one is missing, run the list again with `'bytes'`, which
 * limits the answer. `large`: whether the user's memories are in the indexes of large users.
 */
export function createList(names: Names, statement: (weight: Weight, text: string) => Statement) {
  const query = queriesOf(statement);
  const columns = columnsOf(names, queueStatusOfMany(names));
  /** The first parameter, after the bucket, is the limit of a content in bytes. */
  const shortColumns = columnsOf(
    names,
    queueStatusOfMany(names),
    names.placement.distributed ? '$2::float8' : '$1::float8',
  );
  return (wanted: ListQuery, { large = false, within }: { large?: boolean; within?: 'bytes' } = {}): Query => {
    const where = conditions(names.placement.shardOf(wanted.user_id));
    const max = where.bind(within ? wanted.max_bytes : Math.floor(wanted.max_bytes / wanted.limit));
    const { first, from } =
      large && isFiltered(wanted) ? listOfLargeUser(names, where, wanted) : listOf(names, where, wanted);
    if (!within) return query(weightOf(wanted), `${first} select ${shortColumns} ${from}`, where.values);
    const order = 'created_at desc, id desc';
    const rows = firstWithin(`select m.*, ${BYTES} as bytes ${from}`, order, max);
    return query('heavy', `${first} select ${columns} from ${rows} as m order by ${order}`, where.values);
  };
}

/** `first`: the statement's `with`, or empty. `from`: selects the page from `m`, in its order. */
interface Listed {
  readonly first: string;
  readonly from: string;
}

/**
 * Without an index for the filter, the planner would sort all memories of the user, because it expects few to match. Of a
 * `case` it expects half to match, and reads in the order of time until the page is full.
 */
const inOrder = (filter: string): string => (filter === 'true' ? filter : `case when ${filter} then true end`);

function listOf(names: Names, where: Conditions, wanted: ListQuery): Listed {
  where.and(where.inShard('m.'));
  where.and(`user_id = ${where.bind(wanted.user_id)}`);
  const listed = conditionOf(where, (inner) => whereListed(inner, wanted));
  where.and(hasLiteralScope(wanted) ? listed : inOrder(listed));
  whereOnPage(where, wanted);
  const from = `from ${names.memories} m where ${where} order by m.created_at desc, m.id desc limit ${where.bind(wanted.limit)}`;
  return { first: '', from };
}

/** Among so many memories a page of 50 is full unless little more than one in a hundred matches. Reading them takes 3 ms. */
const NEWEST = 4_000;

/**
 * A filtered page of a large user. Reads the newest memories in the order of time; if those fill no page, few match, and
 * the index of the filter leads to them.
 */
function listOfLargeUser(names: Names, where: Conditions, wanted: ListQuery): Listed {
  const user = where.bind(wanted.user_id);
  const limit = where.bind(wanted.limit);
  const inTime = conditionOf(where, (inner) => whereOnPage(inner, wanted));
  const listed = conditionOf(where, (inner) => whereListed(inner, wanted));
  const byTag = conditionOf(where, (inner) => whereTagsOfLargeUser(inner, wanted));
  const mine = where.inShard();
  const indexed = wanted.tags.length > 0 || hasLiteralScope(wanted);
  const every = indexed
    ? `${mine} and ${UNINDEXED_USER} = ${user} and ${listed} and ${byTag}`
    : `${mine} and user_id = ${user} and ${inOrder(listed)}`;
  const order = 'order by created_at desc, id desc';
  const oldest = `select created_at from ${names.memories} where ${mine} and user_id = ${user} and ${inTime} ${order} offset ${NEWEST} limit 1`;
  const first = `with newest as materialized (select id from ${names.memories}
      where ${mine} and user_id = ${user} and ${inTime} and created_at >= coalesce((${oldest}), '-infinity') and ${inOrder(listed)} ${order} limit ${limit}),
    page as (select id as listed from newest where (select count(*) from newest) = ${limit}
      union all (select id from ${names.memories} where ${every} and ${inTime}
        and (select count(*) from newest) < ${limit} ${order} limit ${limit}))`;
  return {
    first,
    from: `from page join ${names.memories} m on m.id = listed and ${where.inShard('m.')} order by m.created_at desc, m.id desc`,
  };
}

const isFiltered = ({ scope, tags }: ListQuery): boolean => scope !== undefined || tags.length > 0;

/** Of a list that filters, few memories may match: it may read all that the user has before its page is full. */
const weightOf = (wanted: ListQuery): Weight =>
  isFiltered(wanted) || wanted.within !== null || wanted.written || wanted.outside ? 'heavy' : 'small';

/** Whether the index on user and scope leads to the scopes that match. */
const hasLiteralScope = ({ scope }: ListQuery): boolean => typeof scope === 'string' && literalPrefix(scope) !== '';

/** The filters of a list, and what the caller may see. */
function whereListed(where: Conditions, wanted: ListQuery): void {
  whereScopeGlob(where, wanted);
  whereTags(where, wanted.tags);
  whereWritten(where, wanted.written);
  // The index on user and time serves restricted callers too: index ranges over the scope would read and sort everything
  // visible for every page (66 ms instead of 0.7 ms at 45,000 of a user's 50,000 memories).
  whereWithin(where, wanted);
}

function whereOnPage(where: Conditions, wanted: ListQuery): void {
  whereInTime(where, wanted);
  if (wanted.after) {
    const { created_at, id } = wanted.after;
    where.and(`(created_at, id) < (${where.bind(created_at)}::timestamptz, ${where.bind(id)})`);
  }
}
