import { setTimeout as sleep } from 'node:timers/promises';
import { PATIENCE_MS } from './full.ts';

/** Tries again until it does not throw, and answers what it returns. Far longer than any machine takes: only what never comes fails. Also outside of a test. */
export async function eventually<Result>(look: () => Result | Promise<Result>): Promise<Result> {
  for (const ends = performance.now() + PATIENCE_MS; ; ) {
    try {
      return await look();
    } catch (error) {
      if (performance.now() > ends) throw error;
      await sleep(20);
    }
  }
}
