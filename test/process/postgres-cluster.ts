import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { onTestFinished } from 'vitest';

/** Folder of `initdb` and `postgres`, for tests that stop and start a server. */
export const POSTGRES_BIN = process.env.TEST_POSTGRES_BIN ?? '';
export const NO_POSTGRES_BIN = 'TEST_POSTGRES_BIN is not set: no PostgreSQL binaries to start a server with';

/** PostgreSQL and PgBouncer do not run as root; as root, they run as Debian's user `postgres`. */
export const serverUser = (): { uid?: number; gid?: number } =>
  process.getuid?.() === 0
    ? { uid: Number(execFileSync('id', ['-u', 'postgres'])), gid: Number(execFileSync('id', ['-g', 'postgres'])) }
    : {};

/** A folder that only the server's user can read; removed after the test. */
export function serverFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'omp-s-'));
  const { uid, gid } = serverUser();
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
  chmodSync(folder, 0o700);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export interface Cluster {
  readonly url: string;
  readonly password: string;
  /** Resolves when the server takes connections. */
  start(): Promise<void>;
  /**
   * SIGINT ends all sessions; SIGQUIT is like a crash, with recovery at the next start; SIGKILL kills the first process.
   * Resolves when all processes have ended.
   */
  stop(signal?: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void>;
  /** Process ids, sessions included, the first process first; empty while it is stopped. */
  processes(): number[];
}

/** Running children of a process; Linux only. */
function childrenOf(pid: number): number[] {
  const list = `/proc/${pid}/task/${pid}/children`;
  return existsSync(list) ? readFileSync(list, 'utf8').split(' ').filter(Boolean).map(Number) : [];
}

/** A key and a self-signed certificate in the server's folder. */
function makeCertificate(folder: string, as: object): string[] {
  const [key, certificate] = ['server.key', 'server.crt'].map((name) => join(folder, name)) as [string, string];
  const subject = ['-subj', '/CN=localhost', '-days', '1', '-nodes', '-newkey', 'rsa:2048'];
  execFileSync('openssl', ['req', '-x509', ...subject, '-keyout', key, '-out', certificate], { ...as, stdio: 'pipe' });
  return ['ssl=on', `ssl_key_file=${key}`, `ssl_cert_file=${certificate}`];
}

export interface ClusterOptions {
  readonly tls?: boolean;
  /** Must belong to `serverUser`. */
  readonly folder?: string;
  /** Whether a password is asked. Default: yes. */
  readonly trust?: boolean;
  /** The server to stream from: the new one is its standby. It must trust. */
  readonly standbyOf?: Cluster;
  /** `name=value`, in the form of the configuration file. */
  readonly settings?: readonly string[];
}

/** A stopped PostgreSQL server; stopped after the test. */
export async function createCluster({
  tls = false,
  folder = serverFolder(),
  trust = false,
  standbyOf,
  settings: more = [],
}: ClusterOptions = {}): Promise<Cluster> {
  const as = { ...serverUser(), cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' } };
  const port = await freePort();
  // Every character here has a meaning in a URL.
  const password = `p@ss/w?rd#${randomBytes(8).toString('hex')}`;
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, password, { mode: 0o644 });
  const data = join(folder, 'data');
  const initdb = [
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    trust ? 'trust' : 'scram-sha-256',
    `--pwfile=${passwordFile}`,
    '--no-sync',
  ];
  const [program, args] = standbyOf
    ? ['pg_basebackup', ['-D', data, '-d', standbyOf.url, '--write-recovery-conf', '--checkpoint=fast', '--no-sync']]
    : ['initdb', initdb];
  execFileSync(join(POSTGRES_BIN, program), args, { ...as, stdio: 'pipe' });

  const encryption = tls ? makeCertificate(folder, as) : [];

  let stop: Cluster['stop'] = async () => {};
  let processes: Cluster['processes'] = () => [];
  onTestFinished(() => stop());
  const url = `postgres://postgres:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`;
  return {
    url,
    password,
    async start() {
      const where = ['listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`];
      const settings = [...where, 'fsync=off', ...encryption, ...more];
      const args = ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
      const server = spawn(join(POSTGRES_BIN, 'postgres'), args, { ...as, stdio: 'ignore' });
      const ended = once(server, 'close');
      const first = server.pid as number;
      processes = () => ((server.exitCode ?? server.signalCode) === null ? [first, ...childrenOf(first)] : []);
      stop = async (signal = 'SIGINT') => {
        const others = childrenOf(first);
        server.kill(signal);
        await ended;
        while (others.some((pid) => existsSync(`/proc/${pid}`))) await sleep(10);
      };
      while (!(await answers(url)))
        if (server.exitCode !== null) throw new Error('the PostgreSQL server did not start');
    },
    stop: (signal) => stop(signal),
    processes: () => processes(),
  };
}

async function answers(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString });
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end();
  }
}
