import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

export interface HeldTimers {
  /** How many wait at this moment. */
  waiting(): number;
  /** The time of all that wait has passed. */
  pass(): void;
  /** Lets time pass for whatever waits, again and again, until the work is done. */
  passUntil<Result>(work: Promise<Result>): Promise<Result>;
}

/** The longest a timer may take. */
const NEVER_MS = 2 ** 31 - 1;

/**
 * Until the test ends, whatever waits for just so many milliseconds in this process waits until the test lets them pass,
 * however busy the machine is. All other timers are left alone.
 */
export function holdTimers(milliseconds: number): HeldTimers {
  const held = new Map<unknown, () => void>();
  const { setTimeout: start, clearTimeout: clear } = globalThis;
  const hold = (work: (...given: unknown[]) => void, ms?: number, ...given: unknown[]) => {
    if (ms !== milliseconds) return start(work, ms, ...given);
    const timer = start(() => {}, NEVER_MS).unref();
    timer.refresh = () => {
      held.set(timer, () => work(...given));
      return timer;
    };
    return timer.refresh();
  };
  globalThis.setTimeout = Object.assign(hold, start) as typeof setTimeout;
  globalThis.clearTimeout = (timer) => {
    held.delete(timer);
    clear(timer);
  };
  onTestFinished(() => {
    globalThis.setTimeout = start;
    globalThis.clearTimeout = clear;
  });
  const pass = () => {
    const all = [...held];
    held.clear();
    for (const [, work] of all) work();
  };
  return {
    waiting: () => held.size,
    pass,
    async passUntil(work) {
      let done = false;
      const settled = work.finally(() => {
        done = true;
      });
      settled.catch(() => {});
      for (; !done; await sleep(2)) pass();
      return settled;
    },
  };
}
