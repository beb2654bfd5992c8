import {
  type Call,
  IDEMPOTENCY_AHEAD_MS,
  IDEMPOTENCY_TTL_MS,
  type IdempotencyKey,
  invalidRequest,
  type Memory,
  type NewMemory,
} from '#contract';
import { newRecord } from '#toolbox';
import type { Run } from '../client/connections.ts';
import type { Conditions } from './conditions.ts';
import type { Names } from './names.ts';
import { toIso } from './timestamps.ts';

/** The period in which keys are remembered: those used at `after` or earlier, or later than `until`, have expired. */
export function keyPeriod(): [after: string, until: string] {
  const now = Date.now();
  return [new Date(now - IDEMPOTENCY_TTL_MS).toISOString(), new Date(now + IDEMPOTENCY_AHEAD_MS).toISOString()];
}

/**
 * Part of a `with`: claims the key for this memory. `claimed` has a row on success. If another gateway is claiming the key,
 * this waits for its transaction, and claims the key if that fails.
 */
export function claimKey(names: Names, bind: Conditions['bind'], key: IdempotencyKey, memory: Memory): string {
  const { id, created_at, embedding_model, status } = memory;
  const [after, until] = keyPeriod();
  const row = [key.caller, key.key, key.fingerprint, id, created_at, embedding_model, status].map(bind);
  return `claimed as (
    insert into ${names.onceKeys} as known (caller, key, fingerprint, memory_id, created_at, embedding_model, status)
    values (${row.join(', ')})
    on conflict (caller, key) do update set fingerprint = excluded.fingerprint, memory_id = excluded.memory_id,
      created_at = excluded.created_at, embedding_model = excluded.embedding_model, status = excluded.status
    where known.created_at <= ${bind(after)}::timestamptz or known.created_at > ${bind(until)}::timestamptz
    returning 1)`;
}

/**
 * The answer to the first use of this key; undefined if it was never used or has expired. The content comes from the input,
 * because the key keeps none. Throws `invalid_request` if the key was used for another input.
 */
export const createFirstAnswer =
  (names: Names, run: Run) =>
  async (input: NewMemory, { caller, key, fingerprint }: IdempotencyKey, call: Call): Promise<Memory | undefined> => {
    const [row] = await run(
      `select fingerprint, memory_id, date_part('epoch', created_at) * 1000 as created_at, embedding_model, status
       from ${names.onceKeys} where caller = $1 and key = $2 and created_at > $3 and created_at <= $4`,
      [caller, key, ...keyPeriod()],
      call,
    );
    if (!row) return undefined;
    if (row.fingerprint !== fingerprint) {
      throw invalidRequest('Idempotency-Key: this key was used for another memory; use a new one');
    }
    return newRecord(input, row.embedding_model as string | null, {
      id: row.memory_id as string,
      created_at: toIso(row.created_at as number),
      status: row.status as Memory['status'],
    });
  };
