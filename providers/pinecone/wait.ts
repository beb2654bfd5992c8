import { setTimeout as sleep } from 'node:timers/promises';
import type { Call } from '#contract';

/** Milliseconds between attempts; the last one repeats. */
const PAUSES = [25, 50, 100, 200] as const;

/** Attempts until one succeeds or about `wait_ms` are over, once at least; whether one did. Ends when the call does. */
export async function waitUntil(attempt: () => Promise<boolean>, wait_ms: number, call: Call): Promise<boolean> {
  const end = performance.now() + wait_ms;
  for (let turn = 0; !(await attempt()); turn++) {
    const left = end - performance.now();
    if (left <= 0) return false;
    const pause = Math.min(left, PAUSES[Math.min(turn, PAUSES.length - 1)] as number);
    await sleep(pause, undefined, { signal: call.signal }).catch(() => call.signal.throwIfAborted());
  }
  return true;
}
