import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

interface Connection {
  /** Answers that have not been sent to their end. */
  readonly open: Set<ServerResponse>;
  last: ServerResponse | undefined;
  /** Bytes that had arrived when the last answer ended: any more are a request that has begun. */
  readTo: number;
}

/** What is in work on a connection: the answers that are still open, and the one begun last. */
export interface InWork {
  readonly open: readonly ServerResponse[];
  readonly last: ServerResponse | undefined;
}

export interface Connections {
  /** Whether the request is to be worked on. Not after an answer that said that the connection ends with it. */
  admit(response: ServerResponse): boolean;
  of(socket: Duplex): InWork;
  /** From now on the last answer on every connection says that it ends with it, and it does. */
  drain(): void;
  /** Ends those on which nothing is in work, and every other one as soon as that is so. */
  endIdle(): void;
  cut(): void;
}

/**
 * Knows what is in work on which connection. Node's own `closeIdleConnections` counts one as idle whose answer is still
 * being sent, and an answer with `connection: close` takes the answers to what was pipelined behind it along.
 */
export function followConnections(server: Server): Connections {
  const all = new Map<Duplex, Connection>();
  let draining = false;
  let ending = false;
  const endIfIdle = (socket: Socket, { open, readTo }: Connection) => {
    if (open.size === 0 && socket.bytesRead === readTo) socket.destroySoon();
  };
  server.on('connection', (socket) => {
    const open = new Set<ServerResponse>();
    all.set(socket, { open, last: undefined, readTo: 0 });
    socket.once('close', () => {
      all.delete(socket);
      // Node tells only the answer whose turn it was, not those to what was pipelined behind it.
      setImmediate(() => {
        for (const response of open) response.emit('close');
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
      open.add(response);
      response.once('close', () => {
        open.delete(response);
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
