import { rm } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { KeyContext, KeyStore, NewKey } from '#contract';
import postgres from '../../providers/postgres/index.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';
import { call, openStore, storeForEach, type TestDatabase, until } from './store.ts';

let store: TestDatabase;
let keys: KeyStore;
/** Another gateway on the same tables. */
let replica: KeyStore;
beforeAll(async () => {
  store = await openStore();
  keys = (await store.open({ mode: 'keyword' })).keys as KeyStore;
  replica = (await store.open({ mode: 'keyword' })).keys as KeyStore;
});
afterAll(() => store.close());
beforeEach(() => store.sql(`delete from ${store.names.apiKeys}`));

const HASH = '0123456789abcdef'.repeat(4);
const keyOf = (id: string, more: Partial<NewKey> = {}): NewKey => ({
  id,
  name: `name of ${id}`,
  hash: HASH,
  users: null,
  grants: ['read:*'],
  expires_at: null,
  untrusted: false,
  ...more,
});
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('the keys in Postgres', () => {
  it('[Decision 13] come back as they were made, on every replica', async () => {
    const odd = ['ana', `"quoted", {braces}`, 'back\\slash', 'NULL', '', 'ü🙂'];
    const wanted = keyOf('aaaaaaaaaaaa', {
      ...{ users: odd, grants: ['read:a/*', 'write:{"\\,}'], expires_at: '2031-02-03T04:05:06.789Z', untrusted: true },
    });
    const made = await keys.create(wanted, call);
    expect(made).toEqual({
      ...wanted,
      created_at: expect.stringMatching(ISO),
      revoked_at: null,
      last_used_at: null,
    });
    expect(await replica.find('aaaaaaaaaaaa', call)).toEqual(made);
    expect(await replica.find('bbbbbbbbbbbb', call)).toBeUndefined();
    expect(await replica.find('name of aaaaaaaaaaaa', call)).toBeUndefined();
  });

  it('are bound to no user or to a list, which may be empty', async () => {
    expect((await keys.create(keyOf('aaaaaaaaaaaa'), call)).users).toBeNull();
    expect((await keys.create(keyOf('bbbbbbbbbbbb', { users: [] }), call)).users).toEqual([]);
  });

  it.each([
    ['name', { id: 'bbbbbbbbbbbb', name: 'name of aaaaaaaaaaaa' }],
    ['id', { id: 'aaaaaaaaaaaa', name: 'other' }],
  ])('[SPEC Errors invalid_request] have each a %s of its own, revoked ones included', async (_, same) => {
    await keys.create(keyOf('aaaaaaaaaaaa'), call);
    const again = () => keys.create(keyOf('', { ...same, hash: 'f'.repeat(64) }), call);
    await expect(again()).rejects.toMatchObject({ code: 'invalid_request' });
    await keys.revoke('aaaaaaaaaaaa', call);
    await expect(again()).rejects.toMatchObject({ code: 'invalid_request' });
    expect((await keys.find('aaaaaaaaaaaa', call))?.hash).toBe(HASH);
    expect(await keys.list({}, call)).toHaveLength(1);
  });

  it('of one name, made at the same moment, are one', async () => {
    const ids = Array.from({ length: 8 }, (_, i) => `aaaaaaaaaaa${i}`);
    const made = await Promise.allSettled(
      ids.map((id, i) => (i % 2 === 0 ? keys : replica).create(keyOf(id, { name: 'one' }), call)),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await keys.list({}, call)).toHaveLength(1);
  });

  it('are listed newest first', async () => {
    expect(await keys.list({}, call)).toEqual([]);
    for (const id of ['bbbbbbbbbbbb', 'aaaaaaaaaaaa', 'cccccccccccc']) await keys.create(keyOf(id), call);
    await store.sql(`update ${store.names.apiKeys} set created_at = '2030-01-01' where id = 'aaaaaaaaaaaa'`);
    await store.sql(`update ${store.names.apiKeys} set created_at = '2020-01-01' where id <> 'aaaaaaaaaaaa'`);
    expect((await keys.list({}, call)).map(({ id }) => id)).toEqual(['aaaaaaaaaaaa', 'cccccccccccc', 'bbbbbbbbbbbb']);
    const listAfter = async (id: string, limit?: number) =>
      (await keys.list({ after: id, limit }, call)).map((key) => key.id);
    expect(await listAfter('aaaaaaaaaaaa')).toEqual(['cccccccccccc', 'bbbbbbbbbbbb']);
    expect(await listAfter('aaaaaaaaaaaa', 1)).toEqual(['cccccccccccc']);
    expect(await listAfter('bbbbbbbbbbbb')).toEqual([]);
    expect(await listAfter('no such key')).toEqual([]);
  });

  it('[Decision 13] are remembered for ever: a gateway that had one never falls back to none', async () => {
    expect(await keys.hasAny(call)).toBe(false);
    await keys.create(keyOf('aaaaaaaaaaaa', { expires_at: '2001-01-01T00:00:00.000Z' }), call);
    expect(await replica.hasAny(call)).toBe(true);
    await keys.revoke('aaaaaaaaaaaa', call);
    expect(await replica.hasAny(call)).toBe(true);
  });
});

