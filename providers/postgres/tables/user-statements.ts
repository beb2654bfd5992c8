import type { StatsQuery, UserStats, UserSummary, UsersQuery } from '#contract';
import type { Row } from '../client/connections.ts';
import { type Conditions, conditions, whereWithin } from './conditions.ts';
import { toTextArray } from './memory-rows.ts';
import type { Names } from './names.ts';
import { toIso } from './timestamps.ts';

const milliseconds = (sql: string): string => `date_part('epoch', ${sql}) * 1000`;

/**
 * Selects a page of users with their counts. Steps from user to user in the index on user and time, and reads only the
 * memories of users up to the end of the page: whatever the number of memories of others, and of users after it.
 */
export function usersStatement(names: Names, { users, within, after = '', limit }: UsersQuery): Conditions {
  const where = conditions();
  const [from, most] = [where.bind(after), where.bind(limit)];
  const next = (start: string) =>
    `(select m.user_id from ${names.memories} m where m.user_id > ${start} order by m.user_id limit 1)`;
  // The rows come in this order, and only as many as the limit asks for. An "order by" of the result would read all.
  const named = users
    ? `select distinct user_id from unnest(${where.bind(toTextArray(users))}::text[]) as given (user_id) where user_id > ${from} order by user_id`
    : `${next(from)} union all select ${next('named.user_id')} from named where named.user_id is not null`;
  where.and('m.user_id = named.user_id');
  whereWithin(where, within);
  where.text = `with recursive named (user_id) as (${named})
    select named.user_id, counted.memories, counted.last_write from named cross join lateral (
      select count(*)::float8 as memories, ${milliseconds('max(updated_at)')} as last_write from ${names.memories} m where ${where}) as counted
    where counted.memories > 0 limit ${most}`;
  return where;
}
