import pg from 'pg';
import type { Call, Ref } from '#provider';
import type { Query, Row, Run } from '../client/connections.ts';
import type { Names } from '../tables/names.ts';
import { BUCKETS, type Buckets, bucketIn, type Located } from './placement.ts';

/*
 * What goes through several shards: walks of all rows, and a memory whose id does not name its shard.
 */

/** Runs a statement that may ask all shards. */
type RunText = (text: string, values: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>;

const shardOfBucket = ({ memories }: Names): string =>
  `get_shard_id_for_distribution_column(${pg.escapeLiteral(memories)}::regclass, bucket)`;

/** All shards, in the order of their first buckets. */
export async function allShards(names: Names, query: RunText): Promise<Buckets[]> {
  if (!names.placement.distributed) return [undefined];
  const rows = await query(
    `select array_agg(bucket order by bucket) as buckets from generate_series(0, ${BUCKETS - 1}) as bucket
     group by ${shardOfBucket(names)} order by min(bucket)`,
    [],
  );
  return rows.map(({ buckets }) => buckets as number[]);
}

/** Buckets whose rows one round of background work looks at, at most. */
const MAX_BUCKETS = 1_000;

/** Shards with rows of `table` that match, each with the buckets of such rows. Asks all shards once. */
export async function shardsWith(
  names: Names,
  { table, where, values = [] }: { table: string; where: string; values?: readonly unknown[] },
  query: RunText,
): Promise<Buckets[]> {
  if (!names.placement.distributed) return [undefined];
  const rows = await query(
    `select array_agg(bucket) as buckets from (select distinct bucket from ${table} where ${where} limit ${MAX_BUCKETS}) as found
     group by ${shardOfBucket(names)}`,
    values,
  );
  return rows.map(({ buckets }) => buckets as number[]);
}

/** A place of a scan on Citus: the first bucket of a shard, and the last id that was read there. */
const PLACE = /^(\d+)\.(.*)$/s;

export const placeAfter = (shard: Buckets, id: string): string => (shard ? `${shard[0]}.${id}` : id);

/** `next`: where to go on if the shard has no more. */
export function placeIn(shards: readonly Buckets[], after: string) {
  const [first] = shards;
  if (!first) return { shard: first, id: after, next: undefined };
  const [, bucket = first[0], id = ''] = PLACE.exec(after) ?? [];
  const found = shards.findIndex((shard) => shard?.includes(Number(bucket)));
  const at = Math.max(0, found);
  const following = shards[at + 1];
  return { shard: shards[at], id, next: following && placeAfter(following, '') };
}

/**
 * Runs a statement about one memory. On Citus it goes to the bucket that the id names. Of ids that name none, or came from
 * another store, all shards are asked once.
 */
export function createById(names: Names, run: Run, send: (query: Query, call: Call) => Promise<Row[]>) {
  const onCitus = async (ref: Ref, call: Call, statement: (ref: Located) => Query): Promise<Row[]> => {
    const named = bucketIn(ref.id);
    const rows = named === undefined ? [] : await send(statement({ ...ref, shard: named }), call);
    if (rows.length > 0) return rows;
    const [found] = await run('small', `select bucket from ${names.memories} where id = $1`, [ref.id], call);
    if (!found || found.bucket === named) return [];
    return send(statement({ ...ref, shard: found.bucket as number }), call);
  };
  return names.placement.distributed
    ? onCitus
    : (ref: Ref, call: Call, statement: (ref: Located) => Query) => send(statement(ref), call);
}
