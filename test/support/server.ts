import { tmpdir } from 'node:os';
import { onTestFinished } from 'vitest';
import type { Provider } from '#contract';
import { compose } from '../../src/core/compose.ts';
import { OPEN } from '../../src/core/grants.ts';
import type { Store } from '../../src/core/store.ts';
import type { Scrape } from '../../src/core/telemetry.ts';
import type { Webhooks } from '../../src/features/webhooks/interface.ts';
import { type AppOptions, createApp } from '../../src/http/app.ts';
import { type ListenOptions, listen } from '../../src/http/listen.ts';
import { openProvider } from '../../src/registry.ts';
import { type Client, clientOf } from './client.ts';
import { APP_LIMITS, gateOn, type LogLine, RECORDED, recordingLog, VERSIONED } from './subject.ts';

/** The gateway behind a real socket. */
export interface RunningServer {
  readonly port: number;
  readonly url: string;
  readonly client: Client;
  /** What the gateway logged so far. */
  readonly lines: readonly LogLine[];
  /** Requests that wait for changes. */
  followers(): number;
  close(): Promise<void>;
}

export interface ServerOptions
  extends Partial<Omit<AppOptions, 'gate' | 'log'>>,
    Pick<ListenOptions, 'max_header_bytes' | 'header_timeout_ms'> {
  /** Changes the memory provider before it is composed, to let it fail in ways it never would. */
  readonly alter?: (provider: Provider) => Provider;
  /** Served instead of the memory provider, and not closed. */
  readonly provider?: Store;
  /** Of `/metrics`. */
  readonly scrape?: Scrape | undefined;
  /** Manages the webhooks of `provider`. */
  readonly webhooks?: Webhooks | undefined;
}

/** Serves the memory provider (keyword search, so that no embedder is needed) on a free port of 127.0.0.1. */
export const startServer = async ({
  alter = (provider) => provider,
  provider: given,
  scrape,
  webhooks,
  ...options
}: ServerOptions = {}): Promise<RunningServer> => {
  const log = recordingLog();
  const ranking = { mode: 'keyword', keyword_weight: 1 } as const;
  const context = { embedder: undefined, ranking, audit: RECORDED, versions: VERSIONED, data_dir: tmpdir(), log };
  const provider =
    given ?? compose(alter(await openProvider('memory', { scopes: 'native' }, context)), { embedder: undefined, log });
  const { max_request_bytes: max = APP_LIMITS.max_request_bytes } = options;
  const { gate, auditQueue } = gateOn(provider, log, { max_record_bytes: 2 * max, scrape, webhooks });
  const app = createApp({ gate, authenticator: OPEN, log, ...APP_LIMITS, ...options });
  const listener = await listen(app, { host: '127.0.0.1', port: 0, log, ...APP_LIMITS, ...options });
  const url = `http://127.0.0.1:${listener.port}`;
  return {
    port: listener.port,
    url,
    client: clientOf((path, init) => fetch(url + path, init)),
    lines: log.lines,
    followers: gate.feed.followers,
    close: async () => {
      gate.feed.drain();
      await listener.close();
      await auditQueue.close();
      if (!given) await provider.close();
    },
  };
};

/** The same, closed after the test. */
export async function serverForTest(options?: ServerOptions): Promise<RunningServer> {
  const server = await startServer(options);
  onTestFinished(server.close);
  return server;
}

/** Does this before every `get` of the memory provider, which otherwise answers at once. */
export const beforeGet =
  (work: (...given: Parameters<Provider['get']>) => unknown) =>
  (provider: Provider): Provider => ({
    ...provider,
    get: async (ref, call) => {
      await work(ref, call);
      return provider.get(ref, call);
    },
  });
