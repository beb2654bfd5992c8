import pg from 'pg';
import { BUCKETS, type Names } from './names.ts';

/** Runs a statement that may ask all shards. */
type Query = (text: string, values: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>;

/** The buckets of one shard; undefined: all rows of a single server. */
export type Shard = readonly number[] | undefined;

const shardOfBucket = ({ memories }: Names): string =>
  `get_shard_id_for_distribution_column(${pg.escapeLiteral(memories)}::regclass, bucket)`;

/** All shards, in the order of their first buckets. */
export async function allShards(names: Names, query: Query): Promise<Shard[]> {
  if (!names.distributed) return [undefined];
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
  query: Query,
): Promise<Shard[]> {
  if (!names.distributed) return [undefined];
  const rows = await query(
    `select array_agg(bucket) as buckets from (select distinct bucket from ${table} where ${where} limit ${MAX_BUCKETS}) as found
     group by ${shardOfBucket(names)}`,
    values,
  );
  return rows.map(({ buckets }) => buckets as number[]);
}
