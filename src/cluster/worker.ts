import cluster from 'node:cluster';
import { explainError } from '../cli/explain-error.ts';
import { createLog } from '../log.ts';
import { type Gateway, serve } from '../serve.ts';
import { type FromWorker, ofOurs, type Task, type ToWorker } from './messages.ts';

/**
 * Serves what the primary process tells it to, until that says to stop. Signals are left to the primary: a terminal sends
 * them to all processes at once. Should the primary die, Node ends this process.
 */
export function runWorker(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  const stopped = new AbortController();
  let starting: Promise<Gateway> | undefined;
  const start = ({ config, shared, worker }: Task) => {
    const log = createLog(config.log_level).child({ worker });
    starting = serve(config, log, { stopped: stopped.signal, part: { shared } });
    starting.then(
      ({ host, port, search, open }) => tell({ omp: 'serving', serving: { host, port, search, open } }),
      (error: unknown) => {
        // Stopped while starting, it ends in good order.
        if (error === stopped.signal.reason) process.exit(0);
        tell({ omp: 'failed', message: explainError(error) }, () => process.exit(1));
      },
    );
  };
  const stop = async () => {
    stopped.abort();
    await (await starting)?.close();
  };
  const check = async () => {
    if (!starting) return;
    await (await starting).check();
  };

  process.on('message', (message) => {
    const told = ofOurs<ToWorker>(message);
    if (told?.omp === 'serve') start(told.task);
    // What did not close was logged.
    if (told?.omp === 'stop')
      stop().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    if (told?.omp === 'check') {
      const { question } = told;
      check().then(
        () => tell({ omp: 'checked', question, problem: undefined }),
        (error: Error) => tell({ omp: 'checked', question, problem: error.message }),
      );
    }
  });
  tell({ omp: 'here' });
}

/** `told` is called when the message has left, or cannot any more. */
function tell(message: FromWorker, told: () => void = () => {}): void {
  cluster.worker?.process.send(message, told);
}
