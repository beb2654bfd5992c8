import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import {
  type Backlog,
  type Call,
  type Embedder,
  GATEWAY,
  OmpError,
  type Provider,
  type ProviderStats,
} from '#contract';
import { version } from '../cli/version.ts';
import type { BreakerState, Telemetry } from '../core/telemetry.ts';

/** Gauges of the library that are called like counters, which tools complain of; the same is there by type. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

/** What is looked at when somebody asks for measures. */
export interface Watched {
  readonly provider: Provider;
  readonly embedder: Embedder | undefined;
  /** Of what the gateway depends on, by name. */
  readonly breakers: () => ReadonlyMap<string, BreakerState>;
}

/** All measures in the format of Prometheus, and the media type of that. */
export interface Measures {
  readonly type: string;
  readonly text: string;
}

export interface Metrics {
  readonly telemetry: Telemetry;
  watch(watched: Watched): void;
  measures(): Promise<Measures>;
  close(): void;
}

/** Measures of this process for Prometheus; `docs/metrics.md` lists them. */
export function openMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);
  const stopWatching = watchEventLoop(registry);
  return {
    telemetry: countRequests(registry),
    watch(watched) {
      new Gauge({
        name: 'omp_build_info',
        help: 'What runs here; always 1.',
        labelNames: ['version', 'provider', 'node'],
        registers: [registry],
      }).set({ version: version(), provider: watched.provider.name, node: process.version }, 1);
      showWatched(registry, watched);
    },
    measures: async () => ({ type: registry.contentType, text: await registry.metrics() }),
    close: stopWatching,
  };
}

/** How often it is looked whether the event loop is free, in milliseconds. */
const EVERY_MS = 100;

/**
 * How late a timer is. The gauges of the library have a floor of ten milliseconds, and forget with every scrape; these can be
 * added up over time and over processes. Returns what ends it.
 */
export function watchEventLoop(registry: Registry): () => void {
  const lag = new Histogram({
    name: 'omp_event_loop_lag_seconds',
    help: 'How long what was due had to wait for the event loop, looked at ten times a second.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [registry],
  });
  let due = performance.now() + EVERY_MS;
  const timer = setInterval(() => {
    const now = performance.now();
    lag.observe(Math.max(0, now - due) / 1_000);
    due = now + EVERY_MS;
  }, EVERY_MS).unref();
  return () => clearInterval(timer);
}

