import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../process/postgres-cluster.ts';
import { eventually } from '../support/eventually.ts';

/** The program `sqld` of a libSQL server (test/libsql/install.sh). */
const SQLD = process.env.TEST_SQLD ?? '';
/** Why there is none; empty: it can be started. */
export const NO_SQLD = SQLD === '' ? 'TEST_SQLD is not set: no libSQL server' : '';

/** A libSQL server with an empty folder, until it is closed. `key`: it asks for tokens, and this PEM checks them. */
export async function openSqld({ key }: { readonly key?: string } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'omp-sqld-'));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let server: ChildProcess | undefined;
  if (key !== undefined) await writeFile(join(folder, 'key.pem'), key);
  const start = async () => {
    const args = ['--db-path', join(folder, 'data'), '--http-listen-addr', `127.0.0.1:${port}`, '--no-welcome'];
    const checked = key === undefined ? [] : ['--auth-jwt-key-file', join(folder, 'key.pem')];
    server = spawn(SQLD, [...args, ...checked], { stdio: 'ignore' });
    await eventually(async () => {
      if (!(await fetch(`${url}/health`)).ok) throw new Error('not ready');
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

/** A libSQL server for `providerTests`. */
export async function sqldBackend() {
  const { url, close } = await openSqld();
  return { options: { url }, mode: 'vector' as const, close };
}

/** A pair of keys as the tokens of libSQL have: `pem` checks what `token` signs. */
export function tokenKeys() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  return {
    pem: String(publicKey.export({ type: 'spki', format: 'pem' })),
    token(claims: object): string {
      const signed = `${encoded({ alg: 'EdDSA', typ: 'JWT' })}.${encoded(claims)}`;
      return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`;
    },
  };
}
