import {
  backgroundCall,
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
  /** Reads the queue at once: this gateway has queued a memory. */
  kick(): void;
  /** Stops at once. Memories that are being embedded return to the queue. */
  close(): Promise<void>;
}

/** Attempts of a text that the service fails on while it works for other texts. */
const MAX_ATTEMPTS = 5;
/** Pause after a failure, in seconds. Doubles with each consecutive failure, up to the longest. */
const FIRST_PAUSE_SECONDS = 1;
const LONGEST_PAUSE_SECONDS = 60;
/** Pause before an empty queue is read again, in seconds. Grows while the queue stays empty, up to the longest. */
const IDLE_SECONDS = 1;
const LONGEST_IDLE_SECONDS = 5;
/** Consecutive failures before a warning is logged. */
const LOGGED_AFTER = 2;

/**
 * Computes the vectors of queued memories, batch by batch, until it is closed. Several gateways may share a queue. After a
 * failure of the embedding service or the database, a test text is embedded first, and nothing is claimed until that
 * works.
 */
export function startIngestion(queue: IngestionQueue, embedder: Embedder, log: Log): Ingestion {
  const stop = new AbortController();
  const call = backgroundCall('ingestion', stop.signal);
  const { sleep, wake } = createSleep();
  let failures = 0;
  let idle = IDLE_SECONDS;
  let kicked = false;

  /** Returns whether the queue held a memory. Throws if the embedding service or the database fails for all memories. */
  const round = async (): Promise<boolean> => {
    if (failures > 0) await embed(embedder, 'memory', call);
    const { taken, rows, settle, end } = await queue.claim();
    if (taken === 0) return false;
    try {
      const { vectors, rejections, serviceError } = await embedAll(embedder, rows, call);
      for (const { id, error } of await settle(vectors, rejections)) {
        log.warn({ memory_id: id, reason: error }, 'a memory could not be embedded; only keyword search finds it');
      }
      if (vectors.length > 0) noteRecovery();
      if (serviceError !== undefined) throw serviceError;
    } finally {
      await end();
    }
    return true;
  };
  const noteRecovery = () => {
    if (failures >= LOGGED_AFTER) log.info({}, 'vectors are computed in the background again');
    failures = 0;
  };
  /** Returns the seconds until the next attempt. */
  const pauseFor = (error: unknown): number => {
    failures += 1;
    if (failures === LOGGED_AFTER) {
      const fields = error instanceof OmpError ? { reason: error.message, provider: error.provider } : { err: error };
      log.warn(fields, 'vectors cannot be computed in the background; memories stay queued until that works again');
    }
    return Math.max(pauseAfter(failures), (error instanceof OmpError && error.retryAfter) || 0);
  };
  const work = async (): Promise<void> => {
    await queue.clearFailed().catch(() => {});
    while (!stop.signal.aborted) {
      try {
        kicked = false;
        const hadWork = await round();
        noteRecovery();
        if (hadWork) idle = IDLE_SECONDS;
        else if (!kicked && !stop.signal.aborted) await sleep(idle * (1 + Math.random() / 4));
        idle = hadWork || kicked ? IDLE_SECONDS : Math.min(LONGEST_IDLE_SECONDS, idle * 1.5);
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
      // After a failure, a new memory does not end the pause.
      if (failures === 0) wake();
    },
    async close() {
      stop.abort(new Error('closing'));
      wake();
      await running;
    },
  };
}

/** A sleep in seconds that `wake` ends early. */
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
  readonly vectors: readonly EmbeddedMemory[];
  readonly rejections: readonly FailedMemory[];
  /** The failure that does not depend on a text and left some texts without a result; undefined: none. */
  readonly serviceError?: unknown;
}

/**
 * Embeds each text separately; the embedder makes the batches. A text that the embedder rejects has failed. After another
 * error a text is retried alone, and has failed only if the service then works for a test text. If it does not, or if it
 * limits the rate, the error is returned as `serviceError` and no text has failed. Never throws.
 */
async function embedAll(embedder: Embedder, rows: readonly QueuedMemory[], call: Call): Promise<Outcome> {
  const vectors: EmbeddedMemory[] = [];
  const rejections: FailedMemory[] = [];
  /** Who wrote the text pays for it. */
  const callFor = ({ app = null }: QueuedMemory) => call.with({ caller: { ...GATEWAY, app } });
  const attempt = async (row: QueuedMemory): Promise<unknown> => {
    try {
      vectors.push({ row, vector: (await embed(embedder, row.content, callFor(row))) as Float32Array });
    } catch (error) {
      if (codeOf(error) !== 'invalid_request') return error;
      rejections.push({ id: row.id, reason: reasonOf(error), pause: null });
    }
    return undefined;
  };
  const works = () =>
    embed(embedder, 'memory', call).then(
      () => true,
      () => false,
    );

  // Texts that failed before could make their whole batch fail.
  const fresh = rows.filter(({ attempts }) => attempts === 0);
  const errors = await Promise.all(fresh.map(attempt));
  const serviceError = errors.find((error) => error !== undefined);
  if (
    serviceError !== undefined &&
    (isForAll(serviceError, call) || (vectors.length + rejections.length === 0 && !(await works())))
  ) {
    return { vectors, rejections, serviceError };
  }
  const alone = [...fresh.filter((_, i) => errors[i] !== undefined), ...rows.filter(({ attempts }) => attempts > 0)];
  for (const row of alone) {
    const error = await attempt(row);
    if (error === undefined) continue;
    if (isForAll(error, call) || !(await works())) return { vectors, rejections, serviceError: error };
    const attempts = row.attempts + 1;
    const pause = attempts < MAX_ATTEMPTS ? pauseAfter(attempts) : null;
    rejections.push({ id: row.id, reason: reasonOf(error), pause });
  }
  return { vectors, rejections };
}

const embed = (embedder: Embedder, content: string, call: Call): Promise<Float32Array | undefined> =>
  embedder.embed([content], 'document', call).then(([vector]) => vector);

const codeOf = (error: unknown) => (error instanceof OmpError ? error.code : undefined);

/** Whether an error does not depend on the text: the rate is limited, or this gateway is closing. */
const isForAll = (error: unknown, call: Call): boolean => call.signal.aborted || codeOf(error) === 'rate_limited';

const reasonOf = (error: unknown): string =>
  error instanceof OmpError ? error.message : 'The embedder failed unexpectedly.';

/**
 * Pause after consecutive failures, in seconds: 1 to 60, randomly up to half shorter, so that replicas do not retry
 * together.
 */
const pauseAfter = (failures: number): number =>
  Math.min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (failures - 1)) * (1 - Math.random() / 2);
