import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type pg from 'pg';
import type { Log } from '#contract';
import { databaseIn, markComplete, onFolder, prepareFolder } from './folder.ts';
import { type FolderLock, lockFolder, lockIfAny } from './lock.ts';

export interface Engine {
  readonly config: pg.ClientConfig;
  /** Resolves while it runs; while it is started again, as soon as it runs again. */
  ready(): Promise<void>;
  /**
   * Ends whatever it is running, by starting it again: the write-ahead log brings back everything acknowledged. All its
   * connections are lost.
   */
  interrupt(): void;
  /** From now on it is not started again. */
  letEnd(): void;
  close(): Promise<void>;
}

/** Always the compiled one: Node starts worker threads from JavaScript, also when this file runs from source. */
const WORKER = createRequire(import.meta.url).resolve('#embedded-postgres-worker');
/** Where a unix socket called "port 5432" is looked for inside its folder. */
const SOCKET_FILE = '.s.PGSQL.5432';
const RESTART_MS = 1_000;
/** The longest path of a unix socket on every system. */
const LONGEST_PATH = 103;

/** Holds the sockets of all gateways of this user. Not the data folder: a socket's path may not be long. */
const socketsFolder = () => join(tmpdir(), `omp-gateway-${process.getuid?.() ?? 'user'}`);

/** How the engine is reached whose folder has this lock: a copy of the folder does not lead here. */
function engineConfig({ name }: Pick<FolderLock, 'name'>): { config: pg.ClientConfig; socket: string } {
  const host = join(socketsFolder(), createHash('sha256').update(name).digest('hex').slice(0, 12));
  const socket = join(host, SOCKET_FILE);
  if (Buffer.byteLength(socket) > LONGEST_PATH)
    throw new Error(
      `the path of the temporary folder ${tmpdir()} is too long for a socket; set TMPDIR to a shorter one`,
    );
  // PGSSLMODE, meant for a server, would be obeyed here too.
  return { config: { host, port: 5432, user: 'postgres', database: 'postgres', ssl: false }, socket };
}

function makePrivate(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const message = `${folder} cannot be made, for the socket of the embedded Postgres; set TMPDIR to a folder that this user may write`;
    throw new Error(message, { cause });
  }
  checkPrivate();
}

/** Throws unless that folder belongs to this user alone: whoever else could enter it could read everything. */
function checkPrivate(): void {
  const folder = socketsFolder();
  const { uid, mode } = lstatSync(folder);
  const own = process.getuid === undefined || (uid === process.getuid() && (mode & 0o077) === 0);
  if (!own || !lstatSync(folder).isDirectory())
    throw new Error(`${folder} must be a folder that only this user may enter (mode 700); remove it, or set TMPDIR`);
}

/** The engine of a gateway that runs on this data folder now; undefined: none runs. */
export function runningEngine(dataDir: string): pg.ClientConfig | undefined {
  const lock = lockIfAny(resolve(dataDir));
  lock?.release();
  if (!lock?.taken) return undefined;
  const { config, socket } = engineConfig(lock);
  if (!existsSync(socket))
    throw new Error(
      `a gateway runs on the data folder ${resolve(dataDir)}, but its socket is not at ${socket}: run this as the same user and with the same TMPDIR, and once that gateway has started`,
    );
  checkPrivate();
  return config;
}

/**
 * Starts the embedded Postgres in the data folder. Rejects when the folder is taken or refused, or the engine does not
 * start. Should the engine die later, it is started again; the write-ahead log brings back everything acknowledged.
 */
export async function startEngine(dataDir: string, log: Log): Promise<Engine> {
  const root = resolve(dataDir);
  const lock = await onFolder(root, () => {
    mkdirSync(root, { recursive: true, mode: 0o700 });
    return lockFolder(root);
  });
  try {
    await onFolder(root, () => prepareFolder(root));
    const { config, socket } = engineConfig(lock);
    makePrivate(dirname(socket));
    return await runEngine({ root, socket, config, log, released: () => lock.release() });
  } catch (error) {
    lock.release();
    throw error;
  }
}

interface Where {
  readonly root: string;
  readonly socket: string;
  readonly config: pg.ClientConfig;
  readonly log: Log;
  readonly released: () => void;
}

async function runEngine({ root, socket, config, log, released }: Where): Promise<Engine> {
  let closing = false;
  /** Whether the thread is being ended to start another one. */
  let interrupted = false;
  const start = async (): Promise<Worker> => {
    // Left behind by a process that was killed.
    rmSync(socket, { force: true });
    const worker = new Worker(WORKER, { workerData: { folder: databaseIn(root), socket } });
    let failure: unknown = new Error('it ended while starting');
    worker.on('error', (error) => {
      failure = error;
    });
    await new Promise<void>((ready, failed) => {
      worker.once('message', () => ready());
      worker.once('exit', () => failed(failure));
    });
    worker.once('exit', () => {
      if (closing || interrupted) return;
      log.error({ err: failure }, 'the embedded Postgres died; starting it again');
      runAgain(startAgain(RESTART_MS));
    });
    return worker;
  };
  const runAgain = (again: Promise<Worker>) => {
    running = again;
    // What fails is in the log.
    running.catch(() => {});
  };
  const startAgain = async (afterMs: number): Promise<Worker> => {
    await sleep(afterMs, undefined, { ref: false });
    if (closing) throw new Error('closing');
    return start().catch((error: unknown) => {
      log.error({ err: error }, 'the embedded Postgres does not start; trying again');
      return startAgain(RESTART_MS);
    });
  };
  const end = async () => {
    closing = true;
    const worker = await running.catch(() => undefined);
    // One that died and was not yet started again has no thread, and will not tell that it ended.
    if (worker && worker.threadId !== -1) {
      const ended = new Promise((exited) => worker.once('exit', exited));
      worker.postMessage('close');
      await ended;
    }
    rmSync(dirname(socket), { recursive: true, force: true });
  };

  let running = start().catch((cause: Error) => {
    throw new Error(
      `the embedded Postgres in ${root} does not start: ${cause.message}; if this stays, restore the data folder from a backup (docs/operations.md, "Backup and restore")`,
      { cause },
    );
  });
  await running;
  try {
    await onFolder(root, () => markComplete(root));
  } catch (error) {
    await end();
    throw error;
  }
  return {
    config,
    ready: async () => void (await running),
    interrupt() {
      if (interrupted || closing) return;
      interrupted = true;
      log.warn({}, 'the embedded Postgres is started again, to end a statement that took too long');
      const end = async (worker: Worker) => {
        await worker.terminate();
        interrupted = false;
        return startAgain(0);
      };
      runAgain(running.then(end));
    },
    letEnd() {
      closing = true;
    },
    async close() {
      await end();
      released();
    },
  };
}
