import { createServer, type RequestListener, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener, RequestError } from '@hono/node-server';
import type { Hono } from 'hono';
import { invalidRequest, type Log, OmpError } from '#contract';
import { plainResponse } from './error-envelope.ts';
import { type Env, newRequestId } from './request.ts';

export interface ListenOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Prefix of the settings of host and port, for error messages; `OMP` by default. */
  readonly setting?: 'OMP' | 'OMP_METRICS';
  /** The log of errors outside the app. */
  readonly log: Log;
  /** Limit for the request line and headers together, in bytes. */
  readonly max_header_bytes?: number;
  /** Deadline for them to arrive, in milliseconds; for the first request, from the start of the connection. */
  readonly header_timeout_ms?: number;
  /** The app's deadline of a request, in milliseconds; also for bodies that no route reads. */
  readonly request_timeout_ms: number;
}

export interface Listener {
  readonly host: string;
  readonly port: number;
  /** Goes on serving, but every response closes its connection, so that clients go to other replicas. */
  drain(): void;
  /** Stops accepting connections, lets running requests finish, then closes the rest. */
  close(options?: CloseOptions): Promise<void>;
}

interface CloseOptions {
  /** Deadline of running requests, in milliseconds. */
  readonly graceMs?: number;
  /** How long an idle connection may still be used for a request, in milliseconds. */
  readonly idleMs?: number;
}

/** Longer than proxies keep idle connections (commonly 60 s), so that none closes just before a proxy uses it again. */
const KEEP_ALIVE_MS = 65_000;

/** The error names the settings to change. */
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
  // Their size is limited already. Node would drop headers beyond a count: the last ones, which a proxy has added.
  server.maxHeadersCount = 0;
  const connections = trackConnections(server);
  const respond = getRequestListener(app.fetch, { errorHandler: failure(log) });
  server.on('request', (request, response) => {
    // HTTP/1.0 has no Host, and some load balancers still probe with it.
    if (request.httpVersion === '1.0') request.headers.host ??= 'localhost';
    if (connections.admit(response)) void respond(request, response);
  });
  const reject = rejecter(connections.of, log);
  server.on('clientError', ({ code = 'unknown' }: NodeJS.ErrnoException, socket) => {
    if (code === 'ECONNRESET') socket.destroy();
    else reject(socket, parserError(code), code);
  });
  // By default, Node answers these two without the envelope, or not at all.
  server.on('checkExpectation', (...args: Parameters<RequestListener>) => server.emit('request', ...args));
  server.on('connect', (_, socket) => {
    socket.on('error', () => socket.destroy());
    reject(socket, new OmpError('not_found', 'no such path or method'), 'CONNECT');
  });
  return new Promise((resolve, fail) => {
    const onError = (error: Error) => fail(cannotListen(error, options));
    server.once('error', onError);
    server.listen(port, host, () => {
      server.removeListener('error', onError);
      const address = server.address() as AddressInfo;
      resolve({
        host: address.address,
        port: address.port,
        drain: connections.drain,
        close: (closeOptions) => close(server, connections, closeOptions),
      });
    });
  });
}

const limitsOf = ({ max_header_bytes = 16_384, header_timeout_ms = 10_000, request_timeout_ms }: ListenOptions) => ({
  // A missing Host is rejected later, with the envelope.
  requireHostHeader: false,
  maxHeaderSize: max_header_bytes,
  headersTimeout: header_timeout_ms,
  // The app's deadline starts after the headers and fires first.
  requestTimeout: header_timeout_ms + request_timeout_ms,
  connectionsCheckingInterval: Math.min(1_000, header_timeout_ms),
  keepAliveTimeout: KEEP_ALIVE_MS,
});

/** Answers requests that cannot reach the app (no Host, or a target that is no URL), and errors that the app throws. */
const failure =
  (log: Log) =>
  (cause: unknown): Response => {
    const requestId = newRequestId();
    const malformed = cause instanceof RequestError;
    const error = malformed
      ? invalidRequest('malformed HTTP request: Host or target is not valid')
      : new OmpError('provider_error', 'the gateway failed to process this request');
    if (malformed) log.info({ request_id: requestId, reason: 'invalid target' }, 'malformed request');
    else log.error({ request_id: requestId, err: cause }, 'request failed');
    const { status, headers, body } = plainResponse(error, requestId);
    return new Response(body, { status, headers });
  };

