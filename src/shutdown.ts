import type { Log } from '#contract';

/** The open parts of the gateway. They are closed in reverse order. */
export interface OpenParts {
  /** `close` may take `deadlineMs`. */
  add(part: string, close: () => Promise<void>, deadlineMs?: number): void;
  /**
   * Waits for a part that is opening, and closes it with the others. Rejects as soon as the start is stopped; a part that is
   * still opening then gets a moment to open, and is closed too.
   */
  open<Part extends { close(): Promise<void> }>(part: string, opening: Promise<Part>): Promise<Part>;
  /**
   * Closes every part, also if others fail or hang; rejects afterwards if one did. After `deadlineMs` in total, the remaining
   * parts are closed without waiting for them.
   */
  close(deadlineMs?: number): Promise<void>;
}

/** Deadline for one part, in milliseconds. */
const PART_MS = 5_000;
/** Deadline for all parts together, in milliseconds, in addition to the time for running requests. */
export const CLOSE_MS = 10_000;
/** Deadline for a part that is still opening when the start is stopped, in milliseconds. */
const OPENING_MS = 2_000;

/** `stopped` ends a start in progress. */
export function openParts(log: Log, stopSignal?: AbortSignal): OpenParts {
  const parts: { part: string; close: () => Promise<void>; deadlineMs: number }[] = [];
  const add: OpenParts['add'] = (part, close, deadlineMs = PART_MS) => void parts.push({ part, close, deadlineMs });
  /** What could not be opened may be tried again many times. */
  const forget = (close: () => Promise<void>) => {
    const at = parts.findIndex((one) => one.close === close);
    if (at >= 0) parts.splice(at, 1);
  };
  return {
    add,
    async open(part, opening) {
      const close = async () => {
        const ready = await inTime(result, OPENING_MS, () => undefined);
        await ready?.close();
      };
      const result = opening.catch(() => forget(close));
      add(part, close);
      return unlessStopped(opening, stopSignal);
    },
    async close(deadlineMs = CLOSE_MS) {
      const failures: string[] = [];
      const deadline = performance.now() + deadlineMs;
      for (const { part, close, deadlineMs: limit } of parts.splice(0).reverse()) {
        try {
          const ms = Math.round(Math.min(limit, Math.max(0, deadline - performance.now())));
          await inTime(close(), ms, () => {
            throw new Error(`not closed within ${ms} ms`);
          });
        } catch (error) {
          failures.push(part);
          log.error({ part, err: error }, 'a part of the gateway could not be closed');
        }
      }
      if (failures.length > 0) throw new Error(`not closed: ${failures.join(', ')}`);
    },
  };
}

/** The result of the work, or of `late` after `ms` milliseconds. */
async function inTime<Result>(work: Promise<Result>, ms: number, late: () => Result): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([work, deadline.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves with the opened part; rejects with the signal's reason as soon as that fires. */
const unlessStopped = <Part>(opening: Promise<Part>, stopSignal: AbortSignal | undefined): Promise<Part> =>
  new Promise((resolve, reject) => {
    if (!stopSignal) return resolve(opening);
    const stop = () => reject(stopSignal.reason);
    if (stopSignal.aborted) return stop();
    stopSignal.addEventListener('abort', stop, { once: true });
    opening.then(resolve, reject).finally(() => stopSignal.removeEventListener('abort', stop));
  });

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Starts, and closes at the first signal; the process then ends with status 0, or 1 if closing failed. A second signal ends
 * it at once. A signal during the start aborts the `AbortSignal` that `start` gets, and this promise stays pending until
 * the process ends. Rejects as `start` does.
 */
export async function runUntilSignal<Started extends { close(): Promise<void> }>(
  start: (stopSignal: AbortSignal) => Promise<Started>,
  log: Log,
): Promise<Started> {
  const stopController = new AbortController();
  const starting = start(stopController.signal);
  const close = async () => {
    stopController.abort();
    const running = await starting.catch((error: unknown) => {
      if (error !== stopController.signal.reason) throw error;
    });
    await running?.close();
  };
  const stop = () => {
    // Without a listener, the next signal has its default effect.
    for (const signal of SIGNALS) process.removeListener(signal, stop);
    log.info({}, 'stopping');
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'stopping failed');
        process.exit(1);
      },
    );
  };
  for (const signal of SIGNALS) process.on(signal, stop);
  try {
    return await starting;
  } catch (error) {
    if (stopController.signal.aborted) await new Promise(() => {});
    throw error;
  }
}
