import type { Call, Log } from '#contract';
import type { Database } from './connections.ts';
import type { Names } from './names.ts';
import type { Statements } from './statements.ts';

export interface LargeUsers {
  has(userId: string): boolean;
  /** Tells how many memories a search found this user to have; past the threshold their rows move into the indexes. */
  observe(userId: string, rows: number): void;
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

/**
 * Knows whose memories are searched through the vector and keyword indexes. Being out of date costs time, never
 * results: the exact search is complete for everybody, and the indexed one also reads the rows not yet flagged.
 */
export async function openLargeUsers({
  db,
  names,
  statements,
  threshold,
  log,
}: LargeUsersOptions): Promise<LargeUsers> {
  const { query } = statements;
  const stop = new AbortController();
  const call: Call = { signal: stop.signal, requestId: 'large-users' };
  const moving = new Map<string, Promise<void>>();
  let users = new Set<string>();

  const refresh = async () => {
    const { statement, values } = query(`select user_id from ${names.largeUsers}`, []);
    users = new Set((await db.query(statement, values, call)).map((row) => row.user_id as string));
  };
  const move = async (userId: string) => {
    const enter = query(`insert into ${names.largeUsers} (user_id) values ($1) on conflict do nothing`, [userId]);
    await db.query(enter.statement, enter.values, call);
    users.add(userId);
    const flag = query(
      `update ${names.memories} set large = true where id in (
         select id from ${names.memories} where user_id = $1 and not large order by id limit ${BATCH} for update skip locked)
       returning 1`,
      [userId],
    );
    while ((await db.query(flag.statement, flag.values, call)).length > 0);
  };
  const background = (work: Promise<void>, what: string) =>
    work.catch((error: unknown) => {
      if (!stop.signal.aborted) log.warn({ err: error }, `${what} failed; it will be tried again`);
    });

  await refresh();
  const timer = setInterval(() => void background(refresh(), 'reading the list of large users'), REFRESH_MS).unref();
  return {
    has: (userId) => users.has(userId),
    observe(userId, rows) {
      if (rows <= threshold || users.has(userId) || moving.has(userId)) return;
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