describe('revocation', () => {
  it.each(['aaaaaaaaaaaa', 'name of aaaaaaaaaaaa'])(
    'by %j takes effect everywhere and keeps its first time',
    async (by) => {
      await keys.create(keyOf('aaaaaaaaaaaa'), call);
      await keys.create(keyOf('bbbbbbbbbbbb'), call);
      const revoked = await keys.revoke(by, call);
      expect(revoked).toMatchObject({ id: 'aaaaaaaaaaaa', revoked_at: expect.stringMatching(ISO) });
      expect(await replica.find('aaaaaaaaaaaa', call)).toEqual(revoked);
      await store.sql(`update ${store.names.apiKeys} set revoked_at = '2020-01-01Z' where id = 'aaaaaaaaaaaa'`);
      expect((await replica.revoke(by, call))?.revoked_at).toBe('2020-01-01T00:00:00.000Z');
      expect((await keys.find('bbbbbbbbbbbb', call))?.revoked_at).toBeNull();
    },
  );

  it('of what there is not changes nothing', async () => {
    await keys.create(keyOf('aaaaaaaaaaaa'), call);
    expect(await keys.revoke('no such key', call)).toBeUndefined();
    expect((await keys.find('aaaaaaaaaaaa', call))?.revoked_at).toBeNull();
  });

  it('means the id where one key has the id of another as its name', async () => {
    await keys.create(keyOf('aaaaaaaaaaaa', { name: 'bbbbbbbbbbbb' }), call);
    await keys.create(keyOf('bbbbbbbbbbbb'), call);
    expect((await keys.revoke('bbbbbbbbbbbb', call))?.id).toBe('bbbbbbbbbbbb');
    expect((await keys.find('aaaaaaaaaaaa', call))?.revoked_at).toBeNull();
  });
});

