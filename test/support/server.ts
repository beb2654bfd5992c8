import { tmpdir } from 'node:os';
import type { Provider } from '#contract';
import { compose } from '../../src/core/compose.ts';
import { createApp } from '../../src/http/app.ts';
import { listen } from '../../src/http/listen.ts';
import { openProvider } from '../../src/registry.ts';
import { type Client, clientOf } from './client.ts';
import { APP_LIMITS, type LogLine, recordingLog } from './subject.ts';

/** The gateway behind a real socket. */
export interface RunningServer {
  readonly port: number;
  readonly url: string;
  readonly client: Client;
  /** What the gateway logged so far. */
  readonly lines: readonly LogLine[];
  close(): Promise<void>;
}

export interface ServerOptions {
  /** Changes the memory provider before it is composed, to let it fail in ways it never would. */
  readonly alter?: (provider: Provider) => Provider;
  readonly request_timeout_ms?: number;
}

/** Serves the memory provider (keyword search, so that no embedder is needed) on a free port of 127.0.0.1. */
export const startServer = async ({
  alter = (provider) => provider,
  ...limits
}: ServerOptions = {}): Promise<RunningServer> => {
  const log = recordingLog();
  const ranking = { mode: 'keyword', keyword_weight: 1 } as const;
  const context = { embedder: undefined, ranking, data_dir: tmpdir(), log };
  const provider = compose(alter(await openProvider('memory', { scopes: 'native' }, context)));
  const listener = await listen(createApp({ provider, log, ...APP_LIMITS, ...limits }), { host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${listener.port}`;
  return {
    port: listener.port,
    url,
    client: clientOf((path, init) => fetch(url + path, init)),
    lines: log.lines,
    close: async () => {
      await listener.close();
      await provider.close();
    },
  };
};
