import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { call, memoryOf, storeForEach, until } from './store.ts';

const store = storeForEach();

it('[Decision 38] an erasure needs no audit log', async () => {
  const provider = await store.open({ audit: null });
  await provider.add({ input: memoryOf('u', 'x') }, call);
  expect(await provider.erase?.({ user_id: 'u' }, call)).toMatchObject([{ removed: { memories: 1 } }]);
});

it('[Decision 62] a request with the same key during an erase does not stop the next one', async () => {
  const provider = await store.open();
  const key = { caller: 'c', key: 'k', fingerprint: 'f' };
  const { onceKeys } = store.names;
  await provider.add({ input: memoryOf('u', 'x'), key }, call);
  await store.sql(`create table ${store.schema}.before as select * from ${onceKeys}`);
  await provider.erase?.({ user_id: 'u' }, call);
  await store.sql(`insert into ${onceKeys} select * from ${store.schema}.before`);
  expect(await provider.erase?.({ user_id: 'u' }, call)).toMatchObject([
    { removed: { idempotency_keys: 1 }, left: { idempotency_keys: 0 } },
  ]);
  expect(await store.sql(`select key from ${onceKeys} where key not like 'erased%'`)).toEqual([]);
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
    expect(await erased).toMatchObject([{ removed: { memories: 2 }, left: { memories: 0 } }]);
    expect(await store.sql(`select id from ${store.names.memories}`)).toEqual([]);
  });
});
