import { Counter, Gauge, type Registry } from 'prom-client';
import type { Backlog, Embedder, ProviderStats } from '#contract';
import type { BreakerState } from '../core/telemetry.ts';
import { createBacklog } from './backlog.ts';
import type { Watched } from './open.ts';

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
