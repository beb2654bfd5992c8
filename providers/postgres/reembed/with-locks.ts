import type pg from 'pg';
import { codeOf } from '../errors.ts';
import type { Clock } from './clock.ts';

/** Whoever comes after us waits as long as we wait. */
const LOCK_MS = 2_000;
const PAUSE_MS = 1_000;
const TRIES = 60;

export interface Locking {
  readonly client: pg.Client;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * A transaction that locks tables which others use: it waits for a lock only so long, and when that or a deadlock ends
 * it, it is tried again after a pause. Undefined as a result rolls back.
 */
export async function withLocks<Result>(
  { client, clock, signal }: Locking,
  work: () => Promise<Result | undefined>,
): Promise<Result | undefined> {
  for (let left = TRIES; ; left--) {
    try {
      await client.query(`begin; set local lock_timeout = ${LOCK_MS}`);
      const result = await work();
      await client.query(result === undefined ? 'rollback' : 'commit');
      return result;
    } catch (error) {
      // The connection may be gone, and the transaction with it.
      await client.query('rollback').catch(() => {});
      if (!isBusy(error)) throw error;
      if (left <= 1) {
        throw new Error(
          'the table of memories is not free for a moment: something works on it for long, such as a dump or a vacuum full; when that is over, run "omp-gateway reembed" again',
          { cause: error },
        );
      }
    }
    await clock.sleep(PAUSE_MS, signal);
  }
}

/** Waited too long for a lock (55P03), or gave way in a deadlock (40P01). */
const isBusy = (error: unknown): boolean => ['55P03', '40P01'].includes(codeOf(error) ?? '');
