import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../process/postgres-cluster.ts';
import { eventually } from '../support/eventually.ts';

/** The program `weaviate-server` (test/weaviate/install.sh). */
const WEAVIATE_BIN = process.env.TEST_WEAVIATE_BIN ?? '';
/** Why nothing can be tested; empty: it can. */
export const NO_WEAVIATE = WEAVIATE_BIN === '' ? 'TEST_WEAVIATE_BIN is not set: no Weaviate server' : '';

/** A Weaviate of one node with an empty folder, until it is closed. `env`: more of its settings. */
export async function openWeaviate(env: Readonly<Record<string, string>> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'omp-weaviate-'));
  const ports = await Promise.all(Array.from({ length: 7 }, freePort));
  const [port, grpc, gossip, data, raft, raftRpc, profiling] = ports.map(String);
  const url = `http://127.0.0.1:${port}`;
  let server: ChildProcess | undefined;
  const start = async () => {
    server = spawn(WEAVIATE_BIN, ['--host', '127.0.0.1', '--port', String(port), '--scheme', 'http'], {
      stdio: 'ignore',
      env: {
        PERSISTENCE_DATA_PATH: folder,
        ...{ AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED: 'true', DISABLE_TELEMETRY: 'true', LOG_LEVEL: 'error' },
        ...{ CLUSTER_HOSTNAME: 'node', CLUSTER_ADVERTISE_ADDR: '127.0.0.1', RAFT_BOOTSTRAP_EXPECT: '1' },
        ...{ CLUSTER_GOSSIP_BIND_PORT: gossip, CLUSTER_DATA_BIND_PORT: data, GRPC_PORT: grpc },
        ...{ RAFT_PORT: raft, RAFT_INTERNAL_RPC_PORT: raftRpc, GO_PROFILING_PORT: profiling },
        // How full the disk of this machine is says nothing about the gateway.
        ...{ RAFT_TIMEOUTS_MULTIPLIER: '1', DISK_USE_READONLY_PERCENTAGE: '100', DISK_USE_WARNING_PERCENTAGE: '100' },
        ...env,
      },
    });
    await eventually(async () => {
      if (!(await fetch(`${url}/v1/.well-known/ready`)).ok) throw new Error('not ready');
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
    url,
    grpc_url: `http://127.0.0.1:${grpc}`,
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

/** A Weaviate for `providerTests`. */
export async function weaviateBackend() {
  const { url, grpc_url, close } = await openWeaviate();
  return { options: { url, grpc_url }, mode: 'vector' as const, close };
}
