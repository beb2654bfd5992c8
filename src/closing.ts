import type { Log } from '#contract';

/** What was opened so far and is to be closed, last opened first. */
export interface Closing {
  /** `close` is given up after `withinMs`. */
  add(part: string, close: () => Promise<void>, withinMs?: number): void;
  /** Closes every part, also when another one fails or hangs. Rejects afterwards if one did. */
  close(): Promise<void>;
}

const WITHIN_MS = 5_000;

export function createClosing(log: Log): Closing {
  const parts: { part: string; close: () => Promise<void>; withinMs: number }[] = [];
  return {
    add: (part, close, withinMs = WITHIN_MS) => void parts.push({ part, close, withinMs }),
    async close() {
      const failed: string[] = [];
      for (const { part, close, withinMs } of parts.splice(0).reverse()) {
        try {
          await inTime(close(), withinMs);
        } catch (error) {
          failed.push(part);
          log.error({ part, err: error }, 'a part of the gateway could not be closed');
        }
      }
      if (failed.length > 0) throw new Error(`not closed: ${failed.join(', ')}`);
    },
  };
}

async function inTime(work: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not closed within ${ms} ms`)), ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
