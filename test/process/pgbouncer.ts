import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { watch } from './gateway.ts';
import { freePort, serverFolder, serverUser } from './postgres-cluster.ts';

const PROGRAM = (process.env.PATH ?? '')
  .split(':')
  .concat('/usr/sbin')
  .map((folder) => join(folder, 'pgbouncer'))
  .find((path) => existsSync(path));

export const NO_PGBOUNCER = PROGRAM === undefined ? 'pgbouncer is not installed' : '';

/**
 * PgBouncer in transaction mode in front of the server, killed after the test. It has two server connections, so that
 * clients share sessions. Resolves with the URL to connect to.
 */
export async function startPgBouncer(serverUrl: string): Promise<string> {
  const server = new URL(serverUrl);
  const port = await freePort();
  const folder = serverFolder();
  const value = (text: string) => `'${decodeURIComponent(text).replaceAll("'", "''")}'`;
  const target = [
    `host=${server.hostname} port=${server.port || 5432} dbname=${value(server.pathname.slice(1))} user=${value(server.username)}`,
    ...(server.password === '' ? [] : [`password=${value(server.password)}`]),
  ].join(' ');
  const configuration = join(folder, 'pgbouncer.ini');
  writeFileSync(
    configuration,
    `[databases]
pooled = ${target}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
`,
  );
  chmodSync(configuration, 0o644);
  const { child, ended } = watch(
    spawn(PROGRAM as string, [configuration], { ...serverUser(), cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] }),
  );
  while (!(await listens(port))) {
    if (child.exitCode !== null) throw new Error(`pgbouncer did not start: ${(await ended).stderr}`);
  }
  return `postgres://anybody@127.0.0.1:${port}/pooled`;
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
