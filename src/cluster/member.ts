import cluster, { type Worker } from 'node:cluster';
import { type FromWorker, ofOurs, type Serving, type Task, type ToWorker } from './messages.ts';
import { closeUntaken } from './untaken.ts';

/** How a worker process ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: string | null;
  /** Why it could not start. */
  readonly failure: string | undefined;
}

/** A worker process. */
export interface Member {
  /** Undefined until it serves. */
  readonly serving: Serving | undefined;
  readonly ended: Promise<Ending>;
  /** Rejects with an `Error` whose message tells why the backend does not answer there. */
  check(): Promise<void>;
  stop(): void;
  kill(): void;
}

/** Starts a worker process. `serves` is called when it serves. */
export function startMember(task: Task, serves: (serving: Serving) => void): Member {
  // Secrets go through the channel, never into arguments.
  cluster.setupPrimary({ args: [], serialization: 'advanced' });
  const worker = cluster.fork();
  closeUntaken(worker);
  const questions = new Map<number, (problem: string | undefined) => void>();
  let asked = 0;
  let stopping = false;
  let serving: Serving | undefined;
  let failure: string | undefined;
  // What cannot be sent any more is of no interest to a process that ends.
  worker.on('error', () => {});
  worker.on('message', (message: unknown) => {
    const told = ofOurs<FromWorker>(message);
    if (told?.omp === 'here') tell(worker, stopping ? { omp: 'stop' } : { omp: 'serve', task });
    if (told?.omp === 'failed') failure = told.message;
    if (told?.omp === 'checked') questions.get(told.question)?.(told.problem);
    if (told?.omp === 'serving') {
      serving = told.serving;
      serves(serving);
    }
  });
  const ended = new Promise<Ending>((resolve) => {
    worker.once('exit', (code: number | null, signal: string | null) => {
      for (const answer of questions.values()) answer('the process has ended');
      resolve({ code, signal, failure });
    });
  });
  return {
    get serving() {
      return serving;
    },
    ended,
    check: () =>
      new Promise((good, bad) => {
        const question = asked++;
        questions.set(question, (problem) => {
          questions.delete(question);
          if (problem === undefined) good();
          else bad(new Error(problem));
        });
        tell(worker, { omp: 'check', question });
      }),
    stop() {
      stopping = true;
      tell(worker, { omp: 'stop' });
    },
    kill: () => void worker.process.kill('SIGKILL'),
  };
}

const tell = (worker: Worker, message: ToWorker): void => void worker.send(message);
