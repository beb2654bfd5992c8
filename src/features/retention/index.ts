import { feature } from '../feature.ts';
import { startRetention } from './daily-runs.ts';
import { openRetention, RETENTION, type RetentionSettings } from './retention.ts';
import { retention as verb } from './verb.ts';

export const retention = feature({
  verbs: { retention: verb },
  service: {
    key: RETENTION,
    open: ({ retention }: RetentionSettings, { store, log }) => openRetention(retention, store, log),
    start: (retention, { store, log }) => startRetention({ retention, store, log }),
  },
  metrics: (_, retention) =>
    retention
      ? [
          {
            kind: 'counter',
            name: 'omp_retention_deleted_total',
            help: 'Memories that retention has deleted.',
            read: () => [{ value: retention.stats().deleted }],
          },
          {
            kind: 'counter',
            name: 'omp_retention_failed_total',
            help: 'Deletes of retention that failed.',
            read: () => [{ value: retention.stats().failed }],
          },
          {
            kind: 'gauge',
            name: 'omp_retention_completed_timestamp_seconds',
            help: 'When the last pass of retention over all memories was complete; 0: none was since the start.',
            read: () => [{ value: (retention.stats().completed ?? 0) / 1_000 }],
          },
        ]
      : [],
});
