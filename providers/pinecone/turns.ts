import { setMaxListeners } from 'node:events';
import { OmpError } from '#contract';
import { PROVIDER } from './errors.ts';

export interface Turns {
  /** Runs the work once it is its turn. Rejects with the signal's reason as soon as that fires before. */
  take<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result>;
  /** How many wait. */
  waiting(): number;
}

/**
 * So many at once, in the order in which they came; the others wait, and beyond `most` of those `rate_limited` is the answer.
 * Whoever is aborted gives up the place at once: a client that has gone keeps nobody else out.
 */
export function createTurns(atOnce: number, mostWaiting: number): Turns {
  const waiting = new Set<() => void>();
  let working = 0;

  const turn = (signal: AbortSignal) =>
    new Promise<void>((begin, reject) => {
      const start = () => {
        waiting.delete(start);
        signal.removeEventListener('abort', leave);
        working++;
        begin();
      };
      const leave = () => {
        waiting.delete(start);
        reject(signal.reason);
      };
      waiting.add(start);
      // Any number of requests may share it; Node would warn of the eleventh.
      setMaxListeners(0, signal);
      signal.addEventListener('abort', leave, { once: true });
    });

  return {
    async take(signal, work) {
      signal.throwIfAborted();
      if (working < atOnce) working++;
      else if (waiting.size < mostWaiting) await turn(signal);
      else throw tooManyWaiting();
      try {
        return await work();
      } finally {
        working--;
        const [next] = waiting;
        next?.();
      }
    },
    waiting: () => waiting.size,
  };
}

const tooManyWaiting = () =>
  new OmpError('rate_limited', 'too many requests wait for Pinecone; retry in 1 s', {
    provider: PROVIDER,
    retryAfter: 1,
  });
