import { hash } from 'node:crypto';

/*
 * Every user has a bucket. On Citus every row of a user holds it, and the tables are distributed by it: a statement that names the
 * bucket runs on one shard. The bucket is also the end of an id, so that an id alone leads to the shard of its memory.
 */

/** Enough for even shards, and few enough that an id says little about its user: 15 bits. */
export const BUCKETS = 2 ** 15;

/** The bucket of a user. Without the secret of the store nobody can tell which users share one. */
export const bucketOf = (secret: Uint8Array, user_id: string): number =>
  Number.parseInt(hash('sha256', Buffer.concat([secret, Buffer.from(user_id)])).slice(0, 4), 16) % BUCKETS;

/** The same in SQL. Both arguments are SQL. */
export const bucketSql = (secret: string, user_id: string): string => {
  const hash = `sha256(${secret} || convert_to(${user_id}, 'UTF8'))`;
  return `((get_byte(${hash}, 0) & 127) * 256 + get_byte(${hash}, 1))::int2`;
};

/** Crockford's base 32, as in the rest of an id. */
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
export const ID_WITH_BUCKET = /^mem_[0-9A-HJKMNP-TV-Z]{26}([0-9A-HJKMNP-TV-Z]{3})$/;

/** The id of a new memory in this bucket. `id`: unique already. */
export const withBucket = (id: string, bucket: number): string =>
  id + [bucket >> 10, (bucket >> 5) & 31, bucket & 31].map((digit) => DIGITS[digit]).join('');

/** The bucket that an id names; undefined: it was made elsewhere, or before there were buckets. */
export function bucketIn(id: string): number | undefined {
  const [, ending] = ID_WITH_BUCKET.exec(id) ?? [];
  return ending === undefined ? undefined : [...ending].reduce((sum, digit) => 32 * sum + DIGITS.indexOf(digit), 0);
}
