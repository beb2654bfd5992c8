import type { Backlog, Call, Embedder, Log } from '#contract';
import type { Names } from '../tables/names.ts';
import { createQueue, type Ways } from './queue.ts';
import { countText } from './statements.ts';
import { type Ingestion, startIngestion } from './worker.ts';

export interface OpenOptions extends Ways {
  readonly names: Names;
  readonly embedder: Embedder;
  readonly log: Log;
  /** Seconds after which what a gateway took and was not heard of since is for others. */
  readonly lease?: number;
}

const LEASE_SECONDS = 20;

/** The queue of this database, and a worker on it. */
export function openIngestion({ names, embedder, log, lease = LEASE_SECONDS, ...ways }: OpenOptions): Ingestion & {
  backlog(call: Call): Promise<Backlog>;
} {
  return {
    ...startIngestion({ queue: createQueue(names, ways, lease), embedder, log }),
    async backlog(call) {
      const rows = await ways.run(countText(names), [], call);
      return {
        queued: 0,
        indexing: 0,
        failed: 0,
        ...Object.fromEntries(rows.map((row) => [row.status, row.memories])),
      };
    },
  };
}
