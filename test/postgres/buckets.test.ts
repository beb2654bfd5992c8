import { expect, it } from 'vitest';
import { newIdentity } from '#toolbox';
import { BUCKETS, bucketIn, bucketOf, bucketSql, withBucket } from '../../providers/postgres/scaling/placement.ts';
import type { FullStore } from '../support/stores.ts';
import { call, memoryOf, searchFor, storeForAll, until } from './store.ts';

const store = storeForAll();

it('the bucket of a user is the same in the gateway and in SQL', async () => {
  const users = ['', 'ana', 'é', '日本', `o'hara`, ...Array.from({ length: 200 }, (_, i) => `user ${i}`)];
  for (const secret of [Buffer.alloc(32), Buffer.from('ff00ff01', 'hex')]) {
    const rows = await store.sql<{ bucket: number }>(
      `select ${bucketSql('$1::bytea', 'id')} as bucket from unnest($2::text[]) with ordinality as u (id, n) order by n`,
      [secret, users],
    );
    expect(rows.map(({ bucket }) => bucket)).toEqual(users.map(bucketOf(secret)));
  }
});

it('[Decision 46] on a single server memories hold their bucket, which ids name, and keys and large users none', async () => {
  const provider = (await store.open({ options: { ingestion: 'async', large_user_rows: 1 } })) as FullStore;
  const { id } = await provider.add({ input: memoryOf('ana', 'x') }, call);
  await provider.add({ input: memoryOf('ana', 'y'), key: { caller: 'c', key: 'k', fingerprint: 'f' } }, call);
  await provider.batch({ inputs: [memoryOf('ben', 'z')] }, call);
  const { items } = await provider.export({ after: '', vectors: true, limit: 5, max_bytes: 1e6 }, call);
  await provider.import(
    {
      items: items.map((item) => ({ ...item, memory: { ...item.memory, id: `${item.memory.id}moved` } })),
      replace: false,
    },
    call,
  );
  await provider.search(searchFor('ana', 'x'), call);
  const { memories, onceKeys, largeUsers } = store.names;
  await until(async () => (await store.sql(`select from ${largeUsers} where ready`)).length > 0);
  await provider.erase({ user_id: 'ben' }, call);
  for (const table of [onceKeys, largeUsers])
    expect(await store.sql(`select distinct bucket from ${table}`)).toEqual([{ bucket: 0 }]);
  const [{ bucket, right } = { bucket: Number.NaN, right: false }] = await store.sql<{
    bucket: number;
    right: boolean;
  }>(
    `select (array_agg(bucket))[1] as bucket, bool_and(bucket = ${bucketSql('bucket_secret', 'user_id')}) as right
     from ${memories}, ${store.names.store} where user_id = 'ana'`,
  );
  expect([bucketIn(id), right]).toEqual([bucket, true]);
});

it.each([0, 1, 31, 32, 4_711, BUCKETS - 1])('an id names the bucket %i', (bucket) => {
  const id = withBucket(newIdentity().id, bucket);
  expect(id).toMatch(/^mem_[0-9A-HJKMNP-TV-Z]{29}$/);
  expect(bucketIn(id)).toBe(bucket);
});

it.each([newIdentity().id, '', 'mem_1', '6c0e0b57-6b07-4ad4-b1a5-5e0e4d3f2b1a', `${newIdentity().id}00u`])(
  'the id %j names none',
  (id) => expect(bucketIn(id)).toBeUndefined(),
);
