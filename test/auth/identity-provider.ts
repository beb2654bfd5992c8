import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK, type JWTPayload, SignJWT } from 'jose';

export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

/** One RSA key for all algorithms: making one takes up to a second. */
let rsa: Promise<JWK> | undefined;
const rsaKey = () => generateKeyPair('RS256', { extractable: true }).then(({ privateKey }) => exportJWK(privateKey));

async function keyPair(alg: string) {
  if (!/^[RP]S/.test(alg)) return generateKeyPair(alg, { extractable: true });
  rsa ??= rsaKey();
  const { kty, n, e, ...secret } = await rsa;
  const [publicKey, privateKey] = await Promise.all(
    [{}, secret].map((more) => importJWK({ ...{ kty, n, e }, ...more } as JWK, alg, { extractable: true })),
  );
  return { publicKey, privateKey } as { publicKey: CryptoKey; privateKey: CryptoKey };
}

export async function makeKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const { publicKey, privateKey } = await keyPair(alg);
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

/** How the server answers: with its keys, an error, something that is no key set, or never. */
type Mood = 'well' | 'failing' | 'babbling' | 'malformed' | 'endless' | 'silent';

/** Publishes keys on loopback. */
export async function openIdentityProvider(...keys: readonly SigningKey[]) {
  const state = { keys, mood: 'well' as Mood, asked: 0 };
  const server = createServer((_, response) => {
    state.asked++;
    if (state.mood === 'silent') return;
    if (state.mood === 'failing') response.writeHead(503).end('out of order');
    else if (state.mood === 'babbling') response.end('<html>sign in</html>');
    else if (state.mood === 'endless') response.end(`{"keys":[],"more":"${'a'.repeat(2_000_000)}"}`);
    else if (state.mood === 'malformed') response.end('{"keys":"none"}');
    else response.end(JSON.stringify({ keys: state.keys.map(({ jwk }) => jwk) }));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  return {
    state,
    url: `http://127.0.0.1:${port}/jwks.json`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

export const ISSUER = 'https://login.example.com/';
export const AUDIENCE = 'omp-gateway';
export const SUBJECT = 'ana@example.com';

export const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1_000) + seconds;

/** The claims of a valid token, without undefined ones. */
export const claims = (more: Readonly<Record<string, unknown>> = {}): JWTPayload => {
  const all = { iss: ISSUER, aud: AUDIENCE, sub: SUBJECT, user: 'ana', exp: inSeconds(300), ...more };
  return JSON.parse(JSON.stringify(all)) as JWTPayload;
};

export const sign = (key: SigningKey, more: Readonly<Record<string, unknown>> = {}, header: object = {}) =>
  new SignJWT(claims(more)).setProtectedHeader({ alg: key.alg, kid: key.kid, ...header }).sign(key.privateKey);
