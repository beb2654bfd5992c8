import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { createApp } from './app.ts';
import type { Lag, Settings } from './options.ts';

/** Serves an index on 127.0.0.1. Port 0, the default: a free one. Rejects if it cannot listen. */
export async function listen({
  settings,
  lag,
  port = 0,
}: {
  readonly settings: Settings;
  readonly lag: Lag;
  readonly port?: number;
}): Promise<{ readonly url: string; readonly server: Server }> {
  const app = await createApp(settings, lag);
  // Clients reuse connections: only faults may reset one.
  const serverOptions = { keepAliveTimeout: 600_000 };
  const server = createAdaptorServer({ fetch: app.fetch, serverOptions }) as Server;
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
