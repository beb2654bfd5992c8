import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder, watch } from '../process/gateway.ts';
import { freePort } from '../process/postgres-cluster.ts';

const PROGRAM = (process.env.PATH ?? '')
  .split(':')
  .map((folder) => join(folder, 'redis-server'))
  .find((path) => existsSync(path));

export const NO_REDIS = PROGRAM === undefined ? 'redis-server is not installed' : '';

export interface RedisServer {
  readonly url: string;
  /** Resolves when the server takes connections. */
  start(): Promise<void>;
  /** Ends it and all it holds. */
  stop(): Promise<void>;
  /** Keeps its connections but does not answer any more. */
  freeze(): void;
  thaw(): void;
}

/** A Redis of the test's own, not started yet, that writes nothing to disk. It does not outlive the test. */
export async function createRedis(): Promise<RedisServer> {
  const port = await freePort();
  const folder = temporaryFolder();
  let server: ReturnType<typeof watch> | undefined;
  return {
    url: `redis://127.0.0.1:${port}`,
    async start() {
      const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder];
      server = watch(spawn(PROGRAM as string, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
      await server.output(/Ready to accept connections/);
    },
    async stop() {
      server?.child.kill('SIGKILL');
      await server?.ended;
    },
    freeze: () => void server?.child.kill('SIGSTOP'),
    thaw: () => void server?.child.kill('SIGCONT'),
  };
}
