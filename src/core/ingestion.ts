import { setMaxListeners } from 'node:events';
import {
  type Call,
  type EmbeddedMemory,
  type Embedder,
  type FailedMemory,
  GATEWAY,
  type IngestionQueue,
  type Log,
  OmpError,
  type QueuedMemory,
} from '#contract';

/** Computes the vectors of queued memories. */
export interface Ingestion {
  /** Looks at once: a memory was put into the queue here. */
  kick(): void;
  /** Stops at once; what was being embedded goes back into the queue. */
  close(): Promise<void>;
}

export interface IngestionOptions {
  readonly queue: IngestionQueue;
  readonly embedder: Embedder;
  readonly log: Log;
}

/** Times a text may fail alone while the service works for others. */
const MOST_ATTEMPTS = 5;
/** Pause after a failure; it doubles with each further one in a row, up to the longest. In seconds. */
const FIRST_PAUSE_SECONDS = 1;
const LONGEST_PAUSE_SECONDS = 60;
/** How often an empty queue is looked at: once a second, less and less often while it stays empty. */
const IDLE_SECONDS = 1;
const LONGEST_IDLE_SECONDS = 5;
/** Failures in a row before the log says so. */
const LOGGED_AFTER = 2;

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
    if (failures > 0) await embed(embedder, 'memory', call);
    const { taken, rows, settle, end } = await queue.claim();
    if (taken === 0) return false;
    try {
      const { embedded, failed, trouble } = await embedAll(embedder, rows, call);
      for (const { id, error } of await settle(embedded, failed)) {
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
    if (failures >= LOGGED_AFTER) log.info({}, 'vectors are computed in the background again');
    failures = 0;
  };
  /** Returns the seconds until the next attempt. */
  const pauseFor = (error: unknown): number => {
    failures += 1;
    if (failures === LOGGED_AFTER) {
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
        await sleep(pauseFor(error));
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

/** A sleep of so many seconds that `wake` ends. */
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

interface Outcome {
  readonly embedded: readonly EmbeddedMemory[];
  readonly failed: readonly FailedMemory[];
  /** Why the rest was not embedded, which is no fault of its texts; undefined: there is no rest. */
  readonly trouble?: unknown;
}

/**
 * Embeds each text separately; the embedder puts them into batches. A text that the embedder rejects has failed. A text
 * that fails otherwise is tried alone, and has failed only if the service then works for another text. If it does not,
 * or limits its rate, that is the trouble, and no text's fault. Never throws.
 */
async function embedAll(embedder: Embedder, rows: readonly QueuedMemory[], call: Call): Promise<Outcome> {
  const embedded: EmbeddedMemory[] = [];
  const failed: FailedMemory[] = [];
  const attempt = async (row: QueuedMemory): Promise<unknown> => {
    try {
      embedded.push({ row, vector: (await embed(embedder, row.content, call)) as Float32Array });
    } catch (error) {
      if (codeOf(error) !== 'invalid_request') return error;
      failed.push({ id: row.id, reason: reasonOf(error), pause: null });
    }
    return undefined;
  };
  const works = () =>
    embed(embedder, 'memory', call).then(
      () => true,
      () => false,
    );

  // Those that failed before would only make the others of their batch fail.
  const fresh = rows.filter(({ attempts }) => attempts === 0);
  const errors = await Promise.all(fresh.map(attempt));
  const trouble = errors.find((error) => error !== undefined);
  if (
    trouble !== undefined &&
    (isForAll(trouble, call) || (embedded.length + failed.length === 0 && !(await works())))
  ) {
    return { embedded, failed, trouble };
  }
  const alone = [...fresh.filter((_, i) => errors[i] !== undefined), ...rows.filter(({ attempts }) => attempts > 0)];
  for (const row of alone) {
    const error = await attempt(row);
    if (error === undefined) continue;
    if (isForAll(error, call) || !(await works())) return { embedded, failed, trouble: error };
    const attempts = row.attempts + 1;
    const pause = attempts < MOST_ATTEMPTS ? pauseAfter(attempts) : null;
    failed.push({ id: row.id, reason: reasonOf(error), pause });
  }
  return { embedded, failed };
}

const embed = (embedder: Embedder, content: string, call: Call): Promise<Float32Array | undefined> =>
  embedder.embed([content], 'document', call).then(([vector]) => vector);

const codeOf = (error: unknown) => (error instanceof OmpError ? error.code : undefined);

/** What says nothing about the text: the rate is limited, or this gateway is closing. */
const isForAll = (error: unknown, call: Call): boolean => call.signal.aborted || codeOf(error) === 'rate_limited';

const reasonOf = (error: unknown): string =>
  error instanceof OmpError ? error.message : 'The embedder failed unexpectedly.';

/** Seconds to wait after so many failures in a row, 1 to 60, by chance up to half less: replicas do not come all at once. */
const pauseAfter = (failures: number): number =>
  Math.min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (failures - 1)) * (1 - Math.random() / 2);
