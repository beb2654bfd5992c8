import { once } from 'node:events';
import { connect } from 'node:net';
import { freePort } from '../process/postgres-cluster.ts';
import { openServerProgram } from '../support/server-program.ts';

/** The program `milvus-lite` of the package of PyPI, with `pymilvus` beside it (test/milvus/install.sh). */
const MILVUS_LITE = process.env.TEST_MILVUS_LITE ?? '';
/** Why nothing can be tested; empty: it can. */
export const NO_MILVUS = MILVUS_LITE === '' ? 'TEST_MILVUS_LITE is not set: no Milvus Lite' : '';

/** Milvus Lite behind gRPC with an empty folder, until it is closed. */
export async function openMilvus() {
  const port = await freePort();
  const settings = (folder: string) => ({
    args: ['server', '--data-dir', folder, '--host', '127.0.0.1', '--port', String(port)],
  });
  const connected = async () => {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
  };
  return { url: `http://127.0.0.1:${port}`, ...(await openServerProgram(MILVUS_LITE, settings, connected)) };
}

/** A Milvus for `providerTests`. */
export async function milvusBackend() {
  const { url, close } = await openMilvus();
  return { options: { url }, mode: 'vector' as const, close };
}
