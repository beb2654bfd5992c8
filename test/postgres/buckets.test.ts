import { expect, it } from 'vitest';
import { newIdentity } from '#toolbox';
import { BUCKETS, bucketIn, bucketOf, bucketSql, withBucket } from '../../providers/postgres/tables/buckets.ts';
import { storeForAll } from './store.ts';

const store = storeForAll();

it('the bucket of a user is the same in the gateway and in SQL', async () => {
  const users = ['', 'ana', 'é', '日本', `o'hara`, ...Array.from({ length: 200 }, (_, i) => `user ${i}`)];
  for (const secret of [Buffer.alloc(32), Buffer.from('ff00ff01', 'hex')]) {
    const rows = await store.sql<{ bucket: number }>(
      `select ${bucketSql('$1::bytea', 'id')} as bucket from unnest($2::text[]) with ordinality as u (id, n) order by n`,
      [secret, users],
    );
    expect(rows.map(({ bucket }) => bucket)).toEqual(users.map((user) => bucketOf(secret, user)));
  }
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