describe('the last use', () => {
  const lastUse = async (id: string) => (await keys.find(id, call))?.last_used_at;

  it('is set for those that were used, and never set back', async () => {
    for (const id of ['aaaaaaaaaaaa', 'bbbbbbbbbbbb', 'cccccccccccc']) await keys.create(keyOf(id), call);
    await keys.touch({ ids: ['aaaaaaaaaaaa', 'bbbbbbbbbbbb', 'no such key'], time: '2030-01-01T00:00:00.000Z' }, call);
    await replica.touch({ ids: ['aaaaaaaaaaaa'], time: '2029-01-01T00:00:00.000Z' }, call);
    await replica.touch({ ids: ['bbbbbbbbbbbb'], time: '2031-01-01T00:00:00.001Z' }, call);
    expect(await lastUse('aaaaaaaaaaaa')).toBe('2030-01-01T00:00:00.000Z');
    expect(await lastUse('bbbbbbbbbbbb')).toBe('2031-01-01T00:00:00.001Z');
    expect(await lastUse('cccccccccccc')).toBeNull();
    await keys.touch({ ids: [], time: '2030-01-01T00:00:00.000Z' }, call);
  });

  it('of the same keys can be noted by many replicas at once, in any order', async () => {
    const ids = Array.from({ length: 40 }, (_, i) => `key${String(i).padStart(9, '0')}`);
    await Promise.all(ids.map((id) => keys.create(keyOf(id), call)));
    const rounds = Array.from({ length: 10 }, (_, i) => `2030-01-01T00:00:00.0${10 + i}Z`);
    await Promise.all(
      rounds.flatMap((time) => [
        keys.touch({ ids, time }, call),
        replica.touch({ ids: [...ids].reverse(), time }, call),
      ]),
    );
    for (const id of ids) expect(await lastUse(id)).toBe(rounds.at(-1));
  });

  // The embedded engine has one session: nobody waits for anybody there.
  it.skipIf(SERVER_URL === '')(
    'is noted in one order, so that replicas never wait for each other in a circle',
    async () => {
      const [first, last] = ['aaaaaaaaaaaa', 'zzzzzzzzzzzz'];
      for (const id of [last, first]) await keys.create(keyOf(id), call);
      const other = new pg.Client({ connectionString: store.url });
      await other.connect();
      try {
        await other.query('begin');
        await other.query(`select from ${store.names.apiKeys} where id = $1 for update`, [first]);
        const touching = keys.touch({ ids: [last, first], time: '2030-01-01T00:00:00.000Z' }, call);
        const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and position($1 in query) > 0`;
        await until(async () => (await store.sql(waiting, [store.names.apiKeys])).length === 1);
        // Whoever waits for the first has not taken the last.
        await store.sql(`select from ${store.names.apiKeys} where id = $1 for update nowait`, [last]);
        await other.query('commit');
        await touching;
      } finally {
        await other.end();
      }
      expect(await lastUse(last)).toBe('2030-01-01T00:00:00.000Z');
    },
  );
});

const KEY = keyOf('k3j2h1g0', { name: 'ci', grants: ['read:coding/*'] });
const openKeys = async (options: object, context: KeyContext): Promise<KeyStore> => {
  const store = await postgres.openKeys?.(options, context);
  if (!store) throw new Error('this provider keeps no keys');
  return store;
};

describe('keys alone', () => {
  const store = storeForEach();
  const open = () => {
    const options = { url: store.url, schema: store.schema, connections: 1 };
    return openKeys(options, { data_dir: '/nowhere', log: recordingLog() });
  };

  it('are opened before there is a schema, and leave the choice of an embedder open', async () => {
    const keys = await open();
    const made = await keys.create(KEY, call);
    await keys.close();
    expect(await store.sql(`select from ${store.names.store}`)).toEqual([]);
    const provider = await store.open();
    expect(await provider.keys?.find(KEY.id, call)).toEqual(made);
  });

  it('are opened beside a running gateway, which sees what changes', async () => {
    const provider = await store.open();
    expect(await provider.keys?.hasAny(call)).toBe(false);
    const keys = await open();
    await keys.create(KEY, call);
    expect(await provider.keys?.hasAny(call)).toBe(true);
    const revoked = await keys.revoke('ci', call);
    expect(revoked?.revoked_at).not.toBeNull();
    expect(await provider.keys?.find(KEY.id, call)).toEqual(revoked);
    await keys.close();
    await provider.keys?.close();
    expect(await provider.keys?.hasAny(call), 'the provider closes its keys with itself').toBe(true);
  });

  it.skipIf(SERVER_URL === '')(`leave no connection behind${SERVER_URL === '' ? `: ${NO_SERVER}` : ''}`, async () => {
    const url = new URL(store.url);
    url.searchParams.set('application_name', store.schema);
    const options = { url: url.href, schema: store.schema };
    const keys = await openKeys(options, { data_dir: '/nowhere', log: recordingLog() });
    await keys.list({}, call);
    const connections = () => store.sql('select from pg_stat_activity where application_name = $1', [store.schema]);
    expect(await connections()).not.toEqual([]);
    await keys.close();
    // The server notices a closed connection a moment later.
    await until(async () => (await connections()).length === 0);
  });
});

it('keys of the embedded engine persist, are shared while the data folder is in use, and release it', async () => {
  const data_dir = await makeDataDir();
  onTestFinished(() => rm(data_dir, { recursive: true, force: true }));
  const context = { data_dir, log: recordingLog() };
  const first = await openKeys({}, context);
  const made = await first.create(KEY, call);
  const beside = await openKeys({}, context);
  expect(await beside.list({}, call)).toEqual([made]);
  await beside.close();
  await first.close();
  const second = await openKeys({}, context);
  expect(await second.list({}, call)).toEqual([made]);
  await second.close();
});
