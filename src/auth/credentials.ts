import { createHash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { type Call, type KeyStore, type NewKey, OmpError, type StoredKey } from '#contract';

/**
 * An API key: `omp_<id>_<secret>`. The id is public and looked up; the secret is 32 random bytes in base64url. For
 * secret scanners: `\bomp_[a-z0-9]{12}_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])`.
 */
const FORM = /^omp_([a-z0-9]{12})_[A-Za-z0-9_-]{43}$/;
/** Every credential with this prefix is treated as an API key. */
export const KEY_PREFIX = 'omp_';

const ID_CHARACTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';
const ID_LENGTH = 12;
const SECRET_BYTES = 32;

export interface FreshKey {
  readonly id: string;
  /** The key itself. It is never stored, only its hash. */
  readonly key: string;
  readonly hash: string;
}

export function newKey(): FreshKey {
  const id = Array.from({ length: ID_LENGTH }, () => ID_CHARACTERS[randomInt(ID_CHARACTERS.length)]).join('');
  const key = `${KEY_PREFIX}${id}_${randomBytes(SECRET_BYTES).toString('base64url')}`;
  return { id, key, hash: hashOf(key) };
}

/**
 * Stores a key. Throws `unsupported_capability` if the store does not keep that a key is untrusted, and revokes the key, which would be
 * trusted.
 */
export async function storeKey(keys: KeyStore, key: NewKey, call: Call): Promise<StoredKey> {
  const created = await keys.create(key, call);
  if (!key.untrusted || (await keys.find(key.id, call))?.untrusted) return created;
  await keys.revoke(key.id, call);
  throw new OmpError('unsupported_capability', 'this store keeps no untrusted keys; the key is revoked');
}

/** The id of a key; undefined for a text that is no key. */
export const idOf = (key: string): string | undefined => FORM.exec(key)?.[1];

/**
 * SHA-256 of the whole key, in lower-case hexadecimal. A slow hash protects secrets that can be guessed; 256 random bits
 * cannot, and every request would pay for it.
 */
export const hashOf = (key: string): string => createHash('sha256').update(key).digest('hex');

/** Compares in constant time. */
export function matchesHash(key: string, hash: string): boolean {
  const expected = Buffer.from(hash, 'hex');
  const actual = Buffer.from(hashOf(key), 'hex');
  return expected.length === actual.length && timingSafeEqual(expected, actual);
}

/**
 * Signature algorithms of tokens, all with public keys. With a shared-secret algorithm, an attacker could use the public
 * key as the secret.
 */
export const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

/**
 * The error for every invalid credential; the response does not say why (SPEC, Errors). The reason is only logged and must
 * not quote the credential.
 */
export const invalidCredential = (reason: string): OmpError =>
  new OmpError('unauthorized', 'the API key or token is not valid', { cause: new Error(reason) });

export const missingCredential = (): OmpError =>
  new OmpError('unauthorized', 'an API key is required, as "Authorization: Bearer <key>" or "X-API-Key: <key>"');
