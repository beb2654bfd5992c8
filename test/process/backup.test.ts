import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { beforeAll, describe, expect, it } from 'vitest';
import { startEngine } from '../../providers/postgres/embedded/engine.ts';
import { runBackup, runRestore } from '../../src/cli/backup.ts';
import { commandHere } from '../support/command.ts';
import { FULL } from '../support/full.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';
import { dataFolder, FAST_START, runProgram, startGateway, startProgram, temporaryFolder } from './gateway.ts';

const EMPTY = ['lock'];
const COMPLETE = ['lock', 'omp-gateway.json', 'postgres'];

/** In this process. */
const restoreHere = (env: Record<string, string>, ...argv: string[]) =>
  commandHere((terminal) => runRestore(argv, terminal), env);
/** Runs with the data folder and temporary folder of a gateway. */
const run = (env: Record<string, string>, ...args: string[]) => runProgram({ args, env });

/** Every row of every table, as text. */
async function contentsOf(folder: string): Promise<Record<string, string[]>> {
  const engine = await startEngine(folder, recordingLog());
  const client = new pg.Client(engine.config);
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = 'omp' order by 1`,
  );
  const contents: Record<string, string[]> = {};
  for (const { name } of rows) {
    const table = await client.query<{ row: string }>(`select t::text as row from ${name} t order by 1`);
    contents[name] = table.rows.map(({ row }) => row);
  }
  await client.end();
  await engine.close();
  return contents;
}

/** A data folder with memories, their vectors, a key and audit entries; a backup of it; and every row in it. */
let stored: { folder: string; file: string; contents: Record<string, string[]> };
beforeAll(async () => {
  const folder = await makeDataDir();
  const file = join(folder, 'omp.backup');
  stored = { folder, file, contents: {} };
});

it('restores every row of every table, vectors and keys included', async () => {
  const env = { OMP_DATA_DIR: stored.folder, TMPDIR: temporaryFolder() };
  const gateway = await startGateway({ env: { ...env, OMP_SEARCH_MODE: 'hybrid' } });
  for (const content of ['likes tea', 'lives in Bergen', 'has a cat'])
    await gateway.client.add({ user_id: 'ada', content, scope: 'home/day', tags: ['a'] });
  await gateway.client.search({ user_id: 'ada', q: 'drinks' });
  expect(await run(env, 'keys', 'create', 'ci', '--grant', 'read:*')).toMatchObject({ status: 0 });
  expect((await gateway.stop()).status).toBe(0);

  const done = await run(env, 'backup', stored.file);
  expect(done).toMatchObject({ status: 0, stderr: '' });
  expect(done.stdout).toMatch(/^Done: \d+\.\d MB\. Requests waited \d+ ms\.\n$/);
  const target = join(temporaryFolder(), 'new');
  const restored = await run({ OMP_DATA_DIR: target }, 'restore', stored.file);
  expect(restored).toMatchObject({ status: 0, stderr: '' });
  expect(readdirSync(target).sort()).toEqual(COMPLETE);
  const [before, after] = [await contentsOf(stored.folder), await contentsOf(target)];
  expect(after).toEqual(before);
  stored.contents = before;
  expect(before['omp.memories']).toHaveLength(3);
  expect(before['omp.memories']?.[0]).toMatch(/\[-?\d\.\d+.*,/);
  expect(before['omp.api_keys']).toHaveLength(1);
  expect(JSON.parse(readFileSync(join(target, 'omp-gateway.json'), 'utf8'))).toMatchObject({ keys: true });
});

it('[Decision 62] a restore leaves users out, and prints what it removed', async () => {
  const env = { OMP_DATA_DIR: await makeDataDir(), TMPDIR: temporaryFolder() };
  const gateway = await startGateway({ env: { ...env, OMP_SEARCH_MODE: 'keyword' } });
  for (const user_id of ['ada', 'ada', 'bob', 'eve'])
    await gateway.client.add({ user_id, content: `tea of ${user_id}` });
  const file = join(temporaryFolder(), 'omp.backup');
  expect(await run(env, 'backup', file)).toMatchObject({ status: 0 });
  const { text } = await gateway.client.tell('DELETE', '/users/ada/memories');
  const [target, list] = [join(temporaryFolder(), 'new'), join(temporaryFolder(), 'users')];
  writeFileSync(list, `\uFEFF${text}\nbob\nnobody\n`);
  const restored = await run({ OMP_DATA_DIR: target }, 'restore', file, '--without-users', list);
  expect(restored).toMatchObject({ status: 0, stderr: '' });
  expect(restored.stdout).toMatch(
    /^ada: removed 2 memories, .*\nbob: removed 1 memories, .*\nnobody: removed 0 memories, /,
  );
  expect(readdirSync(target).sort()).toEqual(COMPLETE);
  const contents = await contentsOf(target);
  expect(
    Object.values(contents)
      .flat()
      .join()
      .match(/tea of \w+/g),
  ).toEqual(['tea of eve']);

  writeFileSync(list, 'bob\n{"deleted": 1}\n');
  const wrong = await run({ OMP_DATA_DIR: join(temporaryFolder(), 'other') }, 'restore', file, '--without-users', list);
  expect(wrong).toMatchObject({ status: 2, stderr: expect.stringContaining('line 2') });
});

it('beside a gateway that takes writes, the file holds every write acknowledged before', async () => {
  const env = { OMP_DATA_DIR: await dataFolder(), TMPDIR: temporaryFolder() };
  // However busy the machine is, no deadline ends the copy or a write.
  const patient = Object.fromEntries(
    ['POSTGRES_QUERY', 'POSTGRES_CONNECT', 'REQUEST'].map((name) => [`OMP_${name}_TIMEOUT_MS`, '600000']),
  );
  const gateway = await startGateway({ env: { ...env, ...patient } });
  const acknowledged: string[] = [];
  let writing = true;
  const writers = Array.from({ length: 8 }, async (_, n) => {
    while (writing) {
      const { id } = await gateway.client.add({ user_id: `u${n}`, content: 'x'.repeat(2_000) });
      acknowledged.push(id);
    }
  });
  const file = join(temporaryFolder(), 'omp.backup');
  while (acknowledged.length < 100) await new Promise((resolve) => setImmediate(resolve));
  const before = [...acknowledged];
  expect(await run(env, 'backup', file)).toMatchObject({ status: 0, stderr: '' });
  const during = acknowledged.length;
  while (acknowledged.length < during + 10) await new Promise((resolve) => setImmediate(resolve));
  writing = false;
  await Promise.all(writers);
  expect(readdirSync(join(file, '..'))).toEqual(['omp.backup']);

  const copy = { OMP_DATA_DIR: temporaryFolder() };
  expect(await run(copy, 'restore', file)).toMatchObject({ status: 0 });
  const { client } = await startGateway({ env: copy });
  for (const id of before) expect((await client.get(id)).id).toBe(id);
  const { id } = await client.add({ user_id: 'u0', content: 'goes on' });
  expect((await gateway.client.add({ user_id: 'u0', content: 'goes on too' })).id).not.toBe(id);
});

describe('after kill -9', () => {
  it('of a backup that has begun its copy or its archive there is no file, and the gateway serves', async () => {
    const env = { OMP_DATA_DIR: await dataFolder(), TMPDIR: temporaryFolder() };
    const gateway = await startGateway({ env });
    const { id } = await gateway.client.add({ user_id: 'ada', content: 'kept' });
    for (const step of ['copy', 'archive']) {
      const folder = temporaryFolder();
      const backup = startProgram({ args: ['backup', join(folder, 'omp.backup')], env });
      const begun = () => readdirSync(folder).some((partial) => existsSync(join(folder, partial, step)));
      while (!begun() && backup.child.exitCode === null) await new Promise((resolve) => setImmediate(resolve));
      backup.child.kill('SIGKILL');
      expect((await backup.ended).signal).toBe('SIGKILL');
      expect(existsSync(join(folder, 'omp.backup'))).toBe(false);
      expect((await gateway.client.get(id)).content).toBe('kept');
      expect((await gateway.client.add({ user_id: 'ada', content: 'more' })).id).not.toBe(id);
    }
    expect(await run(env, 'backup', join(temporaryFolder(), 'omp.backup'))).toMatchObject({ status: 0 });
  });

  // Both of the first leave an unfinished folder, the second a fuller one.
  it.each([
    ...(FULL ? ['postgres.unfinished'] : []),
    ...['postgres.unfinished/postgres/global/pg_control', 'postgres'],
  ])('of a restore that has made %s, the folder holds nothing or the whole', async (step) => {
    const folder = temporaryFolder();
    const env = { OMP_DATA_DIR: folder };
    const restore = startProgram({ args: ['restore', stored.file], env });
    while (!existsSync(join(folder, step)) && restore.child.exitCode === null)
      await new Promise((resolve) => setImmediate(resolve));
    restore.child.kill('SIGKILL');
    await restore.ended;
    if (!existsSync(join(folder, 'postgres')))
      expect(await run(env, 'restore', stored.file)).toMatchObject({ status: 0 });
    expect(await contentsOf(folder)).toEqual(stored.contents);
    expect(readdirSync(folder).sort()).toEqual(COMPLETE);
  });
});

/** An archive that unpacks to a thousand times its size, just more than a backup of its size may; made once. */
function zeros(): Buffer {
  if (madeZeros) return madeZeros;
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'zeros'), '');
  truncateSync(join(folder, 'zeros'), 300_000_000);
  madeZeros = execFileSync('tar', ['-czf', '-', '-C', folder, 'zeros']);
  return madeZeros;
}
let madeZeros: Buffer | undefined;

describe('restore leaves nothing behind, and says why, when', () => {
  /** Places in a file are given by its size. */
  type Place = (size: number) => number;
  const cut = (place: Place) => (file: string) => truncateSync(file, place(statSync(file).size));
  const flip = (place: Place) => (file: string) => {
    const bytes = readFileSync(file);
    const at = place(bytes.length);
    bytes[at] = 255 - (bytes[at] ?? 0);
    writeFileSync(file, bytes);
  };
  /** A part of a backup, which takes as long to read as it is large: whether a file is whole is no matter of what is in it. */
  const packPart = (file: string) =>
    execFileSync('tar', ['-czf', file, '-C', stored.folder, 'omp-gateway.json', 'postgres/global']);
  const NOT_WHOLE = /is not a whole backup: it is cut, damaged, or another file/;
  /** Each damages the part of a backup. */
  const damages: Record<string, [(file: string) => void, RegExp]> = {
    'the file is empty': [cut(() => 0), NOT_WHOLE],
    'the file is cut in the middle': [cut((size) => size >> 1), NOT_WHOLE],
    'the last byte is missing': [cut((size) => size - 1), NOT_WHOLE],
    'a byte in the middle differs': [flip((size) => size >> 1), NOT_WHOLE],
    'the checksum differs': [flip((size) => size - 8), NOT_WHOLE],
    'it is another file': [(file) => writeFileSync(file, 'select 1'), NOT_WHOLE],
    'it unpacks to a thousand times its size': [
      (file) => writeFileSync(file, zeros()),
      /unpacks to more than a backup of this size does; nothing was restored/,
    ],
    'another engine made it': [
      (file) => {
        const folder = temporaryFolder();
        for (const part of ['omp-gateway.json', 'postgres'])
          cpSync(join(stored.folder, part), join(folder, part), { recursive: true });
        writeFileSync(join(folder, 'postgres/PG_VERSION'), '17\n');
        execFileSync('tar', ['-czf', file, '-C', folder, 'omp-gateway.json', 'postgres']);
      },
      /was created by PostgreSQL 17, this omp-gateway has PostgreSQL 18; .*export memories.*import memories/,
    ],
    'a path leads out of the folder': [
      (file) => execFileSync('tar', ['-czPf', file, '-C', stored.folder, '../../etc/hostname']),
      NOT_WHOLE,
    ],
  };

  it.each(Object.entries(damages))('%s', async (_, [damage, message]) => {
    const file = join(temporaryFolder(), 'omp.backup');
    packPart(file);
    damage(file);
    const target = temporaryFolder();
    const { status, stderr, stdout } = await restoreHere({ OMP_DATA_DIR: target }, file);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(message);
    expect(readdirSync(target)).toEqual(EMPTY);
  });

  it('the data folder holds a database, or a gateway runs on it', async () => {
    const folder = await dataFolder();
    const refused = await restoreHere({ OMP_DATA_DIR: folder }, stored.file);
    expect(refused).toMatchObject({ status: 1 });
    expect(refused.stderr).toContain(
      `${folder} holds a database; name an empty folder with --data-dir or OMP_DATA_DIR`,
    );
    await startGateway({ env: { OMP_DATA_DIR: folder } });
    expect((await restoreHere({ OMP_DATA_DIR: folder }, stored.file)).stderr).toContain(
      'in use by another omp-gateway',
    );
  });
});

it('- is standard output and standard input, and standard error says that it is done', async () => {
  const env = { PATH: process.env.PATH, OMP_DATA_DIR: stored.folder, TMPDIR: temporaryFolder() };
  const program = [...FAST_START, resolve('dist/src/main.js')];
  const backup = spawnSync(process.execPath, [...program, 'backup', '-'], { env, maxBuffer: 1 << 30 });
  expect(backup).toMatchObject({ status: 0 });
  expect(backup.stderr.toString()).toMatch(/^Done: \d+\.\d MB\./);
  expect(readdirSync(stored.folder).sort()).toEqual([...COMPLETE, 'omp.backup'].sort());
  const target = join(temporaryFolder(), 'new');
  const restoreTo = { env: { ...env, OMP_DATA_DIR: target } };
  const cut = spawnSync(process.execPath, [...program, 'restore', '-'], {
    ...restoreTo,
    input: backup.stdout.subarray(1),
  });
  expect(cut.stderr.toString()).toContain('standard input is not a whole backup');
  expect(readdirSync(target)).toEqual(EMPTY);
  const unpacked = spawnSync(process.execPath, [...program, 'restore', '-'], { ...restoreTo, input: zeros() });
  expect(unpacked.stderr.toString()).toContain('unpacks to more than a backup of this size does');
  expect(readdirSync(target)).toEqual(EMPTY);
  const { status } = spawnSync(process.execPath, [...program, 'restore', '-'], { ...restoreTo, input: backup.stdout });
  expect(status).toBe(0);
  expect(await contentsOf(target)).toEqual(stored.contents);
});

it('tar unpacks a backup into a data folder', async () => {
  const folder = join(temporaryFolder(), 'by-hand');
  mkdirSync(folder);
  execFileSync('tar', ['-xzf', stored.file, '-C', folder]);
  expect(await contentsOf(folder)).toEqual(stored.contents);
});

it.each<[what: string, args: (file: string) => string[], message: string, env?: Record<string, string>]>([
  ['a file that exists', (file) => ['backup', file], 'exists; name a new file'],
  ['an empty data folder', () => ['backup', 'new', '--data-dir', 'none'], 'nothing is stored in'],
  ['a server', () => ['backup', 'new'], 'pg_dump', { DATABASE_URL: 'postgres://localhost/x' }],
  ['another provider', () => ['backup', 'new', '--provider', 'memory'], 'memory stores nothing in a'],
  ['a missing file', () => ['restore', 'none'], 'none cannot be read'],
])('says what is wrong with %s', async (_, args, message, env) => {
  const [command, ...argv] = args(stored.file);
  const run = command === 'backup' ? runBackup : runRestore;
  const ending = await commandHere((terminal) => run(argv, terminal), { OMP_DATA_DIR: stored.folder, ...env });
  expect(ending).toEqual({ status: 1, stdout: '', stderr: expect.stringContaining(message) });
});
