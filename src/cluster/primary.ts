import { type Log, providerError } from '#contract';
import { CLOSE_MS, type Closing, createClosing, unlessStopped } from '../closing.ts';
import { providerOptions } from '../config/provider-options.ts';
import type { Config } from '../config/schema.ts';
import { createHealth } from '../core/health.ts';
import { freePort } from '../free-port.ts';
import { openMetricsPort } from '../metrics-port.ts';
import { countForWorkers } from '../rate-limit/primary-store.ts';
import { share } from '../registry.ts';
import type { Gateway, ServeOptions } from '../serve.ts';
import { startCrew } from './crew.ts';

/** For a worker to end, beside the times that it takes to stop, in milliseconds. */
const END_MS = 1_000;

/**
 * Serves with several processes that share the port. This one serves nothing itself: it owns what only one may own, counts
 * requests for all where that is not left to a store, and sees to it that as many workers run as were asked for.
 */
export async function serveWithWorkers(config: Config, log: Log, { stopped }: ServeOptions): Promise<Gateway> {
  const { provider, workers: count, shutdown_delay_ms, shutdown_timeout_ms, data_dir, metrics } = config;
  const closing = createClosing(log, stopped);
  const withinMs = shutdown_delay_ms + shutdown_timeout_ms + CLOSE_MS + END_MS;
  try {
    const health = createHealth(provider);
    const measures = metrics.port === undefined ? undefined : await openMeasures(closing);
    await openMetricsPort(config, { health, measures, log }, closing);
    // Also in the place of 0: workers that come later, when no other is left, have to find the same.
    const port = await freePort(config);
    const shared = share(provider, providerOptions(config), { data_dir, log });
    const { handle } = await closing.open(
      'shared',
      shared.then((own) => own ?? NOTHING),
    );
    countForWorkers();
    const task = { config: { ...config, port }, shared: handle };
    const crew = startCrew({ count, task, withinMs, log });
    closing.add('workers', crew.close, withinMs + END_MS);
    const serving = await unlessStopped(crew.started, stopped);
    const check = () =>
      crew.check().catch((error: Error) => {
        throw providerError(provider, error.message);
      });
    health.begin(check);
    const close = async () => {
      health.drain();
      await closing.close(withinMs + CLOSE_MS);
    };
    return { ...serving, check: health.check, close };
  } catch (error) {
    await closing.close().catch(() => {});
    throw error;
  }
}

/** What the workers measure together. */
async function openMeasures(closing: Closing) {
  const { measures, close } = (await import('../telemetry/aggregated.ts')).openAggregated();
  closing.add('measures', async () => close());
  return measures;
}

const NOTHING = { handle: undefined, close: async () => {} };
