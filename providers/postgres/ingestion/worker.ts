import { setMaxListeners } from 'node:events';
import { type Call, type Embedder, GATEWAY, type Log, OmpError } from '#contract';
import { askFor, embedAll } from './embed.ts';
import { pauseAfter } from './pause.ts';
import type { Queue } from './queue.ts';

export interface Ingestion {
  /** Looks at once: something was put into the queue here. */
  kick(): void;
  /** Stops at once; what was being embedded is given back. */
  close(): Promise<void>;
}

export interface IngestionOptions {
  readonly queue: Queue;
  readonly embedder: Embedder;
  readonly log: Log;
}

/** How often an empty queue is looked at: once a second, less and less often while it stays empty. */
const IDLE_SECONDS = 1;
const LONGEST_IDLE_SECONDS = 5;
/** So many failures in a row are more than a hiccup, and told. */
const TOLD_AFTER = 2;

/**
 * Computes the vectors of queued memories, one batch after the other, for as long as this gateway runs. Any number of
 * gateways share a queue. While the embedding service or the database does not work, nothing is taken: one text is sent now
 * and then to find out.
 */
export function startIngestion({ queue, embedder, log }: IngestionOptions): Ingestion {
  const stop = new AbortController();
  // Each text of a batch listens; Node would take that for a leak.
  setMaxListeners(0, stop.signal);
  const call: Call = { signal: stop.signal, requestId: 'ingestion', caller: GATEWAY };
  const { sleep, wake } = createSleep();
  let failures = 0;
  let idle = IDLE_SECONDS;
  let kicked = false;

  /** Returns whether there was something to do. Throws when something does not work that others need too. */
  const round = async (): Promise<boolean> => {
    if (failures > 0) await askFor(embedder, 'memory', call);
    const { taken, rows, settle, end } = await queue.claim();
    if (taken === 0) return false;
    try {
      const { embedded, judged, trouble } = await embedAll(embedder, rows, call);
      for (const { id, error } of await settle(embedded, judged)) {
        log.warn({ memory_id: id, reason: error }, 'a memory could not be embedded and is found by its words alone');
      }
      if (embedded.length > 0) recovered();
      if (trouble !== undefined) throw trouble;
    } finally {
      await end();
    }
    return true;
  };
  const recovered = () => {
    if (failures >= TOLD_AFTER) log.info({}, 'vectors are computed in the background again');
    failures = 0;
  };
  /** Returns the seconds until the next attempt. */
  const failed = (error: unknown): number => {
    failures += 1;
    if (failures === TOLD_AFTER) {
      const fields = error instanceof OmpError ? { reason: error.message, provider: error.provider } : { err: error };
      log.warn(fields, 'vectors cannot be computed in the background; memories wait for theirs until that works again');
    }
    return Math.max(pauseAfter(failures), (error instanceof OmpError && error.retryAfter) || 0);
  };
  const work = async (): Promise<void> => {
    await queue.clearFailed().catch(() => {});
    while (!stop.signal.aborted) {
      try {
        kicked = false;
        const found = await round();
        recovered();
        if (found) idle = IDLE_SECONDS;
        else if (!kicked && !stop.signal.aborted) await sleep(idle * (1 + Math.random() / 4));
        idle = found || kicked ? IDLE_SECONDS : Math.min(LONGEST_IDLE_SECONDS, idle * 1.5);
      } catch (error) {
        if (stop.signal.aborted) return;
        await sleep(failed(error));
      }
    }
  };

  const running = work();
  return {
    kick() {
      kicked = true;
      // While something does not work, more memories do not make it work.
      if (failures === 0) wake();
    },
    async close() {
      stop.abort(new Error('closing'));
      wake();
      await running;
    },
  };
}

/** Seconds of sleep that somebody else can end. */
function createSleep() {
  let wake = () => {};
  const sleep = (seconds: number) =>
    new Promise<void>((done) => {
      const timer = setTimeout(done, seconds * 1_000).unref();
      wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  return { sleep, wake: () => wake() };
}
