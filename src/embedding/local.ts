import type { Embedder, Log } from '#contract';
import { openLane } from './local-lane.ts';
import { DIMENSIONS, MODEL } from './local-model.ts';

/**
 * Universal Sentence Encoder lite, from an npm package: no network, no key. English; it reads the first 128 tokens
 * (some 500 characters) of a text. Raw vectors; a blank text, or one in a script unknown to the model, gives zeros.
 * The same text in another batch may differ in the seventh digit. A computation cannot be stopped: `withBatching`
 * answers for calls that are aborted.
 */
export async function openLocal(workers: number, log: Log): Promise<Embedder> {
  const lanes = Array.from({ length: workers }, () => openLane(log));
  const close = async (): Promise<void> => {
    await Promise.all(lanes.map((lane) => lane.close()));
  };
  try {
    await Promise.all(lanes.map((lane) => lane.ask([])));
  } catch (cause) {
    await close();
    throw new Error('The local embedder could not load its model: is @energetic-ai installed completely?', { cause });
  }
  return {
    model: MODEL,
    dimensions: DIMENSIONS,
    async embed(texts) {
      const lane = lanes.reduce((least, next) => (next.load < least.load ? next : least));
      const vectors = await lane.ask(texts);
      return texts.map((_, i) => vectors.subarray(i * DIMENSIONS, (i + 1) * DIMENSIONS));
    },
    close,
  };
}
