import type { Worker } from 'node:cluster';

interface Connection {
  close(): void;
}

/** What Node itself sends to a worker with a new connection, and gets back. */
interface Internal {
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

/**
 * Node hands every new connection to a worker, and forgets those that the worker has not taken when it dies: their clients
 * would wait for ever. They are closed here, so that clients know to try again.
 */
export function closeUntaken(worker: Worker): void {
  const child = worker.process;
  const untaken = new Map<number | undefined, Connection>();
  const send = child.send.bind(child) as (...sent: unknown[]) => boolean;
  child.send = (...sent: unknown[]) => {
    const [message, connection] = sent as [Internal, Connection | undefined];
    if (message.act === 'newconn' && connection) untaken.set(message.seq, connection);
    return send(...sent);
  };
  child.on('internalMessage', ({ ack }: Internal) => void untaken.delete(ack));
  child.once('exit', () => {
    for (const connection of untaken.values()) connection.close();
  });
}
