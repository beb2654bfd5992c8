import { monotonicFactory } from 'ulid';
import type { Memory, NewMemory } from './record.ts';

/** The library would ask the system for one random number a character. */
const pool = new Uint8Array(4_096);
let used = pool.length;
function random(): number {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  return (pool[used++] as number) / 256;
}

const ulid = monotonicFactory(random);
let latest = 0;

/**
 * Id and creation time of a new record, for providers that make their own. Within one process both only ever grow,
 * also when the clock is set back, so that records made one after the other list in that order.
 */
export function newIdentity(): { id: string; created_at: string } {
  latest = Math.max(latest, Date.now());
  return { id: `mem_${ulid(latest)}`, created_at: new Date(latest).toISOString() };
}

/** Id and creation time, and whether the record is indexed yet. */
export type Identity = Pick<Memory, 'id' | 'created_at'> & Partial<Pick<Memory, 'status'>>;

/**
 * A new record, for providers that make their own ids; unless the identity says otherwise it is indexed by the time it is
 * returned. With the identity of one that was made before: what that one was.
 */
export function newRecord(
  input: NewMemory,
  embeddingModel: string | null,
  { id, created_at, status = 'done' }: Identity = newIdentity(),
): Memory {
  return { id, created_at, ...input, updated_at: created_at, embedding_model: embeddingModel, status };
}
