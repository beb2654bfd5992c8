import { type Call, type Embedder, GATEWAY, OmpError } from '#contract';
import type { Clock } from './clock.ts';

const MINUTE_MS = 60_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** Of a batch, before the run gives up: some three minutes. */
const TRIES = 10;

export interface Patience {
  readonly per_minute: number | undefined;
  readonly clock: Clock;
  /** Ends waiting at once; what is under way is finished. */
  readonly signal: AbortSignal;
}

/** Waits until so many more texts may be sent: never more than `per_minute` in any minute. */
export type Pace = (texts: number) => Promise<void>;

/** Throws the signal's reason when that fires. No one call may ask for more than `per_minute`. */
export function createPace({ per_minute, clock, signal }: Patience): Pace {
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

export const callWith = (signal: AbortSignal): Call => ({ signal, requestId: 'reembed', caller: GATEWAY });
const FINISH = callWith(new AbortController().signal);

/**
 * One vector a text; undefined where the embedder refuses the text itself. Every attempt keeps to the pace. What fails
 * otherwise is tried again after growing pauses, or when the service says; in the end it throws.
 */
export type PatientEmbed = (texts: readonly string[]) => Promise<(Float32Array | undefined)[]>;

export function patiently(embedder: Embedder, pace: Pace, { clock, signal }: Patience): PatientEmbed {
  const embed: PatientEmbed = async (texts) => {
    for (let failed = 0; ; ) {
      await pace(texts.length);
      try {
        return await embedder.embed(texts, 'document', FINISH);
      } catch (error) {
        if (!(error instanceof OmpError)) throw error;
        if (error.code === 'invalid_request') return texts.length > 1 ? halves(texts) : [undefined];
        if (++failed === TRIES) {
          throw new Error(`${error.message} It was tried ${TRIES} times; run "omp-gateway reembed" again to go on`);
        }
        const pause = Math.min(FIRST_PAUSE_MS * 2 ** (failed - 1), LONGEST_PAUSE_MS);
        await clock.sleep(Math.max(pause, (error.retryAfter ?? 0) * 1_000), signal);
      }
    }
  };
  const halves = async (texts: readonly string[]) => {
    const middle = texts.length >> 1;
    return [...(await embed(texts.slice(0, middle))), ...(await embed(texts.slice(middle)))];
  };
  return embed;
}
