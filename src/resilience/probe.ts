import { type Call, GATEWAY } from '#contract';

/** Longest wait for the answer to a probe, in milliseconds. */
const WITHIN_MS = 2_000;

/** A probe that failed, for whatever reason. */
export class NoAnswer extends Error {}

/** Rejects with `NoAnswer` unless the probe succeeds in time, also where it does not heed its signal. */
export async function withinTime(probe: (call: Call) => Promise<unknown>): Promise<void> {
  const signal = AbortSignal.timeout(WITHIN_MS);
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  try {
    await Promise.race([probe({ signal, requestId: 'probe', caller: GATEWAY }), late]);
  } catch (cause) {
    throw new NoAnswer('the probe failed', { cause });
  }
}
