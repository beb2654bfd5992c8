import { randomUUID } from 'node:crypto';
import { toSql } from 'pgvector';
import { type Backlog, backgroundCall, type Call, type IngestionQueue, ORIGIN, type QueuedMemory } from '#provider';
import type { Run } from '../client/connections.ts';
import { shardsWith } from '../scaling/shards.ts';
import { part, type WithPart } from '../sql/parts.ts';
import type { Names } from './names.ts';

/** Never aborted, because the outcome must be known. The connections limit the time. */
const CALL = backgroundCall('ingestion', new AbortController().signal);

const LEASE_SECONDS = 20;

/** `lease`: seconds until a claim expires. It is renewed in the background. */
export function createQueue(names: Names, run: Run, lease = LEASE_SECONDS): Omit<IngestionQueue, 'deferred'> {
  const send = (text: string, ...values: unknown[]) => run('small', text, values, CALL);
  return {
    async claim() {
      const token = randomUUID();
      const due = { table: names.ingestion, where: DUE };
      const shards = await shardsWith(names, due, (text, values) => run('heavy', text, values, CALL));
      // Several gateways rarely choose the same one.
      const shard = shards[Math.floor(Math.random() * shards.length)];
      const buckets = shard ? [shard] : [];
      const claimed =
        shards.length > 0
          ? await run({ weight: 'small', settings: CUSTOM_PLAN }, claimText(names), [token, lease, ...buckets], CALL)
          : [];
      // Rows without a content have their vector already.
      const rows = claimed.filter(({ content }) => content !== null) as unknown as QueuedMemory[];
      // If renewing fails for long, another gateway embeds the memories a second time, which is harmless.
      const renew = () => void send(renewText(names), token, lease, ...buckets).catch(() => {});
      const renewal = claimed.length > 0 ? setInterval(renew, lease * 250).unref() : undefined;
      return {
        taken: claimed.length,
        rows,
        async settle(embedded, failed) {
          // In the same order everywhere: two claims that share rows after a lease expired must not deadlock.
          const sorted = embedded.toSorted((a, b) => (a.row.id < b.row.id ? -1 : 1));
          await send(
            writeText(names),
            token,
            sorted.map(({ row }) => row.id),
            sorted.map(({ row }) => row.content),
            // The decimal form is exact.
            sorted.map(({ vector }) => toSql([...vector])),
            ...buckets,
          );
          if (failed.length === 0) return [];
          const columns = (['id', 'reason', 'pause'] as const).map((column) => failed.map((each) => each[column]));
          return (await send(judgeText(names), token, ...columns, ...buckets)) as { id: string; error: string }[];
        },
        async end() {
          clearInterval(renewal);
          await send(giveBackText(names), token, ...buckets);
        },
      };
    },
    clearFailed: async () => void (await run('heavy', clearFailedText(names), [], CALL)),
  };
}

export async function backlogOf(names: Names, run: Run, call: Call): Promise<Backlog> {
  const rows = await run('heavy', countText(names), [], call);
  const counts = Object.fromEntries(rows.map((row) => [row.status, row.memories]));
  return { queued: 0, indexing: 0, failed: 0, ...counts };
}

/*
 * Parts of a statement that has changed memories. All statements lock memories before their rows in the queue, which prevents deadlocks.
 */

/** Queues them, whatever their state in the queue: a worker that has claimed them loses its claim. */
export const enqueue = (names: Names, changed: WithPart<'bucket' | 'id'>): WithPart =>
  part(
    'queued',
  )`insert into ${names.ingestion} (bucket, memory_id, due_at, queued_at) select ${changed.bucket}, ${changed.id}, now(), now() from ${changed}
    on conflict (${names.placement.key('memory_id')}) do update set status = 'queued', attempts = 0, due_at = excluded.due_at,
      claim = null, error = null, queued_at = excluded.queued_at`;

/** Removes them from the queue, because they have their vectors. */
export const clearQueue = (names: Names, changed: WithPart<'id'>): WithPart =>
  part(
    'unqueued',
  )`delete from ${names.ingestion} where ${names.placement.inShard()} and memory_id in (select ${changed.id} from ${changed})`;

/** As many as an embedder sends in a few concurrent requests. */
const MAX_CLAIMED = 128;
/** Of the claimed contents, so that long ones do not fill the memory; one is always claimed. */
const MAX_BYTES = 8 * 1024 * 1024;

