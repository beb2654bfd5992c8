import { monotonicFactory } from 'ulid';
import type { Memory, NewMemory } from '#contract';

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

/** A clock that is set back further was wrong before. */
const MOST_BACK_MS = 86_400_000;

/**
 * The time of now in milliseconds, but not before `latest` if the clock was set back by a day at most: what is made
 * later lists first. A clock that was further ahead must not leave its time on whatever is made after it was corrected.
 */
export function notBefore(latest: number, now = Date.now()): number {
  return latest - now > MOST_BACK_MS ? now : Math.max(latest, now);
}

let ulid = monotonicFactory(random);
let latest = 0;

/** Id and creation time of a new record, for providers that make their own. Within one process both grow as `notBefore` does. */
export function newIdentity(): { id: string; created_at: string } {
  const now = notBefore(latest);
  // It would go on from the later time.
  if (now < latest) ulid = monotonicFactory(random);
  latest = now;
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
