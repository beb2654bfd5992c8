import type pg from 'pg';
import type { Log } from '#provider';
import type { Names } from '../tables/names.ts';
import { bucketSql, distributeTable, SEQUENTIALLY, unplaced } from './placement.ts';

type Query = (text: string, values?: readonly unknown[]) => Promise<readonly unknown[]>;

/** Whether Citus distributes the tables already. */
export async function isDistributed(query: Query, { memories }: Names): Promise<boolean> {
  if (!(await hasCitus(query))) return false;
  return (await query('select 1 from pg_dist_partition where logicalrelid = to_regclass($1)', [memories])).length > 0;
}

const hasCitus = async (query: Query): Promise<boolean> =>
  (await query(`select 1 from pg_extension where extname = 'citus'`)).length > 0;

/**
 * Distributes the tables of the users' data by bucket, all in the same way, with the rows that they have. Keys, settings and
 * rate limits stay tables of the coordinator: no statement joins them with a user's data. In the caller's transaction. Throws
 * an error that an operator can act on.
 */
export async function distribute(client: pg.Client, names: Names, log: Log): Promise<void> {
  if (!(await hasCitus(async (text) => (await client.query(text)).rows))) throw new Error(NO_CITUS);
  const { memories, versions, ingestion, auditLog, onceKeys, userUsage, largeUsers, store } = names;
  const started = performance.now();
  const secret = `(select bucket_secret from ${store})`;
  const bucketOf = (column: string) => bucketSql(secret, column);
  await client.query(SEQUENTIALLY);
  await client.query(`
    alter table ${ingestion} drop constraint ingestion_memory_id_fkey, drop constraint ingestion_pkey;
    alter table ${versions} drop constraint memory_versions_id_fkey, drop constraint memory_versions_pkey;
    alter table ${memories} drop constraint memories_pkey;
    alter table ${onceKeys} drop constraint once_keys_pkey;
    alter table ${largeUsers} drop constraint large_users_pkey;
    alter table ${userUsage} drop constraint user_usage_pkey;
    update ${memories} set bucket = ${bucketOf('user_id')} where bucket <> ${bucketOf('user_id')};
    update ${largeUsers} set bucket = ${bucketOf('user_id')};
    update ${userUsage} set bucket = ${bucketOf('user_id')};
    update ${auditLog} set bucket = ${bucketOf(`coalesce(user_id, '')`)};
    update ${ingestion} q set bucket = m.bucket from ${memories} m where id = memory_id;
    update ${versions} v set bucket = m.bucket from ${memories} m where m.id = v.id;
    update ${onceKeys} set bucket = ${bucketOf(`caller || ' ' || key`)};
    alter table ${memories} add primary key (id, bucket);
    alter table ${ingestion} add primary key (memory_id, bucket);
    alter table ${versions} add primary key (id, version, bucket);
    alter table ${onceKeys} add primary key (caller, key, bucket);
    alter table ${largeUsers} add primary key (user_id, bucket);
    alter table ${userUsage} add primary key (user_id, bucket);
    -- It has no key, and a shard moves by logical replication. Only the retention changes rows, so this costs nothing else.
    alter table ${auditLog} replica identity full;
  `);
  await client.query(`${distributeTable(memories)})`);
  const placed = unplaced(memories, true);
  for (const table of [versions, ingestion, auditLog, onceKeys, largeUsers, userUsage])
    await client.query(placed.distribute(table));
  for (const [table, id] of [
    [ingestion, 'memory_id'],
    [versions, 'id'],
  ])
    await client.query(
      `alter table ${table} add foreign key (${id}, bucket) references ${memories} (id, bucket) on delete cascade`,
    );
  const { rows } = await client.query<{ shards: number; nodes: number }>(
    `select count(*)::int as shards, count(distinct nodename || nodeport)::int as nodes from citus_shards where table_name = $1::regclass`,
    [memories],
  );
  log.info({ ...rows[0], seconds: Math.round((performance.now() - started) / 1_000) }, 'the tables are distributed');
}

/**
 * Lets each node write its own transaction into the entries of changes: an expression in a statement would be that of the coordinator.
 * Only a trigger runs where a row is stored; that of an audit log reads nothing but the number of the node, so it is safe. In
 * the caller's transaction.
 */
export async function stampChanges(client: pg.Client, { schema, auditLog, placement }: Names): Promise<void> {
  const exists = await client.query(`select from pg_trigger where tgrelid = $1::regclass and tgname = 'stamp_change'`, [
    auditLog,
  ]);
  if (exists.rowCount !== 0) return;
  // One by one: Citus sends the text of each on to its nodes.
  await client.query(placement.triggers);
  await client.query(`alter table ${auditLog} alter column xid drop default`);
  await client.query(`create or replace function ${schema}.stamp_change() returns trigger language plpgsql as $$ begin
      new.node := (select groupid from pg_catalog.pg_dist_local_group);
      new.xid := pg_catalog.pg_current_xact_id();
      return new;
    end $$`);
  await client.query(`create trigger stamp_change before insert on ${auditLog} for each row when (new.node is not null)
    execute function ${schema}.stamp_change()`);
}

const NO_CITUS =
  'OMP_POSTGRES_DISTRIBUTED=citus is set, and the database has no Citus; set DATABASE_URL to its coordinator, and run "create extension citus" there as a superuser';
