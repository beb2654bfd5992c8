import { monotonicFactory } from 'ulid';
import type { Identity, Memory, NewMemory } from '#contract';

/** A pool of random bytes: the library would request random bytes for every character. */
const pool = new Uint8Array(4_096);
let used = pool.length;
function random(): number {
  if (used === pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  return (pool[used++] as number) / 256;
}

/** If the clock is set back further, its earlier time was wrong. */
const MAX_BACK_MS = 86_400_000;

/**
 * `now` in milliseconds, or `latest` if the clock was set back by at most a day, so that newer records list first. After a
 * larger correction the corrected time counts.
 */
export function notBefore(latest: number, now = Date.now()): number {
  return latest - now > MAX_BACK_MS ? now : Math.max(latest, now);
}

let ulid = monotonicFactory(random);
let latest = 0;

/** Id and creation time of a new record, for providers that generate ids. Within one process both increase like `notBefore`. */
export function newIdentity(): { id: string; created_at: string } {
  const now = notBefore(latest);
  // The old factory would continue from the later time.
  if (now < latest) ulid = monotonicFactory(random);
  latest = now;
  return { id: `mem_${ulid(latest)}`, created_at: new Date(latest).toISOString() };
}

/**
 * A new record, for providers that generate ids. Its status is `done` unless the identity has another. With the identity of
 * an earlier add, this is the record of that add.
 */
export function newRecord(
  input: NewMemory,
  embeddingModel: string | null,
  { id, created_at, status = 'done' }: Partial<Identity> & Pick<Identity, 'id' | 'created_at'> = newIdentity(),
): Memory {
  return { id, created_at, ...input, updated_at: created_at, embedding_model: embeddingModel, status };
}
