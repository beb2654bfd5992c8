import { setTimeout as sleep } from 'node:timers/promises';
import { Failure, type FailureKind } from './failure.ts';

/** The most attempts, the first included, after a failure of this kind; and which requests are repeated at all. */
interface Rule {
  readonly repeat: 'all' | 'repeatable' | 'none';
  readonly attempts: number;
}

/**
 * What is repeated. A request that was never sent or was answered is over: all of ours may be sent again. Without an
 * answer it may still be carried out later, after somebody else's change: then only a `repeatable` one is sent again.
 * A deadline that passed took long already, and told of a service that has too much to do.
 */
export const RULES = {
  unreachable: { repeat: 'all', attempts: 3 },
  busy: { repeat: 'all', attempts: 3 },
  failed: { repeat: 'all', attempts: 3 },
  lost: { repeat: 'repeatable', attempts: 3 },
  unreadable: { repeat: 'repeatable', attempts: 3 },
  late: { repeat: 'repeatable', attempts: 2 },
  insecure: { repeat: 'none', attempts: 1 },
  refused: { repeat: 'none', attempts: 1 },
} as const satisfies Record<FailureKind, Rule>;

/** Longest wait, in seconds, that a service may ask for without its caller being told instead. */
const LONGEST_WAIT = 1;
const BASE_MS = 100;

export interface Repeating {
  /** Harmless when carried out twice, also late: reads and deletes. */
  readonly repeatable: boolean;
  readonly signal: AbortSignal;
}

/**
 * Makes the attempt, and again as `RULES` has it, after pauses of random length (full jitter) that double. Rejects with
 * the last `Failure`, or with the signal's reason as soon as that fires.
 */
export async function repeating<Result>(
  attempt: () => Promise<Result>,
  { repeatable, signal }: Repeating,
): Promise<Result> {
  for (let made = 1; ; made++) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      const pause = error instanceof Failure ? pauseAfter(error, made, repeatable) : undefined;
      if (pause === undefined) throw error;
      // Aborted, it is over at once, and the loop throws.
      await sleep(pause, undefined, { signal }).catch(() => {});
    }
  }
}

/** Milliseconds to wait before the next attempt. Undefined: there is none. */
export function pauseAfter({ kind, retryAfter = 0 }: Failure, made: number, repeatable: boolean): number | undefined {
  const { repeat, attempts }: Rule = RULES[kind];
  if (made >= attempts || repeat === 'none' || (repeat === 'repeatable' && !repeatable)) return undefined;
  if (retryAfter > LONGEST_WAIT) return undefined;
  return retryAfter * 1000 + Math.random() * BASE_MS * 2 ** (made - 1);
}
