import { createServer, type RequestListener, type Server, STATUS_CODES } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener, RequestError } from '@hono/node-server';
import type { Hono } from 'hono';
import { invalidRequest, type Log, OmpError } from '#contract';
import { type Connections, followConnections, type InWork } from './connections.ts';
import { plainResponse } from './errors.ts';
import { type Env, newRequestId } from './request.ts';

export interface ListenOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** What the settings of host and port begin with; `OMP` by default. */
  readonly setting?: 'OMP' | 'OMP_METRICS';
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
  /** Goes on serving, but every answer says that its connection ends with it, so that clients turn elsewhere. */
  drain(): void;
  /** Stops accepting, lets running requests finish, then cuts what is left. */
  close(options?: CloseOptions): Promise<void>;
}

export interface CloseOptions {
  /** Longest wait for running requests, in milliseconds. */
  readonly graceMs?: number;
  /** How long a connection that is kept without a request may still be used for one, in milliseconds. */
  readonly idleMs?: number;
}

/** Longer than proxies keep an idle connection (commonly 60 s): one that they are about to use again must not be closed. */
const KEEP_ALIVE_MS = 65_000;

/** Names the settings that help. */
export function cannotListen(
  cause: NodeJS.ErrnoException,
  { host, port, setting = 'OMP' }: Pick<ListenOptions, 'host' | 'port' | 'setting'>,
): Error {
  const message =
    cause.code === 'EADDRINUSE'
      ? `port ${port} is in use by another program; set ${setting}_PORT to another one`
      : `cannot listen on ${host}, port ${port}; set ${setting}_HOST to an address of this machine and ${setting}_PORT to a port that is allowed`;
  return new Error(message, { cause });
}

/** Serves the app. Rejects when the address cannot be bound. */
export function listen(app: Hono<Env>, options: ListenOptions): Promise<Listener> {
  const { host, port, log } = options;
  const server = createServer(limitsOf(options));
  // By size they are limited already. Node would leave out the last of too many: those that a proxy has added.
  server.maxHeadersCount = 0;
  const connections = followConnections(server);
  const answer = getRequestListener(app.fetch, { errorHandler: failure(log) });
  server.on('request', (request, response) => {
    // It knows no Host, and the probes of load balancers still speak it.
    if (request.httpVersion === '1.0') request.headers.host ??= 'localhost';
    if (connections.admit(response)) void answer(request, response);
  });
  const refuse = refuser(connections.of, log);
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
    const fail = (error: Error) => reject(cannotListen(error, options));
    server.once('error', fail);
    server.listen(port, host, () => {
      server.removeListener('error', fail);
      const address = server.address() as AddressInfo;
      resolve({
        host: address.address,
        port: address.port,
        drain: connections.drain,
        close: (wanted) => close(server, connections, wanted),
      });
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

async function close(
  server: Server,
  connections: Connections,
  { graceMs = 10_000, idleMs = 0 }: CloseOptions = {},
): Promise<void> {
  connections.drain();
  const cut = setTimeout(connections.cut, graceMs);
  // Whoever has connected by now is still let in: what the system has accepted for us would be reset.
  await arrived();
  // Not as the HTTP server does it, which at once closes connections that look idle to it.
  const closed = new Promise<unknown>((resolve) => NetServer.prototype.close.call(server, resolve));
  const idle = setTimeout(() => void arrived().then(connections.endIdle), Math.min(idleMs, graceMs));
  await closed;
  clearTimeout(cut);
  clearTimeout(idle);
  // Nothing is left but its timer.
  server.close();
}

/** Once everything has been read that had come in when this was called. */
const arrived = async (): Promise<void> => {
  for (let turn = 1; turn <= 2; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** How long a refused sender may go on before the connection is cut: long enough to read the answer instead of a reset. */
const LINGER_MS = 2_000;

/**
 * Ends connections on which something came that reaches no app: the envelope is written after the answers to what came
 * before, and not where the message it belongs to was answered already. `reason` is for the log.
 */
export function refuser(inWork: (socket: Duplex) => InWork, log: Log) {
  const refused = new WeakSet<Duplex>();
  return (socket: Duplex, error: OmpError, reason: string): void => {
    // Whatever else arrives is told again.
    if (refused.has(socket)) return;
    refused.add(socket);
    const { open, last } = inWork(socket);
    // The error is in its body; its head was fine.
    const own = last?.req.complete === false ? last : undefined;
    if (own?.headersSent) return void socket.destroy();
    const before = open.filter((response) => response !== own);
    let left = before.length;
    const answer = () => {
      if (left-- > 0) return;
      if (!socket.writable) return void socket.destroy();
      const requestId = newRequestId();
      log.info({ request_id: requestId, reason }, 'malformed request');
      end(socket, plainResponse(error, requestId));
    };
    for (const response of before) response.once('close', answer);
    answer();
  };
}

function end(socket: Duplex, { status, headers, body }: ReturnType<typeof plainResponse>): void {
  const lines = Object.entries({ ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
  );
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(timer));
}

const WHY: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'the request line and headers are too large',
  ERR_HTTP_REQUEST_TIMEOUT: 'the request did not arrive in time',
};

/** What the HTTP parser found, by form or by being too slow, in words for the client. */
export const parserError = (code: string): OmpError => invalidRequest(WHY[code] ?? 'malformed HTTP request');
