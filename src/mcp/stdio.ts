import { once } from 'node:events';
import { type JSONRPCMessage, ProtocolErrorCode, type Transport } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { requireBounds } from '../verbs/fields.ts';
import { MAX_MESSAGE_VALUES, type ToolName } from './names.ts';
import { createServer, offer, type Supported } from './server.ts';
import type { ToolCaller } from './tools.ts';

export interface StdioOptions {
  readonly tools: readonly ToolName[];
  /** Until it is known, only what needs no store is answered. Never rejects. */
  readonly supported: Promise<Supported>;
}

/** Serves the tools on standard input and output until the client closes its end or a signal asks to stop. */
export async function serveTools(
  { tools, supported }: StdioOptions,
  caller: ToolCaller,
  onerror: (error: Error) => void,
): Promise<void> {
  const { stdin } = process;
  const end = Promise.race([
    ...['end', 'close'].map((event) => once(stdin, event)),
    ...['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)),
  ]);
  const transport = new StdioServerTransport();
  const create = () => {
    const server = createServer();
    void supported.then((known) => offer(server, { tools, ...known }, caller));
    return server;
  };
  const handle = serveStdio(create, { transport, maxSubscriptions: 0, onerror });
  holdMessages(transport, supported);
  boundMessages(transport, caller, onerror);
  await end;
  await handle.close();
  // A signal leaves it open, which would keep the process alive.
  stdin.destroy();
}

/** A message as JSON-RPC has it. */
interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: { readonly requestId?: unknown };
}

const NEED_NO_STORE: readonly unknown[] = ['initialize', 'server/discover', 'ping'];

/** Holds requests until what is supported is known. A request that is cancelled meanwhile gets no answer. */
function holdMessages(transport: Transport, supported: Promise<Supported>): void {
  const { onmessage } = transport;
  const held = new Set<unknown>();
  let known = false;
  void supported.then(() => {
    known = true;
  });
  transport.onmessage = (message: JSONRPCMessage) => {
    const { id, method, params } = message as Message;
    if (method === 'notifications/cancelled' && held.delete(params?.requestId)) return;
    if (known || id === undefined || NEED_NO_STORE.includes(method)) return onmessage?.(message);
    held.add(id);
    void supported.then(() => held.delete(id) && onmessage?.(message));
  };
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
