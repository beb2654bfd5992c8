import { randomUUID } from 'node:crypto';
import { closeSync, fstatSync, lstatSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { tryLock } from 'fs-native-extensions';
import { z } from 'zod';

/** The major version of the engine. */
const POSTGRES = '18';

/** The contents of a data folder, in addition to the lock. */
const DATABASE = 'postgres';
/** A database that a first start has not completed. It holds no memories and may be removed at any time. */
const UNFINISHED = 'postgres.unfinished';
/** Written once the database is complete and starts. */
const MARKER = 'omp-gateway.json';
/** Inside the database: the `id` of its marker. */
const IDENTITY = 'omp-gateway.id';

/** What an interrupted restore may have left out. The engine would abort without naming it. */
const NEEDED = ['global/pg_control', 'postgresql.conf', 'pg_hba.conf', 'base', 'pg_wal', 'pg_xact'];

const Marker = z.object({
  id: z.uuid(),
  postgres: z.string(),
  /** Whether there was ever an API key. */
  keys: z.boolean(),
});
type Marker = z.output<typeof Marker>;

/** Made by the build: by path, null for a folder, deflated bytes in base64 for a file. */
const EMPTY_DATABASE = createRequire(import.meta.url).resolve('#embedded-database');

/** What a backup holds. */
export const PARTS = [DATABASE, MARKER];

export const databaseIn = (root: string): string => join(root, DATABASE);

/** What to do about a rejected folder. */
const RESTORE =
  'restore the whole data folder from a backup (docs/operations.md, "Backup and restore"), or set OMP_DATA_DIR to an empty folder to start without memories';

/**
 * What the data folder holds; changes nothing. Throws an `Error` that says what to do if the folder is no longer complete, or
 * does not fit this gateway: a database is never created over the rest of another one.
 */
export function examineFolder(root: string): 'nothing' | 'a database without marker' | Marker {
  const marker = readMarker(root);
  const database = databaseIn(root);
  if (!exists(database)) {
    if (marker)
      throw new Error(
        `the database in ${root} is missing: ${MARKER} refers to it, but there is no ${database}; ${RESTORE}`,
      );
    if (exists(join(root, 'PG_VERSION')))
      throw new Error(
        `${root} holds the files of a database itself; move them to ${database}, or set OMP_DATA_DIR to another folder`,
      );
    return 'nothing';
  }
  const version = read(join(database, 'PG_VERSION'))?.trim() ?? '';
  const missing = version === '' ? 'PG_VERSION' : NEEDED.find((name) => !exists(join(database, name)));
  if (missing !== undefined)
    throw new Error(`the database in ${root} is not complete: ${missing} is missing in ${database}; ${RESTORE}`);
  if (version !== POSTGRES || (marker && marker.postgres !== POSTGRES))
    throw new Error(
      `the database in ${root} was created by PostgreSQL ${version}, this omp-gateway has PostgreSQL ${POSTGRES}; move its memories: run "omp-gateway export memories.ndjson.gz --vectors" with the omp-gateway that created it, and "omp-gateway import memories.ndjson.gz" with this one and OMP_DATA_DIR set to an empty folder (docs/operations.md, "Upgrade")`,
    );
  if (!marker) return 'a database without marker';
  if (read(join(database, IDENTITY))?.trim() !== marker.id)
    throw new Error(
      `in ${root}, ${MARKER} and the folder ${DATABASE} belong to two different databases; ${RESTORE}. To keep using this database, remove ${join(root, MARKER)}: API keys that existed before are then ignored`,
    );
  return marker;
}

/** Creates a database if there is none. The folder must be locked. */
export async function prepareFolder(root: string): Promise<void> {
  // What a process left that was killed on the way.
  for (const name of readdirSync(root))
    if (name === UNFINISHED || FRESH_MARKER.test(name)) rmSync(join(root, name), { recursive: true, force: true });
  // The engine replaces that of a dead process, but takes an empty one for another engine that is starting. The lock rules that out.
  const started = join(databaseIn(root), 'postmaster.pid');
  if (read(started) === '') rmSync(started);
  if (examineFolder(root) !== 'nothing') return;
  const unfinished = join(root, UNFINISHED);
  try {
    await unpack(unfinished);
    await rename(unfinished, databaseIn(root));
    await syncFolder(root);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true }).catch(() => {});
    throw error;
  }
}

async function unpack(folder: string): Promise<void> {
  const entries = Object.entries(JSON.parse(await readFile(EMPTY_DATABASE, 'utf8')) as Record<string, string | null>);
  const folders = [folder, ...entries.filter(([, bytes]) => bytes === null).map(([path]) => join(folder, path))];
  for (const path of folders) await mkdir(path, { mode: 0o700 });
  for (const [path, bytes] of entries) {
    if (bytes !== null) await writeDurably(join(folder, path), inflateRawSync(Buffer.from(bytes, 'base64')));
  }
  await writeDurably(join(folder, IDENTITY), randomUUID());
  for (const path of folders) await syncFolder(path);
}

