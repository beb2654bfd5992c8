import type { Log } from '#contract';
import { embeddingOptions } from './config/embedding-options.ts';
import type { Config } from './config/schema.ts';
import { compose } from './core/compose.ts';
import { openEmbedder } from './embedding/open.ts';
import { createApp } from './http/app.ts';
import { listen } from './http/listen.ts';
import { openProvider } from './registry.ts';

export interface Gateway {
  readonly host: string;
  readonly port: number;
  /** Finishes running requests within the configured time, then closes backend and embedder. */
  close(): Promise<void>;
}

/** Opens what is configured, bottom up, and serves it. Rejects with a message an operator can act on, leaving nothing open. */
export async function serve(config: Config, log: Log): Promise<Gateway> {
  const closers: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const embedder = config.search.mode === 'keyword' ? undefined : await openEmbedder(embeddingOptions(config), log);
    if (embedder) closers.push(() => embedder.close());

    const context = { embedder, ranking: config.search, data_dir: config.data_dir, log };
    const provider = compose(await openProvider(config.provider, config[config.provider], context));
    closers.push(() => provider.close());

    const listener = await listen(createApp({ ...config, provider, log }), config);
    closers.push(() => listener.close(config.shutdown_timeout_ms));
    if (!isLoopback(listener.host))
      log.warn(
        { host: listener.host },
        'anybody who reaches this address can read and write: there is no authentication',
      );
    return { host: listener.host, port: listener.port, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const isLoopback = (host: string): boolean => host === '::1' || host.startsWith('127.');
