import { Call, type Embedder, GATEWAY } from '#contract';

export interface Batch {
  readonly texts: readonly string[];
  readonly purpose: 'document' | 'query';
  readonly signal: AbortSignal;
}

/**
 * An embedder that shows what reaches it and answers when the test says so; the vector of a text is its length.
 * (A double: no real embedder lets a test hold a batch open.)
 */
export function observedEmbedder(answer: (batch: Batch) => Promise<void> | void = () => {}) {
  const batches: Batch[] = [];
  const embedder: Embedder = {
    model: 'observed',
    dimensions: 1,
    async embed(texts, purpose, call) {
      const batch = { texts, purpose, signal: call.signal };
      batches.push(batch);
      await answer(batch);
      return texts.map((text) => Float32Array.of(text.length));
    },
    async close() {},
  };
  return { embedder, batches };
}

export const callOf = (signal?: AbortSignal): Call => new Call('test', GATEWAY, signal);

/** A promise that a test fulfils by hand. */
export function gate() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}
