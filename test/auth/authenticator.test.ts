import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Call, type KeyStore, type StoredKey } from '#contract';
import { type AuthenticatorOptions, openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { openKeyRing } from '../../src/auth/key-ring.ts';
import { ANONYMOUS } from '../../src/core/grants.ts';
import { openStore, type TestDatabase, until } from '../postgres/store.ts';
import type { Store } from '../support/stores.ts';
import { recordingLog } from '../support/subject.ts';
import { advance, call, expectInvalid, rejection } from './call.ts';
import { AUDIENCE, ISSUER, makeKey, openIdentityProvider, sign } from './identity-provider.ts';

let database: TestDatabase;
let provider: Store;
beforeAll(async () => {
  database = await openStore();
  provider = await database.open({ mode: 'keyword' });
});
afterAll(() => database.close());

/** Makes the table unavailable until the test ends or the function is called. */
async function breakTable(): Promise<() => Promise<void>> {
  await database.sql(`alter table ${database.names.apiKeys} rename to hidden`);
  let broken = true;
  const repair = async () => {
    if (broken) await database.sql(`alter table ${database.names.schema}.hidden rename to api_keys`);
    broken = false;
  };
  onTestFinished(repair);
  return repair;
}

describe('key ring', () => {
  let found: string[];
  let keys: KeyStore;
  let log: ReturnType<typeof recordingLog>;
  beforeEach(() => {
    found = [];
    log = recordingLog();
    const stored = provider.keys as KeyStore;
    keys = {
      ...stored,
      find(id, by) {
        found.push(id);
        return stored.find(id, by);
      },
    };
  });

  const ringOf = (...configured: Parameters<typeof openKeyRing>[0]['configured']) =>
    openKeyRing({ configured, store: keys, log });

  async function store(more: Partial<StoredKey> = {}): Promise<string> {
    const { id, key, hash } = newKey();
    await keys.create(
      { id, hash, name: `name of ${id}`, users: null, grants: ['read:*'], expires_at: null, ...more },
      call,
    );
    return key;
  }
  const idIn = (key: string) => key.slice(4, 16);

  describe('a configured key', () => {
    it('[Decision 13|14] needs no store', async () => {
      const { id, key, hash } = newKey();
      const configured = [
        { name: 'editor', key: toHashedKey({ id, hash }), users: ['ana'], grants: ['read:coding/*', 'write:*'] },
      ];
      const ring = openKeyRing({ configured, store: undefined, log });
      const principal = await ring.principal(key, call);
      expect(principal).toEqual({
        id: `key:${id}`,
        app: 'editor',
        users: ['ana'],
        grants: { read: ['coding/*'], write: null, delete: [], admin: false },
      });
      expect(await ring.principal(key, call)).toBe(principal);
      await expectInvalid(ring.principal(newKey().key, call));
    });

    it('is not looked up in the store, and its use is not stored', async () => {
      const { id, key, hash } = newKey();
      const ring = ringOf({ name: 'a', key: toHashedKey({ id, hash }), grants: ['*:*'] });
      await ring.principal(key, call);
      await ring.close();
      expect(found).toEqual([]);
    });

    it('[Decision 13] is rejected once it expires', async () => {
      const { id, key, hash } = newKey();
      const ring = ringOf({ name: 'a', key: toHashedKey({ id, hash }), grants: ['*:*'], expires_at: '2030-01-01' });
      vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2029-12-31T23:59:59.999Z') });
      onTestFinished(() => void vi.useRealTimers());
      await ring.principal(key, call);
      vi.setSystemTime(Date.parse('2030-01-01T00:00:00.000Z'));
      await expectInvalid(ring.principal(key, call));
    });
  });

  describe('a stored key', () => {
    it('[Decision 13] is valid only as a whole', async () => {
      const ring = ringOf();
      const key = await store({ users: ['ana', 'bob'] });
      expect(await ring.principal(key, call)).toMatchObject({ id: `key:${idIn(key)}`, users: ['ana', 'bob'] });
      expect(await ring.principal(await store({ users: [] }), call)).toMatchObject({ users: [] });
      const other = newKey().key;
      for (const wrong of [key.slice(0, -1), `${key}A`, key.slice(0, 17) + other.slice(17), other, 'omp_', '']) {
        await expectInvalid(ring.principal(wrong, call));
      }
    });

    it('is looked up once by concurrent requests, with the same principal', async () => {
      const ring = ringOf();
      const key = await store();
      const principals = await Promise.all(Array.from({ length: 20 }, () => ring.principal(key, call)));
      expect(new Set(principals).size).toBe(1);
      expect(found).toEqual([idIn(key)]);
    });

    it('that does not exist is looked up once too', async () => {
      const ring = ringOf();
      const { id, key } = newKey();
      for (let i = 0; i < 5; i++) await expectInvalid(ring.principal(key, call));
      expect(found).toEqual([id]);
    });

    it('[Decision 13] is rejected by every replica within seconds of its revocation', async () => {
      const replicas = [ringOf(), ringOf()];
      const key = await store();
      for (const ring of replicas) await ring.principal(key, call);
      await keys.revoke(idIn(key), call);
      advance(5_000);
      for (const ring of replicas) {
        await until(async () => (await rejection(ring.principal(key, call)))?.code === 'unauthorized');
      }
    });

    it('[Decision 13] is rejected once it expires, also while it is cached', async () => {
      const ring = ringOf();
      const expires_at = new Date(Date.now() + 60_000).toISOString();
      const key = await store({ expires_at });
      await ring.principal(key, call);
      vi.useFakeTimers({ toFake: ['Date'], now: Date.parse(expires_at) });
      onTestFinished(() => void vi.useRealTimers());
      await expectInvalid(ring.principal(key, call));
      expect(found).toEqual([idIn(key)]);
      await expectInvalid(ringOf().principal(key, call));
    });

    it('with an invalid grant is an error of the gateway, not of the caller', async () => {
      const key = await store({ grants: ['manage:*'] });
      await expect(ringOf().principal(key, call)).rejects.toThrow(/is not valid/);
    });
  });

  describe('while the store fails', () => {
    it('[SPEC Errors provider_error] only cached keys are valid, and errors are not cached', async () => {
      const ring = ringOf();
      const [known, unknown] = [await store(), await store()];
      await ring.principal(known, call);
      const repair = await breakTable();
      await ring.principal(known, call);
      expect(await rejection(ring.principal(unknown, call))).toMatchObject({ code: 'provider_error' });
      await repair();
      await ring.principal(unknown, call);
    });

    it('cached keys expire', async () => {
      const ring = ringOf();
      const key = await store();
      await ring.principal(key, call);
      await breakTable();
      advance(5_000);
      await until(async () => (await rejection(ring.principal(key, call)))?.code === 'provider_error');
    });

    it('a lookup waits no longer than its request', async () => {
      let answer: (() => void) | undefined;
      const slow = new Promise<undefined>((resolve) => {
        answer = () => resolve(undefined);
      });
      const ring = openKeyRing({ configured: [], store: { ...keys, find: () => slow }, log });
      const gone = new Error('the client has disconnected');
      const leaving = new Call('test');
      const lookup = ring.principal(newKey().key, leaving);
      leaving.abort(gone);
      await expect(lookup).rejects.toBe(gone);
      answer?.();
    });
  });

  describe('the last use', () => {
    const lastUse = async (key: string) => (await keys.find(idIn(key), call))?.last_used_at ?? null;
    afterEach(() => void vi.useRealTimers());

    it('is stored on close, of valid keys only', async () => {
      const ring = ringOf();
      const [used, unused, wrong] = [await store(), await store(), await store()];
      const before = new Date().toISOString();
      await ring.principal(used, call);
      await expectInvalid(ring.principal(wrong.slice(0, 17) + newKey().key.slice(17), call));
      expect(await lastUse(used)).toBeNull();
      await ring.close();
      expect((await lastUse(used)) ?? '').toMatch(/Z$/);
      expect(((await lastUse(used)) ?? '') >= before).toBe(true);
      expect([await lastUse(unused), await lastUse(wrong)]).toEqual([null, null]);
    });

    it('is stored once a minute', async () => {
      const key = await store();
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      await ringOf().principal(key, call);
      vi.advanceTimersByTime(60_000);
      vi.useRealTimers();
      await until(async () => (await lastUse(key)) !== null);
    });

    it('is stored with the next ones after a failure', async () => {
      const ring = ringOf();
      const key = await store();
      await ring.principal(key, call);
      const repair = await breakTable();
      await ring.close();
      expect(log.lines.map(({ level }) => level)).toEqual(['warn']);
      await repair();
      expect(await lastUse(key)).toBeNull();
      await ring.close();
      expect(await lastUse(key)).not.toBeNull();
    });
  });
});

describe('authenticator', () => {
  let store: KeyStore;
  let asked = 0;
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
    ])('%s every credential is ignored', async (_, where) => {
      const authenticator = await open({ store: where() });
      expect(await authenticator.isOpen()).toBe(true);
      for (const credential of [undefined, 'dummy', 'sk-0123456789', 'a.b.c']) {
        expect(await authenticator.authenticate(credential, call)).toBe(ANONYMOUS);
      }
    });

    it('an unknown API key is rejected', async () => {
      const authenticator = await open({ store });
      await expectInvalid(authenticator.authenticate(newKey().key, call));
      expect(await authenticator.authenticate(undefined, call)).toBe(ANONYMOUS);
    });

    it('the store is asked once by concurrent requests', async () => {
      const authenticator = await open({ store });
      await Promise.all(Array.from({ length: 10 }, () => authenticator.authenticate(undefined, call)));
      await authenticator.authenticate(undefined, call);
      expect(asked).toBe(1);
    });

    it('auth mode required rejects every request', async () => {
      const authenticator = await open({ store, required: true });
      expect(await authenticator.isOpen()).toBe(false);
      expect(await rejection(authenticator.authenticate(undefined, call))).toMatchObject(MISSING);
      await expectInvalid(authenticator.authenticate('dummy', call));
      expect(asked).toBe(0);
    });
  });

  describe('[Decision 13] the first key', () => {
    it('closes a running gateway within seconds', async () => {
      const authenticator = await open({ store });
      expect(await authenticator.isOpen()).toBe(true);
      await create();
      advance(5_000);
      await until(async () => (await rejection(authenticator.authenticate(undefined, call))) !== undefined);
      expect(await rejection(authenticator.authenticate(undefined, call))).toMatchObject(MISSING);
      await expectInvalid(authenticator.authenticate('dummy', call));
    });

    it('works at once and closes the gateway', async () => {
      const authenticator = await open({ store });
      expect(await authenticator.authenticate(undefined, call)).toBe(ANONYMOUS);
      const { id, key } = await create();
      expect(await authenticator.authenticate(key, call)).toMatchObject({ id: `key:${id}`, grants: { write: [] } });
      expect(await authenticator.isOpen()).toBe(false);
      expect(await rejection(authenticator.authenticate(undefined, call))).toMatchObject(MISSING);
    });

    it('closes permanently, even if it is revoked or deleted', async () => {
      const { id } = await create();
      await store.revoke(id, call);
      const authenticator = await open({ store });
      expect(await authenticator.isOpen()).toBe(false);
      await database.sql(`delete from ${database.names.apiKeys}`);
      expect(await authenticator.isOpen()).toBe(false);
      expect(asked).toBe(1);
    });
  });

  it('[SPEC Errors provider_error] every request fails while it is unknown whether a key exists', async () => {
    const authenticator = await open({ store });
    const repair = await breakTable();
    for (const credential of [undefined, 'dummy', newKey().key]) {
      expect(await rejection(authenticator.authenticate(credential, call))).toMatchObject({ code: 'provider_error' });
    }
    expect(await rejection(authenticator.isOpen())).toMatchObject({ code: 'provider_error' });
    await repair();
    expect(await authenticator.authenticate(undefined, call)).toBe(ANONYMOUS);
  });

  describe('[SPEC Authentication 5] with configured keys and tokens', () => {
    it('the prefix decides which one a credential is', async () => {
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
          await expectInvalid(authenticator.authenticate(wrong, call));
        }
        expect(await rejection(authenticator.authenticate(undefined, call))).toMatchObject(MISSING);
        expect(await authenticator.isOpen()).toBe(false);
      } finally {
        await server.close();
      }
    });

    it('a token is invalid without an identity provider', async () => {
      const { id, hash } = newKey();
      const keys = [{ name: 'editor', key: toHashedKey({ id, hash }), grants: ['*:*'] }];
      const authenticator = await open({ keys });
      await expectInvalid(authenticator.authenticate(await sign(await makeKey('first')), call));
    });
  });
});
