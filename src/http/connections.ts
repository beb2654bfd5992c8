import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

interface TrackedConnection {
  /** Responses that are not completely sent. */
  readonly open: ServerResponse[];
  last: ServerResponse | undefined;
  /** Bytes read when the last response ended: any further byte belongs to a new request. */
  readTo: number;
}

/** The responses of one connection that are not completely sent, and the one begun last. */
export interface OpenResponses {
  readonly open: readonly ServerResponse[];
  readonly last: ServerResponse | undefined;
}

export interface Connections {
  /** Whether to process the request: not after a response with `connection: close`. */
  admit(response: ServerResponse): boolean;
  of(socket: Duplex): OpenResponses;
  /** From now on, the last response on every connection closes it. */
  drain(): void;
  /** Closes connections without open responses at once, and every other one when its last response is sent. */
  endIdle(): void;
  cut(): void;
}

/**
 * Tracks the open responses of every connection. Node's own `closeIdleConnections` treats a connection whose response is
 * still being sent as idle, and a response with `connection: close` discards the responses pipelined behind it.
 */
export function trackConnections(server: Server): Connections {
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