async function close(
  server: Server,
  connections: Connections,
  { graceMs = 10_000, idleMs = 0 }: CloseOptions = {},
): Promise<void> {
  connections.drain();
  const cutTimer = setTimeout(connections.cut, graceMs);
  // Connections that the system has accepted are still served; otherwise they would be reset.
  await readArrivals();
  // The HTTP server's own `close` closes at once the connections that it considers idle.
  const closing = new Promise<unknown>((resolve) => NetServer.prototype.close.call(server, resolve));
  const idle = setTimeout(() => void readArrivals().then(connections.endIdle), Math.min(idleMs, graceMs));
  await closing;
  clearTimeout(cutTimer);
  clearTimeout(idle);
  // Stops the server's timer; its connections are closed.
  server.close();
}

/** Resolves when everything that had arrived before this call has been read. */
const readArrivals = async (): Promise<void> => {
  for (let turn = 1; turn <= 2; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** How long a rejected connection stays open, so that its sender reads the response instead of a reset. */
const LINGER_MS = 2_000;

/**
 * Ends connections with a request that cannot reach the app. The envelope follows the responses to earlier requests; it is
 * not sent if the response to the same request has begun. `reason` is for the log.
 */
function rejecter(responsesOf: (socket: Duplex) => OpenResponses, log: Log) {
  const rejectedSockets = new WeakSet<Duplex>();
  return (socket: Duplex, error: OmpError, reason: string): void => {
    // The parser reports every further chunk again.
    if (rejectedSockets.has(socket)) return;
    rejectedSockets.add(socket);
    const { open, last } = responsesOf(socket);
    // The request reached the app, and the error is in its body.
    const own = last?.req.complete === false ? last : undefined;
    if (own?.headersSent) return void socket.destroy();
    const before = open.filter((response) => response !== own);
    let rest = before.length;
    const answer = () => {
      if (rest-- > 0) return;
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

const PARSER_ERRORS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'the request line and headers are too large',
  ERR_HTTP_REQUEST_TIMEOUT: 'the request did not arrive in time',
};

/** The client's error for a code of the HTTP parser. */
const parserError = (code: string): OmpError => invalidRequest(PARSER_ERRORS[code] ?? 'malformed HTTP request');

interface TrackedConnection {
  /** Responses that are not completely sent. */
  readonly open: ServerResponse[];
  last: ServerResponse | undefined;
  /** Bytes read when the last response ended: any further byte belongs to a new request. */
  readTo: number;
}

/** The responses of one connection that are not completely sent, and the one begun last. */
interface OpenResponses {
  readonly open: readonly ServerResponse[];
  readonly last: ServerResponse | undefined;
}

interface Connections {
  /** Whether to process the request: not after a response with `connection: close`. */
  admit(response: ServerResponse): boolean;
  of(socket: Duplex): OpenResponses;
  /** Makes the last response on every connection close it. */
  drain(): void;
  /** Closes connections without open responses at once, and every other one when its last response is sent. */
  endIdle(): void;
  cut(): void;
}

/**
 * Tracks the open responses of every connection. Node's own `closeIdleConnections` treats a connection whose response is
 * still being sent as idle, and a response with `connection: close` discards the responses pipelined behind it.
 */
function trackConnections(server: Server): Connections {
  const all = new Map<Duplex, TrackedConnection>();
  let draining = false;
  let ending = false;
  const endIfIdle = (socket: Socket, { open, readTo }: TrackedConnection) => {
    if (open.length === 0 && socket.bytesRead === readTo) socket.destroySoon();
  };
  server.on('connection', (socket) => {
    const open: ServerResponse[] = [];
    all.set(socket, { open, last: undefined, readTo: 0 });
    socket.once('close', () => {
      all.delete(socket);
      // Node emits `close` only for the response being sent, not for those pipelined behind it.
      setImmediate(() => {
        for (const response of open.slice()) response.emit('close');
      });
    });
  });
  return {
    admit(response) {
      const { socket } = response.req;
      const connection = all.get(socket);
      if (!connection) return false;
      const { open, last } = connection;
      if (last && endsWith(last)) {
        if (last.headersSent) return false;
        last.removeHeader('connection');
      }
      connection.last = response;
      open.push(response);
      response.once('close', () => {
        open.splice(open.indexOf(response), 1);
        connection.readTo = socket.bytesRead;
        if (ending) endIfIdle(socket, connection);
      });
      if (draining) response.setHeader('connection', 'close');
      return true;
    },
    of(socket) {
      const { open, last } = all.get(socket) ?? {};
      return { open: [...(open ?? [])], last };
    },
    drain() {
      draining = true;
      for (const { last } of all.values()) if (last && !last.headersSent) last.setHeader('connection', 'close');
    },
    endIdle() {
      ending = true;
      for (const [socket, connection] of all) endIfIdle(socket as Socket, connection);
    },
    cut() {
      for (const socket of all.keys()) socket.destroy();
    },
  };
}

const endsWith = (response: ServerResponse): boolean => response.getHeader('connection') === 'close';
