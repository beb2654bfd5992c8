import type pg from 'pg';
import { toSql } from 'pgvector';
import type { EmbedderIdentity } from '#provider';
import { codeOf } from '../postgres-errors.ts';
import { type Buckets, SEQUENTIALLY } from '../scaling/placement.ts';
import { conditions } from '../sql/conditions.ts';
import {
  isSame,
  labelOf,
  lockStore,
  type Store,
  setVectorStorage,
  vectorIndexes,
} from '../startup/compatibility-check.ts';
import { type Names, withVectorsIn } from '../tables/names.ts';
import { type Interruptible, retry } from './reembed-retry.ts';

/** Deadline of a lock, in milliseconds: the statements of gateways queue behind the request for it. */
const LOCK_MS = 2_000;
const LOCK_PAUSE_MS = 1_000;
const LOCK_ATTEMPTS = 60;

export interface ReembedSession extends Interruptible {
  readonly client: pg.Client;
}

/**
 * A transaction that locks tables in use. It waits briefly for a lock, and is retried after a lock timeout or deadlock.
 * An undefined result rolls back.
 */
export const withLocks = <Result>(
  { client, ...interruptible }: ReembedSession,
  work: () => Promise<Result | undefined>,
): Promise<Result | undefined> =>
  retry(
    async () => {
      try {
        await client.query(`begin; set local lock_timeout = ${LOCK_MS}; ${SEQUENTIALLY}`);
        const result = await work();
        await client.query(result === undefined ? 'rollback' : 'commit');
        return result;
      } catch (error) {
        // Fails if the connection is lost, which ends the transaction too.
        await client.query('rollback').catch(() => {});
        throw error;
      }
    },
    {
      attempts: LOCK_ATTEMPTS,
      // Lock timeout or deadlock.
      isTransient: (error) => ['55P03', '40P01'].includes(codeOf(error) ?? ''),
      pauseMs: () => LOCK_PAUSE_MS,
      exhausted: (cause) =>
        new Error(
          'the table of memories stays locked by a long operation such as a dump or a vacuum full; run "omp-gateway reembed" again when that has finished',
          { cause },
        ),
    },
    interruptible,
  );

/** The column that lacks vectors, and whether it is the one in use, which needs no switch. */
export interface ReembedTarget {
  readonly column: string;
  readonly inUse: boolean;
}

/** What to fill for this embedder; null: a new column is needed. Throws if a re-embed for another one is in progress. */
export function targetOf(
  { made_by, column, next }: Store,
  to: EmbedderIdentity,
  restart: boolean,
): ReembedTarget | null {
  if (next && !restart && !isSame(next, to)) {
    throw new Error(
      `a re-embed for ${labelOf(next)} is not finished, and the configured embedder is ${labelOf(to)}; configure the first one to finish it, or discard it with --restart`,
    );
  }
  if (isSame(made_by, to)) return { column, inUse: true };
  return next && !restart ? { column: next.column, inUse: false } : null;
}

/** Continues a re-embed in progress, or begins one. */
export async function begin(
  session: ReembedSession,
  names: Names,
  { to, restart }: { readonly to: EmbedderIdentity; readonly restart: boolean },
): Promise<ReembedTarget & { readonly from: EmbedderIdentity | null }> {
  const { client } = session;
  const begun = await withLocks(session, async () => {
    const store = await lockStore(client, names);
    const known = targetOf(store, to, restart);
    if (restart && store.next) await discard(client, names, store);
    return { ...(known ?? (await addColumn(client, names, { store, to }))), from: store.made_by };
  });
  if (!begun) throw new Error('nothing was begun');
  return begun;
}

const FORGET = 'forget_next_vector';

/**
 * Gateways keep using the current vectors. A trigger removes the new vector of a memory whose content changes, whatever the
 * version of the gateway that changes it. Added memories have no new vector yet.
 */
async function addColumn(
  client: pg.Client,
  names: Names,
  { store, to }: { readonly store: Store; readonly to: EmbedderIdentity },
): Promise<ReembedTarget> {
  const made = store.columns_made + 1;
  const column = `embedding_${made}`;
  const next = withVectorsIn(column, names);
  await client.query(`alter table ${names.memories} add column ${next.embedding} ${names.halfvec}(${to.dimensions})`);
  await setVectorStorage(client, next, to.dimensions, store.made_by?.dimensions);
  // One by one, because Citus sends the text to its nodes.
  await client.query(
    `create function ${names.schema}.${FORGET}() returns trigger language plpgsql as
       $$ begin new.${next.embedding} := null; return new; end $$`,
  );
  await client.query(
    `create trigger ${FORGET} before update of content on ${names.memories} for each row
       when (new.content is distinct from old.content) execute function ${names.schema}.${FORGET}()`,
  );
  await client.query(
    `update ${names.store} set columns_made = $1, next_model = $2, next_dimensions = $3, next_column = $4`,
    [made, to.model, to.dimensions, column],
  );
  return { column, inUse: false };
}

async function discard(client: pg.Client, names: Names, { made_by, next }: Store): Promise<void> {
  if (!next) return;
  await dropTrigger(client, names);
  await client.query(`alter table ${names.memories} drop column ${withVectorsIn(next.column, names).embedding}`);
  if (made_by) await setVectorStorage(client, names, made_by.dimensions);
  await client.query(`update ${names.store} set next_model = null, next_dimensions = null, next_column = null`);
}

