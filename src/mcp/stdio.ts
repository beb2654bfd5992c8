import { once } from 'node:events';
import { ProtocolErrorCode, type Transport } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { requireBounds } from '../verbs/fields.ts';
import { MAX_MESSAGE_VALUES } from './names.ts';
import { createServer, type McpServerOptions } from './server.ts';
import type { ToolCaller } from './tools.ts';

/** Serves the tools on standard input and output until the client closes its end or a signal asks to stop. */
export async function serveTools(
  options: McpServerOptions,
  caller: ToolCaller,
  onerror: (error: Error) => void,
): Promise<void> {
  const { stdin } = process;
  const end = Promise.race([
    ...['end', 'close'].map((event) => once(stdin, event)),
    ...['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)),
  ]);
  const transport = new StdioServerTransport();
  const handle = serveStdio(() => createServer(options, caller), { transport, maxSubscriptions: 0, onerror });
  boundMessages(transport, caller, onerror);
  await end;
  await handle.close();
  // A signal leaves it open, which would keep the process alive.
  stdin.destroy();
}

/** Answers messages with too many values, as those over HTTP, before the SDK reads them. */
function boundMessages(transport: Transport, caller: ToolCaller, onerror: (error: Error) => void): void {
  const { onmessage } = transport;
  transport.onmessage = (message) => {
    try {
      requireBounds(message, MAX_MESSAGE_VALUES);
    } catch (failure) {
      const { code, message: text } = caller.toError(failure);
      const error = { code: ProtocolErrorCode.InvalidParams, message: `${code}: ${text}` };
      if (!('id' in message)) return onerror(new Error(error.message));
      transport.send({ jsonrpc: '2.0', id: message.id, error }).catch(onerror);
      return;
    }
    onmessage?.(message);
  };
}
