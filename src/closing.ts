import type { Log } from '#contract';

/** What was opened so far and is to be closed, last opened first. */
export interface Closing {
  /** `close` is given up after `withinMs`. */
  add(part: string, close: () => Promise<void>, withinMs?: number): void;
  /**
   * Waits for a part that is being opened and closes it with the others. Rejects as soon as the start is stopped; what is
   * still opening then is waited for a moment, to be closed too.
   */
  open<Part extends { close(): Promise<void> }>(part: string, opening: Promise<Part>): Promise<Part>;
  /**
   * Closes every part, also when another one fails or hangs. Rejects afterwards if one did. Once all took longer than
   * `withinMs`, the rest is told to close and not waited for.
   */
  close(withinMs?: number): Promise<void>;
}

/** Longest time for one part, in milliseconds. */
const WITHIN_MS = 5_000;
/** Longest time for all of them together, in milliseconds, beside what is given to running requests. */
export const CLOSE_MS = 10_000;
/** Longest wait for what is still opening when the start is stopped, in milliseconds. */
const OPENING_MS = 2_000;

/** `stopped` ends a start that is under way. */
export function createClosing(log: Log, stopped?: AbortSignal): Closing {
  const parts: { part: string; close: () => Promise<void>; withinMs: number }[] = [];
  const add: Closing['add'] = (part, close, withinMs = WITHIN_MS) => void parts.push({ part, close, withinMs });
  return {
    add,
    async open(part, opening) {
      const opened = opening.catch(() => undefined);
      add(part, async () => {
        const ready = await inTime(opened, OPENING_MS, () => undefined);
        await ready?.close();
      });
      return unlessStopped(opening, stopped);
    },
    async close(withinMs = CLOSE_MS) {
      const failed: string[] = [];
      const until = performance.now() + withinMs;
      for (const { part, close, withinMs: most } of parts.splice(0).reverse()) {
        try {
          const ms = Math.round(Math.min(most, Math.max(0, until - performance.now())));
          await inTime(close(), ms, () => {
            throw new Error(`not closed within ${ms} ms`);
          });
        } catch (error) {
          failed.push(part);
          log.error({ part, err: error }, 'a part of the gateway could not be closed');
        }
      }
      if (failed.length > 0) throw new Error(`not closed: ${failed.join(', ')}`);
    },
  };
}

/** What the work comes to, or what `late` does once that took too long. */
async function inTime<Result>(work: Promise<Result>, ms: number, late: () => Result): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}

/** What is being opened, or the signal's reason as soon as that fires. */
export const unlessStopped = <Part>(opening: Promise<Part>, stopped: AbortSignal | undefined): Promise<Part> =>
  new Promise((resolve, reject) => {
    if (!stopped) return resolve(opening);
    const stop = () => reject(stopped.reason);
    if (stopped.aborted) return stop();
    stopped.addEventListener('abort', stop, { once: true });
    opening.then(resolve, reject).finally(() => stopped.removeEventListener('abort', stop));
  });
