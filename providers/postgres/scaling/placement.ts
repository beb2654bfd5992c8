import { hash } from 'node:crypto';
import pg from 'pg';
import type { Ref } from '#provider';

/*
 * Where rows are. Every user has a bucket. On Citus every row of a user holds it, and the tables are distributed by it: a statement that names the
 * bucket runs on one shard. The bucket is also the end of an id, so that an id alone leads to the shard of its memory.
 */

/** The buckets of one shard; undefined: all rows of a single server. */
export type Buckets = readonly number[] | undefined;
/** What a statement names, as its first parameter: one bucket or several. */
export type Shard = number | Buckets;
/** A memory in its shard. */
export type Located = Ref & { readonly shard?: Shard };

const inBucket = (parameter: string, alias: string): string => `${alias}bucket = ${parameter}::int2`;
const inBuckets = (parameter: string, alias: string): string => `${alias}bucket = any(${parameter}::int2[])`;

/** SQL that limits a table to a shard, which is the first parameter. `alias`: with its dot. */
export const inShard = (shard: Shard, alias: string): string =>
  shard === undefined ? 'true' : (typeof shard === 'number' ? inBucket : inBuckets)('$1', alias);

/** The bucket on a single server, which does not read it. */
const NO_BUCKET = 0;

export type Placement = ReturnType<typeof placementOf>;

/**
 * What a statement adds so that it works on Citus; on a single server, nothing. `memories`: the table. `bucketOf`: of a user; its memories hold it on a
 * single server too.
 */
export function placementOf(memories: string, distributed: boolean, bucketOf: (user_id: string) => number) {
  /** Of the coordinator, about each node or shard. */
  const asText = pg.escapeLiteral;
  return {
    /** Whether Citus distributes the tables. */
    distributed,
    bucketOf,
    /** The bucket in rows of this user that are not made from a memory. */
    storedBucket: (user_id: string): number => (distributed ? bucketOf(user_id) : NO_BUCKET),
    /** What a statement about the rows of this user, or these, names. */
    shardOf: (user_id: string): number | undefined => (distributed ? bucketOf(user_id) : undefined),
    shardsOf: (users: readonly string[]): number[] | undefined => (distributed ? users.map(bucketOf) : undefined),
    /** SQL that limits a table to the bucket in this parameter, for a text without `Conditions`. `alias`: with its dot. */
    inShard: (parameter = '$1', alias = ''): string => (distributed ? inBucket(parameter, alias) : 'true'),
    /** The same for a parameter with several. */
    inShards: (parameter: string, alias = ''): string => (distributed ? inBuckets(parameter, alias) : 'true'),
    /** SQL that lets a statement about all shards join two tables shard by shard. */
    sameBucket: (one: string, other: string): string => (distributed ? `${one}.bucket = ${other}.bucket` : 'true'),
    /** The columns of a key of one of the tables. */
    key: (columns: string): string => (distributed ? `${columns}, bucket` : columns),
    /** Locks rows for one of several gateways. Citus locks the rows of one bucket only, so there they are checked again when they change. */
    skipLocked: distributed ? '' : 'for update skip locked',
    /** Settings of a transaction, which the workers of Citus get too. */
    settings: (settings: string): string =>
      distributed ? `set local citus.propagate_set_commands = 'local'; ${settings}` : settings,
    /** The setting that a statement about a trigger needs. */
    triggers: distributed ? 'set local citus.enable_unsafe_triggers = on;' : '',
    /** The statement after the one that creates a table with rows of users. */
    distribute: (table: string): string =>
      distributed ? `${distributeTable(table)}, colocate_with => ${asText(memories)});` : '',
    /** SQL with the columns `node` and those of `each`, a statement for every node. `columns`: with their types. */
    onNodes(each: string, columns: string): string {
      if (!distributed) return `select 0 as node, here.* from (${each}) as here`;
      const numbered = `select (select groupid from pg_dist_local_group) as node, here.* from (${each}) as here`;
      const asJson = asText(`select to_json(one)::text from (${numbered}) as one`);
      // A node that cannot be reached has an error as its result, which is no JSON: the statement fails.
      return `select r.* from run_command_on_all_nodes(${asJson}), json_to_record(result::json) as r (node int, ${columns})`;
    },
    /** SQL with one time of each node that can be reached, as `each` selects it with this name. */
    timesOnNodes: (each: string, name: string): string =>
      distributed
        ? `select nullif(result, '')::timestamptz as ${name} from run_command_on_all_nodes(${asText(each)}) where success`
        : each,
    /** SQL that selects `rows` of the memories; on Citus, of their largest shard. `each`: of the table in this literal. */
    largest: (each: (table: string) => string): string =>
      distributed
        ? `select max(nullif(result, '')::float8) as rows from run_command_on_shards(${asText(memories)}, ${asText(each(`'%s'`))})`
        : each(asText(memories)),
  };
}

/** The beginning of a statement that distributes a table by bucket. */
export const distributeTable = (table: string): string =>
  `select create_distributed_table(${pg.escapeLiteral(table)}, 'bucket'`;

/**
 * Settings of a transaction in which the shards change one after the other, so that functions may change too, and each may have a trigger, which
 * reads and writes its own row only. Without Citus these mean nothing.
 */
export const SEQUENTIALLY = `set local citus.multi_shard_modify_mode = 'sequential'; set local citus.enable_unsafe_triggers = on`;

/** The placement before the tables have a store. */
export const unplaced = (memories: string, distributed = false): Placement =>
  placementOf(memories, distributed, () => NO_BUCKET);

/** So many that shards become even, and so few that an id says little about its user: 15 bits. */
export const BUCKETS = 2 ** 15;

/** The bucket of a user. Without the secret of the store nobody can tell which users share one. */
export const bucketOf =
  (secret: Uint8Array) =>
  (user_id: string): number =>
    Number.parseInt(hash('sha256', Buffer.concat([secret, Buffer.from(user_id)])).slice(0, 4), 16) % BUCKETS;

/** The same in SQL. Both arguments are SQL. */
export const bucketSql = (secret: string, user_id: string): string => {
  const hash = `sha256(${secret} || convert_to(${user_id}, 'UTF8'))`;
  return `((get_byte(${hash}, 0) & 127) * 256 + get_byte(${hash}, 1))::int2`;
};

/** The digits are Crockford's base 32, as in the rest of an id. */
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
export const ID_WITH_BUCKET = /^mem_[0-9A-HJKMNP-TV-Z]{26}([0-9A-HJKMNP-TV-Z]{3})$/;

/** The id of a new memory in this bucket. `id`: unique already. */
export const withBucket = (id: string, bucket: number): string =>
  `${id}${DIGITS[bucket >> 10]}${DIGITS[(bucket >> 5) & 31]}${DIGITS[bucket & 31]}`;

/** The bucket that an id names; undefined: it was made elsewhere, or before there were buckets. */
export function bucketIn(id: string): number | undefined {
  const [, ending] = ID_WITH_BUCKET.exec(id) ?? [];
  return ending === undefined ? undefined : [...ending].reduce((sum, digit) => 32 * sum + DIGITS.indexOf(digit), 0);
}
