import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { call, memoryOf, storeForEach, until } from './store.ts';

const store = storeForEach();

it('[Decision 38] an erasure needs no audit log', async () => {
  const provider = await store.open({ audit: null });
  await provider.add({ input: memoryOf('u', 'x') }, call);
  expect(await provider.erase?.({ user_id: 'u' }, call)).toBe(1);
});

it('[Decision 38] [Decision 55] an erasure leaves no text of the user in any table', async () => {
  const provider = await store.open();
  const key = { caller: 'key:a', key: 'once', fingerprint: 'of the input' };
  const secret = { ...memoryOf('u', 'the secret ONE'), tags: ['TWO'], extensions: { 'x-three': 'THREE' } };
  const { id } = await provider.add({ input: secret, key }, call);
  const ref = { id, users: ['u'], within: null };
  for (const content of ['the secret FOUR', 'the secret FIVE'])
    await provider.update?.({ ref, patch: { content } }, call);
  await provider.batch?.({ inputs: [memoryOf('u', 'the secret SIX')], key: { ...key, key: 'batch' } }, call);
  const texts = async () => {
    const tables = await store.sql<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = $1`,
      [store.schema],
    );
    const rows = [];
    for (const { name } of tables) rows.push(...(await store.sql<{ text: string }>(`select t::text from ${name} t`)));
    return rows.map((row) => Object.values(row)[0]).join('\n');
  };
  const words = ['ONE', 'TWO', 'THREE', 'FOUR', 'FIVE', 'SIX'];
  const before = await texts();
  expect(words.filter((word) => !before.includes(word))).toEqual([]);
  expect(await provider.erase?.({ user_id: 'u' }, call)).toBe(2);
  const after = await texts();
  expect(words.filter((word) => after.includes(word))).toEqual([]);
});

// The embedded engine has one session for all its clients: no two transactions are ever under way.
describe.skipIf(SERVER_URL === '')(`an erasure${SERVER_URL === '' ? `: ${NO_SERVER}` : ''}`, () => {
  it('[Decision 38] includes a memory that another gateway is changing', async () => {
    const provider = await store.open();
    const { id } = await provider.add({ input: memoryOf('u', 'changed') }, call);
    await provider.add({ input: memoryOf('u', 'unchanged') }, call);
    const other = new pg.Client({ connectionString: store.url });
    await other.connect();
    await other.query('begin');
    await other.query(`update ${store.names.memories} set confidence = 1 where id = $1`, [id]);
    const erased = provider.erase?.({ user_id: 'u' }, call);
    const blocked = `select from pg_locks where not granted and locktype = 'transactionid' and pid in (
      select pid from pg_stat_activity where query like '%${store.schema}%')`;
    await until(async () => (await store.sql(blocked)).length > 0);
    await other.query('commit');
    await other.end();
    expect(await erased).toBe(2);
    expect(await store.sql(`select id from ${store.names.memories}`)).toEqual([]);
  });
});
