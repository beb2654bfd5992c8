import { constants, createWriteStream, existsSync, mkdirSync } from 'node:fs';
import { access, cp, mkdtemp, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { type BackupOutcome, backgroundCall, type Holdings, type KeyContext, type RestoreContext } from '#provider';
import type { Row, Run } from '../client/connections.ts';
import { withStartupClient } from '../client/startup-client.ts';
import { pack, unpack } from '../embedded/archive.ts';
import { examineFolder, lockFolder, onFolder, PARTS, restoreFolder, syncFolder } from '../embedded/folder.ts';
import type { Options } from '../postgres-options.ts';
import { prepareDatabase, startServer } from '../startup/open-database.ts';
import { createErasure } from '../tables/erasure.ts';

const SERVER =
  'DATABASE_URL is set: the embedded Postgres has these commands, a server has pg_dump and pg_restore (docs/operations.md, "Backup and restore")';

/**
 * Writes the embedded database to a new file, also while a gateway serves it; `-` is standard output. Throws a plain `Error`
 * that an operator can act on; there is then no file.
 */
export async function backup(options: Options, context: KeyContext, file: string): Promise<BackupOutcome> {
  if (options.url !== undefined) throw new Error(SERVER);
  const root = resolve(context.data_dir);
  const isStream = file === '-';
  if (isStream && process.stdout.isTTY)
    throw new Error('standard output is a terminal; redirect it, and run docker compose exec with -T');
  // In a container, the data folder is what may be written and has the space.
  const target = isStream ? join(root, 'backup') : resolve(file);
  if (examineFolder(root) === 'nothing') throw new Error(`nothing is stored in ${root}; check OMP_DATA_DIR`);
  if (!isStream && existsSync(target)) throw new Error(`${target} exists; name a new file`);
  const partial = await mkdtemp(`${target}.partial-`);
  try {
    const server = await startServer(options, { ...context, join: true });
    const ms = await copyDatabase(server.config, root, join(partial, 'copy')).finally(() => server.close());
    const copy = join(partial, 'copy');
    if (isStream) return [await pack(copy, process.stdout), ms];
    const archive = join(partial, 'archive');
    const bytes = await pack(copy, createWriteStream(archive, { flags: 'wx', mode: 0o600, flush: true }));
    await rename(archive, target);
    await syncFolder(dirname(target));
    return [bytes, ms];
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/**
 * Copies the files of an engine that does nothing meanwhile: it has one session, and that belongs to this connection until
 * the transaction ends. The copy is what `kill -9` would leave, so its first start restores everything acknowledged.
 */
const copyDatabase = (config: Parameters<typeof withStartupClient>[0], root: string, copy: string): Promise<number> =>
  withStartupClient(config, async (client) => {
    await client.query('begin');
    const started = performance.now();
    await client.query('checkpoint');
    const { rows } = await client.query<{ first: string; last: string }>(
      'select pg_walfile_name(redo_lsn) as first, pg_walfile_name(pg_current_wal_insert_lsn()) as last from pg_control_checkpoint()',
    );
    const [{ first, last } = { first: '', last: '' }] = rows;
    // The others are kept to be written again, and need not be in a backup.
    const needed = (path: string) => {
      const name = basename(path);
      return !/^[0-9A-F]{24}$/.test(name) || (name >= first && name <= last);
    };
    for (const part of PARTS)
      await cp(join(root, part), join(copy, part), {
        recursive: true,
        mode: constants.COPYFILE_FICLONE,
        filter: needed,
      });
    try {
      await client.query('commit');
    } catch (cause) {
      // The engine was restarted, and may have written during the copy.
      throw new Error(
        'the copy took longer than the gateway waits for a statement; raise its OMP_POSTGRES_QUERY_TIMEOUT_MS, or stop it first',
        { cause },
      );
    }
    return performance.now() - started;
  });

/**
 * Fills an empty data folder from a backup, `-`: standard input, but for the users `without`. After an interruption it is empty for the next start
 * or restore.
 */
export async function restore(
  options: Options,
  { data_dir, log, audit }: RestoreContext,
  file: string,
  without: readonly string[] = [],
): Promise<readonly Holdings[]> {
  if (options.url !== undefined) throw new Error(SERVER);
  const root = resolve(data_dir);
  // Before anything is created.
  if (file !== '-')
    await access(file).catch((cause) => {
      throw new Error(`${file} cannot be read`, { cause });
    });
  const lock = await onFolder(root, () => {
    mkdirSync(root, { recursive: true, mode: 0o700 });
    return lockFolder(root);
  });
  const removed: Holdings[] = [];
  try {
    await onFolder(root, () =>
      restoreFolder(root, async (folder) => {
        await unpack(file, folder);
        if (without.length > 0) removed.push(...(await eraseUsers(options, { data_dir: folder, log, audit }, without)));
      }),
    );
    return removed;
  } finally {
    lock.release();
  }
}

/** Erases users from a database that nothing serves yet, which gets the tables of this gateway first, as a start would give it. */
async function eraseUsers(
  options: Options,
  { audit, ...context }: RestoreContext,
  users: readonly string[],
): Promise<Holdings[]> {
  const { config, close } = await startServer(options, context);
  const check = async () => {};
  const call = backgroundCall('restore', new AbortController().signal);
  try {
    const { names } = await prepareDatabase({ config, schema: options.schema, check, log: context.log });
    return await withStartupClient(config, async (client) => {
      const run: Run = async (_how, text, values) => (await client.query<Row>(text, [...values])).rows;
      const { erase } = createErasure(names, run, audit);
      const removed: Holdings[] = [];
      for (const user_id of users) removed.push((await erase({ user_id }, call)) as Holdings);
      return removed;
    });
  } finally {
    await close();
  }
}
