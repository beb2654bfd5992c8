import { setTimeout as wait } from 'node:timers/promises';

/** Time as the work sees it. */
export interface Clock {
  /** Milliseconds since some moment; never goes back. */
  now(): number;
  /** Rejects with the signal's reason as soon as that fires. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const CLOCK: Clock = {
  now: () => performance.now(),
  async sleep(ms, signal) {
    await wait(ms, undefined, { signal }).catch((error: unknown) => {
      throw signal.aborted ? signal.reason : error;
    });
  },
};
