import { useState } from 'preact/hooks';
import { ApiError } from '../../clients/typescript/src/index.ts';
import { Lines } from './chart.tsx';
import { count, Time, Wide } from './format.tsx';
import { Failure, useLoad } from './load.tsx';
import { histogramOf, quantile, readingOf, type Snapshot, sumOf, totalOf } from './metrics.ts';
import { useSession } from './session.ts';
import { type Metrics, useMetrics } from './use-metrics.ts';

/** Whether the gateway works, how fast, and what it can do. */
export function Health() {
  const { client, capabilities } = useSession();
  const { data, error, reload } = useLoad('', (signal) => client.health({ signal, retries: 0 }));
  const metrics = useMetrics();
  const { omp_version, provider, verbs, features, limits, 'x-stores': stores } = capabilities;
  return (
    <>
      <h1>Health</h1>
      {data && <p class="good">The gateway runs, and its backend answers.</p>}
      {error !== undefined && <Failure error={error} retry={reload} />}
      {metrics.now && <Now now={metrics.now} />}
      {metrics.now && <Requests {...metrics} />}
      {metrics.error !== undefined && <NoMetrics error={metrics.error} />}
      <h2>What this gateway can do</h2>
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
        <>
          <h2>Mounted stores</h2>
          <Facts
            label="Mounted stores"
            rows={stores.map((store) => [store.name, `${store.provider} at ${store.mount}: ${store.verbs.join(', ')}`])}
          />
        </>
      )}
      <p>
        The HTTP interface: <a href="../docs">/docs</a>.
      </p>
    </>
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
      <h2>Now</h2>
      <Facts label="Now" rows={rows.filter(([, value]) => value !== undefined)} />
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
          lines={[{ name: 'now', values: chosen.map(({ of, seconds }) => totalOf(of) / seconds) }]}
          show={(value) => value.toFixed(1)}
        />
        <Lines
          title="Time to answer"
          lines={[
            { name: 'half within', values: chosen.map(({ of }) => quantile(of, 0.5)) },
            { name: '99 % within', values: chosen.map(({ of }) => quantile(of, 0.99)) },
          ]}
          show={milliseconds}
        />
      </div>
      <Wide label="Requests">
        <table>
          <thead>
            <tr>
              <th>Request</th>
              <th>Since this page was opened</th>
              <th>Half within</th>
              <th>99 % within</th>
              <th>Since the process started</th>
            </tr>
          </thead>
          <tbody>
            {seen.map((one) => {
              const recent = sumOf(intervals.map(({ times }) => histogramOf(times, one)));
              return (
                <tr key={one}>
                  <th scope="row">{one}</th>
                  <td>{count(totalOf(recent))}</td>
                  <td>{timeOf(quantile(recent, 0.5))}</td>
                  <td>{timeOf(quantile(recent, 0.99))}</td>
                  <td>{count(totalOf(histogramOf(now.times, one)))}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Wide>
      <p>Estimated from the bounds of the histograms, every five seconds while this page is open.</p>
    </section>
  );
}

const ROUGH = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });
const milliseconds = (seconds: number): string => `${ROUGH.format(1_000 * seconds)} ms`;
const timeOf = (seconds: number | undefined): string => (seconds === undefined ? '' : milliseconds(seconds));
