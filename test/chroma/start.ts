import { type ChildProcess, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Provider } from '#contract';
import chroma from '../../providers/collections/chroma.ts';
import { freePort } from '../process/postgres-cluster.ts';
import { recordingLog } from '../support/gateway.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { openServerProgram, requireOk } from '../support/server-program.ts';

/** A folder with a newer C library than that of the system. */
const GLIBC = process.env.TEST_GLIBC;
const NEEDED = 2.39;

const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };

/** Why the server of the npm package cannot run here; empty: it can. */
export const NO_CHROMA =
  GLIBC !== undefined || Number(header.glibcVersionRuntime ?? NEEDED) >= NEEDED
    ? ''
    : `the server of chromadb needs glibc ${NEEDED}: TEST_GLIBC names a folder with one (test/chroma/install.sh)`;

export type Chroma = Awaited<ReturnType<typeof openChroma>>;

/** The command line tool that comes with the server. */
function commandOf(args: readonly string[]): { readonly program: string; readonly args: readonly string[] } {
  const cli = fileURLToPath(new URL('./cli.mjs', import.meta.resolve('chromadb')));
  const words = [cli, ...args];
  return GLIBC === undefined
    ? { program: process.execPath, args: words }
    : { program: join(GLIBC, 'ld-linux-x86-64.so.2'), args: ['--library-path', GLIBC, process.execPath, ...words] };
}

/** Runs that tool. */
export function runChroma(...words: readonly string[]): ChildProcess {
  const { program, args } = commandOf(words);
  return spawn(program, args, { stdio: 'ignore' });
}

/** The server that the npm package `chromadb` brings, with an empty folder, until it is closed. */
export async function openChroma() {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const { program } = commandOf([]);
  const settings = (folder: string) =>
    commandOf(['run', '--path', folder, '--host', '127.0.0.1', '--port', String(port)]);
  return { url, ...(await openServerProgram(program, settings, () => requireOk(`${url}/api/v2/heartbeat`))) };
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
