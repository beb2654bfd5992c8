import type { Log } from '#contract';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Stops in an orderly way at the first signal, with status 1 if that failed; the second ends the process at once. */
export function stopOnSignals(close: () => Promise<void>, log: Log): void {
  const stop = () => {
    // With nobody listening, a signal does what it does by itself.
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
}

/**
 * Starts what is then stopped by a signal, as above. One that comes before it has started aborts what `start` is given,
 * and this never settles: the process ends. Rejects as `start` does.
 */
export async function startUntilSignal<Started extends { close(): Promise<void> }>(
  start: (stopped: AbortSignal) => Promise<Started>,
  log: Log,
): Promise<Started> {
  const stopped = new AbortController();
  const starting = start(stopped.signal);
  stopOnSignals(async () => {
    stopped.abort();
    const started = await starting.catch((error: unknown) => {
      if (error !== stopped.signal.reason) throw error;
    });
    await started?.close();
  }, log);
  try {
    return await starting;
  } catch (error) {
    if (stopped.signal.aborted) await new Promise(() => {});
    throw error;
  }
}
