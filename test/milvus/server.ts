import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../process/postgres-cluster.ts';
import { eventually } from '../support/eventually.ts';

/** The program `milvus-lite` of the package of PyPI, with `pymilvus` beside it (test/milvus/install.sh). */
const MILVUS_LITE = process.env.TEST_MILVUS_LITE ?? '';
/** Why nothing can be tested; empty: it can. */
export const NO_MILVUS = MILVUS_LITE === '' ? 'TEST_MILVUS_LITE is not set: no Milvus Lite' : '';

/** Milvus Lite behind gRPC with an empty folder, until it is closed. */
export async function openMilvus() {
  const folder = await mkdtemp(join(tmpdir(), 'omp-milvus-'));
  const port = await freePort();
  let server: ChildProcess | undefined;
  const start = async () => {
    const args = ['server', '--data-dir', folder, '--host', '127.0.0.1', '--port', String(port)];
    server = spawn(MILVUS_LITE, args, { stdio: 'ignore' });
    await eventually(async () => {
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      socket.destroy();
    });
  };
  const kill = async () => {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };
  await start();
  return {
    url: `http://127.0.0.1:${port}`,
    start,
    /** As by `kill -9`; `start` starts it again with what is stored. */
    kill,
    /** It answers nothing until it goes on. */
    freeze: () => server?.kill('SIGSTOP'),
    async close() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A Milvus for `providerTests`. */
export async function milvusBackend() {
  const { url, close } = await openMilvus();
  return { options: { url }, mode: 'vector' as const, close };
}
