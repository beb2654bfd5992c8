import { setTimeout } from 'node:timers/promises';

/** Memories of one request at most. */
const MAX_MEMORIES = 100;
const MINUTE_MS = 60_000;

/** Both in milliseconds. `sleep` rejects when the signal aborts. */
export interface Clock {
  now(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

const CLOCK: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) => setTimeout(ms, undefined, { signal }),
};

export interface Pace {
  /** Memories of one request. */
  readonly chunk: number;
  /** Resolves when the next request may begin. */
  turn(): Promise<void>;
}

/**
 * Requests at even distances, from the first one on: in no minute they hold more than so many memories together. A request that
 * comes late is not made up for. Undefined: no limit.
 */
export function createPace(perMinute: number | undefined, signal: AbortSignal, { now, sleep }: Clock = CLOCK): Pace {
  if (perMinute === undefined) return { chunk: MAX_MEMORIES, turn: async () => {} };
  const chunk = Math.min(MAX_MEMORIES, Math.ceil(perMinute / 60));
  const distance = MINUTE_MS / Math.max(1, Math.floor(perMinute / chunk));
  let last = Number.NEGATIVE_INFINITY;
  let waiting = Promise.resolve();
  const next = async () => {
    // A timer may end a little early.
    for (let left = last + distance - now(); left > 0; left = last + distance - now()) {
      await sleep(Math.ceil(left), signal);
    }
    last = now();
  };
  return {
    chunk,
    turn() {
      waiting = waiting.then(next);
      return waiting;
    },
  };
}
