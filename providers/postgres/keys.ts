import { invalidRequest, type KeyContext, type KeyStore, type StoredKey } from '#contract';
import { type Database, type Row, statement } from './client/connections.ts';
import { hadKeys, rememberKeys } from './embedded/folder.ts';
import type { Names } from './names.ts';
import { toIso } from './times.ts';

const TIMES = ['created_at', 'expires_at', 'revoked_at', 'last_used_at'] as const;
const COLUMNS = [
  ...['id', 'name', 'hash', 'users', 'grants'],
  ...TIMES.map((column) => `date_part('epoch', ${column}) * 1000 as ${column}`),
].join(', ');

/** API keys in their table. `db` stays open when the store is closed: it is not the store's. */
export function createKeyStore({ db, names }: { db: Database; names: Names }): Omit<KeyStore, 'close'> {
  const table = names.apiKeys;
  const find = statement(`select ${COLUMNS} from ${table} where id = $1`);
  const any = statement(`select exists (select from ${table}) as any`);
  const list = statement(`select ${COLUMNS} from ${table} order by created_at desc, id desc`);
  const create = statement(
    `insert into ${table} (id, name, hash, users, grants, created_at, expires_at)
     values ($1, $2, $3, $4::text[], $5::text[], now(), $6::timestamptz) on conflict do nothing returning ${COLUMNS}`,
  );
  // Should the id of one be the name of another, the id is meant.
  const revoke = statement(
    `update ${table} set revoked_at = coalesce(revoked_at, now())
     where id = coalesce((select id from ${table} where id = $1), (select id from ${table} where name = $1))
     returning ${COLUMNS}`,
  );
  // Replicas note the same keys at the same time: rows locked in one order make no deadlock.
  const touch = statement(
    `with used as (select id from ${table} where id = any($1::text[]) order by id for update)
     update ${table} set last_used_at = greatest(last_used_at, $2::timestamptz) from used where ${table}.id = used.id`,
  );
  return {
    async find(id, call) {
      const [row] = await db.query(find, [id], call);
      return row && toKey(row);
    },
    hasAny: async (call) => (await db.query(any, [], call))[0]?.any === true,
    list: async (call) => (await db.query(list, [], call)).map(toKey),
    async create({ id, name, hash, users, grants, expires_at }, call) {
      const [row] = await db.query(create, [id, name, hash, users, grants, expires_at], call);
      if (!row) throw invalidRequest('a key of this name exists already; names of revoked keys are not used again');
      return toKey(row);
    },
    async revoke(nameOrId, call) {
      const [row] = await db.query(revoke, [nameOrId], call);
      return row && toKey(row);
    },
    touch: async (ids, time, call) => void (await db.query(touch, [ids, time], call)),
  };
}

const toKey = ({ id, name, hash, users, grants, ...row }: Row): StoredKey =>
  ({
    ...{ id, name, hash, users, grants },
    ...Object.fromEntries(TIMES.map((column) => [column, row[column] === null ? null : toIso(row[column] as number)])),
  }) as unknown as StoredKey;

/**
 * Keys of the embedded Postgres, remembered in its data folder too: once there was a key there always is one, also when
 * the database has lost it.
 */
export function remembered(keys: Omit<KeyStore, 'close'>, { data_dir, log }: KeyContext): Omit<KeyStore, 'close'> {
  return {
    ...keys,
    async hasAny(call) {
      if (await keys.hasAny(call)) {
        await rememberKeys(data_dir).catch((err) => log.warn({ err }, UNNOTED));
        return true;
      }
      if (!hadKeys(data_dir)) return false;
      log.warn({}, LOST);
      return true;
    },
    async create(key, call) {
      await rememberKeys(data_dir);
      return keys.create(key, call);
    },
  };
}

const UNNOTED = 'the data folder cannot be written, to remember that there are API keys';
const LOST =
  'this data folder had API keys and has none now: the gateway stays closed; restore a backup, or make a key with "omp-gateway keys create"';
