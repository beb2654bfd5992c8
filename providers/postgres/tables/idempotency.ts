import {
  type Call,
  IDEMPOTENCY_AHEAD_MS,
  IDEMPOTENCY_TTL_MS,
  type IdempotencyKey,
  invalidRequest,
  type KeyedAdd,
  type Memory,
} from '#contract';
import { newRecord } from '#toolbox';
import type { Run } from '../client/connections.ts';
import { toIso, toTextArray } from '../values.ts';
import type { Conditions } from './conditions.ts';
import { type Names, storedBucket } from './names.ts';

/** The period in which keys are remembered: those used at `after` or earlier, or later than `until`, have expired. */
export function keyPeriod(): [after: string, until: string] {
  const now = Date.now();
  return [new Date(now - IDEMPOTENCY_TTL_MS).toISOString(), new Date(now + IDEMPOTENCY_AHEAD_MS).toISOString()];
}

type KeyedMemory = readonly [key: IdempotencyKey, memory: Memory];

/**
 * A key belongs to its caller, not to the user of the memory: used for another user, it must be found. On Citus an add with a
 * key is a transaction on two shards.
 */
const keyBucket = (names: Names, { caller, key }: Pick<IdempotencyKey, 'caller' | 'key'>): number =>
  storedBucket(names, `${caller} ${key}`);

const rowOf = (names: Names, [{ caller, key, fingerprint }, memory]: KeyedMemory) => [
  ...[caller, key, fingerprint, memory.id],
  ...[memory.created_at, memory.embedding_model, memory.status, keyBucket(names, { caller, key })],
];

/**
 * Part of a `with`: claims the key for this memory. `claimed` has a row on success. If another gateway is claiming the key,
 * this waits for its transaction, and claims the key if that fails.
 */
export const claimKey = (names: Names, bind: Conditions['bind'], key: IdempotencyKey, memory: Memory): string =>
  claim(names, bind, `values (${rowOf(names, [key, memory]).map(bind).join(', ')})`);

/** The same for several. `claimed` has the `memory_id` of each success. */
export function claimKeys(names: Names, bind: Conditions['bind'], all: readonly KeyedMemory[]): string {
  const rows = all.map((each) => rowOf(names, each));
  const columns = KEY_TYPES.map((type, i) => `${bind(rows.map((row) => row[i]))}::${type}[]`);
  return claim(names, bind, `select * from unnest(${columns.join(', ')})`);
}
const KEY_TYPES = ['text', 'text', 'text', 'text', 'timestamptz', 'text', 'text', 'int2'];

/** `rows`: SQL of the rows of the keys. */
function claim(names: Names, bind: Conditions['bind'], rows: string): string {
  const [after, until] = keyPeriod();
  return `claimed as (
    insert into ${names.onceKeys} as known (caller, key, fingerprint, memory_id, created_at, embedding_model, status, bucket)
    ${rows}
    on conflict (${names.distributed ? 'bucket, ' : ''}caller, key) do update set fingerprint = excluded.fingerprint, memory_id = excluded.memory_id,
      created_at = excluded.created_at, embedding_model = excluded.embedding_model, status = excluded.status
    where known.created_at <= ${bind(after)}::timestamptz or known.created_at > ${bind(until)}::timestamptz
    returning memory_id)`;
}

/**
 * The answers to the first use of these keys; undefined if one was never used or has expired. The content comes from the
 * input, because the key keeps none. Throws `invalid_request` if a key was used for another input.
 */
export const createFirstAnswers =
  (names: Names, run: Run) =>
  async (adds: readonly KeyedAdd[], call: Call): Promise<(Memory | undefined)[]> => {
    const values = [adds[0]?.key.caller, toTextArray(adds.map(({ key }) => key.key)), ...keyPeriod()];
    const buckets = adds.map(({ key }) => keyBucket(names, key));
    // One look-up for each key: of `= any`, a plan for any values expects so many that it would read the index by time.
    const used = names.distributed
      ? `${names.onceKeys} where caller = $1 and key = any($2::text[]) and bucket = any($5::int2[])`
      : `unnest($2::text[]) as wanted, lateral (select * from ${names.onceKeys} where caller = $1 and key = wanted limit 1) as used where true`;
    const rows = await run(
      `select key, fingerprint, memory_id, date_part('epoch', created_at) * 1000 as created_at, embedding_model, status
       from ${used} and created_at > $3 and created_at <= $4`,
      names.distributed ? [...values, buckets] : values,
      call,
    );
    const known = new Map(rows.map((row) => [row.key, row]));
    return adds.map(({ input, key }) => {
      const row = known.get(key.key);
      if (row && row.fingerprint !== key.fingerprint) {
        throw invalidRequest('Idempotency-Key: this key was used for another memory; use a new one');
      }
      return (
        row &&
        input &&
        newRecord(input, row.embedding_model as string | null, {
          id: row.memory_id as string,
          created_at: toIso(row.created_at as number),
          status: row.status as Memory['status'],
        })
      );
    });
  };
