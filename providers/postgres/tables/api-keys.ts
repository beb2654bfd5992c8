import { invalidRequest, type KeyContext, type KeyStore, type StoredKey } from '#provider';
import { type Database, type Row, statement } from '../client/connections.ts';
import { hadKeys, rememberKeys } from '../embedded/folder.ts';
import { toIso } from '../sql/values.ts';
import type { Names } from './names.ts';

const TIMES = ['created_at', 'expires_at', 'revoked_at', 'last_used_at'] as const;
const COLUMNS = [
  ...['id', 'name', 'hash', 'users', 'grants', 'untrusted'],
  ...TIMES.map((column) => `date_part('epoch', ${column}) * 1000 as ${column}`),
].join(', ');

/** The API keys in their table. Closing the store leaves `db` open. */
export function createKeyStore({ db, names }: { db: Database; names: Names }): Omit<KeyStore, 'close'> {
  const table = names.apiKeys;
  const find = statement('small', `select ${COLUMNS} from ${table} where id = $1`);
  const exists = statement('small', `select exists (select from ${table}) as present`);
  // Keys are never deleted, so the id of one is a position.
  const list = statement(
    'heavy',
    `select ${COLUMNS} from ${table}
     where $1::text is null or (created_at, id) < (select created_at, id from ${table} where id = $1)
     order by created_at desc, id desc limit $2::int`,
  );
  const create = statement(
    'small',
    `insert into ${table} (id, name, hash, users, grants, untrusted, created_at, expires_at)
     values ($1, $2, $3, $4::text[], $5::text[], $6, now(), $7::timestamptz) on conflict do nothing returning ${COLUMNS}`,
  );
  // If a text is the id of one key and the name of another, the id wins.
  const revoke = statement(
    'small',
    `update ${table} set revoked_at = coalesce(revoked_at, now())
     where id = coalesce((select id from ${table} where id = $1), (select id from ${table} where name = $1))
     returning ${COLUMNS}`,
  );
  // Replicas update the same keys at the same time; locking the rows in one order prevents deadlocks.
  const touch = statement(
    'small',
    `with used as (select id from ${table} where id = any($1::text[]) order by id for update)
     update ${table} set last_used_at = greatest(last_used_at, $2::timestamptz) from used where ${table}.id = used.id`,
  );
  return {
    async find(id, call) {
      const [row] = await db.query(find, [id], call);
      return row && toKey(row);
    },
    hasAny: async (call) => (await db.query(exists, [], call))[0]?.present === true,
    list: async ({ after, limit }, call) => (await db.query(list, [after ?? null, limit ?? null], call)).map(toKey),
    async create({ id, name, hash, users, grants, untrusted = false, expires_at }, call) {
      const [row] = await db.query(create, [id, name, hash, users, grants, untrusted, expires_at], call);
      if (!row) throw invalidRequest('a key of this name exists already; names of revoked keys cannot be reused');
      return toKey(row);
    },
    async revoke(nameOrId, call) {
      const [row] = await db.query(revoke, [nameOrId], call);
      return row && toKey(row);
    },
    touch: async ({ ids, time }, call) => void (await db.query(touch, [ids, time], call)),
  };
}

const toKey = ({ id, name, hash, users, grants, untrusted, ...row }: Row): StoredKey =>
  ({
    ...{ id, name, hash, users, grants, untrusted },
    ...Object.fromEntries(TIMES.map((column) => [column, row[column] === null ? null : toIso(row[column] as number)])),
  }) as unknown as StoredKey;

/**
 * The keys of the embedded Postgres, with a marker in its data folder: once a key was created the gateway stays closed, even
 * if the database loses the keys.
 */
export function withKeyMarker(keys: Omit<KeyStore, 'close'>, { data_dir, log }: KeyContext): Omit<KeyStore, 'close'> {
  return {
    ...keys,
    async hasAny(call) {
      if (await keys.hasAny(call)) {
        await rememberKeys(data_dir).catch((err) => log.warn({ err }, NO_MARKER));
        return true;
      }
      if (!hadKeys(data_dir)) return false;
      log.warn({}, KEYS_LOST);
      return true;
    },
    async create(key, call) {
      await rememberKeys(data_dir);
      return keys.create(key, call);
    },
  };
}

const NO_MARKER = 'the data folder is not writable, so it cannot record that there are API keys';
const KEYS_LOST =
  'this data folder had API keys and has none now: the gateway stays closed; restore a backup, or create a key with "omp-gateway keys create"';
