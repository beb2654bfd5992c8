import { useEffect, useState } from 'preact/hooks';
import { ApiError } from '../../clients/typescript/src/index.ts';
import { readingOf, readMetrics, type Snapshot, since, type Times } from './metrics.ts';

/** What one process did between two looks at it. */
export interface Interval {
  readonly at: number;
  readonly seconds: number;
  readonly times: Times;
  readonly failed: number;
}

export interface Metrics {
  readonly now?: Snapshot;
  /** The changes of the last twenty minutes, at most. */
  readonly intervals: readonly Interval[];
  readonly error?: unknown;
}

const EVERY_MS = 5_000;
const KEPT = 240;
/** Statuses that stay: the key may not read the metrics, or this gateway collects none. */
const FINAL: ReadonlySet<number | undefined> = new Set([400, 401, 403, 404]);

/** Looks every five seconds while the page is open. Behind a load balancer, each process is compared with itself. */
export function useMetrics(): Metrics {
  const [metrics, setMetrics] = useState<Metrics>({ intervals: [] });
  useEffect(() => {
    const abort = new AbortController();
    const seen = new Map<number | undefined, Snapshot>();
    let timer: number | undefined;
    const look = async () => {
      try {
        const now = await readMetrics(abort.signal);
        const process = readingOf(now, 'process_start_time_seconds');
        const before = seen.get(process);
        seen.set(process, now);
        const interval = before && {
          at: now.at,
          seconds: (now.at - before.at) / 1_000,
          times: since(before.times, now.times),
          failed: now.failed - before.failed,
        };
        setMetrics(({ intervals }) => ({
          now,
          intervals: interval ? [...intervals.slice(1 - KEPT), interval] : intervals,
        }));
      } catch (error) {
        if (abort.signal.aborted) return;
        setMetrics((before) => ({ ...before, error }));
        // Another look would be answered alike.
        if (error instanceof ApiError && FINAL.has(error.status)) return;
      }
      if (!abort.signal.aborted) timer = setTimeout(look, EVERY_MS);
    };
    void look();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, []);
  return metrics;
}