/** Upper bounds in seconds: from a read of a database nearby to the longest that a request may take by default. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Anything else is `other`: whoever sends it must not be able to add to what is kept. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS']);

/** Times requests, and what they ask of the backend and the embedding service. */
export function countRequests(registry: Registry): Telemetry {
  const registers = [registry];
  const requests = new Histogram({
    name: 'omp_http_request_duration_seconds',
    help: 'Time from the headers of a request to the end of its answer; status 499: the client left.',
    labelNames: ['method', 'route', 'status'],
    buckets: BUCKETS,
    registers,
  });
  const backend = new Histogram({
    name: 'omp_backend_request_duration_seconds',
    help: 'Time of one operation of the backend, with repetitions and the vectors it needs; outcome: ok, an error code, or client_gone.',
    labelNames: ['provider', 'operation', 'outcome'],
    buckets: BUCKETS,
    registers,
  });
  const embedding = new Histogram({
    name: 'omp_embedding_request_duration_seconds',
    help: 'Time for the vectors of one batch of texts; outcome: ok, an error code, or client_gone.',
    labelNames: ['service', 'outcome'],
    buckets: BUCKETS,
    registers,
  });
  let running = 0;
  new Gauge({
    name: 'omp_http_requests_in_flight',
    help: 'Requests that are being worked on.',
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
      const started = performance.now();
      const end = (outcome: string) => {
        const seconds = (performance.now() - started) / 1_000;
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
 * Why it failed. Of a call that was given up, the reason it was given up for counts: what then comes out of a backend's
 * client is of no interest. The one reason that is nobody's failure but the client's is that it left.
 */
function outcomeOf(error: unknown, { signal }: Call): string {
  const cause = signal.aborted ? signal.reason : error;
  if (!(cause instanceof OmpError)) return 'provider_error';
  return signal.aborted && cause.code === 'invalid_request' ? 'client_gone' : cause.code;
}

const STATES: readonly BreakerState[] = ['closed', 'half-open', 'open'];

/** What is looked at when somebody asks. What cannot be found out in time is absent then. */
export function showWatched(registry: Registry, { provider, embedder, breakers }: Watched): void {
  const registers = [registry];
  const { name } = provider;
  if (provider.stats) showProvider(registry, name, provider.stats);
  if (provider.backlog) showBacklog(registry, createBacklog(provider.backlog));
  if (embedder?.stats) showEmbedder(registry, embedder.stats);
  new Gauge({
    name: 'omp_circuit_breaker_state',
    help: 'Processes in which the breaker of a dependency is in that state: closed is good, open is left alone.',
    labelNames: ['dependency', 'state'],
    registers,
    collect() {
      for (const [dependency, current] of breakers()) {
        for (const state of STATES) this.set({ dependency, state }, state === current ? 1 : 0);
      }
    },
  });
}

function showProvider(registry: Registry, provider: string, stats: () => ProviderStats): void {
  const registers = [registry];
  new Gauge({
    name: 'omp_backend_connections',
    help: 'Connections to the backend, by whether they are open, and of these whether they are busy.',
    labelNames: ['provider', 'state'],
    registers,
    collect() {
      const { connections } = stats();
      this.reset();
      if (!connections) return;
      this.set({ provider, state: 'open' }, connections.open);
      this.set({ provider, state: 'busy' }, connections.busy);
    },
  });
  new Gauge({
    name: 'omp_backend_connections_max',
    help: 'Most connections to the backend that may be open.',
    labelNames: ['provider'],
    registers,
    collect() {
      const { connections } = stats();
      this.reset();
      if (connections) this.set({ provider }, connections.most);
    },
  });
  new Gauge({
    name: 'omp_backend_waiting_requests',
    help: 'Requests to the backend that wait for their turn.',
    labelNames: ['provider'],
    registers,
    collect() {
      const { waiting } = stats();
      this.reset();
      if (waiting !== undefined) this.set({ provider }, waiting);
    },
  });
}

function showBacklog(registry: Registry, backlog: () => Promise<Backlog | undefined>): void {
  new Gauge({
    name: 'omp_ingestion_memories',
    help: 'Memories whose vectors are yet to be computed, by state; failed ones wait for somebody to look at them.',
    labelNames: ['state'],
    registers: [registry],
    async collect() {
      const memoriesOf = await backlog();
      this.reset();
      for (const [state, memories] of Object.entries(memoriesOf ?? {})) this.set({ state }, memories);
    },
  });
}

function showEmbedder(registry: Registry, stats: NonNullable<Embedder['stats']>): void {
  const registers = [registry];
  new Gauge({
    name: 'omp_embedding_waiting_texts',
    help: 'Texts that wait for their vector.',
    registers,
    collect() {
      this.set(stats().waiting);
    },
  });
  new Counter({
    name: 'omp_query_cache_hits_total',
    help: 'Queries whose vector was remembered.',
    registers,
    collect() {
      this.reset();
      this.inc(stats().cache_hits);
    },
  });
  new Counter({
    name: 'omp_query_cache_misses_total',
    help: 'Queries whose vector was computed.',
    registers,
    collect() {
      this.reset();
      this.inc(stats().cache_misses);
    },
  });
}

/** How long an answer is good for, in milliseconds: however often measures are asked for, the backend is not. */
const FRESH_MS = 5_000;
/** Longest wait for the backend, in milliseconds. Whoever collects measures does not wait for long either. */
const WAIT_MS = 1_000;

/** Asks the provider seldom and never twice at once. Undefined: it cannot be asked, or not in time. */
export function createBacklog(ask: NonNullable<Provider['backlog']>): () => Promise<Backlog | undefined> {
  let answer: Promise<Backlog | undefined> = Promise.resolve(undefined);
  let asked = Number.NEGATIVE_INFINITY;
  let asking = false;
  return () => {
    const now = performance.now();
    if (asking || now - asked < FRESH_MS) return answer;
    asked = now;
    asking = true;
    const signal = AbortSignal.timeout(WAIT_MS);
    const asks: Promise<Backlog | undefined> = ask({ signal, requestId: 'metrics', caller: GATEWAY })
      .catch(() => undefined)
      .finally(() => {
        asking = false;
      });
    const late = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    answer = Promise.race([asks, late]);
    return answer;
  };
}
