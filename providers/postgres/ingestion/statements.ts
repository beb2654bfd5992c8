import type { Names } from '../tables/names.ts';

/**
 * Parts of a `with` over the rows that a statement has `changed`. All statements take locks in the same order, memories
 * before their places in the queue, so that none waits for one that waits for it.
 */

/** Their vectors are to be computed, whatever the queue knew of them before: a worker that has them loses its claim. */
export const enqueue = (names: Names): string => `queued as (
    insert into ${names.ingestion} (memory_id) select id from changed
    on conflict (memory_id) do update set status = 'queued', attempts = 0, due_at = now(), claim = null, error = null,
      queued_at = now())`;

/** They have their vectors. */
export const clearQueue = (names: Names): string =>
  `unqueued as (delete from ${names.ingestion} where memory_id in (select id from changed))`;

/** As many at once as an embedder sends in a few requests at the same time. */
const MOST_CLAIMED = 128;
/** Of contents at once, so that long ones do not fill the memory; one is always taken. */
const MOST_BYTES = 8 * 1024 * 1024;

/** For `claimText`: a plan that was made while the queue was empty would read and sort all of it when it is long. */
export const PLANNED_ANEW = 'set local plan_cache_mode = force_custom_plan';

/**
 * Takes what is due, oldest first, and what a gateway took that then was heard of no more: $1 the claim, $2 the seconds it
 * holds. Whatever others are taking at this moment is passed by. The time is the database's alone.
 */
export const claimText = ({ ingestion, memories, embedding }: Names): string => `
  with due as materialized (
    select memory_id, due_at from ${ingestion} where status <> 'failed' and due_at <= now()
    order by due_at limit ${MOST_CLAIMED} for update skip locked),
  sized as materialized (
    select *, (select octet_length(content) from ${memories} where id = memory_id) as bytes from due),
  measured as (
    select memory_id, sum(bytes) over (order by due_at, memory_id) - bytes as before from sized),
  claimed as (
    update ${ingestion} i set status = 'indexing', claim = $1, due_at = now() + $2 * interval '1 second'
    from measured m where i.memory_id = m.memory_id and before < ${MOST_BYTES} returning i.memory_id, attempts)
  select id, attempts, case when ${embedding} is null then content end as content
  from claimed join ${memories} on id = memory_id`;

/** Holds the claim $1 for another $2 seconds. */
export const renewText = ({ ingestion }: Names): string =>
  `update ${ingestion} set due_at = now() + $2 * interval '1 second' where claim = $1`;

/**
 * Writes vectors where the content is still what was embedded: ids, contents and vectors are $2 to $4. What has its
 * vector, from here or from elsewhere, leaves the queue, if it is still ours: $1 is the claim. "is null" would lead a plan
 * made while the queue was short to all memories without a vector.
 */
export const writeText = ({ ingestion, memories, embedding, halfvec }: Names): string => `
  with written as (
    update ${memories} m set ${embedding} = v.vector
    from unnest($2::text[], $3::text[], $4::${halfvec}[]) as v (id, content, vector)
    where m.id = v.id and m.content = v.content and num_nulls(m.${embedding}) = 1 returning m.id)
  delete from ${ingestion} where claim = $1 and (memory_id in (select id from written)
    or exists (select from ${memories} where id = memory_id and ${embedding} is not null))`;

/**
 * Of what could not be embedded for its own sake, if it is still ours: $1 is the claim, $2 to $4 ids, reasons, and the
 * seconds until the next attempt, null after the last. Returns those that failed.
 */
export const judgeText = ({ ingestion }: Names): string => `
  with judged as (
    update ${ingestion} i set attempts = attempts + 1, error = v.error, claim = null,
      status = case when v.pause is null then 'failed' else 'queued' end,
      due_at = now() + coalesce(v.pause, 0) * interval '1 second'
    from unnest($2::text[], $3::text[], $4::float8[]) as v (id, error, pause)
    where i.memory_id = v.id and i.claim = $1 returning i.memory_id, i.status, i.error)
  select memory_id as id, error from judged where status = 'failed'`;

/** Gives back what is still ours. */
export const giveBackText = ({ ingestion }: Names): string =>
  `update ${ingestion} set status = 'queued', claim = null, due_at = now() where claim = $1`;

/** Whatever got its vector by other means: from gateways that know no queue, or embedded anew. */
export const clearText = ({ ingestion, memories, embedding }: Names): string =>
  `delete from ${ingestion} where exists (select from ${memories} where id = memory_id and ${embedding} is not null)`;

/** Of that the failures, which nobody looks at any more; the others are found done by whoever claims them. */
export const clearFailedText = (names: Names): string => `${clearText(names)} and status = 'failed'`;

export const countText = ({ ingestion }: Names): string =>
  `select status, count(*)::float8 as memories from ${ingestion} group by status`;
