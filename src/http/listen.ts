import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener, RequestError } from '@hono/node-server';
import type { Hono } from 'hono';
import { invalidRequest, type Log, OmpError } from '#contract';
import { type Env, newRequestId } from './call.ts';
import { parserError, plainResponse, refuser } from './malformed.ts';

export interface ListenOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** For what goes wrong outside of the app. */
  readonly log: Log;
  /** Most bytes of a request line and its headers together. */
  readonly max_header_bytes?: number;
  /** Longest time for them to arrive, in milliseconds, on a new connection from its beginning. */
  readonly header_timeout_ms?: number;
  /** The app's deadline for a request, in milliseconds; a body nobody reads is given as long. */
  readonly request_timeout_ms?: number;
}

export interface Listener {
  readonly host: string;
  readonly port: number;
  /** Stops accepting, lets running requests finish for at most `graceMs`, then cuts what is left. */
  close(graceMs?: number): Promise<void>;
}

/** Longer than proxies keep an idle connection (commonly 60 s): one that they are about to use again must not be closed. */
const KEEP_ALIVE_MS = 65_000;

/** Serves the app. Rejects when the address cannot be bound. */
export function listen(app: Hono<Env>, options: ListenOptions): Promise<Listener> {
  const { host, port, log } = options;
  const server = createServer(limitsOf(options), getRequestListener(app.fetch, { errorHandler: failure(log) }));
  // By size they are limited already. Node would leave out the last of too many: those that a proxy has added.
  server.maxHeadersCount = 0;
  const open = new Set<ServerResponse>();
  const last = new WeakMap<Duplex, ServerResponse>();
  server.prependListener('request', (request, response: ServerResponse) => {
    open.add(response);
    last.set(request.socket, response);
    response.once('close', () => open.delete(response));
    // Listening ends first; a client that goes on sending on a kept connection is told with its next answer.
    if (!server.listening) response.setHeader('connection', 'close');
  });
  const inWork = (socket: Duplex) => ({
    open: [...open].filter(({ req }) => req.socket === socket),
    last: last.get(socket),
  });
  const refuse = refuser(inWork, log);
  server.on('clientError', ({ code = 'unknown' }: NodeJS.ErrnoException, socket) => {
    if (code === 'ECONNRESET') socket.destroy();
    else refuse(socket, parserError(code), code);
  });
  // By themselves these two would be answered without the envelope, or not at all.
  server.on('checkExpectation', (...asked: Parameters<RequestListener>) => server.emit('request', ...asked));
  server.on('connect', (_, socket) => {
    socket.on('error', () => socket.destroy());
    refuse(socket, new OmpError('not_found', 'no such path or method'), 'CONNECT');
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.removeListener('error', reject);
      const address = server.address() as AddressInfo;
      resolve({ host: address.address, port: address.port, close: (graceMs = 10_000) => close(server, open, graceMs) });
    });
  });
}

const limitsOf = ({
  max_header_bytes = 16_384,
  header_timeout_ms = 10_000,
  request_timeout_ms = 30_000,
}: ListenOptions) => ({
  // A missing Host is refused further on, with the envelope.
  requireHostHeader: false,
  maxHeaderSize: max_header_bytes,
  headersTimeout: header_timeout_ms,
  // The app's deadline begins after the headers and comes first.
  requestTimeout: header_timeout_ms + request_timeout_ms,
  connectionsCheckingInterval: Math.min(1_000, header_timeout_ms),
  keepAliveTimeout: KEEP_ALIVE_MS,
});

/** Answers for what never reached the app (no Host, or a target that makes no URL), and for what the app itself threw. */
const failure =
  (log: Log) =>
  (thrown: unknown): Response => {
    const requestId = newRequestId();
    const malformed = thrown instanceof RequestError;
    const error = malformed
      ? invalidRequest('malformed HTTP request: Host or target is not valid')
      : new OmpError('provider_error', 'the gateway failed to process this request');
    if (malformed) log.info({ request_id: requestId, reason: 'invalid target' }, 'malformed request');
    else log.error({ request_id: requestId, err: thrown }, 'request failed');
    const { status, headers, body } = plainResponse(error, requestId);
    return new Response(body, { status, headers });
  };

function close(server: Server, open: ReadonlySet<ServerResponse>, graceMs: number): Promise<void> {
  for (const response of open) if (!response.headersSent) response.setHeader('connection', 'close');
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}
