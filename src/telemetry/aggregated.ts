import cluster, { type Worker } from 'node:cluster';
import { AggregatorRegistry, type Registry } from 'prom-client';
import type { Measures } from './metrics.ts';

/** Longest wait for a worker, in milliseconds; of one that is later, what it said before counts. */
const WAIT_MS = 1_000;

const ASKED = 'omp:measures-asked';
const TOLD = 'omp:measures-told';

type Told = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;
type Message = { readonly type: typeof ASKED } | { readonly type: typeof TOLD; readonly told: Told };

/** In a worker process: hands its measures to the primary when that asks. Returns what ends it. */
export function answerPrimary(registry: Registry): () => void {
  if (!cluster.isWorker) return () => {};
  const answer = (message: Message) => {
    if (message?.type !== ASKED) return;
    void registry.getMetricsAsJSON().then((told) => {
      if (process.connected) process.send?.({ type: TOLD, told } satisfies Message, undefined, undefined, () => {});
    });
  };
  process.on('message', answer);
  return () => void process.off('message', answer);
}

export interface Aggregated {
  /** Measures of all workers together. */
  measures(): Promise<Measures>;
  close(): void;
}

/**
 * In the primary process: adds up what the workers measure. What a worker has counted is kept when it ends, as it last
 * told it: a sum that became less would be taken for a restart, and all of it for new.
 */
export function openAggregated(): Aggregated {
  const latest = new Map<number, Told>();
  const waiting = new Map<number, () => void>();
  const ended: Told[] = [];

  const onMessage = ({ id }: Worker, message: Message) => {
    if (message?.type !== TOLD) return;
    latest.set(id, message.told);
    waiting.get(id)?.();
  };
  const onExit = ({ id }: Worker) => {
    waiting.get(id)?.();
    const told = latest.get(id);
    latest.delete(id);
    if (told) ended.push(told.filter(isCounted));
  };
  cluster.on('message', onMessage);
  cluster.on('exit', onExit);

  let asking: Promise<void> | undefined;
  const ask = async () => {
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker?.isConnected());
    await Promise.all(workers.map((worker) => worker && answerOf(worker)));
    // Workers that crash again and again must not fill the memory.
    if (ended.length > 1) ended.push(await AggregatorRegistry.aggregate(ended.splice(0)).getMetricsAsJSON());
  };
  const answerOf = (worker: Worker) =>
    new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        waiting.delete(worker.id);
        resolve();
      };
      const timer = setTimeout(done, WAIT_MS);
      waiting.set(worker.id, done);
      worker.send({ type: ASKED } satisfies Message, undefined, undefined, (error) => error && done());
    });
  return {
    async measures() {
      asking ??= ask().finally(() => {
        asking = undefined;
      });
      await asking;
      const all = AggregatorRegistry.aggregate([...ended, ...latest.values()]);
      return { type: all.contentType, text: await all.metrics() };
    },
    close() {
      cluster.off('message', onMessage);
      cluster.off('exit', onExit);
    },
  };
}

/** What only grows. */
const isCounted = ({ type }: Told[number]): boolean => ['counter', 'histogram'].includes(String(type));
