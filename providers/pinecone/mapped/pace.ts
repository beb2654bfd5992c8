import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, OmpError } from '#contract';
import { PROVIDER } from '../client/errors.ts';

export interface PaceOptions {
  /** Most that may begin within the window, in milliseconds. */
  readonly most: number;
  readonly window_ms: number;
  /** Whoever would have to wait longer, in milliseconds, is told to come back. */
  readonly longest_wait_ms: number;
}

/** Lets callers begin as often as is allowed, in the order in which they ask. Throws `rate_limited` in a crowd. */
export function createPace({ most, window_ms, longest_wait_ms }: PaceOptions): (call: Call) => Promise<void> {
  /** The latest `most`, some of them to come. */
  const turns: number[] = [];
  return async (call) => {
    const now = performance.now();
    const turn = Math.max(now, (turns.at(-most) ?? Number.NEGATIVE_INFINITY) + window_ms);
    const wait = turn - now;
    if (wait > longest_wait_ms) {
      throw new OmpError('rate_limited', 'too many lists at once for what the backend allows', {
        provider: PROVIDER,
        retryAfter: Math.ceil(wait / 1_000),
      });
    }
    turns.push(turn);
    if (turns.length > most) turns.shift();
    const { signal } = call;
    if (wait > 0) await sleep(wait, undefined, { signal }).catch(() => signal.throwIfAborted());
  };
}
