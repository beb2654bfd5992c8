import { createServer, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener, RequestError } from '@hono/node-server';
import type { Hono } from 'hono';
import { invalidRequest, OmpError } from '#contract';
import { type Env, newRequestId } from './call.ts';
import { ERRORS, toEnvelope } from './error-envelope.ts';

export interface Listener {
  readonly host: string;
  readonly port: number;
  /** Stops accepting, lets running requests finish for at most `graceMs`, then cuts what is left. */
  close(graceMs?: number): Promise<void>;
}

/** Serves the app. Port 0 takes a free one. Rejects when the address cannot be bound. */
export function listen(app: Hono<Env>, { host, port }: { host: string; port: number }): Promise<Listener> {
  // A missing Host is refused further on, with the envelope.
  const server = createServer({ requireHostHeader: false }, getRequestListener(app.fetch, { errorHandler: refusal }));
  const open = new Set<ServerResponse>();
  server.prependListener('request', (_, response: ServerResponse) => {
    open.add(response);
    response.once('close', () => open.delete(response));
    // Listening ends first; a client that goes on sending on a kept connection is told with its next answer.
    if (!server.listening) response.setHeader('connection', 'close');
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuse(error, socket as Socket));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.removeListener('error', reject);
      const address = server.address() as AddressInfo;
      resolve({ host: address.address, port: address.port, close: (graceMs = 10_000) => close(server, open, graceMs) });
    });
  });
}

/** A request that cannot be handed to the app: no Host, or one that makes no URL. */
function refusal(thrown: unknown): Response {
  const error =
    thrown instanceof RequestError
      ? invalidRequest('malformed HTTP request: Host or target is not valid')
      : new OmpError('provider_error', 'the gateway failed to process this request', { cause: thrown });
  const { status, headers, body } = plainResponse(error);
  return new Response(body, { status, headers });
}

/** What the HTTP parser itself refuses gets the envelope too. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const { status, headers, body } = plainResponse(
    invalidRequest(
      error.code === 'HPE_HEADER_OVERFLOW' ? 'the request headers are too large' : 'malformed HTTP request',
    ),
  );
  const lines = Object.entries({ ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
  );
}

function plainResponse(error: OmpError) {
  const requestId = newRequestId();
  return {
    status: ERRORS[error.code].status,
    headers: { 'content-type': 'application/json', 'x-request-id': requestId },
    body: JSON.stringify(toEnvelope(error, requestId)),
  };
}

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
