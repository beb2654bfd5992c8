import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { openMemoriesOf, type WritableMemories } from '../support/memories.ts';
import { call, memoryOf } from '../support/requests.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';
import { findingsOn, told } from './doctor-database.ts';

async function dataDir(): Promise<string> {
  const folder = await makeDataDir();
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const open = async (data_dir: string) =>
  (await openMemoriesOf(
    'postgres',
    {},
    {
      embedder: hashingEmbedder(),
      ranking: { mode: 'hybrid', keyword_weight: 0.5 },
      audit: undefined,
      data_dir,
      log: recordingLog(),
    },
  )) as WritableMemories;

/** Every file with its contents and time. */
const stateOf = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const path = join(folder, name);
      const { mtimeMs, size } = statSync(path);
      return { name, mtimeMs, size, text: statSync(path).isFile() ? readFileSync(path).toString('base64') : '' };
    });
const copies = () => readdirSync(tmpdir()).filter((name) => name.startsWith('omp-doctor-'));

it('of an empty data folder the doctor says what will be made, and makes nothing', async () => {
  const folder = join(await dataDir(), 'not', 'there');
  const findings = await findingsOn(undefined, {}, { data_dir: folder });
  expect(told(findings, 'ok')).toEqual([
    `connection: no database in ${folder} yet; the gateway creates an embedded one there at its first start`,
  ]);
  expect(() => statSync(folder)).toThrow('ENOENT');
});

it('an embedded database is looked at in a copy, while a gateway runs on it through that one, and always stays as it is', async () => {
  const folder = await dataDir();
  const provider = await open(folder);
  await provider.add(memoryOf('ana', 'lives in Lisbon'), call);
  const running = await findingsOn(undefined, {}, { data_dir: folder });
  expect(told(running, 'problem')).toEqual([]);
  expect(told(running, 'ok')).toEqual(
    expect.arrayContaining([
      `connection: a gateway runs on the data folder ${folder}`,
      'embedding: the stored vectors were made by "test-trigram-hashing" (64 dimensions)',
      'indexes: all indexes of the gateway exist and are valid',
    ]),
  );
  expect((await provider.get({ id: 'mem_none', users: null, within: null }, call)) === undefined).toBe(true);
  await provider.close();

  const [before, left] = [stateOf(folder), copies()];
  const findings = await findingsOn(undefined, {}, { data_dir: folder });
  expect(told(findings, 'problem')).toEqual([]);
  expect(told(findings, 'ok')).toEqual(
    expect.arrayContaining([
      `connection: the embedded Postgres in ${folder} starts (checked on a copy)`,
      'embedding: the stored vectors were made by "test-trigram-hashing" (64 dimensions)',
      'indexes: all indexes of the gateway exist and are valid',
    ]),
  );
  const others = await findingsOn(undefined, {}, { data_dir: folder, embedder: hashingEmbedder(32) });
  expect(told(others, 'problem')).toEqual([expect.stringContaining('omp-gateway reembed')]);
  expect(stateOf(folder)).toEqual(before);
  expect(copies()).toEqual(left);
});

it('an embedded database that does not start is told, by the folder that it is in', async () => {
  const folder = await dataDir();
  const broken = join(folder, 'broken');
  mkdirSync(broken);
  cpSync(join(folder, 'postgres'), join(broken, 'postgres'), { recursive: true });
  truncateSync(join(broken, 'postgres', 'global', 'pg_control'), 100);
  const left = copies();
  const findings = await findingsOn(undefined, {}, { data_dir: broken });
  expect(told(findings, 'problem')).toEqual([
    expect.stringContaining(`the embedded Postgres in ${broken} does not start`),
  ]);
  expect(copies()).toEqual(left);
});
