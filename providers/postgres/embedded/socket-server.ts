import { createServer, type Socket } from 'node:net';
import { createClient, queryMessage } from './client-messages.ts';
import { type Session, takeTurns } from './turns.ts';

export interface SocketServer {
  /** Sends a statement of the server's own, whose answer nobody reads. */
  ask(sql: string): void;
  /** Cuts everybody off. */
  close(): Promise<void>;
}

/**
 * Serves one session to any number of clients on a unix socket. What they prepare is theirs, and nobody gets between the
 * statements of another's transaction; settings that outlive a transaction (`set` without `local`) are those of all.
 */
export function serveSession(path: string, session: Session, broken: (error: unknown) => void): Promise<SocketServer> {
  const seat = takeTurns(session, broken);
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    // The bytes are the engine's memory.
    const { ask, leave } = seat((bytes) => void socket.write(Buffer.from(bytes)));
    const client = createClient(
      `${++connections}.`,
      () => socket.write('N'),
      () => socket.end(),
    );
    socket.on('data', (chunk: Buffer) => client.receive(chunk).forEach(ask));
    // Followed by `close`.
    socket.on('error', () => {});
    socket.once('close', () => {
      sockets.delete(socket);
      leave(server.listening ? client.farewell() : undefined);
    });
  });
  const own = seat(() => {});
  const close = () =>
    new Promise<void>((closed) => {
      server.close(() => closed());
      for (const socket of sockets) socket.destroy();
    });
  return new Promise((ready, failed) => {
    server.once('error', failed);
    server.listen(path, () => ready({ ask: (sql) => own.ask({ bytes: queryMessage(sql), unfinished: false }), close }));
  });
}
