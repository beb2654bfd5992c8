import { once } from 'node:events';
import { backgroundCall, type Call } from '#contract';

/** Deadline of the backend, in milliseconds: those who ask have short deadlines. */
const WAIT_MS = 1_000;

/** How long an answer for metrics is kept, in milliseconds: frequent scrapes must not load the backend. */
const SCRAPED_MS = 5_000;

/** A value of the backend for a metric. */
export const scraped = <Answer>(current: () => ((call: Call) => Promise<Answer>) | undefined) =>
  cachedAnswer('metrics', current, SCRAPED_MS);

/**
 * Asks for something that many want to know, never twice at once. An answer is kept for `freshMs`. Undefined: it cannot be asked, failed,
 * or was too slow.
 */
export function cachedAnswer<Answer>(
  name: string,
  current: () => ((call: Call) => Promise<Answer>) | undefined,
  freshMs: number,
): () => Promise<Answer | undefined> {
  let answer: Promise<Answer | undefined> = Promise.resolve(undefined);
  let askedAt = Number.NEGATIVE_INFINITY;
  let asking = false;
  return () => {
    const ask = current();
    if (!ask) return Promise.resolve(undefined);
    const now = performance.now();
    if (asking || now - askedAt < freshMs) return answer;
    askedAt = now;
    asking = true;
    const signal = AbortSignal.timeout(WAIT_MS);
    const asks: Promise<Answer | undefined> = ask(backgroundCall(name, signal))
      .catch(() => undefined)
      .finally(() => {
        asking = false;
      });
    const late = once(signal, 'abort').then(() => undefined);
    answer = Promise.race([asks, late]);
    return answer;
  };
}
