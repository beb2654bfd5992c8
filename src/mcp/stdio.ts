import { once } from 'node:events';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { type JSONRPCMessage, ProtocolErrorCode, type Transport } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { requireBounds } from '../verbs/fields.ts';
import { MAX_MESSAGE_VALUES, type ToolName } from './names.ts';
import { createServer, offer, offerOf, type Supported } from './server.ts';
import type { ToolCaller } from './tools.ts';

export interface StdioOptions {
  readonly tools: readonly ToolName[];
  /** Until it is known, only what needs no store is answered. Never rejects. */
  readonly supported: Promise<Supported>;
}

/**
 * Serves the tools on standard input and output until the client closes one of them or a signal asks to stop. What was read before the end
 * of the input is answered first.
 */
export async function serveTools(
  { tools, supported }: StdioOptions,
  caller: ToolCaller,
  onerror: (error: Error) => void,
): Promise<void> {
  const { stdin, stderr } = process;
  // A client that ended reads neither output.
  stderr.on('error', () => {});
  const input = Readable.from(untilAnswered(stdin, () => answered()));
  const transport = new StdioServerTransport(input);
  const offered = supported.then((known) => offerOf({ tools, ...known }));
  const create = () => {
    const server = createServer();
    void offered.then((known) => offer(server, known, caller));
    return server;
  };
  const handle = serveStdio(create, { transport, maxSubscriptions: 0, onerror });
  holdMessages(transport, offered);
  boundMessages(transport, caller, onerror);
  const answered = countRequests(transport);
  await Promise.race([closing(transport), ...['SIGINT', 'SIGTERM'].map((signal) => once(process, signal))]);
  await handle.close();
  // Open inputs would keep the process alive.
  input.destroy();
  stdin.destroy();
}

/** The input, of which the end comes once its requests are answered: the SDK drops those that are running then. */
async function* untilAnswered(stdin: Readable, answered: () => Promise<void>): AsyncGenerator<Buffer> {
  yield* stdin;
  // The last message may lack its line end.
  yield Buffer.from('\n');
  // The transport has read it after that.
  await setImmediate();
  await answered();
}

/** Resolves when the transport has closed: after the end of the input, or when nobody reads the output any more. */
const closing = (transport: Transport): Promise<void> =>
  new Promise((closed) => {
    const { onclose } = transport;
    transport.onclose = () => {
      onclose?.();
      closed();
    };
  });

/** A message as JSON-RPC has it. */
interface Message {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: { readonly requestId?: unknown };
}

/** The result resolves when every request that was read is answered or cancelled. */
function countRequests(transport: Transport): () => Promise<void> {
  const { onmessage } = transport;
  const send = transport.send.bind(transport);
  const open = new Set<unknown>();
  let done = () => {};
  const settle = (id: unknown) => {
    if (open.delete(id) && open.size === 0) done();
  };
  transport.onmessage = (message: JSONRPCMessage) => {
    const { id, method, params } = message as Message;
    if (method === 'notifications/cancelled') settle(params?.requestId);
    else if (id !== undefined && method !== undefined) open.add(id);
    onmessage?.(message);
  };
  transport.send = async (message) => {
    await send(message).finally(() => {
      if ('result' in message || 'error' in message) settle(message.id);
    });
  };
  return async () => {
    if (open.size > 0) await new Promise<void>((resolve) => (done = resolve));
  };
}

const NEED_NO_STORE: readonly unknown[] = ['initialize', 'server/discover', 'ping'];

/** Holds requests until it is known what is offered. A request that is cancelled meanwhile gets no answer. */
function holdMessages(transport: Transport, offered: Promise<unknown>): void {
  const { onmessage } = transport;
  const held = new Set<unknown>();
  let known = false;
  void offered.then(() => {
    known = true;
  });
  transport.onmessage = (message: JSONRPCMessage) => {
    const { id, method, params } = message as Message;
    if (method === 'notifications/cancelled' && held.delete(params?.requestId)) return;
    if (known || id === undefined || NEED_NO_STORE.includes(method)) return onmessage?.(message);
    held.add(id);
    void offered.then(() => held.delete(id) && onmessage?.(message));
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
