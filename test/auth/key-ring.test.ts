import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Call, KeyStore, StoredKey } from '#contract';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { openKeyRing } from '../../src/auth/key-ring.ts';
import { openStore, type Store, until } from '../postgres/store.ts';
import type { Memories } from '../support/memories.ts';
import { recordingLog } from '../support/subject.ts';
import { call, expectRefused, rejection } from './call.ts';

let database: Store;
let provider: Memories;
beforeAll(async () => {
  database = await openStore();
  provider = await database.open({ mode: 'keyword' });
});
afterAll(() => database.close());

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

/** The table is out of reach until the test ends or the function is called. */
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

describe('a configured key', () => {
  it('[Decision 13|14] is known without a store, with what it may do', async () => {
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
      grants: { read: ['coding/*'], write: null, delete: [] },
    });
    expect(await ring.principal(key, call)).toBe(principal);
    await expectRefused(ring.principal(newKey().key, call));
  });

  it('is looked for before the store is asked, and never noted there as used', async () => {
    const { id, key, hash } = newKey();
    const ring = ringOf({ name: 'a', key: toHashedKey({ id, hash }), grants: ['*:*'] });
    await ring.principal(key, call);
    await ring.close();
    expect(found).toEqual([]);
  });

  it('[Decision 13] is refused from its expiry on', async () => {
    const { id, key, hash } = newKey();
    const ring = ringOf({ name: 'a', key: toHashedKey({ id, hash }), grants: ['*:*'], expires_at: '2030-01-01' });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2029-12-31T23:59:59.999Z') });
    onTestFinished(() => void vi.useRealTimers());
    await ring.principal(key, call);
    vi.setSystemTime(Date.parse('2030-01-01T00:00:00.000Z'));
    await expectRefused(ring.principal(key, call));
  });
});

describe('a stored key', () => {
  it('[Decision 13] is known by its whole text alone', async () => {
    const ring = ringOf();
    const key = await store({ users: ['ana', 'bob'] });
    expect(await ring.principal(key, call)).toMatchObject({ id: `key:${idIn(key)}`, users: ['ana', 'bob'] });
    const other = newKey().key;
    for (const wrong of [key.slice(0, -1), `${key}A`, key.slice(0, 17) + other.slice(17), other, 'omp_', '']) {
      await expectRefused(ring.principal(wrong, call));
    }
  });

  it('is asked for once by many at the same time, and gives all of them the same principal', async () => {
    const ring = ringOf();
    const key = await store();
    const principals = await Promise.all(Array.from({ length: 20 }, () => ring.principal(key, call)));
    expect(new Set(principals).size).toBe(1);
    expect(found).toEqual([idIn(key)]);
  });

  it('that does not exist is asked for once too', async () => {
    const ring = ringOf();
    const { id, key } = newKey();
    for (let i = 0; i < 5; i++) await expectRefused(ring.principal(key, call));
    expect(found).toEqual([id]);
  });

  it('[Decision 13] is refused within seconds of its revocation, by every replica', async () => {
    const replicas = [ringOf(), ringOf()];
    const key = await store();
    for (const ring of replicas) await ring.principal(key, call);
    await keys.revoke(idIn(key), call);
    for (const ring of replicas) {
      await until(async () => (await rejection(ring.principal(key, call)))?.code === 'unauthorized');
    }
  });

  it('[Decision 13] is refused once it expires, also while it is remembered', async () => {
    const ring = ringOf();
    const expires_at = new Date(Date.now() + 60_000).toISOString();
    const key = await store({ expires_at });
    await ring.principal(key, call);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse(expires_at) });
    onTestFinished(() => void vi.useRealTimers());
    await expectRefused(ring.principal(key, call));
    expect(found).toEqual([idIn(key)]);
  });

  it('that says what is no grant is a fault of the gateway, not of the caller', async () => {
    const key = await store({ grants: ['admin:*'] });
    await expect(ringOf().principal(key, call)).rejects.toThrow(/is not valid/);
  });
});

describe('while the store is out of reach', () => {
  it('[SPEC Errors provider_error] nobody is let in but who is remembered, and nothing bad is remembered', async () => {
    const ring = ringOf();
    const [known, unknown] = [await store(), await store()];
    await ring.principal(known, call);
    const repair = await breakTable();
    await ring.principal(known, call);
    expect(await rejection(ring.principal(unknown, call))).toMatchObject({ code: 'provider_error' });
    await repair();
    await ring.principal(unknown, call);
  });

  it('who was remembered is not for long', async () => {
    const ring = ringOf();
    const key = await store();
    await ring.principal(key, call);
    await breakTable();
    await until(async () => (await rejection(ring.principal(key, call)))?.code === 'provider_error');
  });

  it('a caller does not wait longer than its own request', async () => {
    let answer: (() => void) | undefined;
    const slow = new Promise<undefined>((resolve) => {
      answer = () => resolve(undefined);
    });
    // A store that takes for ever is nothing a test can have of a real one.
    const ring = openKeyRing({ configured: [], store: { ...keys, find: () => slow }, log });
    const gone = new Error('the client has gone');
    const impatient: Call = { ...call, unlessAborted: (work) => Promise.race([work, Promise.reject(gone)]) };
    await expect(ring.principal(newKey().key, impatient)).rejects.toBe(gone);
    answer?.();
  });
});

describe('the last use', () => {
  const lastUse = async (key: string) => (await keys.find(idIn(key), call))?.last_used_at ?? null;
  afterEach(() => void vi.useRealTimers());

  it('is noted when the ring is closed, of good keys alone', async () => {
    const ring = ringOf();
    const [used, unused, wrong] = [await store(), await store(), await store()];
    const before = new Date().toISOString();
    await ring.principal(used, call);
    await expectRefused(ring.principal(wrong.slice(0, 17) + newKey().key.slice(17), call));
    expect(await lastUse(used)).toBeNull();
    await ring.close();
    expect((await lastUse(used)) ?? '').toMatch(/Z$/);
    expect(((await lastUse(used)) ?? '') >= before).toBe(true);
    expect([await lastUse(unused), await lastUse(wrong)]).toEqual([null, null]);
  });

  it('is noted about once a minute', async () => {
    const key = await store();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await ringOf().principal(key, call);
    vi.advanceTimersByTime(60_000);
    vi.useRealTimers();
    await until(async () => (await lastUse(key)) !== null);
  });

  it('that could not be noted is noted with the next ones', async () => {
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