/** For `claimText`: a plan made for an empty queue would read and sort all of a long one. */
const CUSTOM_PLAN = 'set local plan_cache_mode = force_custom_plan';

const DUE = `status <> 'failed' and due_at <= now()`;

/*
 * The last parameter of each of these statements is the buckets of its shard, on Citus only.
 */

/**
 * Claims what is due, oldest first, including rows whose claim has expired. $1: the claim, $2: seconds until it expires.
 * Skips rows that others are claiming. Only the database's clock counts.
 */
const claimText = (names: Names, { ingestion, memories, embedding } = names): string => `
  with due as materialized (
    select memory_id, due_at from ${ingestion} where ${names.placement.inShards('$3')} and ${DUE}
    order by due_at limit ${MAX_CLAIMED} ${names.placement.skipLocked}),
  sized as materialized (
    select *, (select octet_length(content) from ${memories} where ${names.placement.inShards('$3')} and id = memory_id) as bytes from due),
  measured as (
    select memory_id, sum(bytes) over (order by due_at, memory_id) - bytes as before from sized),
  claimed as (
    update ${ingestion} i set status = 'indexing', claim = $1, due_at = now() + $2 * interval '1 second'
    from measured m where ${names.placement.inShards('$3', 'i.')} and i.memory_id = m.memory_id and before < ${MAX_BYTES}
      and status <> 'failed' and i.due_at <= now() returning i.memory_id, attempts)
  select id, attempts, case when ${embedding} is null then content end as content, extensions -> '${ORIGIN}' ->> 'key' as app
  from claimed join ${memories} on id = memory_id and ${names.placement.inShards('$3')}`;

/** Renews the claim $1 for another $2 seconds. */
const renewText = (names: Names): string =>
  `update ${names.ingestion} set due_at = now() + $2 * interval '1 second' where ${names.placement.inShards('$3')} and claim = $1`;

/**
 * Writes vectors where the content is still what was embedded: ids, contents and vectors are $2 to $4. Rows of the claim $1
 * that have a vector now, from here or elsewhere, leave the queue. `num_nulls`, because with "is null" a plan made for a
 * short queue would read all memories without a vector.
 */
const writeText = (names: Names, { ingestion, memories, embedding, halfvec } = names): string => `
  with written as (
    update ${memories} m set ${embedding} = v.vector
    from unnest($2::text[], $3::text[], $4::${halfvec}[]) as v (id, content, vector)
    where ${names.placement.inShards('$5', 'm.')} and m.id = v.id and m.content = v.content and num_nulls(m.${embedding}) = 1 returning m.id)
  delete from ${ingestion} where ${names.placement.inShards('$5')} and claim = $1 and (memory_id in (select id from written)
    or exists (select from ${memories} where ${names.placement.inShards('$5')} and id = memory_id and ${embedding} is not null))`;

/**
 * Records failures of single texts, as far as the claim $1 still holds them. $2 to $4: ids, reasons, and the seconds until
 * the next attempt, null after the last one. Returns those that have failed finally.
 */
const judgeText = (names: Names): string => `
  with judged as (
    update ${names.ingestion} i set attempts = attempts + 1, error = v.error, claim = null,
      status = case when v.pause is null then 'failed' else 'queued' end,
      due_at = now() + coalesce(v.pause, 0) * interval '1 second'
    from unnest($2::text[], $3::text[], $4::float8[]) as v (id, error, pause)
    where ${names.placement.inShards('$5', 'i.')} and i.memory_id = v.id and i.claim = $1 returning i.memory_id, i.status, i.error)
  select memory_id as id, error from judged where status = 'failed'`;

/** Releases the claim $1. */
const giveBackText = (names: Names): string =>
  `update ${names.ingestion} set status = 'queued', claim = null, due_at = now() where ${names.placement.inShards('$2')} and claim = $1`;

/** Removes memories that got their vector elsewhere: from an older gateway, or by a re-embed. */
export const clearText = (names: Names, { ingestion, memories, embedding } = names): string =>
  `delete from ${ingestion} q where exists (
    select from ${memories} m where id = memory_id and ${names.placement.sameBucket('m', 'q')} and ${embedding} is not null)`;

/** The same for failed memories, which nothing claims any more. */
const clearFailedText = (names: Names): string => `${clearText(names)} and status = 'failed'`;

const countText = ({ ingestion }: Names): string =>
  `select status, count(*)::float8 as memories from ${ingestion} group by status`;
