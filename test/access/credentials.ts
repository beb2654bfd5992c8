import type { Call, KeyStore } from '#contract';
import { GATEWAY } from '#contract';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { recordingLog, type Subject } from '../support/subject.ts';
import { bearer, configure } from './callers.ts';
import { USERS } from './cases.ts';
import type { IdentityProvider } from './identity-provider.ts';
import type { Key } from './rule.ts';

/** The headers of a caller. */
export interface Presented {
  readonly kind: string;
  readonly headers: Record<string, string>;
}

export interface Admitted extends Presented {
  readonly rights: Key;
}

export const call: Call = { signal: new AbortController().signal, requestId: 'test', caller: GATEWAY };

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

/** The authenticator of a closed gateway, and the credentials it admits and refuses. */
export async function openCredentials({ provider }: Subject, identity: IdentityProvider) {
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
    admitted.push({ kind: 'token', rights, headers: bearer(await identity.sign(rights)) });
  }
  refused.push(...(await badTokens(identity)));

  const keys = [...configured.map((key) => key.configured), expired.configured];
  const options = { keys, store: provider.keys, jwt: identity.options, required: false, log: recordingLog() };
  return { authenticator: await openAuthenticator(options), admitted, refused };
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

async function badTokens(identity: IdentityProvider): Promise<Presented[]> {
  const rights = { ...ANY, users: USERS };
  const [head = '', body = '', signature = ''] = (await identity.sign(rights)).split('.');
  const unsigned = Buffer.from('{"alg":"none"}').toString('base64url');
  const tokens = {
    'expired token': await identity.sign(rights, { expires: '-1h' }),
    'token of another issuer': await identity.sign(rights, { issuer: 'https://login.example.org/' }),
    'token for another audience': await identity.sign(rights, { audience: 'another-service' }),
    'forged token': await identity.forge(rights),
    'token without signature': `${head}.${body}.`,
    'token that asks for no signature': `${unsigned}.${body}.${signature}`,
    'token without user': await identity.sign({ ...rights, users: [] }),
  };
  return Object.entries(tokens).map(([kind, token]) => ({ kind, headers: bearer(token) }));
}
