import type { Log } from '#contract';
import type { Closing } from './closing.ts';
import type { Config } from './config/schema.ts';
import { type AdminOptions, createAdminApp } from './http/app.ts';
import { listen } from './http/listen.ts';

interface Shown extends Pick<AdminOptions, 'health' | 'scrape'> {
  readonly log: Log;
}

/** Opens the port for what operators ask, where one is wanted. Rejects when the address cannot be bound. */
export async function openMetricsPort({ metrics, provider }: Config, shown: Shown, closing: Closing): Promise<void> {
  const { port, host } = metrics;
  if (port === undefined) return;
  const { log } = shown;
  const listener = await listen(createAdminApp({ ...shown, provider }), { host, port, setting: 'OMP_METRICS', log });
  closing.add('metrics', () => listener.close({ graceMs: 0 }));
  log.info({ host: listener.host, port: listener.port }, 'the port for metrics is open');
}
