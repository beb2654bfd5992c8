import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import type pg from 'pg';
import type { Log } from '#contract';
import { lockFolder } from './lock.ts';

export interface Engine {
  /** The folder of its socket, by which other processes reach it. */
  readonly sockets: string;
  readonly config: pg.ClientConfig;
  close(): Promise<void>;
}

/** Always the compiled one: Node starts worker threads from JavaScript, also when this file runs from source. */
const WORKER = createRequire(import.meta.url).resolve('#embedded-postgres-worker');
/** Where a unix socket called "port 5432" is looked for inside its folder. */
const SOCKET_FILE = '.s.PGSQL.5432';
const PREFIX = 'omp-';
/** Names the folder of the socket, inside the data folder. */
const NOTE = 'socket-folder';
const RESTART_MS = 1_000;

/** How the engine is reached whose socket is in this folder. */
export const engineConfig = (sockets: string): pg.ClientConfig => ({
  host: sockets,
  port: 5432,
  user: 'postgres',
  database: 'postgres',
  // PGSSLMODE, meant for a server, would be obeyed here too.
  ssl: false,
});

/**
 * The socket cannot live in the data folder: its path may be no longer than about a hundred characters. What a killed
 * process left behind is removed by the next one on the same data folder.
 */
function makeSocketFolder(root: string): string {
  const note = join(root, NOTE);
  const left = existsSync(note) ? readFileSync(note, 'utf8') : '';
  if (left.startsWith(join(tmpdir(), PREFIX))) rmSync(left, { recursive: true, force: true });
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  writeFileSync(note, folder);
  return folder;
}

/**
 * Starts the embedded Postgres on `<dataDir>/postgres`. Rejects when the folder is taken or the engine does not start.
 * Should the engine die later, it is started again; the write-ahead log brings back everything acknowledged.
 */
export async function startEngine(dataDir: string, log: Log): Promise<Engine> {
  const root = resolve(dataDir);
  mkdirSync(root, { recursive: true, mode: 0o700 });
  const unlock = lockFolder(root);
  const sockets = makeSocketFolder(root);
  const socket = join(sockets, SOCKET_FILE);
  let closing = false;

  const start = async (): Promise<Worker> => {
    rmSync(socket, { force: true });
    const worker = new Worker(WORKER, { workerData: { folder: join(root, 'postgres'), socket } });
    let failure: unknown = new Error('it ended while starting');
    worker.on('error', (error) => {
      failure = error;
    });
    await new Promise<void>((ready, failed) => {
      worker.once('message', () => ready());
      worker.once('exit', () => failed(failure));
    });
    worker.once('exit', () => {
      if (closing) return;
      log.error({ err: failure }, 'the embedded Postgres died; starting it again');
      setTimeout(restart, RESTART_MS).unref();
    });
    return worker;
  };
  const restart = () => {
    if (closing) return;
    running = start();
    running.catch((error: unknown) => {
      log.error({ err: error }, 'the embedded Postgres does not start; trying again');
      setTimeout(restart, RESTART_MS).unref();
    });
  };
  const release = () => {
    rmSync(sockets, { recursive: true, force: true });
    rmSync(join(root, NOTE), { force: true });
    unlock();
  };

  let running = start();
  try {
    await running;
  } catch (cause) {
    release();
    throw new Error(
      `the embedded Postgres in ${root} does not start: ${cause instanceof Error ? cause.message : cause}`,
      { cause },
    );
  }
  return {
    sockets,
    config: engineConfig(sockets),
    async close() {
      closing = true;
      const worker = await running.catch(() => undefined);
      // One that died and was not yet started again has no thread, and will not tell that it ended.
      if (worker && worker.threadId !== -1) {
        const ended = new Promise((exited) => worker.once('exit', exited));
        worker.postMessage('close');
        await ended;
      }
      release();
    },
  };
}
