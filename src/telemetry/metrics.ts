import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { version } from '../cli/version.ts';
import type { Telemetry } from '../core/telemetry.ts';
import { watchEventLoop } from './event-loop.ts';
import type { Measures, Watched } from './open.ts';
import { countRequests } from './requests.ts';
import { showWatched } from './watched.ts';

/** Gauges of the library that are called like counters, which tools complain of; the same is there by type. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

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
