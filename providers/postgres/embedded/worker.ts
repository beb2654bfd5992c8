import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';

/**
 * The embedded Postgres, in a thread of its own so that its synchronous queries never hold up HTTP.
 * Speaks the Postgres protocol on a unix socket; ends when told to.
 */
const { folder, socket } = workerData as { folder: string; socket: string };

const db = await PGlite.create({ dataDir: folder, extensions: { vector } });
const server = new PGLiteSocketServer({ db, path: socket, maxConnections: 8 });
await server.start();
parentPort?.postMessage('ready');
parentPort?.once('message', async () => {
  await server.stop();
  await db.close();
  parentPort?.close();
});
