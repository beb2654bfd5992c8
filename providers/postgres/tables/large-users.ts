import pg from 'pg';
import { backgroundCall, type Call, type Log } from '#provider';
import type { Database } from '../client/connections.ts';
import { conditions } from './conditions.ts';
import type { Statements } from './memory-statements.ts';
import { inShard, type Names, shardOf, storedBucket } from './names.ts';

export interface LargeUsers {
  has(userId: string): boolean;
  /** Above this many memories, walking the vector index for them costs less than comparing all of them. */
  walkPaysAbove(): number;
  /** Reports how many memories a search of this user saw. Above the threshold they are moved into the indexes. */
  observe(userId: string, atLeast: number): void;
  close(): Promise<void>;
}

export interface LargeUsersOptions {
  readonly db: Database;
  readonly names: Names;
  readonly statements: Statements;
  /** Memories that a user may have before the indexes are used. */
  readonly threshold: number;
  readonly log: Log;
  /** Runs after a user is entered on the primary, before its searches use the indexes. */
  readonly beforeUse: (call: Call) => Promise<void>;
}

const REFRESH_MS = 30_000;
/**
 * Measured (docs/backends/postgres.md): a search needs fifty rows of the user. On the way to each, the index walk passes
 * rows of other users, and each of these costs as much as four memories in an exact search. So the index pays when
 * 4 · 50 · (rows in the index / rows of the user) is less than the rows of the user.
 */
const COST_OF_WALK = 200;
/** In a smaller index every walk is short. */
const SMALL_INDEX = 50_000;
/** Rows flagged at a time, to keep the locks short: each enters three indexes. */
const BATCH = 500;
/** Deadline of the lock, in milliseconds: adds queue behind the request for it. */
const LOCK_MS = 2_000;

/** Selects the rows of the vector index; on Citus, those of its largest shard. */
function indexSize({ memories, distributed }: Names): string {
  const ofTable = (table: string) => `select max(c.reltuples) as rows from pg_index i
    join pg_class c on c.oid = i.indexrelid join pg_am a on a.oid = c.relam
    where i.indrelid = ${table}::regclass and a.amname = 'hnsw'`;
  const [table, ofShard] = [memories, ofTable(`'%s'`)].map(pg.escapeLiteral) as [string, string];
  if (!distributed) return ofTable(table);
  return `select max(nullif(result, '')::float8) as rows from run_command_on_shards(${table}, ${ofShard})`;
}

/**
 * The users that are searched through the vector and keyword indexes: all of their rows have the flag `large`. Until a
 * replica has read that another one moved a user, its searches of that user are slower.
 */
export async function openLargeUsers({
  db,
  names,
  statements,
  threshold,
  log,
  beforeUse,
}: LargeUsersOptions): Promise<LargeUsers> {
  const stop = new AbortController();
  const call = backgroundCall('large-users', stop.signal);
  const moving = new Map<string, Promise<void>>();
  let users = new Set<string>();
  let indexed = 0;

  const run = (text: string, values: readonly unknown[] = []) => {
    const query = statements.query(text, values);
    return db.query(query.statement, query.values, call);
  };
  const refresh = async () => {
    const rows = await run(`select user_id from ${names.largeUsers} where ready`);
    await beforeUse(call);
    users = new Set(rows.map((row) => row.user_id as string));
    const [index] = await run(indexSize(names));
    indexed = Number(index?.rows ?? 0);
  };
  const move = async (userId: string) => {
    // Every insert reads this table. The lock waits for inserts in progress; later ones see the user here and flag their
    // row. So once the existing rows are flagged, all are.
    const enter = statements.query(
      `insert into ${names.largeUsers} (bucket, user_id) values ($1, $2) on conflict do nothing`,
      [storedBucket(names, userId), userId],
    );
    await db.queryWith(
      `set local lock_timeout = ${LOCK_MS}; lock table ${names.largeUsers} in access exclusive mode`,
      enter.statement,
      enter.values,
      call,
    );
    const { bind, values } = conditions(shardOf(names, userId));
    const isUser = `${inShard(names)} and user_id = ${bind(userId)}`;
    const flag = `update ${names.memories} set large = true where ${inShard(names)} and id in (
        select id from ${names.memories} where ${isUser} and not large limit ${BATCH}) returning 1`;
    while ((await run(flag, values)).length > 0);
    await run(`update ${names.largeUsers} set ready = true where ${isUser}`, values);
    await beforeUse(call);
    users.add(userId);
  };
  const background = (work: Promise<void>, what: string) =>
    work.catch((error: unknown) => {
      if (!stop.signal.aborted) log.warn({ err: error }, `${what} failed; it will be retried`);
    });

  await refresh();
  const timer = setInterval(() => void background(refresh(), 'reading the list of large users'), REFRESH_MS).unref();
  return {
    has: (userId) => users.has(userId),
    walkPaysAbove: () => (indexed < SMALL_INDEX ? 0 : Math.floor(Math.sqrt(COST_OF_WALK * indexed))),
    observe(userId, atLeast) {
      if (atLeast <= threshold || users.has(userId) || moving.has(userId)) return;
      moving.set(
        userId,
        background(move(userId), 'indexing a large user').finally(() => moving.delete(userId)),
      );
    },
    async close() {
      clearInterval(timer);
      stop.abort(new Error('closing'));
      await Promise.all(moving.values());
    },
  };
}
