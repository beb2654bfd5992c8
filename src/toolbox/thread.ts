import { createRequire } from 'node:module';
import { parentPort, type TransferListItem, Worker } from 'node:worker_threads';
import type { Call } from '#contract';

/** A worker thread. The first question starts it, and after a crash the next question starts it again. */
export interface Thread<Question, Answer> {
  /** Questions without an answer yet. */
  readonly load: number;
  /**
   * Questions are answered one after the other. A question whose call aborts in the queue is not sent. Rejects if the
   * thread dies or is closed.
   */
  ask(question: Question, call?: Call): Promise<Answer>;
  /** Waits for the answer to the question that it works on: to end a thread amid native code can end the process. */
  close(): Promise<void>;
}

interface Pending<Answer> {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

const { resolve: fileOf } = createRequire(import.meta.url);

/**
 * A pool of a library does not fit: tinypool takes 0.2 ms for a question that this answers in 0.02 ms, and piscina, which is as fast, ends
 * the thread, with the model in it, when the call of the question that it works on aborts (both measured 2026-11-27).
 *
 * `file`: an entry in the `imports` of package.json that resolves to the compiled file, or its URL: Node starts threads from
 * JavaScript only. `died` creates the error of rejected questions.
 */
export function openThread<Question, Answer>(
  file: `#${string}` | URL,
  died: (cause: unknown) => Error,
): Thread<Question, Answer> {
  let worker: Worker | undefined;
  let current: Pending<Answer> | undefined;
  let queue: Promise<unknown> = Promise.resolve();
  let load = 0;
  let closed = false;

  function start(): Worker {
    // The options of this process may load TypeScript sources, so the thread gets none.
    const thread = new Worker(typeof file === 'string' ? fileOf(file) : file, { execArgv: [] });
    let cause: unknown;
    thread.on('message', (answer: Answer) => {
      current?.resolve(answer);
      // An idle thread must not keep the process alive.
      thread.unref();
    });
    thread.on('error', (error) => {
      cause = error;
    });
    thread.on('exit', (code) => {
      worker = undefined;
      current?.reject(died(cause ?? new Error(`exit code ${code}`)));
    });
    return thread;
  }

  const next = (question: Question): Promise<Answer> =>
    new Promise((resolve, reject) => {
      current = { resolve, reject };
      worker ??= start();
      worker.ref();
      worker.postMessage(question);
    });

  return {
    get load() {
      return load;
    },
    async ask(question, call) {
      load += 1;
      const answer = queue
        .then(() => {
          call?.throwIfAborted();
          if (closed) throw died(new Error('closed'));
          return next(question);
        })
        .finally(() => {
          load -= 1;
        });
      queue = answer.catch(() => {});
      return call ? await call.unlessAborted(answer) : await answer;
    },
    async close() {
      closed = true;
      await queue;
      await worker?.terminate();
    },
  };
}

/** Answers questions, in the worker thread. An error ends the thread, and the next question starts a new one. */
export function answerQuestions<Question, Answer>(
  answer: (question: Question) => Answer | Promise<Answer>,
  transferred: (answer: Answer) => readonly TransferListItem[] = () => [],
): void {
  parentPort?.on('message', async (question: Question) => {
    const result = await answer(question);
    parentPort?.postMessage(result, transferred(result));
  });
}