/** Fills an empty data folder: `unpack` puts `PARTS` into the folder it gets. The data folder must be locked. */
export async function restoreFolder(root: string, unpack: (folder: string) => Promise<void>): Promise<void> {
  if ([...PARTS, 'PG_VERSION'].some((name) => exists(join(root, name))))
    throw new Error(`${root} holds a database; name an empty folder with --data-dir or OMP_DATA_DIR`);
  const unfinished = join(root, UNFINISHED);
  rmSync(unfinished, { recursive: true, force: true });
  try {
    await mkdir(unfinished, { mode: 0o700 });
    await unpack(unfinished);
    const marker = examineFolder(unfinished);
    if (typeof marker === 'string') throw new Error('the backup holds no whole data folder');
    // What it holds is older than what was there: as another database it begins a new log of changes (Decision 51).
    const id = randomUUID();
    await replaceFile(join(databaseIn(unfinished), IDENTITY), id);
    // From here on the folder holds the whole database, which a start takes over without its marker too.
    await rename(databaseIn(unfinished), databaseIn(root));
    await syncFolder(root);
    await writeMarker(root, { ...marker, id });
  } finally {
    // Files that were being written when the unpacking failed may still appear.
    await rm(unfinished, { recursive: true, force: true, maxRetries: 20 });
  }
}

/** Writes the marker of a database that has started, unless there is one. */
export async function markComplete(root: string): Promise<void> {
  if (readMarker(root)) return;
  const identity = join(databaseIn(root), IDENTITY);
  const id = read(identity)?.trim() ?? randomUUID();
  await replaceFile(identity, id);
  await writeMarker(root, { id, postgres: POSTGRES, keys: false });
}

export const hadKeys = (root: string): boolean => readMarker(root)?.keys === true;

/** Notes outside the database that there are keys, so that losing them never opens the gateway. */
export async function rememberKeys(root: string): Promise<void> {
  const marker = readMarker(root);
  if (marker && !marker.keys) await writeMarker(root, { ...marker, keys: true });
}

function readMarker(root: string): Marker | undefined {
  const path = join(root, MARKER);
  const text = read(path);
  if (text === undefined) return undefined;
  try {
    return Marker.parse(JSON.parse(text));
  } catch (cause) {
    throw new Error(`${path} is not valid; ${RESTORE}`, { cause });
  }
}

const writeMarker = (root: string, marker: Marker): Promise<void> =>
  replaceFile(join(root, MARKER), `${JSON.stringify(marker)}\n`);

/** The name of a marker before it replaces the old one. */
const FRESH_MARKER = /^omp-gateway\.json\.[0-9a-f-]{36}$/;

/** Readers see either the old or the new contents. */
async function replaceFile(path: string, text: string): Promise<void> {
  const fresh = `${path}.${randomUUID()}`;
  await writeDurably(fresh, text);
  await rename(fresh, path);
  await syncFolder(join(path, '..'));
}

const writeDurably = (path: string, data: string | Buffer): Promise<void> =>
  writeFile(path, data, { mode: 0o600, flush: true });

/** Makes the names in a folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  await handle.sync().finally(() => handle.close());
}

const exists = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Undefined: there is no such file. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

const USER = 'the user of the gateway may not read and write it; make that user its owner (chown -R)';
const FULL = 'the disk is full; free some space and start again: stored data is unchanged';
const FILE = 'a file has the name of a folder; check OMP_DATA_DIR';
const ADVICE: Readonly<Record<string, string>> = {
  EACCES: USER,
  EPERM: USER,
  EROFS: 'it is on a read-only file system; mount it writable, or set OMP_DATA_DIR to another folder',
  ENOSPC: FULL,
  EDQUOT: FULL,
  EEXIST: FILE,
  ENOTDIR: FILE,
};

/** Works on the data folder. System errors become an `Error` that says what to do. */
export async function onFolder<Result>(root: string, work: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === undefined) throw cause;
    throw new Error(`the data folder ${root} cannot be used (${code}): ${ADVICE[code] ?? 'check the disk'}`, { cause });
  }
}

export interface FolderLock {
  /** Identifies the folder on this machine: a copy of it, or another one at its path, has another name. */
  readonly name: string;
  release(): void;
}

/**
 * Locks the data folder for this process. The kernel releases the lock when the process ends, in whatever way. Throws an
 * `Error` if another process has it.
 */
export function lockFolder(folder: string): FolderLock {
  const lock = take(folder, 'a+');
  if (lock.taken)
    throw new Error(
      `the data folder ${folder} is in use by another omp-gateway; stop that one, or set OMP_DATA_DIR to a folder of its own`,
    );
  return lock;
}

/** The same if there is a lock file; `taken`: by another process. Undefined: there is none. Creates no file. */
export function lockIfAny(folder: string): (FolderLock & { readonly taken: boolean }) | undefined {
  try {
    return take(folder, 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function take(folder: string, flags: 'a+' | 'r+') {
  const file = openSync(join(folder, 'lock'), flags, 0o600);
  const { dev, ino } = fstatSync(file);
  const taken = !tryLock(file);
  if (taken) closeSync(file);
  return { taken, name: `${dev}:${ino}`, release: () => taken || closeSync(file) };
}
