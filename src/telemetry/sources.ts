import { Counter, Gauge, type Registry } from 'prom-client';
import type { Backlog, Embedder, EmbedderStats, Provider, ProviderStats } from '#contract';
import { scraped } from '../core/cached-answer.ts';
import type { MountedStore } from '../core/store.ts';
import type { BreakerState, Metric } from '../core/telemetry.ts';

/** Every scrape reads these. */
export interface MetricSources {
  /** The root store, or all stores as one, which has these of the root store. */
  readonly provider: Pick<Provider, 'name' | 'stats' | 'backlog'>;
  /** Of the root store. */
  readonly embedder: Embedder | undefined;
  readonly mounted?: readonly Pick<MountedStore, 'name' | 'embedder' | 'current'>[];
  /** Circuit breakers by name of the dependency. */
  readonly breakers: () => ReadonlyMap<string, BreakerState>;
  /** What features show. */
  readonly features?: readonly Metric[];
}

const STATES: readonly BreakerState[] = ['closed', 'half-open', 'open'];

/** Gauges and counters that are read at every scrape. A value that is not available in time is absent. */
export function addSources(
  registry: Registry,
  { provider, embedder, mounted = [], breakers, features = [] }: MetricSources,
): void {
  const registers = [registry];
  const others = mounted.length > 0;
  if (others || provider.stats) {
    addProviders(registry, [
      { name: provider.name, stats: () => provider.stats?.() },
      ...mounted.map(({ name, current }) => ({ name, stats: () => current().stats?.() })),
    ]);
  }
  if (others || provider.backlog) {
    addBacklogs(registry, [
      { labels: {}, backlog: scraped(() => provider.backlog) },
      ...mounted.map(({ name, current }) => ({
        labels: { store: name },
        backlog: scraped(() => current().backlog),
      })),
    ]);
  }
  if (others || embedder?.stats) {
    addEmbedders(registry, [
      { labels: {}, embedder: () => embedder },
      ...mounted.map((one) => ({ labels: { store: one.name }, embedder: () => one.embedder })),
    ]);
  }
  for (const one of features) addMetric(registry, one);
  new Gauge({
    name: 'omp_circuit_breaker_state',
    help: '1 if the circuit breaker of the dependency is in this state. Open: requests fail at once.',
    labelNames: ['dependency', 'state'],
    registers,
    collect() {
      for (const [dependency, current] of breakers()) {
        for (const state of STATES) this.set({ dependency, state }, state === current ? 1 : 0);
      }
    },
  });
}

/** A store, named as in errors. `stats`: undefined if it has none. */
interface StatsSource {
  readonly name: string;
  stats(): ProviderStats | undefined;
}

function addProviders(registry: Registry, sources: readonly StatsSource[]): void {
  const registers = [registry];
  const each = (set: (provider: string, stats: ProviderStats) => void) => {
    for (const { name, stats } of sources) {
      const current = stats();
      if (current) set(name, current);
    }
  };
  new Gauge({
    name: 'omp_backend_connections',
    help: 'Connections to the backend: open ones, and how many of them are busy.',
    labelNames: ['provider', 'state'],
    registers,
    collect() {
      this.reset();
      each((provider, { connections }) => {
        if (!connections) return;
        this.set({ provider, state: 'open' }, connections.open);
        this.set({ provider, state: 'busy' }, connections.busy);
      });
    },
  });
  new Gauge({
    name: 'omp_backend_connections_max',
    help: 'Maximum connections to the backend.',
    labelNames: ['provider'],
    registers,
    collect() {
      this.reset();
      each((provider, { connections }) => {
        if (connections) this.set({ provider }, connections.max);
      });
    },
  });
  new Gauge({
    name: 'omp_backend_waiting_requests',
    help: 'Queue length of requests to the backend.',
    labelNames: ['provider'],
    registers,
    collect() {
      this.reset();
      each((provider, { queue_length }) => {
        if (queue_length !== undefined) this.set({ provider }, queue_length);
      });
    },
  });
}

/** Only what belongs to a mounted store has this label. */
type StoreLabel = { readonly store?: string };

interface BacklogSource {
  readonly labels: StoreLabel;
  backlog(): Promise<Backlog | undefined>;
}

function addBacklogs(registry: Registry, sources: readonly BacklogSource[]): void {
  new Gauge({
    name: 'omp_ingestion_memories',
    help: 'Memories without a vector yet, by state; failed ones need an operator.',
    labelNames: ['state', 'store'],
    registers: [registry],
    async collect() {
      const backlogs = await Promise.all(sources.map(({ backlog }) => backlog()));
      this.reset();
      for (const [at, { labels }] of sources.entries()) {
        for (const [state, memories] of Object.entries(backlogs[at] ?? {})) this.set({ ...labels, state }, memories);
      }
    },
  });
}

function addMetric(registry: Registry, { kind, name, help, labels = [], read }: Metric): void {
  const options = { name, help, labelNames: [...labels], registers: [registry] };
  if (kind === 'gauge') {
    new Gauge({
      ...options,
      async collect() {
        const values = await read();
        this.reset();
        for (const { labels = {}, value } of values) this.set(labels, value);
      },
    });
    return;
  }
  new Counter({
    ...options,
    async collect() {
      const values = await read();
      this.reset();
      for (const { labels = {}, value } of values) this.inc(labels, value);
    },
  });
}

interface EmbedderSource {
  readonly labels: StoreLabel;
  /** Undefined: the store has none, or is not open yet. */
  embedder(): Embedder | undefined;
}

function addEmbedders(registry: Registry, sources: readonly EmbedderSource[]): void {
  const registers = [registry];
  /** Stores that share an embedder share its values: they are those of the first. */
  const each = (set: (labels: StoreLabel, stats: EmbedderStats) => void) => {
    const seen = new Set<Embedder>();
    for (const { labels, embedder } of sources) {
      const one = embedder();
      if (!one?.stats || seen.has(one)) continue;
      seen.add(one);
      set(labels, one.stats());
    }
  };
  const labelNames = ['store'];
  new Gauge({
    name: 'omp_embedding_waiting_texts',
    help: 'Queue length of texts to embed.',
    labelNames,
    registers,
    collect() {
      this.reset();
      each((labels, { queue_length }) => this.set(labels, queue_length));
    },
  });
  new Counter({
    name: 'omp_query_cache_hits_total',
    help: 'Queries whose vector was cached.',
    labelNames,
    registers,
    collect() {
      this.reset();
      each((labels, { cache_hits }) => this.inc(labels, cache_hits));
    },
  });
  new Counter({
    name: 'omp_query_cache_misses_total',
    help: 'Queries whose vector was not cached.',
    labelNames,
    registers,
    collect() {
      this.reset();
      each((labels, { cache_misses }) => this.inc(labels, cache_misses));
    },
  });
}
