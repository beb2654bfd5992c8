import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Call, GATEWAY, type KeyStore } from '#contract';
import { type AuthenticatorOptions, openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { ANYBODY } from '../../src/core/principal.ts';
import { openStore, type Store, until } from '../postgres/store.ts';
import type { Memories } from '../support/memories.ts';
import { recordingLog } from '../support/subject.ts';
import { call, expectRefused, rejection } from './call.ts';
import { AUDIENCE, ISSUER, makeKey, openIdentityProvider, sign } from './identity-provider.ts';

let database: Store;
let provider: Memories;
let store: KeyStore;
let asked = 0;
beforeAll(async () => {
  database = await openStore();
  provider = await database.open({ mode: 'keyword' });
});
afterAll(() => database.close());
beforeEach(async () => {
  await database.sql(`delete from ${database.names.apiKeys}`);
  const keys = provider.keys as KeyStore;
  asked = 0;
  store = {
    ...keys,
    hasAny(by: Call) {
      asked++;
      return keys.hasAny(by);
    },
  };
});

const open = (more: Partial<AuthenticatorOptions> = {}) =>
  openAuthenticator({ keys: [], store: undefined, jwt: undefined, required: false, log: recordingLog(), ...more });

async function create(): Promise<{ id: string; key: string }> {
  const { id, key, hash } = newKey();
  await store.create({ id, hash, name: id, users: null, grants: ['read:*'], expires_at: null }, call);
  return { id, key };
}

const MISSING = { code: 'unauthorized', message: expect.stringContaining('Authorization: Bearer') };

describe('[Decision 13] while there is no key', () => {
  it.each([
    ['without a store', () => undefined],
    ['with a store', () => store],
  ])('%s everybody may do everything, whatever else they send', async (_, where) => {
    const authenticator = await open({ store: where() });
    expect(await authenticator.isOpen()).toBe(true);
    for (const credential of [undefined, 'dummy', 'sk-0123456789', 'a.b.c']) {
      expect(await authenticator.authenticate(credential, call)).toBe(ANYBODY);
    }
  });

  it('a key of ours that is not known here is refused all the same', async () => {
    const authenticator = await open({ store });
    await expectRefused(authenticator.authenticate(newKey().key, call));
    expect(await authenticator.authenticate(undefined, call)).toBe(ANYBODY);
  });

  it('the store is asked once in a while, and once for many at the same time', async () => {
    const authenticator = await open({ store });
    await Promise.all(Array.from({ length: 10 }, () => authenticator.authenticate(undefined, call)));
    await authenticator.authenticate(undefined, call);
    expect(asked).toBe(1);
  });

  it('nobody is let in when keys are required', async () => {
    const authenticator = await open({ store, required: true });
    expect(await authenticator.isOpen()).toBe(false);
    expect(await rejection(authenticator.authenticate(undefined, call))).toMatchObject(MISSING);
    await expectRefused(authenticator.authenticate('dummy', call));
    expect(asked).toBe(0);
  });
});

describe('[Decision 13] the first key', () => {
  it('closes a running gateway within seconds, though nobody has used it', async () => {
    const authenticator = await open({ store });
    expect(await authenticator.isOpen()).toBe(true);
    await create();
    await until(async () => (await rejection(authenticator.authenticate(undefined, call))) !== undefined);
    expect(await rejection(authenticator.authenticate(undefined, call))).toMatchObject(MISSING);
    await expectRefused(authenticator.authenticate('dummy', call));
  });

  it('works at once, and closes where it is used', async () => {
    const authenticator = await open({ store });
    expect(await authenticator.authenticate(undefined, call)).toBe(ANYBODY);
    const { id, key } = await create();
    expect(await authenticator.authenticate(key, call)).toMatchObject({ id: `key:${id}`, grants: { write: [] } });
    expect(await authenticator.isOpen()).toBe(false);
    expect(await rejection(authenticator.authenticate(undefined, call))).toMatchObject(MISSING);
  });

  it('closes for good: also when it is revoked, and when its row is gone', async () => {
    const { id } = await create();
    await store.revoke(id, call);
    const authenticator = await open({ store });
    expect(await authenticator.isOpen()).toBe(false);
    await database.sql(`delete from ${database.names.apiKeys}`);
    expect(await authenticator.isOpen()).toBe(false);
    expect(asked).toBe(1);
  });
});

it('[SPEC Errors provider_error] nobody is let in while it cannot be found out whether there is a key', async () => {
  const authenticator = await open({ store });
  await database.sql(`alter table ${database.names.apiKeys} rename to hidden`);
  try {
    for (const credential of [undefined, 'dummy', newKey().key]) {
      expect(await rejection(authenticator.authenticate(credential, call))).toMatchObject({ code: 'provider_error' });
    }
    expect(await rejection(authenticator.isOpen())).toMatchObject({ code: 'provider_error' });
  } finally {
    await database.sql(`alter table ${database.names.schema}.hidden rename to api_keys`);
  }
  expect(await authenticator.authenticate(undefined, call)).toBe(ANYBODY);
});

describe('[SPEC Authentication 5] with configured keys and tokens', () => {
  it('each is told by its beginning, and both are known once they were good', async () => {
    const signer = await makeKey('first');
    const server = await openIdentityProvider(signer);
    try {
      const jwt = {
        ...{ jwks_url: server.url, issuer: ISSUER, audience: AUDIENCE, algorithms: ['ES256' as const] },
        ...{ user_claim: 'sub', grants: ['read:*'] },
      };
      const { id, key, hash } = newKey();
      const keys = [{ name: 'editor', key: toHashedKey({ id, hash }), grants: ['*:*'] }];
      const authenticator = await open({ keys, jwt });
      const token = await sign(signer);
      expect(await authenticator.authenticate(key, call)).toMatchObject({ app: 'editor' });
      expect((await authenticator.authenticate(token, call)).id).toMatch(/^token:[0-9a-f]{64}$/);
      for (const wrong of [newKey().key, `${token}x`, 'dummy', '']) {
        await expectRefused(authenticator.authenticate(wrong, call));
      }
      expect(await rejection(authenticator.authenticate(undefined, call))).toMatchObject(MISSING);
      expect(await authenticator.isOpen()).toBe(false);
    } finally {
      await server.close();
    }
  });

  it('a token is no key where no identity provider is configured', async () => {
    const { id, hash } = newKey();
    const keys = [{ name: 'editor', key: toHashedKey({ id, hash }), grants: ['*:*'] }];
    const authenticator = await open({ keys });
    await expectRefused(authenticator.authenticate(await sign(await makeKey('first')), call));
  });
});

it('uses are noted when it is closed', async () => {
  const authenticator = await open({ store });
  const { id, key } = await create();
  await authenticator.authenticate(key, call);
  await authenticator.close();
  expect((await store.find(id, { ...call, caller: GATEWAY }))?.last_used_at).not.toBeNull();
});
