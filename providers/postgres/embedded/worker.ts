import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { serveSession } from './socket-server.ts';

/**
 * The embedded Postgres, in a thread of its own so that its synchronous queries never hold up HTTP.
 * Speaks the Postgres protocol on a unix socket; ends when told to.
 */
const { folder, socket } = workerData as { folder: string; socket: string };

const db = await PGlite.create({ dataDir: folder, extensions: { vector } });
const session = {
  run: (bytes: Uint8Array, answer: (bytes: Uint8Array) => void) =>
    db.execProtocolRawStream(bytes, { onRawData: answer }),
  inTransaction: () => db.isInTransaction(),
};
const server = await serveSession(socket, session, (error) => {
  // Ends the thread: whoever started it starts another one.
  throw error;
});
parentPort?.postMessage('ready');
parentPort?.once('message', async () => {
  await server.close();
  await db.close();
  parentPort?.close();
});
