import { type Call, type UserLimits, type UserUsage, utcDay } from '#provider';
import type { Run } from '../client/connections.ts';
import { type Conditions, conditions } from '../sql/conditions.ts';
import { materialized, part, type WithPart } from '../sql/parts.ts';
import type { Names } from './names.ts';

/*
 * Limits of users (Decision 59). A row for each user holds bounds of its memories and bytes: what they were when they were last counted, and what
 * was added since. While there is room below a bound, an add is one statement, which locks the row. Else the user is counted: first the
 * row is marked, and until it has its new figures, nothing is added. So the count sees all that was added before, and deletions need
 * change nothing.
 */

/** What a statement adds to what a user has. */
export interface Room {
  readonly user_id: string;
  readonly added: UserUsage;
  readonly limits: UserLimits;
  /** Figures that were counted before this time may lack what gateways without limits have written. */
  readonly since: string;
}

const most = (limit: number | null): number => limit ?? Number.POSITIVE_INFINITY;

/** SQL: the figures are of this day, or of one that has begun by the clock of another gateway. */
const ofDay = (today: string): string => `day - ${today}::date between 0 and 1`;

/** SQL of a user's row. */
const whereUser = (names: Names, bind: Conditions['bind'], user_id: string): string =>
  `bucket = ${bind(names.placement.storedBucket(user_id))}::int2 and user_id = ${bind(user_id)}`;

/**
 * What comes before an add, and the parts of it that have a row if there is room, which is then taken. With a key, there is a look at the room before
 * the key is claimed: neither a key without memories nor adds without a key are kept.
 */
export function takeRoom(
  names: Names,
  bind: Conditions['bind'],
  room: Room,
  claim: ((free: WithPart) => WithPart) | undefined,
): { readonly first: readonly WithPart[]; readonly required: readonly WithPart[] } {
  const user = whereUser(names, bind, room.user_id);
  const fits = (['memories', 'bytes', 'adds_per_day'] as const).map(
    (kind) => `${kind} + ${bind(room.added[kind])}::int8 <= ${bind(most(room.limits[kind]))}::float8`,
  );
  const where = `${user} and counted_at >= ${bind(room.since)}::timestamptz and ${ofDay(bind(utcDay()))} and ${fits.join(' and ')}`;
  const { memories, bytes, adds_per_day } = room.added;
  const set = `update ${names.userUsage} set memories = memories + ${bind(memories)}::int8, bytes = bytes + ${bind(bytes)}::int8,
    adds_per_day = adds_per_day + ${bind(adds_per_day)}::int8 where`;
  if (!claim) {
    const used = part('used')`${set} ${where} returning 1`;
    return { first: [used], required: [used] };
  }
  const free = materialized('room')`select 1 from ${names.userUsage} where ${where} for update`;
  const claimed = claim(free);
  const used = part('used')`${set} ${user} and (select count(*) from ${claimed}) > 0 returning 1`;
  return { first: [free, claimed, used], required: [claimed, used] };
}

/** The same for a change of a content. `before` has locked the memory. */
export function growContent(
  names: Names,
  bind: Conditions['bind'],
  before: WithPart<'content'>,
  { user_id, added, limits, since }: Room,
): WithPart {
  const growth = `(${bind(added.bytes)}::int8 - (select octet_length(${before.content}) from ${before}))`;
  const text = `update ${names.userUsage} set bytes = bytes + greatest(0, ${growth}) where ${whereUser(names, bind, user_id)}
    and (${growth} <= 0 or counted_at >= ${bind(since)}::timestamptz and bytes + ${growth} <= ${bind(most(limits.bytes))}::float8) returning 1`;
  return part('used')`${text}`;
}

/**
 * The users of these memories are counted again before the next change with limits. A count that is under way, and may not see them, is void.
 */
export function countAgain(names: Names, changed: WithPart<'bucket' | 'user_id'>): WithPart {
  const { bucket, user_id } = changed;
  const users = `select distinct ${bucket}, ${user_id}, 'epoch'::date, null::timestamptz from ${changed} order by ${user_id}`;
  return part('uncounted')`${mark(names, users, '1')}`;
}

const mark = (names: Names, rows: string, more: string): string =>
  `insert into ${names.userUsage} as known (bucket, user_id, day, counted_at) ${rows}
   on conflict (${names.placement.key('user_id')}) do update set counted_at = null, mark = known.mark + ${more}`;

/** What was counted. `own`: the bytes of one memory. */
export interface Counted {
  readonly used: UserUsage;
  readonly own: number;
}

export function createUsage(names: Names, run: Run, since: string) {
  return {
    /** Undefined: another request has counted meanwhile, so there may be room again. */
    async count(user_id: string, id: string, call: Call): Promise<Counted | undefined> {
      const now = [new Date().toISOString(), since].sort()[1] as string;
      const bucket = names.placement.storedBucket(user_id);
      // Those who find it marked count together: nothing is added meanwhile.
      const ifCounted = 'case when known.counted_at is null then 0 else 1 end';
      const [marked] = await run(
        'small',
        `${mark(names, 'values ($1::int2, $2, $3::date, null::timestamptz)', ifCounted)} returning mark`,
        [bucket, user_id, utcDay()],
        call,
      );
      // A statement of its own: it must see all that was committed before the row was marked.
      const [row] = await run(
        'heavy',
        `update ${names.userUsage} u set memories = c.memories, bytes = c.bytes, counted_at = $5::timestamptz,
         day = case when ${ofDay('$4')} then day else $4::date end, adds_per_day = case when ${ofDay('$4')} then adds_per_day else 0 end
       from (select count(*) as memories, coalesce(sum(octet_length(content)), 0)::int8 as bytes,
           coalesce(sum(octet_length(content)) filter (where id = $6), 0)::float8 as own
         from ${names.memories} where ${names.placement.inShard()} and user_id = $2) as c
       where u.bucket = $1::int2 and u.user_id = $2 and u.mark = $3::int8 and u.counted_at is null
       returning u.memories::float8, u.bytes::float8, u.adds_per_day::float8, c.own`,
        [bucket, user_id, marked?.mark, utcDay(), now, id],
        call,
      );
      if (!row) return undefined;
      const { own, ...used } = row;
      return { used: used as unknown as UserUsage, own: own as number };
    },

    async userUsage({ user_id }: { readonly user_id: string }, call: Call): Promise<UserUsage> {
      const where = conditions(names.placement.shardOf(user_id));
      const user = where.bind(user_id);
      const today = where.bind(utcDay());
      const [row] = await run(
        'heavy',
        `select count(*)::float8 as memories, coalesce(sum(octet_length(content)), 0)::float8 as bytes,
           coalesce((select adds_per_day from ${names.userUsage} where ${where.inShard()} and user_id = ${user} and ${ofDay(today)}), 0)::float8 as adds_per_day
         from ${names.memories} where ${where.inShard()} and user_id = ${user}`,
        where.values,
        call,
      );
      return row as unknown as UserUsage;
    },
  };
}
