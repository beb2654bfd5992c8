import { type Backlog, GATEWAY, type Provider } from '#contract';

/** How long an answer is good for, in milliseconds: however often measures are asked for, the backend is not. */
const FRESH_MS = 5_000;
/** Longest wait for the backend, in milliseconds. Whoever collects measures does not wait for long either. */
const WAIT_MS = 1_000;

/** Asks the provider seldom and never twice at once. Undefined: it cannot be asked, or not in time. */
export function createBacklog(ask: NonNullable<Provider['backlog']>): () => Promise<Backlog | undefined> {
  let answer: Promise<Backlog | undefined> = Promise.resolve(undefined);
  let asked = Number.NEGATIVE_INFINITY;
  let asking = false;
  return () => {
    const now = performance.now();
    if (asking || now - asked < FRESH_MS) return answer;
    asked = now;
    asking = true;
    const signal = AbortSignal.timeout(WAIT_MS);
    const asks: Promise<Backlog | undefined> = ask({ signal, requestId: 'metrics', caller: GATEWAY })
      .catch(() => undefined)
      .finally(() => {
        asking = false;
      });
    const late = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    answer = Promise.race([asks, late]);
    return answer;
  };
}
