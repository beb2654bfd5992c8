import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A folder with a newer C library than that of the system. */
const GLIBC = process.env.TEST_GLIBC;
const NEEDED = 2.39;

const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };

/** Why the server of the npm package cannot run here; empty: it can. */
export const NO_CHROMA =
  GLIBC !== undefined || Number(header.glibcVersionRuntime ?? NEEDED) >= NEEDED
    ? ''
    : `the server of chromadb needs glibc ${NEEDED}: TEST_GLIBC names a folder with one (test/chroma/glibc.sh)`;

export interface Chroma {
  readonly url: string;
  /** Ends it as a crash would. It ignores SIGTERM. */
  kill(): Promise<void>;
  /** Starts it again after `kill`, on the same port with the same data. */
  start(): Promise<void>;
}

/** Runs the command line tool that comes with the server. */
export function runChroma(...args: readonly string[]): ChildProcess {
  const cli = fileURLToPath(new URL('./cli.mjs', import.meta.resolve('chromadb')));
  const command = [process.execPath, cli, ...args];
  const [program, ...rest] =
    GLIBC === undefined ? command : [join(GLIBC, 'ld-linux-x86-64.so.2'), '--library-path', GLIBC, ...command];
  return spawn(program as string, rest, { stdio: 'ignore' });
}

/** Starts the server that the npm package `chromadb` brings, with its data in this folder. */
export async function startChroma(folder: string): Promise<Chroma> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  mkdirSync(folder, { recursive: true });
  const launch = () => runChroma('run', '--path', folder, '--host', '127.0.0.1', '--port', String(port));
  let server = launch();
  const answers = async () => {
    while (!(await fetch(`${url}/api/v2/heartbeat`).catch(() => undefined))?.ok) {
      if (server.exitCode !== null) throw new Error(`chroma run ended with ${server.exitCode}`);
      await sleep(50);
    }
  };
  await answers();
  return {
    url,
    async kill() {
      if (server.exitCode !== null || server.signalCode !== null) return;
      server.kill('SIGKILL');
      await once(server, 'exit');
    },
    async start() {
      server = launch();
      await answers();
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
