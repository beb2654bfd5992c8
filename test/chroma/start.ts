import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Provider } from '#contract';
import chroma from '../../providers/collections/chroma.ts';
import { recordingLog } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';

/** A folder with a newer C library than that of the system. */
const GLIBC = process.env.TEST_GLIBC;
const NEEDED = 2.39;

const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };

/** Why the server of the npm package cannot run here; empty: it can. */
export const NO_CHROMA =
  GLIBC !== undefined || Number(header.glibcVersionRuntime ?? NEEDED) >= NEEDED
    ? ''
    : `the server of chromadb needs glibc ${NEEDED}: TEST_GLIBC names a folder with one (test/chroma/install.sh)`;

export interface Chroma {
  readonly url: string;
  readonly folder: string;
  /** Ends it as a crash would. It ignores SIGTERM. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, on the same port with the same data. */
  start(): Promise<void>;
  /** Ends it and removes its folder. */
  close(): Promise<void>;
}

/** Runs the command line tool that comes with the server. */
export function runChroma(...args: readonly string[]): ChildProcess {
  const cli = fileURLToPath(new URL('./cli.mjs', import.meta.resolve('chromadb')));
  const command = [process.execPath, cli, ...args];
  const [program, ...rest] =
    GLIBC === undefined ? command : [join(GLIBC, 'ld-linux-x86-64.so.2'), '--library-path', GLIBC, ...command];
  return spawn(program as string, rest, { stdio: 'ignore' });
}

/** Starts the server that the npm package `chromadb` brings, with an empty folder. */
export async function openChroma(): Promise<Chroma> {
  const folder = await mkdtemp(join(tmpdir(), 'omp-chroma-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const launch = () => runChroma('run', '--path', folder, '--host', '127.0.0.1', '--port', String(port));
  let server = launch();
  const answers = async () => {
    while (!(await fetch(`${url}/api/v2/heartbeat`).catch(() => undefined))?.ok) {
      if (server.exitCode !== null) throw new Error(`chroma run ended with ${server.exitCode}`);
      await sleep(50);
    }
  };
  const kill = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill('SIGKILL');
    await once(server, 'exit');
  };
  await answers();
  return {
    url,
    folder,
    kill,
    async start() {
      server = launch();
      await answers();
    },
    async close() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

/** Opens the provider as the gateway does. */
export const openProvider = async (options: object, embedder = hashingEmbedder()): Promise<Required<Provider>> =>
  (await chroma.open(options, {
    embedder,
    ranking: { mode: 'vector', keyword_weight: 0 },
    audit: undefined,
    data_dir: tmpdir(),
    log: recordingLog(),
  })) as Required<Provider>;
