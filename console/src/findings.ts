import { count } from './format.tsx';
import { histogramOf, milliseconds, quantile, type Snapshot, sumOf, sumOfReadings, totalOf } from './metrics.ts';
import type { Interval } from './use-metrics.ts';

/** Something that a person should know. */
export interface Finding {
  /** Names it: the same text is the same finding. */
  readonly what: string;
  readonly state: 'warn' | 'bad';
  readonly figures?: string;
  readonly help: string;
}

/** Intervals that count as now: a minute. */
const RECENT = 12;
/** Seconds in which 99 % of the requests of a verb should be answered, and how many requests say something. */
const SLOW = 1;
const ENOUGH = 5;
/** Seconds for which changes may be held back, or not be delivered. */
const LATE = 60;

/** What the metrics say is wrong now. */
export function findingsOf(now: Snapshot, intervals: readonly Interval[]): readonly Finding[] {
  const recent = intervals.slice(-RECENT);
  const of = (verb?: string) => sumOf(recent.map(({ times }) => histogramOf(times, verb)));
  const failed = recent.reduce((sum, interval) => sum + interval.failed, 0);
  const reading = (name: string, labels?: Record<string, string>) => sumOfReadings(now, name, labels) ?? 0;
  const seconds = (value: number) => `${count(Math.round(value))} seconds`;
  const findings: Finding[] = [];
  for (const { name, labels, value } of now.samples) {
    if (name !== 'omp_circuit_breaker_state' || value !== 1 || labels.state === 'closed') continue;
    findings.push({
      what: `${labels.dependency} does not answer`,
      state: 'bad',
      figures: `its circuit breaker is ${labels.state}`,
      help: 'Requests that need it fail at once. The gateway probes it and goes on by itself; its log has the cause.',
    });
  }
  if (failed > 0) {
    findings.push({
      what: 'Requests fail',
      state: 'bad',
      figures: `${count(failed)} of ${count(totalOf(of()))} in the last minute`,
      help: 'The lines “request failed” of the log have the causes.',
    });
  }
  for (const verb of [...now.times.keys()].sort()) {
    const times = of(verb);
    const most = quantile(times, 0.99);
    if (most === undefined || most <= SLOW || totalOf(times) < ENOUGH) continue;
    findings.push({
      what: `${verb} is slow`,
      state: 'warn',
      figures: `99 % within ${milliseconds(most)}, half within ${milliseconds(quantile(times, 0.5) ?? 0)}`,
      help: 'Queues below say whether it waits for the backend or for vectors.',
    });
  }
  const waits: readonly (readonly [value: number, finding: Finding])[] = [
    [
      reading('omp_backend_waiting_requests'),
      {
        what: 'Requests wait for the backend',
        state: 'warn',
        help: 'It is too slow for this load, or has too few connections.',
      },
    ],
    [
      reading('omp_ingestion_memories', { state: 'failed' }),
      {
        what: 'Memories have no vector, and get none',
        state: 'bad',
        help: 'Searches find them by words alone. “omp-gateway doctor” says which, why, and how to queue them again.',
      },
    ],
    [
      reading('omp_embedding_waiting_texts') + reading('omp_ingestion_memories', { state: 'queued' }),
      { what: 'Texts wait for their vector', state: 'warn', help: 'Until then, searches find them by words alone.' },
    ],
  ];
  for (const [value, finding] of waits) if (value > 0) findings.push({ ...finding, figures: count(value) });
  const delays: typeof waits = [
    [
      reading('omp_changes_held_seconds'),
      {
        what: 'An open transaction holds back the feed of changes',
        state: 'warn',
        help: '“omp-gateway doctor” names it.',
      },
    ],
    [
      reading('omp_webhook_lag_seconds'),
      { what: 'Webhooks are behind', state: 'warn', help: 'The page of webhooks says which receiver fails.' },
    ],
  ];
  for (const [value, finding] of delays) if (value > LATE) findings.push({ ...finding, figures: seconds(value) });
  return findings;
}
