import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import { type Log, OmpError, providerError } from '#contract';
import type { Answer, Question } from './local-worker.ts';

/** One worker thread: started by the first question, and again by the next one after a crash. */
export interface Lane {
  /** Questions without an answer yet. */
  readonly load: number;
  /** The raw vectors of the texts, one after the other. Rejects with `provider_error` when the thread dies. */
  ask(texts: readonly string[]): Promise<Float32Array>;
  close(): Promise<void>;
}

interface Pending {
  readonly resolve: (vectors: Float32Array) => void;
  readonly reject: (error: unknown) => void;
}

/** Always the compiled one: Node starts worker threads from JavaScript, also when this file runs from source. */
const WORKER = createRequire(import.meta.url).resolve('#local-embedder-worker');

export function openLane(log: Log): Lane {
  const pending = new Map<number, Pending>();
  let worker: Worker | undefined;
  let closed = false;
  let questions = 0;

  function start(): Worker {
    const thread = new Worker(WORKER);
    let cause: unknown;
    thread.on('message', ({ id, vectors }: Answer) => {
      pending.get(id)?.resolve(vectors);
      pending.delete(id);
      // An idle thread must not keep the process alive.
      if (pending.size === 0) thread.unref();
    });
    thread.on('error', (error) => {
      cause = error;
    });
    thread.on('exit', (code) => {
      worker = undefined;
      if (!closed) log.error({ err: cause ?? new Error(`exit code ${code}`) }, 'local embedder: worker thread died');
      for (const { reject } of pending.values()) {
        reject(
          new OmpError('provider_error', 'The local embedder stopped before it had computed the embedding.', {
            provider: 'local',
            cause,
            down: true,
          }),
        );
      }
      pending.clear();
    });
    return thread;
  }

  return {
    get load() {
      return pending.size;
    },
    ask: (texts) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(providerError('local', 'The local embedder is closed.'));
        worker ??= start();
        const id = ++questions;
        pending.set(id, { resolve, reject });
        worker.ref();
        worker.postMessage({ id, texts } satisfies Question);
      }),
    async close() {
      closed = true;
      await worker?.terminate();
    },
  };
}
