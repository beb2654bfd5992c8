import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type Call, OmpError } from '#contract';
import type { Telemetry } from '../core/telemetry.ts';
import { version } from '../package.ts';
import { addSources, type MetricSources } from './sources.ts';

/** Gauges of the library with names of counters, which linters reject. Gauges by type show the same. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/** All metrics in the text format of Prometheus, and its media type. */
export interface MetricsText {
  readonly type: string;
  readonly text: string;
}

export interface Metrics {
  readonly telemetry: Telemetry;
  watch(sources: MetricSources): void;
  scrape(): Promise<MetricsText>;
  close(): void;
}

/** Metrics of this process for Prometheus; docs/metrics.md lists them. */
export function openMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const stopMeasuring = measureEventLoop(registry);
  return {
    telemetry: measureRequests(registry),
    watch(sources) {
      new Gauge({
        name: 'omp_build_info',
        help: 'Version of the gateway; always 1.',
        labelNames: ['version', 'provider', 'node', 'model'],
        registers: [registry],
      }).set(
        {
          version: version(),
          provider: sources.provider.name,
          node: process.version,
          model: sources.embedder?.model ?? '',
        },
        1,
      );
      addSources(registry, sources);
    },
    scrape: async () => ({ type: registry.contentType, text: await registry.metrics() }),
    close: stopMeasuring,
  };
}

/** How often the event loop is sampled, in milliseconds. */
const EVERY_MS = 100;

/**
 * Measures how late a timer fires. The library's gauges have a floor of ten milliseconds and reset with every scrape; a
 * histogram can be aggregated over time and processes. Returns a function that stops it.
 */
function measureEventLoop(registry: Registry): () => void {
  const lag = new Histogram({
    name: 'omp_event_loop_lag_seconds',
    help: 'Delay of the event loop, sampled ten times a second.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [registry],
  });
  let dueAt = performance.now() + EVERY_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    lag.observe(Math.max(0, now - dueAt) / 1_000);
    dueAt = now + EVERY_MS;
  }, EVERY_MS).unref();
  return () => clearInterval(timer);
}

/** Upper bounds in seconds, from a read of a nearby database to the default deadline of a request. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Other methods are `other`: clients must not be able to create time series. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS']);

/** Measures requests, and their calls to the backend and the embedding service. */
function measureRequests(registry: Registry): Telemetry {
  const registers = [registry];
  const requests = new Histogram({
    name: 'omp_http_request_duration_seconds',
    help: 'Time from the request headers to the end of the response; status 499: the client disconnected.',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS,
    registers,
  });
  const backend = new Histogram({
    name: 'omp_backend_request_duration_seconds',
    help: 'Time of one backend operation, with retries; outcome: ok, an error code, or client_gone.',
    labelNames: ['provider', 'operation', 'outcome'],
    buckets: BUCKETS,
    registers,
  });
  const embedding = new Histogram({
    name: 'omp_embedding_request_duration_seconds',
    help: 'Time to embed one batch of texts; outcome: ok, an error code, or client_gone.',
    labelNames: ['service', 'outcome'],
    buckets: BUCKETS,
    registers,
  });
  let running = 0;
  new Gauge({
    name: 'omp_http_requests_in_flight',
    help: 'Requests being processed.',
    registers,
    collect() {
      this.set(running);
    },
  });

  return {
    request() {
      running++;
      return {
        trace: undefined,
        end({ method, route, status, seconds }) {
          running--;
          requests.observe({ method: METHODS.has(method) ? method : 'other', route, status }, seconds);
        },
      };
    },
    async call({ kind, dependency, name }, call, work) {
      const startedAt = performance.now();
      const end = (outcome: string) => {
        const seconds = (performance.now() - startedAt) / 1_000;
        if (kind === 'backend') backend.observe({ provider: dependency, operation: name, outcome }, seconds);
        else embedding.observe({ service: dependency, outcome }, seconds);
      };
      try {
        const result = await work(call);
        end('ok');
        return result;
      } catch (error) {
        end(outcomeOf(error, call));
        throw error;
      }
    },
  };
}

/**
 * An aborted call has the outcome of the abort's reason, not of the error that the backend's client then throws. If the
 * client disconnected, nothing failed.
 */
function outcomeOf(error: unknown, { signal }: Call): string {
  const cause = signal.aborted ? signal.reason : error;
  if (!(cause instanceof OmpError)) return 'provider_error';
  return signal.aborted && cause.code === 'invalid_request' ? 'client_gone' : cause.code;
}
