import { type Log, OmpError, providerError } from '#contract';
import { openThread } from '#ranking';

/** One worker thread with its copy of the model. */
export interface Lane {
  /** Questions without an answer yet. */
  readonly load: number;
  /** The raw vectors of the texts, one after the other. Rejects with `provider_error` when the thread dies. */
  ask(texts: readonly string[]): Promise<Float32Array>;
  close(): Promise<void>;
}

export function openLane(log: Log): Lane {
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
