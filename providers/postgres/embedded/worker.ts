import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { serveSession } from './socket-server.ts';

/**
 * The embedded Postgres, in its own thread, so that its synchronous queries never block HTTP. Speaks the Postgres protocol on
 * a unix socket; a message ends it.
 */
const { folder, socket } = workerData as { folder: string; socket: string };

/**
 * The engine's default, 160 MB, makes its memory outgrow its initial size, which copies all of it. Files that do not fit here
 * come from the system's cache.
 */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=64MB'];

/**
 * A single session makes no checkpoints by itself. Without them the write-ahead log would grow for as long as the engine
 * runs, and a start after a crash would have to read all of it.
 */
const CHECKPOINT = `do $$ begin
  if pg_current_wal_lsn() - (select redo_lsn from pg_control_checkpoint()) > 64 * 1024 * 1024 then checkpoint; end if; end $$`;
const CHECKPOINT_MS = 5_000;

/** The engine aborts without a reason; the reason is in what it printed before. */
let reason: string | undefined;
const onStderr = (line: string) => {
  reason ??= /\b(?:FATAL|PANIC): +(.*)/.exec(line)?.[1];
  return false;
};

const options = { dataDir: folder, extensions: { vector }, startParams, onStderr };
const db = await PGlite.create(options).catch((error: unknown) => {
  throw new Error(reason ?? describe(error));
});
const session = {
  run: (bytes: Uint8Array, answer: (bytes: Uint8Array) => void) =>
    db.execProtocolRawStream(bytes, { onRawData: answer }),
  inTransaction: () => db.isInTransaction(),
};
const server = await serveSession(socket, session, (error) => {
  // Ends the thread, which is then restarted.
  throw error;
});
const checkpoints = setInterval(() => server.ask(CHECKPOINT), CHECKPOINT_MS);
parentPort?.postMessage('ready');
parentPort?.once('message', async () => {
  clearInterval(checkpoints);
  await server.close();
  await db.close();
  parentPort?.close();
});

/** Its file system does not throw instances of `Error`. */
function describe(error: unknown): string {
  if (error instanceof Error) return error.message;
  const { name, errno } = (error ?? {}) as { name?: unknown; errno?: unknown };
  return `${name ?? 'it ended while starting'}${errno === undefined ? '' : ` ${errno}`}`;
}
