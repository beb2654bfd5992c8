import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KeyContext, KeyStore, NewKey } from '#contract';
import postgres from '../../providers/postgres/index.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';
import { call, openStore, type Store, until } from './store.ts';

const KEY: NewKey = {
  id: 'k3j2h1g0',
  name: 'ci',
  hash: 'a'.repeat(64),
  users: null,
  grants: ['read:coding/*'],
  expires_at: null,
};
const openKeys = async (options: object, context: KeyContext): Promise<KeyStore> => {
  const store = await postgres.openKeys?.(options, context);
  if (!store) throw new Error('this provider keeps no keys');
  return store;
};

describe('keys alone', () => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore();
  });
  afterEach(() => store.close());
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
    await keys.list(call);
    const connections = () => store.sql('select from pg_stat_activity where application_name = $1', [store.schema]);
    expect(await connections()).not.toEqual([]);
    await keys.close();
    // The server notices a closed connection a moment later.
    await until(async () => (await connections()).length === 0);
  });
});

describe('keys of the embedded engine', () => {
  let data_dir: string;
  beforeEach(async () => {
    data_dir = await makeDataDir();
  });
  afterEach(() => rm(data_dir, { recursive: true, force: true }));

  it('last, are shared while the data folder is taken, and it is free again after each use', async () => {
    const context = { data_dir, log: recordingLog() };
    const first = await openKeys({}, context);
    const made = await first.create(KEY, call);
    const beside = await openKeys({}, context);
    expect(await beside.list(call)).toEqual([made]);
    await beside.close();
    await first.close();
    const second = await openKeys({}, context);
    expect(await second.list(call)).toEqual([made]);
    await second.close();
  });
});
