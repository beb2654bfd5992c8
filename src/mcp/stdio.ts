import { once } from 'node:events';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { ToolCaller } from './memories.ts';
import { createServer, type McpServerOptions } from './server.ts';

/** Serves the tools on standard input and output until the client closes its end or a signal asks to stop. */
export async function serveTools(
  options: McpServerOptions,
  caller: ToolCaller,
  onerror: (error: Error) => void,
): Promise<void> {
  const { stdin } = process;
  const ended = Promise.race([
    ...['end', 'close'].map((event) => once(stdin, event)),
    ...['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)),
  ]);
  const handle = serveStdio(() => createServer(options, caller), { maxSubscriptions: 0, onerror });
  await ended;
  await handle.close();
  // A signal leaves it open, which would keep the process alive.
  stdin.destroy();
}
