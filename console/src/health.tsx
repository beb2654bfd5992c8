import { useRef, useState } from 'preact/hooks';
import { ApiError } from '../../clients/typescript/src/index.ts';
import { Lines } from './chart.tsx';
import { findingsOf } from './findings.ts';
import { count, Time } from './format.tsx';
import { Icon } from './icon.tsx';
import { Failure } from './load.tsx';
import { histogramOf, milliseconds, quantile, readingOf, type Snapshot, sumOf, totalOf } from './metrics.ts';
import { useSession } from './session.ts';
import { type Column, Table, Title, Wide } from './ui.tsx';
import { type Metrics, useMetrics } from './use-metrics.ts';

/** Whether the gateway works, what is wrong since when, how fast it is, and what it can do. */
export function Health() {
  const { capabilities, trouble } = useSession();
  const metrics = useMetrics();
  const { omp_version, provider, verbs, features, limits, 'x-stores': stores } = capabilities;
  return (
    <>
      <Title
        text="Health"
        about={
          <>
            What is slow or fails, and since when. The HTTP interface: <a href="../docs">/docs</a>.
          </>
        }
      />
      {trouble !== undefined && <Failure error={trouble} />}
      <Findings metrics={metrics} />
      {metrics.now && <Requests {...metrics} />}
      {metrics.now && <Now now={metrics.now} />}
      {metrics.error !== undefined && <NoMetrics error={metrics.error} />}
      <details>
        <summary>What this gateway can do</summary>
        <Facts
          label="What this gateway can do"
          rows={[
            ['Protocol', omp_version],
            ['Backend', provider],
            ['Verbs', verbs.join(', ')],
            ...Object.entries(features),
            ...Object.entries(limits ?? {}),
          ]}
        />
        {stores && (
          <Facts
            label="Mounted stores"
            rows={stores.map((store) => [store.name, `${store.provider} at ${store.mount}: ${store.verbs.join(', ')}`])}
          />
        )}
      </details>
    </>
  );
}

/** What is wrong, or that nothing is. Of what the metrics say, since when this page has seen it. */
function Findings({ metrics }: { metrics: Metrics }) {
  const { works, capabilities } = useSession();
  const { frozen } = capabilities;
  const isKnown = metrics.now && metrics.error === undefined;
  const seen = useRef(new Map<string, string>());
  const findings = metrics.now ? findingsOf(metrics.now, metrics.intervals) : [];
  for (const { what } of findings) {
    if (!seen.current.has(what)) seen.current.set(what, new Date().toISOString());
  }
  for (const what of seen.current.keys()) {
    if (!findings.some((finding) => finding.what === what)) seen.current.delete(what);
  }
  return (
    <div role="status">
      <ul class="findings">
        {works && findings.length === 0 && !frozen && (
          <li>
            <Icon name="done" />
            <p>
              <b>All is well.</b> The gateway runs, and its backend answers.
              {isKnown && ' Nothing is slow, nothing fails, nothing waits.'}
            </p>
          </li>
        )}
        {frozen && (
          <li class="warn">
            <Icon name="alert" />
            <p>
              <b>The store takes no changes</b> since <Time of={frozen.since} />. <code>omp-gateway doctor</code> says
              who froze it; <code>omp-gateway unfreeze</code> ends that.
            </p>
          </li>
        )}
        {isKnown &&
          findings.map(({ what, state, figures, help }) => (
            <li key={what} class={state}>
              <Icon name="alert" />
              <p>
                <b>{what}</b>
                {figures && `: ${figures}`}; seen here first <Time of={seen.current.get(what)} />. {help}
              </p>
            </li>
          ))}
      </ul>
    </div>
  );
}

const NoMetrics = ({ error }: { error: unknown }) => (
  <section>
    <h2>Latency, throughput, circuit breakers and queues</h2>
    {error instanceof ApiError ? <p>Not shown: {error.message}.</p> : <Failure error={error} />}
    <p>
      The gateway collects metrics if OMP_METRICS_PORT is set, to any port. A key reads them here if it is for all users
      and has the grant <code>read:*</code>.
    </p>
  </section>
);