async function dropTrigger(client: pg.Client, names: Names): Promise<void> {
  await client.query(`drop trigger ${FORGET} on ${names.memories}`);
  await client.query(`drop function ${names.schema}.${FORGET}()`);
}

/** The name of an index until its column is in use. */
const nextName = (name: string): string => `${name}_next`;

/**
 * Creates the indexes over the new column while that is empty, so the switch finds them ready. `concurrently` blocks no write,
 * but an interrupted build leaves an invalid index, which is created again.
 */
export async function createIndexes(
  client: pg.Client,
  names: Names,
  { dimensions, concurrently }: { readonly dimensions: number; readonly concurrently: boolean },
): Promise<void> {
  for (const { name, on } of vectorIndexes(names, dimensions)) {
    const next = nextName(name);
    const { rows } = await client.query<{ indisvalid: boolean }>(
      'select indisvalid from pg_index where indexrelid = to_regclass($1)',
      [`${names.schema}.${next}`],
    );
    if (rows[0]?.indisvalid) continue;
    if (rows[0]) await client.query(`drop index ${names.schema}.${next}`);
    await client.query(`create index ${concurrently ? 'concurrently' : ''} ${next} on ${names.memories} ${on}`);
  }
}

export interface Row {
  readonly id: string;
  readonly content: string;
}

/** Memories without a vector, in the order of their ids. */
export async function readMissing(
  client: pg.Client,
  names: Names,
  { shard, after, limit }: { readonly shard: Buckets; readonly after: string; readonly limit: number },
): Promise<Row[]> {
  const { bind, values, inShard } = conditions(shard);
  const { rows } = await client.query<Row>(
    `select id, content from ${names.memories} where ${inShard()} and ${names.embedding} is null and id > ${bind(after)}
     order by id limit ${bind(limit)}`,
    values,
  );
  return rows;
}

/** Writes a vector only where the content is still what was embedded. Returns how many were written. */
export async function writeVectors(
  client: pg.Client,
  names: Names,
  shard: Buckets,
  embedded: readonly { readonly row: Row; readonly vector: Float32Array }[],
): Promise<number> {
  const { memories, embedding, halfvec } = names;
  const { bind, values, inShard } = conditions(shard);
  const ids = bind(embedded.map(({ row }) => row.id));
  const contents = bind(embedded.map(({ row }) => row.content));
  // The decimal form is exact.
  const vectors = bind(embedded.map(({ vector }) => toSql([...vector])));
  const written = await client.query(
    `update ${memories} m set ${embedding} = v.vector
     from unnest(${ids}::text[], ${contents}::text[], ${vectors}::${halfvec}[]) as v (id, content, vector)
     where ${inShard('m.')} and m.id = v.id and m.content = v.content and m.${embedding} is null`,
    values,
  );
  return written.rowCount ?? 0;
}

export interface Switch {
  readonly names: Names;
  readonly shards: readonly Buckets[];
  readonly column: string;
  /** Embeds the last memories while writers wait; undefined if that fails. */
  readonly embed: (texts: readonly string[]) => Promise<Float32Array[] | undefined>;
  /** Memories that may be embedded while writers wait. */
  readonly limit: number;
}

/**
 * Puts the new column into use, with a vector for every memory: those added since the last pass are embedded while writers
 * wait. Returns how many those were; undefined, without a change, if they were too many or could not be embedded.
 */
export function switchOver(
  session: ReembedSession,
  { names, shards, column, embed, limit }: Switch,
): Promise<number | undefined> {
  const { client } = session;
  const next = withVectorsIn(column, names);
  return withLocks(session, async () => {
    // In the order in which a starting gateway locks them.
    const store = await lockStore(client, names);
    if (store.next?.column !== column) {
      throw new Error('another run has discarded or finished this re-embed; run "omp-gateway reembed" again');
    }
    await client.query(`lock table ${names.memories} in share row exclusive mode`);
    let last = 0;
    for (const shard of shards) {
      const rows = await readMissing(client, next, { shard, after: '', limit: limit + 1 - last });
      last += rows.length;
      if (last > limit) return undefined;
      const vectors = rows.length > 0 ? await embed(rows.map(({ content }) => content)) : [];
      if (!vectors) return undefined;
      const embedded = rows.map((row, i) => ({ row, vector: vectors[i] as Float32Array }));
      await writeVectors(client, next, shard, embedded);
    }
    await client.query(`lock table ${names.memories} in access exclusive mode`);
    await replaceColumn(client, { names, next, to: store.next });
    return last;
  });
}

async function replaceColumn(
  client: pg.Client,
  { names, next, to }: { names: Names; next: Names; to: EmbedderIdentity },
): Promise<void> {
  await dropTrigger(client, names);
  // Every memory has its vector now.
  await client.query(`delete from ${names.ingestion}`);
  // Drops its indexes too.
  await client.query(`alter table ${names.memories} drop column ${names.embedding}`);
  for (const { name } of vectorIndexes(next, to.dimensions)) {
    await client.query(`alter index ${names.schema}.${nextName(name)} rename to ${name}`);
  }
  await setVectorStorage(client, next, to.dimensions);
  await client.query(
    `update ${names.store} set embedding_model = next_model, dimensions = next_dimensions, embedding_column = next_column,
       next_model = null, next_dimensions = null, next_column = null`,
  );
}
