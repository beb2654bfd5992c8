import {
  type Call,
  IDEMPOTENCY_AHEAD_MS,
  IDEMPOTENCY_TTL_MS,
  type IdempotencyKey,
  invalidRequest,
  type Memory,
  type NewMemory,
  newRecord,
} from '#contract';
import type { Run } from './client/connections.ts';
import type { Conditions } from './tables/conditions.ts';
import type { Names } from './tables/names.ts';
import { toIso } from './tables/timestamps.ts';

/** Keys used at the first moment or before, or after the second, are forgotten. */
export function onceKnown(): [after: string, until: string] {
  const now = Date.now();
  return [new Date(now - IDEMPOTENCY_TTL_MS).toISOString(), new Date(now + IDEMPOTENCY_AHEAD_MS).toISOString()];
}

/**
 * Part of a `with`: takes the key for this memory, in `claimed` a row if that worked. While another gateway is taking
 * it, this waits until that one has committed, and takes the key itself should it have failed.
 */
export function claimKey(names: Names, place: Conditions['place'], once: IdempotencyKey, memory: Memory): string {
  const { id, created_at, embedding_model, status } = memory;
  const [after, until] = onceKnown();
  const row = [once.caller, once.key, once.fingerprint, id, created_at, embedding_model, status].map(place);
  return `claimed as (
    insert into ${names.onceKeys} as known (caller, key, fingerprint, memory_id, created_at, embedding_model, status)
    values (${row.join(', ')})
    on conflict (caller, key) do update set fingerprint = excluded.fingerprint, memory_id = excluded.memory_id,
      created_at = excluded.created_at, embedding_model = excluded.embedding_model, status = excluded.status
    where known.created_at <= ${place(after)}::timestamptz or known.created_at > ${place(until)}::timestamptz
    returning 1)`;
}

/**
 * What was answered when this key was used first; undefined when it never was, or so long ago that it is forgotten.
 * The input brings the contents, which are not kept with the key. Throws `invalid_request` when that was another input.
 */
export const createFirstAnswer =
  (names: Names, run: Run) =>
  async (input: NewMemory, { caller, key, fingerprint }: IdempotencyKey, call: Call): Promise<Memory | undefined> => {
    const [row] = await run(
      `select fingerprint, memory_id, date_part('epoch', created_at) * 1000 as created_at, embedding_model, status
       from ${names.onceKeys} where caller = $1 and key = $2 and created_at > $3 and created_at <= $4`,
      [caller, key, ...onceKnown()],
      call,
    );
    if (!row) return undefined;
    if (row.fingerprint !== fingerprint) {
      throw invalidRequest('Idempotency-Key: this key was used for another memory; take a new one');
    }
    return newRecord(input, row.embedding_model as string | null, {
      id: row.memory_id as string,
      created_at: toIso(row.created_at as number),
      status: row.status as Memory['status'],
    });
  };
