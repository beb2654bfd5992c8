import { freePort } from '../process/postgres-cluster.ts';
import { openServerProgram, requireOk } from '../support/server-program.ts';

/** The program `weaviate-server` (test/weaviate/install.sh). */
const WEAVIATE_BIN = process.env.TEST_WEAVIATE_BIN ?? '';
/** Why nothing can be tested; empty: it can. */
export const NO_WEAVIATE = WEAVIATE_BIN === '' ? 'TEST_WEAVIATE_BIN is not set: no Weaviate server' : '';

/** A Weaviate of one node with an empty folder, until it is closed. `env`: more of its settings. */
export async function openWeaviate(env: Readonly<Record<string, string>> = {}) {
  const ports = await Promise.all(Array.from({ length: 7 }, freePort));
  const [port, grpc, gossip, data, raft, raftRpc, profiling] = ports.map(String);
  const url = `http://127.0.0.1:${port}`;
  const settings = (folder: string) => ({
    args: ['--host', '127.0.0.1', '--port', String(port), '--scheme', 'http'],
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
  const server = await openServerProgram(WEAVIATE_BIN, settings, () => requireOk(`${url}/v1/.well-known/ready`));
  return { url, grpc_url: `http://127.0.0.1:${grpc}`, ...server };
}

/** A Weaviate for `providerTests`. */
export async function weaviateBackend() {
  const { url, grpc_url, close } = await openWeaviate();
  return { options: { url, grpc_url }, mode: 'vector' as const, close };
}
