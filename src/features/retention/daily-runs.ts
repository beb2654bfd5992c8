import { backgroundCall, type Log } from '#contract';
import type { Store } from '../../core/store.ts';
import type { Retention, RetentionPlace } from './retention.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export interface RetentionRunsOptions {
  readonly retention: Retention;
  readonly store: Store;
  readonly log: Log;
  /** Milliseconds before the first pass: by chance, so that gateways which start together do not walk together. */
  readonly first_ms?: number;
  /** Between two passes, and before one that failed goes on. */
  readonly every_ms?: number;
  readonly retry_ms?: number;
}

/**
 * A pass of retention once a day, in the background. Any number of gateways may do so: a memory is deleted once. A pass that the
 * store stops, such as a frozen one, goes on later where it was.
 */
export function startRetention({
  retention,
  store,
  log,
  first_ms = MINUTE_MS * (1 + 9 * Math.random()),
  every_ms = 24 * HOUR_MS,
  retry_ms = 10 * MINUTE_MS,
}: RetentionRunsOptions): { close(): Promise<void> } {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let running = Promise.resolve();
  /** Where the pass goes on; undefined: at the beginning. */
  let from: RetentionPlace | undefined;

  const pass = async () => {
    const call = backgroundCall('retention', stop.signal);
    let deleted = 0;
    /** Where the first store is that did not answer. */
    let again: RetentionPlace | undefined;
    for await (const step of retention.pass({ store, from, dry_run: false }, call)) {
      deleted += step.deleted.length;
      const [err] = step.failures;
      if (err) log.warn({ err, failed: step.failures.length }, 'retention could not delete; the next pass tries again');
      if (call.leftOut?.['x-partial']) again ??= from;
      from = step.next;
    }
    const absent = call.leftOut?.['x-partial'];
    if (absent) {
      from = again;
      throw new Error(`no answer from ${absent.join(', ')}`);
    }
    retention.complete();
    log.info({ deleted }, 'retention has looked at all memories');
  };
  const run = (): Promise<void> =>
    pass().then(
      () => schedule(every_ms),
      (error: unknown) => {
        if (!stop.signal.aborted) log.warn({ err: error }, 'retention failed; it will go on later');
        schedule(retry_ms);
      },
    );
  const schedule = (ms: number) => {
    if (stop.signal.aborted) return;
    timer = setTimeout(() => {
      running = run();
    }, ms).unref();
  };

  schedule(first_ms);
  return {
    async close() {
      stop.abort(new Error('closing'));
      clearTimeout(timer);
      await running;
    },
  };
}
