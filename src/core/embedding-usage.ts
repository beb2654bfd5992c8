import {
  backgroundCall,
  type Call,
  type EmbeddingUsage,
  type Log,
  type UsageQuery,
  type UsageRow,
  type UsageStore,
} from '#contract';
import { createTally } from '#toolbox';

/*
 * What embedding costs, by day and caller (Decision 63). Embedders count in memory; once a minute the counts go to the root store. A store that
 * keeps none has them in this process.
 */

/** Reads what was used, for the verb. */
export interface UsageReader {
  /** Includes all that this gateway has counted, and what others had counted a minute ago. */
  read(query: UsageQuery, call: Call): Promise<EmbeddingUsage[]>;
  /** What was counted before is not known; undefined: all of it is stored. */
  since(): string | undefined;
}

const FLUSH_MS = 60_000;
/** Deadline of the last flush, in milliseconds. */
const LAST_FLUSH_MS = 2_000;

/** Moves counts from the embedders to the store until it is closed. `take`: the counts since its last call. */
export function keepUsage(
  take: () => readonly EmbeddingUsage[],
  stored: UsageStore | undefined,
  log: Log,
): UsageReader & { close(): Promise<void> } {
  const inProcess = createProcessUsage();
  const store = stored ?? inProcess;
  const pending = createTally();
  let flushing: Promise<void> = Promise.resolve();

  /** One at a time. If an answer of the store is lost, the counts are added again. */
  const flush = (call: Call): Promise<void> => {
    const turn = flushing.then(async () => {
      for (const row of take()) pending.add(row);
      const rows = pending.rows();
      if (rows.length === 0) return;
      await store.add(rows, call);
      pending.clear();
    });
    flushing = turn.catch(() => {});
    return turn;
  };
  const timer = setInterval(() => {
    flush(backgroundCall('embedding-usage')).catch((err: unknown) =>
      log.warn({ err }, 'the usage of the embedding service could not be stored; it will be retried'),
    );
  }, FLUSH_MS).unref();

  return {
    async read(query, call) {
      await call.unlessAborted(flush(backgroundCall('embedding-usage')));
      return store.read(query, call);
    },
    since: () => (stored ? undefined : inProcess.since()),
    async close() {
      clearInterval(timer);
      await flush(backgroundCall('embedding-usage', AbortSignal.timeout(LAST_FLUSH_MS))).catch((err: unknown) =>
        log.error(
          { err, lost: pending.rows().length },
          'the last usage of the embedding service is lost: the store did not take it',
        ),
      );
    },
  };
}

/** Rows that a process keeps; beyond, it forgets the oldest days. */
const MAX_ROWS = 20_000;

function createProcessUsage(): UsageStore & { since(): string } {
  const kept = createTally();
  let since = new Date().toISOString();
  return {
    async add(added) {
      for (const row of added) kept.add(row);
      for (let rows = kept.rows(); rows.length > MAX_ROWS; rows = kept.rows()) {
        const [oldest, next] = [...new Set(rows.map(({ day }) => day))].sort();
        // A day alone has no more rows than an embedder counts names.
        if (next === undefined) return;
        kept.clear();
        for (const row of rows) if (row.day !== oldest) kept.add(row);
        since = `${next}T00:00:00.000Z`;
      }
    },
    read: async ({ since, until, after, limit }) =>
      kept
        .rows()
        .filter((row) => row.day >= since && row.day <= until && (!after || inOrder(after, row) < 0))
        .sort(inOrder)
        .slice(0, limit),
    since: () => since,
  };
}

/** Newest day first. */
const inOrder = (a: UsageRow, b: UsageRow): number =>
  compare(b.day, a.day) || compare(a.app ?? '', b.app ?? '') || compare(a.model, b.model);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
