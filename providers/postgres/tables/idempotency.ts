import { hash } from 'node:crypto';
import {
  type Call,
  ERASED_USE,
  IDEMPOTENCY_AHEAD_MS,
  IDEMPOTENCY_TTL_MS,
  type IdempotencyKey,
  type Identity,
  type KeyClaim,
  type KeyUse,
  type Memory,
  usedBy,
} from '#provider';
import type { Run } from '../client/connections.ts';
import { type Conditions, conditions } from '../sql/conditions.ts';
import { part, type WithPart } from '../sql/parts.ts';
import { toIso, toTextArray } from '../sql/values.ts';
import type { Names } from './names.ts';

/** The period in which keys are remembered: those used at `after` or earlier, or later than `until`, have expired. */
export function keyPeriod(): [after: string, until: string] {
  const now = Date.now();
  return [new Date(now - IDEMPOTENCY_TTL_MS).toISOString(), new Date(now + IDEMPOTENCY_AHEAD_MS).toISOString()];
}

/**
 * What stands for the user of a key. It belongs to its caller, not to the user of the memory: used for another user, it must be found. On Citus an add with a
 * key is a transaction on two shards.
 */
const ownerOf = (key: IdempotencyKey): string => `${key.caller} ${stored(key)}`;

/**
 * What the column `key` begins with: the kind of the key, or that its memories were erased. A key of a client holds no line feed, and one of
 * an add stands there as it is.
 */
const PREFIX = { add: '', batch: 'batch\n', erased: 'erased\n' } as const;
const stored = ({ kind, key }: Pick<IdempotencyKey, 'kind' | 'key'>): string => PREFIX[kind] + key;

/**
 * Claims the key for these memories. It has a row on success. If another gateway is claiming the key,
 * this waits for its transaction, and claims the key if that fails. The columns of a single
 * memory hold the first one, and its time is the time of the key; `added` holds all memories of a batch. `free`: only if that has a row.
 */
export function claimKey(
  names: Names,
  bind: Conditions['bind'],
  { free, ...claim }: KeyClaim & { readonly free?: WithPart | undefined },
  memories: readonly Memory[],
): WithPart<'memory_id'> {
  const [after, until] = keyPeriod();
  const [{ id, created_at, embedding_model, status }] = memories as [Memory];
  const { caller, kind, fingerprint, before } = claim;
  const added = kind === 'batch' ? JSON.stringify(usedBy(claim, memories).added) : null;
  const users = toTextArray([...new Set(memories.map(({ user_id }) => user_id))]);
  const row = [
    caller,
    stored(claim),
    names.placement.storedBucket(ownerOf(claim)),
    fingerprint,
    id,
    created_at,
    embedding_model,
    status,
    added,
    users,
  ];
  const unchanged = before ? ` or known.added = ${bind(JSON.stringify(before.added))}::jsonb` : '';
  return part(
    'claimed',
    'memory_id',
  )`insert into ${names.onceKeys} as known (caller, key, bucket, ${USE.join(', ')}, users)
    ${free ? `select ${row.map((value, i) => `${bind(value)}::${USE_TYPES[i]}`).join(', ')} from ${free}` : `values (${row.map(bind).join(', ')})`}
    on conflict (${names.placement.key('caller, key')}) do update set
      ${USE.map((column) => `${column} = excluded.${column}`).join(', ')}, users = ${before ? 'known.users || ' : ''}excluded.users
    where known.created_at <= ${bind(after)}::timestamptz or known.created_at > ${bind(until)}::timestamptz${unchanged}
    returning memory_id`;
}

/** The types of a row, which a `select` does not learn from the table. */
const USE_TYPES = ['text', 'text', 'int2', 'text', 'text', 'timestamptz', 'text', 'text', 'jsonb', 'text[]'];

/** The columns that say what was added. */
const USE = ['fingerprint', 'memory_id', 'created_at', 'embedding_model', 'status', 'added'];

/** The use of a key; undefined if it was never used or has expired. */
export const createKeyUse =
  (names: Names, run: Run) =>
  async (key: IdempotencyKey, call: Call): Promise<KeyUse | undefined> => {
    const where = conditions(names.placement.shardOf(ownerOf(key)));
    where.and(where.inShard());
    where.and(`caller = ${where.bind(key.caller)}`);
    where.and(`key in (${where.bind(stored(key))}, ${where.bind(PREFIX.erased + keyed(names, stored(key)))})`);
    const rows = await run(
      'small',
      `select fingerprint, memory_id as id, date_part('epoch', created_at) * 1000 as created_at, embedding_model, status, added
       from ${names.onceKeys} where ${where}`,
      where.values,
      call,
    );
    // Compared here: with these conditions the planner would read all keys of the period.
    const [after, until] = keyPeriod().map(Date.parse) as [number, number];
    const row = rows.find(({ created_at: at }) => (at as number) > after && (at as number) <= until);
    if (!row) return undefined;
    const { fingerprint, added, created_at, ...identity } = row;
    const single = { ...identity, created_at: toIso(created_at as number) } as Identity;
    return { fingerprint: fingerprint as string, added: (added as KeyUse['added'] | null) ?? [single] };
  };

const salt = ({ secret }: Names): string => Buffer.from(secret).toString('hex');
const keyed = (names: Names, key: string): string => hash('md5', salt(names) + key);

/**
 * Keys of requests that added memories of this user. An erased one keeps nothing but a keyed hash of itself, by which a retry is found
 * and refused: it would add again what was erased. The table has no index on users: each add would pay for it.
 */
export const createKeyErasure = (names: Names, run: Run) => ({
  async erase(user_id: string, call: Call): Promise<number> {
    // What an earlier erase has left of the same key: expired, or used again by a request that the erase did not see.
    await run(
      'heavy',
      `delete from ${names.onceKeys} e using ${names.onceKeys} k where $1 = any(k.users)
         and e.bucket = k.bucket and e.caller = k.caller and e.key = $2::text || md5($3::text || k.key)`,
      [user_id, PREFIX.erased, salt(names)],
      call,
    );
    const rows = await run(
      'heavy',
      `update ${names.onceKeys} set key = $2::text || md5($3::text || key), fingerprint = $4, memory_id = '', embedding_model = null,
         added = null, users = '{}' where $1 = any(users) returning 1`,
      [user_id, PREFIX.erased, salt(names), ERASED_USE.fingerprint],
      call,
    );
    return rows.length;
  },
  async count(user_id: string, call: Call): Promise<number> {
    const [row] = await run(
      'heavy',
      `select count(*)::float8 as count from ${names.onceKeys} where $1 = any(users)`,
      [user_id],
      call,
    );
    return row?.count as number;
  },
});
