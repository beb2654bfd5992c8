import type { Log } from '#contract';

/** Longest wait for a store, in milliseconds: a request is not held up for being counted. */
export const WAIT_MS = 500;
/** How often a store that is down is tried again, in milliseconds. */
const RETRY_MS = 1_000;

/** Asks the store; where it fails or is too slow, does the other thing. */
export type OrElse = <Result>(ask: () => Promise<Result>, otherwise: () => Promise<Result>) => Promise<Result>;

/**
 * While a store is down, one request in a while tries it and all others do without it at once. The log has one line
 * when an outage begins and one when it ends.
 */
export function watchOutages(store: string, log: Log, wait_ms = WAIT_MS): OrElse {
  let down = false;
  let retryAt = 0;
  return async (ask, otherwise) => {
    const trying = down;
    if (trying) {
      if (performance.now() < retryAt) return otherwise();
      retryAt = performance.now() + RETRY_MS;
    }
    try {
      const result = await inTime(ask(), wait_ms);
      // Only an attempt made while it was down tells that it is back: others may have been answered before.
      if (trying && down) {
        down = false;
        log.info({ store }, 'the store of rate limits answers again');
      }
      return result;
    } catch (error) {
      if (!down) log.warn({ err: error, store }, 'the store of rate limits fails: every process limits on its own');
      down = true;
      retryAt = performance.now() + RETRY_MS;
      return otherwise();
    }
  };
}

async function inTime<Result>(work: Promise<Result>, wait_ms: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // After a turn of the event loop: what arrived while this process was busy counts as in time.
    const giveUp = () => setImmediate(() => reject(new Error(`no answer within ${wait_ms} ms`)));
    timer = setTimeout(giveUp, wait_ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
