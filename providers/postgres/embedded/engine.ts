import { createHash } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type pg from 'pg';
import type { Log } from '#provider';
import { databaseIn, type FolderLock, lockFolder, lockIfAny, markComplete, onFolder, prepareFolder } from './folder.ts';

export interface Engine {
  readonly config: pg.ClientConfig;
  /** Resolves once it runs; during a restart, after that. */
  ready(): Promise<void>;
  /**
   * Ends what it is running by a restart. The write-ahead log restores everything acknowledged. All connections are lost.
   */
  interrupt(): void;
  /** Allows no more restarts. */
  disableRestart(): void;
  close(): Promise<void>;
}

/** Always the compiled one: Node starts worker threads from JavaScript, also when this file runs from source. */
const WORKER = createRequire(import.meta.url).resolve('#embedded-postgres-worker');
/** The file name for port 5432 in the folder of a unix socket. */
const SOCKET_FILE = '.s.PGSQL.5432';
const RESTART_MS = 1_000;
/** The longest path of a unix socket on every system. */
const MAX_PATH_BYTES = 103;

/** Holds the sockets of all gateways of this user. Not the data folder, since the path of a socket must be short. */
const socketsFolder = () => join(tmpdir(), `omp-gateway-${process.getuid?.() ?? 'user'}`);

/** How to connect to the engine whose folder has this lock. A copy of the folder has another socket. */
function engineConfig({ name }: Pick<FolderLock, 'name'>): { config: pg.ClientConfig; socket: string } {
  const host = join(socketsFolder(), createHash('sha256').update(name).digest('hex').slice(0, 12));
  const socket = join(host, SOCKET_FILE);
  if (Buffer.byteLength(socket) > MAX_PATH_BYTES)
    throw new Error(
      `the path of the temporary folder ${tmpdir()} is too long for a socket; set TMPDIR to a shorter one`,
    );
  // Without `ssl`, PGSSLMODE would apply, which is meant for a server.
  return { config: { host, port: 5432, user: 'postgres', database: 'postgres', ssl: false }, socket };
}

function makePrivate(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const message = `${folder} cannot be created for the socket of the embedded Postgres; set TMPDIR to a folder that this user may write`;
    throw new Error(message, { cause });
  }
  checkPrivate();
}

/** Throws unless only this user may enter that folder: anyone who can enter it can read everything. */
function checkPrivate(): void {
  const folder = socketsFolder();
  const { uid, mode } = lstatSync(folder);
  const own = process.getuid === undefined || (uid === process.getuid() && (mode & 0o077) === 0);
  if (!own || !lstatSync(folder).isDirectory())
    throw new Error(`${folder} must be a folder that only this user may enter (mode 700); remove it, or set TMPDIR`);
}

/** The engine of a gateway that runs on this data folder; undefined: none runs. */
export function runningEngine(dataDir: string): pg.ClientConfig | undefined {
  const lock = lockIfAny(resolve(dataDir));
  lock?.release();
  if (!lock?.taken) return undefined;
  const { config, socket } = engineConfig(lock);
  if (!existsSync(socket))
    throw new Error(
      `a gateway runs on the data folder ${resolve(dataDir)}, but its socket is not at ${socket}: run this as the same user and with the same TMPDIR, after that gateway has started`,
    );
  checkPrivate();
  return config;
}

/**
 * Starts the embedded Postgres in the data folder. Rejects if the folder is in use or rejected, or the engine does not start.
 * If the engine dies later, it is restarted; the write-ahead log restores everything acknowledged.
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

interface Location {
  readonly root: string;
  readonly socket: string;
  readonly config: pg.ClientConfig;
  readonly log: Log;
  readonly released: () => void;
}

async function runEngine({ root, socket, config, log, released }: Location): Promise<Engine> {
  let closing = false;
  /** Whether the thread is being ended for a restart. */
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
      log.error({ err: failure }, 'the embedded Postgres died; restarting it');
      replace(restart(RESTART_MS));
    });
    return worker;
  };
  const replace = (next: Promise<Worker>) => {
    running = next;
    // Failures are in the log.
    running.catch(() => {});
  };
  const restart = async (afterMs: number): Promise<Worker> => {
    await sleep(afterMs, undefined, { ref: false });
    if (closing) throw new Error('closing');
    return start().catch((error: unknown) => {
      log.error({ err: error }, 'the embedded Postgres does not start; retrying');
      return restart(RESTART_MS);
    });
  };
  const end = async () => {
    closing = true;
    const worker = await running.catch(() => undefined);
    // An engine that died and was not yet restarted has no thread, and emits no `exit`.
    if (worker && worker.threadId !== -1) {
      const ended = new Promise((exited) => worker.once('exit', exited));
      worker.postMessage('close');
      await ended;
    }
    rmSync(dirname(socket), { recursive: true, force: true });
  };

  let running = start().catch((cause: Error) => {
    throw new Error(
      `the embedded Postgres in ${root} does not start: ${cause.message}; if this persists, restore the data folder from a backup (docs/operations.md, "Backup and restore")`,
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
      // Also while closing: the thread reads nothing before its statement ends.
      if (interrupted) return;
      interrupted = true;
      log.warn({}, 'the embedded Postgres is restarted, to end a statement that took too long');
      const end = async (worker: Worker) => {
        await worker.terminate();
        interrupted = false;
        return restart(0);
      };
      replace(running.then(end));
    },
    disableRestart() {
      closing = true;
    },
    async close() {
      await end();
      released();
    },
  };
}
