import { type Call, type Embedder, OmpError } from '#contract';
import { pauseAfter } from './pause.ts';
import type { Embedded, Judged, Waiting } from './queue.ts';

/** Times a text may fail alone while the service works for others. */
const MOST_ATTEMPTS = 5;

export interface Outcome {
  readonly embedded: readonly Embedded[];
  readonly judged: readonly Judged[];
  /** Why the rest was not embedded, which is no fault of its own; undefined: there is no rest. */
  readonly trouble?: unknown;
}

/** Asks for the vector of any text: throws when the service does not work. */
export const askFor = (embedder: Embedder, content: string, call: Call): Promise<Float32Array | undefined> =>
  embedder.embed([content], 'document', call).then(([vector]) => vector);

/**
 * Embeds each text for itself; the embedder puts them together. A text that it refuses has failed. One that fails
 * otherwise is tried alone, and counts as failing for its own sake only if the service then works for another text. Where it
 * does not, or limits its rate, that is the trouble, and nobody's fault. Never throws.
 */
export async function embedAll(embedder: Embedder, rows: readonly Waiting[], call: Call): Promise<Outcome> {
  const embedded: Embedded[] = [];
  const judged: Judged[] = [];
  const attempt = async (row: Waiting): Promise<unknown> => {
    try {
      embedded.push({ row, vector: (await askFor(embedder, row.content, call)) as Float32Array });
    } catch (error) {
      if (codeOf(error) !== 'invalid_request') return error;
      judged.push({ id: row.id, reason: reasonOf(error), pause: null });
    }
    return undefined;
  };
  const works = () =>
    askFor(embedder, 'memory', call).then(
      () => true,
      () => false,
    );

  // Those that failed before would only take others down with them.
  const fresh = rows.filter(({ attempts }) => attempts === 0);
  const errors = await Promise.all(fresh.map(attempt));
  const trouble = errors.find((error) => error !== undefined);
  if (
    trouble !== undefined &&
    (isForAll(trouble, call) || (embedded.length + judged.length === 0 && !(await works())))
  ) {
    return { embedded, judged, trouble };
  }
  const alone = [...fresh.filter((_, i) => errors[i] !== undefined), ...rows.filter(({ attempts }) => attempts > 0)];
  for (const row of alone) {
    const error = await attempt(row);
    if (error === undefined) continue;
    if (isForAll(error, call) || !(await works())) return { embedded, judged, trouble: error };
    const attempts = row.attempts + 1;
    judged.push({
      id: row.id,
      reason: reasonOf(error),
      pause: attempts < MOST_ATTEMPTS ? pauseAfter(attempts) : null,
    });
  }
  return { embedded, judged };
}

const codeOf = (error: unknown) => (error instanceof OmpError ? error.code : undefined);

/** What says nothing about the text: the rate is limited, or this gateway is closing. */
const isForAll = (error: unknown, call: Call): boolean => call.signal.aborted || codeOf(error) === 'rate_limited';

const reasonOf = (error: unknown): string =>
  error instanceof OmpError ? error.message : 'The embedder failed unexpectedly.';
