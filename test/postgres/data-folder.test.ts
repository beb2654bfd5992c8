import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { NewKey } from '#contract';
import { type Engine, startEngine } from '../../providers/postgres/embedded/engine.ts';
import { DATABASE_DAMAGES, FOLDER_DAMAGES } from '../support/damaged-folder.ts';
import { FULL } from '../support/full.ts';
import { call } from '../support/requests.ts';
import { mountSmallDisk, noSmallDisk } from '../support/small-disk.ts';
import { openStoreOf, type Store } from '../support/stores.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';
import { until } from './store.ts';

const emptyFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'omp-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

/** A database that the engine has taken over and left, with a table `kept` of one row: made once, then copied. */
let template: string;
beforeAll(async () => {
  template = await makeDataDir();
  const engine = await startEngine(template, recordingLog());
  await ask(engine, 'create table kept (n int); insert into kept values (7)');
  await engine.close();
});
afterAll(() => rmSync(template, { recursive: true, force: true }));
const usedFolder = (): string => {
  const folder = emptyFolder();
  cpSync(template, folder, { recursive: true });
  return folder;
};

const ask = async ({ config }: Engine, text: string) => {
  const client = new pg.Client(config);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
};

const start = async (folder: string): Promise<Engine> => {
  const engine = await startEngine(folder, recordingLog());
  onTestFinished(() => engine.close());
  return engine;
};

const listing = (folder: string): string[] =>
  existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort() : [];

const KEY: NewKey = {
  id: 'k3j2h1g0',
  name: 'ci',
  hash: 'a'.repeat(64),
  users: null,
  grants: ['*:*'],
  expires_at: null,
};

const open = (data_dir: string): Promise<Store> =>
  openStoreOf(
    'postgres',
    {},
    {
      embedder: undefined,
      ranking: { mode: 'keyword', keyword_weight: 1 },
      audit: undefined,
      data_dir,
      log: recordingLog(),
    },
  );

describe('a first start', () => {
  it('removes what an unfinished one has left, and leaves a marker and nothing of the process', async () => {
    const folder = emptyFolder();
    cpSync(usedFolder(), join(folder, 'postgres.unfinished'), { recursive: true });
    writeFileSync(join(folder, `omp-gateway.json.${randomUUID()}`), '');
    const engine = await start(folder);
    expect(await ask(engine, 'select 1 as n')).toEqual([{ n: 1 }]);
    expect(readdirSync(folder).sort()).toEqual(['lock', 'omp-gateway.json', 'postgres']);
  });

  it('on a full disk says so, and succeeds once there is room', async ({ skip }) => {
    const reason = noSmallDisk();
    skip(reason !== '', reason);
    const disk = mountSmallDisk(60);
    writeFileSync(join(disk.folder, 'other'), Buffer.alloc(40 * 1024 ** 2));
    await expect(startEngine(disk.folder, recordingLog())).rejects.toThrow(
      new RegExp(`the data folder ${disk.folder} cannot be used \\(ENOSPC\\): the disk is full; free some space`),
    );
    expect(readdirSync(disk.folder).sort()).toEqual(['lock', 'other']);
    rmSync(join(disk.folder, 'other'));
    const engine = await startEngine(disk.folder, recordingLog());
    expect(await ask(engine, 'select 1 as n')).toEqual([{ n: 1 }]);
    await engine.close();
  });
});

it('a database without marker is taken over with what it holds', async () => {
  const folder = usedFolder();
  rmSync(join(folder, 'omp-gateway.json'));
  expect(await ask(await start(folder), 'select n from kept')).toEqual([{ n: 7 }]);
  expect(readdirSync(folder).sort()).toEqual(['lock', 'omp-gateway.json', 'postgres']);
});

it('a process that was killed while its engine started leaves an empty lock file of it, which is no obstacle', async () => {
  const folder = usedFolder();
  writeFileSync(join(folder, 'postgres', 'postmaster.pid'), '');
  expect(await ask(await start(folder), 'select n from kept')).toEqual([{ n: 7 }]);
});

describe('a data folder is refused, with what to do, and stays as it is, when', () => {
  it.each(Object.entries(FOLDER_DAMAGES))('%s', async (_, [damage, error]) => {
    const folder = usedFolder();
    damage(folder);
    const before = listing(folder);
    await expect(startEngine(folder, recordingLog())).rejects.toThrow(error);
    expect(listing(folder)).toEqual(before);
  });

  it.each(Object.entries(DATABASE_DAMAGES))('%s', async (_, [damage, error]) => {
    const folder = usedFolder();
    damage(folder);
    const failure = await startEngine(folder, recordingLog()).catch(({ message }: Error) => message);
    expect(failure).toMatch(error);
    expect(failure).toMatch(/^the embedded Postgres in .* does not start: .*restore the data folder from a backup/s);
    expect(failure).not.toMatch(/ASSERTIONS|\[object/);
  });

  it('its name is that of a file', async () => {
    const file = join(emptyFolder(), 'file');
    writeFileSync(file, '');
    for (const path of [file, join(file, 'below')])
      await expect(startEngine(path, recordingLog())).rejects.toThrow(
        /cannot be used.*a file has the name of a folder/,
      );
  });

  it('it is on a read-only file system', async ({ skip }) => {
    const reason = noSmallDisk();
    skip(reason !== '', reason);
    const { folder } = mountSmallDisk(4);
    execFileSync('mount', ['-o', 'remount,ro', folder]);
    await expect(startEngine(folder, recordingLog())).rejects.toThrow(/cannot be used \(EROFS\): .*mount it writable/);
  });
});

it('a copy of the folder of a running gateway starts beside it and changes nothing in it', async () => {
  const folder = usedFolder();
  const engine = await start(folder);
  const copy = emptyFolder();
  cpSync(folder, copy, { recursive: true });
  const other = await start(copy);
  expect(await ask(other, 'insert into kept values (8) returning n')).toEqual([{ n: 8 }]);
  expect(await ask(engine, 'select n from kept')).toEqual([{ n: 7 }]);
});

it('[Decision 13] once there was a key, no loss of data opens the gateway', async () => {
  const folder = usedFolder();
  const first = await open(folder);
  expect(await first.keys?.hasAny(call)).toBe(false);
  await first.keys?.create(KEY, call);
  await first.close();
  const engine = await startEngine(folder, recordingLog());
  await ask(engine, 'drop schema omp cascade');
  await engine.close();
  const second = await open(folder);
  expect(await second.keys?.hasAny(call)).toBe(true);
  await second.close();
});

it.runIf(FULL)('the write-ahead log does not grow for as long as the engine runs', async () => {
  const engine = await start(emptyFolder());
  const redo = async () => (await ask(engine, 'select redo_lsn::text from pg_control_checkpoint()'))[0]?.redo_lsn;
  const before = await redo();
  await ask(engine, `create table much (x text); alter table much alter x set storage external`);
  for (let i = 0; i < 9; i++)
    await ask(engine, `insert into much select repeat(md5(g::text), 1000) from generate_series(1, 300) g`);
  await until(async () => (await redo()) !== before);
});
