import { type Call, GATEWAY, type Log } from '#contract';
import type { Database } from './connections.ts';
import type { Names } from './names.ts';
import type { Statements } from './statements.ts';

export interface LargeUsers {
  has(userId: string): boolean;
  /** Tells how many memories of this user a search saw, of maybe more; past the threshold they move into the indexes. */
  observe(userId: string, atLeast: number): void;
  close(): Promise<void>;
}

export interface LargeUsersOptions {
  readonly db: Database;
  readonly names: Names;
  readonly statements: Statements;
  /** Memories a user may have before the indexes are used. */
  readonly threshold: number;
  readonly log: Log;
}

const REFRESH_MS = 30_000;
/** Rows flagged at a time: each enters two indexes, and the locks should be short. */
const BATCH = 500;
/** Adds wait as long as this lock is waited for. */
const LOCK_MS = 2_000;

/**
 * Knows whose memories are searched through the vector and keyword indexes: users whose rows all carry the flag that
 * puts them there. Not knowing yet (another replica moved the user) costs time, never results.
 */
export async function openLargeUsers({
  db,
  names,
  statements,
  threshold,
  log,
}: LargeUsersOptions): Promise<LargeUsers> {
  const stop = new AbortController();
  const call: Call = { signal: stop.signal, requestId: 'large-users', caller: GATEWAY };
  const moving = new Map<string, Promise<void>>();
  let users = new Set<string>();

  const run = (text: string, values: readonly unknown[] = []) => {
    const query = statements.query(text, values);
    return db.query(query.statement, query.values, call);
  };
  const refresh = async () => {
    const rows = await run(`select user_id from ${names.largeUsers} where ready`);
    users = new Set(rows.map((row) => row.user_id as string));
  };
  const move = async (userId: string) => {
    // Every insert looks into this table. The lock lets those under way finish first; whatever comes after sees the
    // user here and flags its row. So once the rows of before are flagged, all are.
    const enter = statements.query(`insert into ${names.largeUsers} (user_id) values ($1) on conflict do nothing`, [
      userId,
    ]);
    await db.queryWith(
      `set local lock_timeout = ${LOCK_MS}; lock table ${names.largeUsers} in access exclusive mode`,
      enter.statement,
      enter.values,
      call,
    );
    const flag = `update ${names.memories} set large = true where id in (
        select id from ${names.memories} where user_id = $1 and not large limit ${BATCH}) returning 1`;
    while ((await run(flag, [userId])).length > 0);
    await run(`update ${names.largeUsers} set ready = true where user_id = $1`, [userId]);
    users.add(userId);
  };
  const background = (work: Promise<void>, what: string) =>
    work.catch((error: unknown) => {
      if (!stop.signal.aborted) log.warn({ err: error }, `${what} failed; it will be tried again`);
    });

  await refresh();
  const timer = setInterval(() => void background(refresh(), 'reading the list of large users'), REFRESH_MS).unref();
  return {
    has: (userId) => users.has(userId),
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
