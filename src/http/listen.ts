import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Hono } from 'hono';
import { invalidRequest } from '#contract';
import type { Env } from './call.ts';
import { ERRORS, toEnvelope } from './error-envelope.ts';

export interface Listener {
  readonly host: string;
  readonly port: number;
  /** Stops accepting, lets running requests finish for at most `graceMs`, then cuts what is left. */
  close(graceMs?: number): Promise<void>;
}

/** Serves the app. Port 0 takes a free one. Rejects when the address cannot be bound. */
export function listen(app: Hono<Env>, { host, port }: { host: string; port: number }): Promise<Listener> {
  const server = createAdaptorServer({ fetch: app.fetch }) as Server<typeof IncomingMessage, typeof ServerResponse>;
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuse(error, socket as Socket));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.removeListener('error', reject);
      const address = server.address() as AddressInfo;
      resolve({ host: address.address, port: address.port, close: (graceMs = 10_000) => close(server, graceMs) });
    });
  });
}

/** What never became a request (malformed HTTP, oversized headers) gets the envelope too. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
  const message = error.code === 'HPE_HEADER_OVERFLOW' ? 'the request headers are too large' : 'malformed HTTP request';
  const body = JSON.stringify(toEnvelope(invalidRequest(message)));
  const { status } = ERRORS.invalid_request;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

function close(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(cut);
      resolve();
    });
    server.closeIdleConnections();
  });
}