const Facts = ({ label, rows }: { label: string; rows: readonly (readonly [string, unknown])[] }) => (
  <Wide label={label}>
    <table>
      <tbody>
        {rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{value === null ? 'no limit' : typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </Wide>
);

/** The process that answered last. */
function Now({ now }: { now: Snapshot }) {
  const { samples } = now;
  const build = samples.find(({ name }) => name === 'omp_build_info')?.labels;
  const breakers = samples.filter(({ name, value }) => name === 'omp_circuit_breaker_state' && value === 1);
  const number = (name: string, labels?: Record<string, string>) => {
    const value = readingOf(now, name, labels);
    return value === undefined ? undefined : count(value);
  };
  const hits = readingOf(now, 'omp_query_cache_hits_total') ?? 0;
  const queries = hits + (readingOf(now, 'omp_query_cache_misses_total') ?? 0);
  const open = number('omp_backend_connections', { state: 'open' });
  const started = readingOf(now, 'process_start_time_seconds');
  const rows: (readonly [string, string | undefined])[] = [
    ['Version', build?.version],
    ['Node', build?.node],
    ['Embedding model', build?.model || 'none'],
    ['Requests being processed', number('omp_http_requests_in_flight')],
    ...breakers.map(({ labels }) => [`Circuit breaker of ${labels.dependency}`, labels.state] as const),
    [
      'Connections to the backend',
      open &&
        `${open} open, ${number('omp_backend_connections', { state: 'busy' })} busy, at most ${number('omp_backend_connections_max')}`,
    ],
    ['Queued for the backend', number('omp_backend_waiting_requests')],
    ['Texts queued for their vector', number('omp_embedding_waiting_texts')],
    ['Queries whose vector was cached', queries > 0 ? `${count(hits)} of ${count(queries)}` : undefined],
    ...['queued', 'indexing', 'failed'].map(
      (state) => [`Memories ${state}`, number('omp_ingestion_memories', { state })] as const,
    ),
  ];
  return (
    <section>
      <h2>This process</h2>
      <Facts label="This process" rows={rows.filter(([, value]) => value !== undefined)} />
      {started !== undefined && (
        <p>
          Of one process, which started <Time of={new Date(1_000 * started).toISOString()} />.
        </p>
      )}
    </section>
  );
}

/** Charts over the time that the page is open. */
function Requests({ now, intervals }: Metrics) {
  const [verb, setVerb] = useState('');
  if (!now) return null;
  const chosen = intervals.map((interval) => ({ ...interval, of: histogramOf(interval.times, verb || undefined) }));
  const seen = [...now.times.keys()].sort();
  const first = intervals[0];
  const rows = seen.map((one) => {
    const recent = sumOf(intervals.map(({ times }) => histogramOf(times, one)));
    return {
      verb: one,
      recent: totalOf(recent),
      half: quantile(recent, 0.5),
      most: quantile(recent, 0.99),
      all: totalOf(histogramOf(now.times, one)),
    };
  });
  rows.sort((a, b) => b.all - a.all);
  const ends = [first && <Time of={new Date(first.at).toISOString()} />, 'now'] as const;
  return (
    <section>
      <h2>Requests</h2>
      <label class="slider">
        Which
        <select value={verb} onChange={(event) => setVerb(event.currentTarget.value)}>
          <option value="">all</option>
          {seen.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <div class="orders">
        <Lines
          title="Requests a second"
          lines={[{ name: verb || 'all', values: chosen.map(({ of, seconds }) => totalOf(of) / seconds) }]}
          show={(value) => value.toFixed(1)}
          ends={ends}
        />
        <Lines
          title="Time to answer"
          lines={[
            { name: 'half within', values: chosen.map(({ of }) => quantile(of, 0.5)) },
            { name: '99 % within', values: chosen.map(({ of }) => quantile(of, 0.99)) },
          ]}
          show={milliseconds}
          ends={ends}
        />
      </div>
      <Table label="Requests" rows={rows} columns={COLUMNS} />
      <p>Estimated from the bounds of the histograms, every five seconds while this page is open.</p>
    </section>
  );
}

const timeOf = (seconds: number | undefined): string => (seconds === undefined ? '' : milliseconds(seconds));

interface Row {
  readonly verb: string;
  readonly recent: number;
  readonly half: number | undefined;
  readonly most: number | undefined;
  readonly all: number;
}

const COLUMNS: readonly Column<Row>[] = [
  { name: 'Request', cell: ({ verb }) => <code>{verb}</code>, by: ({ verb }) => verb },
  {
    name: 'Since opened',
    cell: ({ recent }) => count(recent),
    by: ({ recent }) => recent,
    isNumber: true,
  },
  { name: 'Half within', cell: ({ half }) => timeOf(half), by: ({ half }) => half ?? 0, isNumber: true },
  { name: '99 % within', cell: ({ most }) => timeOf(most), by: ({ most }) => most ?? 0, isNumber: true },
  { name: 'Since start', cell: ({ all }) => count(all), by: ({ all }) => all, isNumber: true },
];
