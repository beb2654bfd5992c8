import { setTimeout as wait } from 'node:timers/promises';
import { backgroundCall, type Call, type Embedder, OmpError } from '#provider';

export interface Clock {
  /** Monotonic milliseconds. */
  now(): number;
  /** Rejects with the signal's reason as soon as that aborts. */
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

/** The signal that ends pauses, and the clock. */
export interface Interruptible {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface RetryPolicy {
  readonly attempts: number;
  isTransient(error: unknown): boolean;
  /** Milliseconds before the next attempt. */
  pauseMs(failures: number, error: unknown): number;
  /** What to throw after the last attempt. */
  exhausted(error: unknown): Error;
}

/** Retries with pauses that an abort ends at once, which the retry of cockatiel does not do. */
export async function retry<Result>(
  work: () => Promise<Result>,
  { attempts, isTransient, pauseMs, exhausted }: RetryPolicy,
  { clock, signal }: Interruptible,
): Promise<Result> {
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (failures === attempts) throw exhausted(error);
      await clock.sleep(pauseMs(failures, error), signal);
    }
  }
}

const MINUTE_MS = 60_000;

/** Waits until this many more texts may be sent. */
export type Pace = (texts: number) => Promise<void>;

/** Allows at most `per_minute` texts in any minute; one call must not ask for more. Throws the signal's reason on abort. */
export function createPace(per_minute: number | undefined, { clock, signal }: Interruptible): Pace {
  const sent: { readonly at: number; readonly texts: number }[] = [];
  return async (texts) => {
    for (;;) {
      signal.throwIfAborted();
      const now = clock.now();
      while (sent[0] && now - sent[0].at >= MINUTE_MS) sent.shift();
      const recent = sent.reduce((sum, each) => sum + each.texts, 0);
      const first = sent[0];
      if (per_minute === undefined || !first || recent + texts <= per_minute) break;
      await clock.sleep(first.at + MINUTE_MS - now, signal);
    }
    sent.push({ at: clock.now(), texts });
  };
}

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;
/** For one batch: about three minutes. */
const ATTEMPTS = 10;

const EMBEDDING: RetryPolicy = {
  attempts: ATTEMPTS,
  isTransient: (error) => error instanceof OmpError && error.code !== 'invalid_request',
  pauseMs: (failures, error) =>
    Math.max(
      Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MAX_PAUSE_MS),
      ((error as OmpError).retryAfter ?? 0) * 1_000,
    ),
  exhausted: (error) =>
    new Error(
      `${(error as OmpError).message} It was tried ${ATTEMPTS} times; run "omp-gateway reembed" again to continue`,
    ),
};

export const callWith = (signal: AbortSignal): Call => backgroundCall('reembed', signal);
/** A batch in progress is finished even when the run is stopped. */
const FINISH = callWith(new AbortController().signal);

/** One vector for each text; undefined where the embedder rejects the text itself. */
export type EmbedTexts = (texts: readonly string[]) => Promise<(Float32Array | undefined)[]>;

/** Embeds with retries. Every attempt keeps to the pace. A rejected batch is halved until the rejected text is found. */
export function createEmbedTexts(embedder: Embedder, pace: Pace, interruptible: Interruptible): EmbedTexts {
  const embedBatch = async (texts: readonly string[]) => {
    await pace(texts.length);
    return embedder.embed(texts, 'document', FINISH);
  };
  const embed: EmbedTexts = async (texts) => {
    try {
      return await retry(() => embedBatch(texts), EMBEDDING, interruptible);
    } catch (error) {
      if (!(error instanceof OmpError) || error.code !== 'invalid_request') throw error;
      if (texts.length === 1) return [undefined];
      const middle = texts.length >> 1;
      return [...(await embed(texts.slice(0, middle))), ...(await embed(texts.slice(middle)))];
    }
  };
  return embed;
}
