import {
  type Call,
  MAX_DAYS,
  MAX_PERIODS,
  NO_STATS,
  type Provider,
  type StatsQuery,
  type UserListQuery,
  type UserPart,
  type UserStats,
} from '#provider';
import type { Run } from '../client/connections.ts';
import { conditions, whereWithin } from '../sql/conditions.ts';
import { toIso, toTextArray } from '../sql/values.ts';
import type { Names } from './names.ts';

/** Users whose ids one part of a list looks at when only some of them can match. */
const MAX_STEPS = 1_000;

const milliseconds = (sql: string): string => `date_part('epoch', ${sql}) * 1000`;

/** Lists and counts users. */
export function createUserVerbs(names: Names, run: Run): Required<Pick<Provider, 'users' | 'userStats'>> {
  /**
   * The ids of users in the index's order, after one or from one on. Steps from user to user in the index on user and time,
   * so the cost does not depend on the number of their memories.
   */
  const idsFrom = async (start: string, first: '>' | '>=', limit: number, call: Call): Promise<string[]> => {
    const next = (from: string, order: string = '>') =>
      `(select m.user_id from ${names.memories} m where m.user_id ${order} ${from} order by m.user_id limit 1)`;
    const stepping = `with recursive named (user_id) as (
         select ${next('$1', first)} union all select ${next('named.user_id')} from named where named.user_id is not null)
       select user_id from named where user_id is not null limit $2`;
    // Of every shard, which cannot step: each reads the index entries of its first users.
    const fromShards = `select user_id from ${names.memories} where user_id ${first} $1 group by bucket, user_id order by user_id limit $2`;
    const rows = await run('heavy', names.placement.distributed ? fromShards : stepping, [start, limit], call);
    return rows.map(({ user_id }) => user_id as string);
  };

  return {
    async users({ users, prefix = '', after, limit, ...visible }: UserListQuery, call): Promise<UserPart> {
      const most = prefix === '' ? limit : MAX_STEPS;
      // No id sorts before its own beginning. The last one with it is not known: only some collations keep them together.
      const ids = users
        ? [...new Set(users)].filter((id) => id > (after ?? '')).sort()
        : await idsFrom(after ?? prefix, after === undefined ? '>=' : '>', most + 1, call);
      const seen = ids.slice(0, most);
      const wanted = seen.filter((id) => id.startsWith(prefix)).slice(0, limit);
      // Of a full part, the rest of what was seen comes again.
      const last = wanted.length === limit ? wanted.at(-1) : seen.at(-1);
      const where = conditions(names.placement.shardsOf(wanted));
      where.and(where.inShard());
      where.and(`user_id = any(${where.bind(toTextArray(wanted))}::text[])`);
      whereWithin(where, visible);
      const rows = await run(
        'heavy',
        `select user_id, count(*)::float8 as count, ${milliseconds('max(updated_at)')} as last_write
         from ${names.memories} where ${where} group by user_id`,
        where.values,
        call,
      );
      const counts = new Map(rows.map((row) => [row.user_id, row]));
      const items = wanted.flatMap((user_id) => {
        const { count, last_write } = counts.get(user_id) ?? {};
        return count === undefined ? [] : { user_id, count: count as number, last_write: toIso(last_write as number) };
      });
      return { items, next: last === ids.at(-1) ? undefined : last };
    },

    async userStats({ user_id, limit, ...visible }: StatsQuery, call): Promise<UserStats> {
      const where = conditions(names.placement.shardOf(user_id));
      where.and(where.inShard());
      where.and(`user_id = ${where.bind(user_id)}`);
      whereWithin(where, visible);
      const most = where.bind(limit);
      const largest = (
        name: string,
        from: string,
      ) => `(select jsonb_agg(jsonb_build_object('${name}', value, 'count', count))
        from (select value, count(*) from ${from} group by value order by count(*) desc, value nulls first limit ${most}) as counts)`;
      const periods = `(select jsonb_agg(jsonb_build_object('from', to_char(value, 'YYYY-MM-DD'), 'count', count) order by value)
        from (select date_trunc(per, created_at at time zone 'UTC') as value, count(*) from mine, span group by value
          order by value desc limit ${MAX_PERIODS}) as counts)`;
      const [row] = await run(
        'heavy',
        `with mine as materialized (select scope, tags, created_at, updated_at from ${names.memories} where ${where}),
           span as (select case when max(created_at) - min(created_at) <= interval '${MAX_DAYS} days' then 'day' else 'month' end as per from mine)
         select count(*)::float8 as count, ${milliseconds('min(created_at)')} as oldest, ${milliseconds('max(created_at)')} as newest,
           ${milliseconds('max(updated_at)')} as last_write, (select per from span) as per, ${periods} as created, ${largest('scope', '(select scope as value from mine) as scopes')} as scopes,
           ${largest('tag', '(select unnest(tags) collate "C" as value from mine) as tags')} as tags
         from mine`,
        where.values,
        call,
      );
      if (!row?.count) return NO_STATS;
      const [oldest, newest, last_write] = [row.oldest, row.newest, row.last_write].map((time) =>
        toIso(time as number),
      );
      const { per, created: counts, ...rest } = row;
      return { ...rest, oldest, newest, last_write, tags: row.tags ?? [], created: { per, counts } } as UserStats;
    },
  };
}
