import type { KeyStore } from '#contract';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { call } from '../auth/call.ts';
import { AUDIENCE, ISSUER, inSeconds, makeKey, openIdentityProvider, sign } from '../auth/identity-provider.ts';
import { recordingLog, type Subject } from '../support/subject.ts';
import { bearer, configure } from './callers.ts';
import { USERS } from './cases.ts';
import type { Key } from './rule.ts';

/** The headers of a caller. */
export interface Presented {
  readonly kind: string;
  readonly headers: Record<string, string>;
}

interface Admitted extends Presented {
  readonly rights: Key;
}

/** What a key of each kind is given. */
const RIGHTS: readonly Key[] = [
  { grants: ['*:*'], users: null },
  { grants: ['read:coding/*'], users: ['ana'] },
  { grants: ['write:coding/*', 'read:*'], users: ['ana', 'ben'] },
  { grants: ['delete:*/x', 'read:codin?'], users: ['ben'] },
];
const ANY: Key = { grants: ['*:*'], users: null };
const PAST = '2001-01-01T00:00:00.000Z';
const FUTURE = '2999-01-01T00:00:00.000Z';

/** Both headers a key may come in. */
const inEitherHeader = (kind: string, credential: string): Presented[] => [
  { kind: `${kind}, Authorization`, headers: bearer(credential) },
  { kind: `${kind}, X-API-Key`, headers: { 'x-api-key': credential } },
];

/** Stores a key as the command line does. */
async function keep({ create }: KeyStore, { grants, users }: Key, expires_at: string | null = null) {
  const { id, key, hash } = newKey();
  const stored = await create({ id, name: `stored ${id}`, hash, grants, users, expires_at }, call);
  return { ...stored, key };
}

/** The last character of the secret is another one. */
const otherSecret = (key: string): string => key.slice(0, -1) + (key.endsWith('A') ? 'E' : 'A');

/** The authenticator of a closed gateway, and the credentials that it accepts and rejects. */
export async function openCredentials({ provider }: Subject) {
  const [published, foreign] = await Promise.all([makeKey('one'), makeKey('one')]);
  const server = await openIdentityProvider(published);
  const tokenOf = ({ users, grants }: Key, more: object = {}, by = published) =>
    sign(by, { users, scope: grants.join(' '), ...more });
  const configured = RIGHTS.map((rights) => ({ rights, ...configure(rights, { expires_at: FUTURE }) }));
  const expired = configure(ANY, { expires_at: PAST });
  const admitted: Admitted[] = [];
  const refused: Presented[] = [];
  const admit = (kind: string, keys: readonly { rights: Key; key: string }[]) => {
    // Either header for every other key.
    for (const [index, { rights, key }] of keys.entries()) {
      admitted.push({ rights, ...(inEitherHeader(kind, key)[index % 2] as Presented) });
    }
  };
  admit('configured key', configured);
  const good = (configured[0] as (typeof configured)[number]).key;
  const unknown = newKey();
  refused.push(
    ...inEitherHeader('unknown key', unknown.key),
    ...inEitherHeader('wrong secret of a configured key', otherSecret(good)),
    ...inEitherHeader('expired configured key', expired.key),
    ...inEitherHeader('the hash instead of the key', expired.configured.key),
    ...inEitherHeader('half a key', good.slice(0, 30)),
    ...inEitherHeader('a key and more', `${good}A`),
    ...inEitherHeader('two keys', `${good},${good}`),
    ...inEitherHeader('nothing in it', ''),
    ...malformed(good),
  );

  if (provider.keys) {
    const stored: { rights: Key; key: string }[] = [];
    for (const rights of [{ grants: ['*:*'], users: [] }, ...RIGHTS]) {
      stored.push({ rights, key: (await keep(provider.keys, rights)).key });
    }
    admit('stored key', stored);
    const revoked = await keep(provider.keys, ANY);
    await provider.keys.revoke(revoked.id, call);
    refused.push(
      ...inEitherHeader('wrong secret of a stored key', otherSecret((await keep(provider.keys, ANY)).key)),
      ...inEitherHeader('expired stored key', (await keep(provider.keys, ANY, PAST)).key),
      ...inEitherHeader('revoked stored key', revoked.key),
    );
  }

  for (const { grants, users } of RIGHTS) {
    const rights = { grants, users: users ?? USERS };
    admitted.push({ kind: 'token', rights, headers: bearer(await tokenOf(rights)) });
  }
  // test/auth/tokens.test.ts has every kind of invalid token.
  const any = { ...ANY, users: USERS };
  for (const [kind, token] of Object.entries({
    'expired token': await tokenOf(any, { exp: inSeconds(-3_600) }),
    'forged token': await tokenOf(any, {}, foreign),
    'token without user': await tokenOf({ ...any, users: [] }),
  })) {
    refused.push({ kind, headers: bearer(token) });
  }

  const jwt = {
    ...{ jwks_url: server.url, issuer: ISSUER, audience: AUDIENCE, algorithms: ['ES256' as const] },
    ...{ user_claim: 'users', grants_claim: 'scope', grants: [] },
  };
  const keys = [...configured.map((key) => key.configured), expired.configured];
  const options = { keys, store: provider.keys, jwt, required: false, log: recordingLog() };
  const authenticator = await openAuthenticator(options);
  const close = async () => {
    await authenticator.close();
    await server.close();
  };
  return { authenticator, admitted, refused, close };
}

/** A good key in a malformed header, or where no key belongs. */
const malformed = (key: string): Presented[] =>
  [
    ...[key, `Basic ${key}`, `Token ${key}`, `Bearer${key}`, `Bearer: ${key}`, `Bearer "${key}"`, 'Bearer', 'Bearer  '],
    ...[`Bearer ${key} ${key}`, `Bearer ${key}, Bearer ${key}`, `Bearer ${key},`, `Basic ${btoa(`key:${key}`)}`],
  ]
    .map(
      (authorization): Presented => ({ kind: `malformed: ${authorization.slice(0, 9)}…`, headers: { authorization } }),
    )
    .concat(
      { kind: 'a scheme before X-API-Key', headers: { 'x-api-key': `Bearer ${key}` } },
      { kind: 'in a cookie', headers: { cookie: `api_key=${key}` } },
      { kind: 'in another header', headers: { 'x-auth-token': key } },
      { kind: 'a good key beside a wrong one', headers: { 'x-api-key': key, ...bearer(newKey().key) } },
    );
