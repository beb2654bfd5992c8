import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, Config, InStatement, InValue, Row } from '@libsql/client';
import { type Call, openThread, stoppable, type Thread } from '#provider';
import type { Done, Work } from './libsql-worker.ts';

/*
 * How statements reach a libSQL database. On a file, a statement is done within the call of the client: what may take long is done in threads.
 */

/** How long a statement waits for another process, and between two attempts, in milliseconds. */
const [MAX_WAIT_MS, PAUSE_MS] = [5_000, 10];
/** Reading through a map of the file, a search takes a third of the time. */
const MAPPED = 'PRAGMA mmap_size = 4294967296';
/** The code of an error that is none of SQLite's. */
export const DIED = 'THREAD_DIED';

export const codeOf = (error: unknown): string => String((error as Partial<NodeJS.ErrnoException>).code);

export type Connect = (more: Pick<Config, 'concurrency' | 'fetch'>) => Client;

export interface Statements {
  readonly isFile: boolean;
  /** Of a statement that reads little. */
  rows(sql: string, args: readonly InValue[], call: Call): Promise<readonly Row[]>;
  /** Of one that may read much. */
  longRows(sql: string, args: readonly InValue[], call: Call): Promise<readonly Row[]>;
  /** All in one transaction. Returns how many rows the last one changed. */
  write(statements: readonly InStatement[], call: Call): Promise<number>;
  /** Lets others read while somebody writes. */
  prepare(call: Call): Promise<void>;
  /** Waits for the statements that threads work on. */
  close(): Promise<void>;
}

/** Opens the file, or names the server, of the URL. Throws as the client does. */
export function openStatements(url: string, connect: Connect): Statements {
  // One connection: with several, one of the process would wait for another of the process, without letting it go on.
  const client = connect({ concurrency: 1 });
  const isFile = client.protocol === 'file';
  /** A file has one client. A request to a server has one of its own, which stops with the call. */
  const ask = <Result>(call: Call, work: (client: Client) => Promise<Result>): Promise<Result> => {
    const ofServer = (signal: AbortSignal) =>
      work(connect({ fetch: (request: Request) => fetch(request, { signal }) }));
    return patiently(() => (isFile ? work(client) : stoppable(call, ofServer)), call);
  };
  /** Writes wait for each other, and for no search. */
  const threads = { read: open(), write: open() };
  const inThread = (mode: Work['mode'], statements: readonly InStatement[], call: Call) =>
    patiently(async () => {
      const work = { url, pragma: MAPPED, mode, statements };
      // A write is waited for, also beyond its deadline: what comes next must see it.
      const done = await threads[mode].ask(work, mode === 'read' ? call : undefined);
      if (!('error' in done)) return done;
      throw Object.assign(new Error(done.error.message), { code: done.error.code });
    }, call);

  const statements: Statements = {
    isFile,
    async rows(sql, args, call) {
      return (await ask(call, (by) => by.execute({ sql, args: [...args] }))).rows;
    },
    async longRows(sql, args, call) {
      if (!isFile) return statements.rows(sql, args, call);
      return (await inThread('read', [{ sql, args: [...args] }], call)).rows;
    },
    async write(all, call) {
      if (isFile) return (await inThread('write', all, call)).rowsAffected;
      return (await ask(call, (by) => by.batch([...all], 'write'))).at(-1)?.rowsAffected ?? 0;
    },
    async prepare(call) {
      for (const pragma of isFile ? ['PRAGMA journal_mode = WAL', MAPPED] : []) await statements.rows(pragma, [], call);
    },
    async close() {
      await Promise.all([threads.read.close(), threads.write.close()]);
      client.close();
    },
  };
  return statements;
}

/** Has a connection of its own. A transaction that it dies in is undone. */
const open = (): Thread<Work, Done> =>
  openThread('#libsql-worker', (cause) => Object.assign(new Error('the thread died', { cause }), { code: DIED }));

/** Another process may be writing to the file. SQLite itself would wait without letting this process go on. */
async function patiently<Result>(work: () => Promise<Result>, call: Call): Promise<Result> {
  for (let waited = 0; ; waited += PAUSE_MS) {
    call.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      if (codeOf(error) !== 'SQLITE_BUSY' || waited >= MAX_WAIT_MS) throw error;
      await sleep(PAUSE_MS);
    }
  }
}
