import { generateKeyPairSync, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../process/postgres-cluster.ts';
import { openServerProgram, requireOk } from '../support/server-program.ts';

/** The program `sqld` of a libSQL server (test/libsql/install.sh). */
const SQLD = process.env.TEST_SQLD ?? '';
/** Why there is none; empty: it can be started. */
export const NO_SQLD = SQLD === '' ? 'TEST_SQLD is not set: no libSQL server' : '';

/** A libSQL server with an empty folder, until it is closed. `key`: it asks for tokens, and this PEM checks them. */
export async function openSqld({ key }: { readonly key?: string } = {}) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const settings = (folder: string) => {
    const args = ['--db-path', join(folder, 'data'), '--http-listen-addr', `127.0.0.1:${port}`, '--no-welcome'];
    if (key === undefined) return { args };
    writeFileSync(join(folder, 'key.pem'), key);
    return { args: [...args, '--auth-jwt-key-file', join(folder, 'key.pem')] };
  };
  return { url, ...(await openServerProgram(SQLD, settings, () => requireOk(`${url}/health`))) };
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
