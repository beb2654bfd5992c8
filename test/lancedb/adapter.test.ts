import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from '@lancedb/lancedb';
import { expect, it } from 'vitest';
import type { NewVector, Provider } from '#provider';
import lancedb from '../../providers/collections/lancedb.ts';
import { temporaryFolder } from '../process/gateway.ts';
import { recordingLog } from '../support/gateway.ts';
import { call, listOf, memoryOf, refTo } from '../support/requests.ts';

const EMBEDDER = { model: 'drawn', dimensions: 4 };
const context = (data_dir: string) => ({
  ...{ embedder: EMBEDDER, ranking: { mode: 'vector', keyword_weight: 0 } as const, audit: undefined },
  ...{ data_dir, log: recordingLog() },
});
const open = async (folder: string, options: object = {}) =>
  (await lancedb.open(options, context(folder))) as Required<Provider>;
const drawn = (n: number): NewVector => ({
  input: memoryOf('ana', `note ${n}`),
  vector: Float32Array.from([1, n, 0, 0]),
});
const opened = async (folder: string) =>
  (await connect(join(folder, 'lancedb'), { readConsistencyInterval: 0 })).openTable('omp_memories');
const findingsOf = async (folder: string, options: object = {}) =>
  (await lancedb.diagnose?.(options, { ...context(folder), embedder: undefined })) ?? [];

it('[Decision 64] two gateways that start at once on one folder see what the other wrote, and lose no change', async () => {
  const folder = temporaryFolder();
  const stores = await Promise.all([open(folder), open(folder)]);
  const [a, b] = stores as [Required<Provider>, Required<Provider>];
  const memories = await Promise.all(Array.from({ length: 20 }, (_, n) => stores[n % 2]?.add(drawn(n), call)));
  for (const store of stores)
    expect((await store.list(listOf('ana', { limit: 100 }), call)).length).toBe(memories.length);
  const { id = '' } = (await a.add(drawn(20), call)) ?? {};
  const patches = Array.from({ length: 10 }, (_, n) =>
    stores[n % 2]?.update({ ref: refTo(id), patch: { extensions: { [`x-${n}`]: n } }, vector: null }, call),
  );
  await Promise.all(patches);
  expect(Object.keys((await b.get(refTo(id), call))?.extensions ?? {})).toHaveLength(patches.length);
  expect(await Promise.all(stores.map((store) => store.delete(refTo(id), call)))).toContain(false);
  for (const store of stores) await store.close();
});

it('[Decision 64] the files of single writes are put together, and those of deleted memories go', async () => {
  const folder = temporaryFolder();
  const store = await open(folder);
  for (let n = 0; n < 60; n++) await store.add(drawn(n), call);
  const table = await opened(folder);
  expect(await table.countRows()).toBe(61);
  expect((await table.stats()).fragmentStats.numFragments).toBeLessThan(20);
  await store.erase({ user_id: 'ana' }, call);
  await store.close();
  // A start puts together too, and closing waits for it.
  await (await open(folder)).close();
  expect((await table.stats()).fragmentStats).toMatchObject({ numFragments: 1, lengths: { max: 1 } });
});

it('[Decision 50] wrong settings are refused with what helps', async () => {
  const folder = temporaryFolder();
  await writeFile(join(folder, 'file'), '');
  await expect(open(folder, { folder: join(folder, 'file') })).rejects.toThrow(
    /OMP_LANCEDB_FOLDER .* must be a folder/,
  );
  for (const address of ['db://memories', 's3://bucket/memories'])
    await expect(open(folder, { folder: address })).rejects.toThrow(/folder/);
  const theirs = join(folder, 'theirs');
  await (await connect(theirs)).createTable('notes', [{ id: 'a', vector: [1, 2, 3, 4] }]);
  await expect(open(folder, { folder: theirs, table: 'notes' })).rejects.toThrow(
    /not made by the gateway; .*OMP_LANCEDB_TABLE/,
  );
});

it('[Decision 50] doctor says what there is, and changes nothing', async () => {
  const folder = temporaryFolder();
  expect((await findingsOf(folder)).at(-1)?.message).toMatch(/no collection yet/);
  await (await open(folder)).close();
  expect(await findingsOf(folder)).toContainEqual({ area: 'size', level: 'ok', message: '1 points in 1 parts' });
});

it('[Decision 64] nothing is written into the folder of another application, and none is made', async () => {
  const theirs = temporaryFolder();
  // As Python's client does by itself.
  const application = await connect(theirs, { namespaceClientProperties: { manifest_enabled: 'false' } });
  await application.createTable('notes', [
    { id: 'a', vector: [1, 2, 3, 4], text: 'tea', metadata: { user_id: 'ana' } },
  ]);
  const at = { folder: theirs, table: 'notes', preset: 'langchain' };
  for (const options of [at, { ...at, preset: undefined }]) await findingsOf(theirs, options);
  const store = await open(theirs, at);
  expect(await store.list(listOf('ana'), call)).toHaveLength(1);
  await store.close();
  expect(await readdir(theirs)).toEqual(['notes.lance']);
  const absent = join(theirs, 'absent');
  for (const [options, says] of [
    [{ ...at, folder: absent }, `no folder ${absent}`],
    [{ ...at, table: 'others' }, 'OMP_LANCEDB_TABLE'],
  ] as const)
    expect(await findingsOf(theirs, options)).toMatchObject([
      { level: 'problem', message: expect.stringContaining(says) },
    ]);
  expect(await readdir(theirs)).toEqual(['notes.lance']);
});

it('[SPEC Errors provider_error] a table that is deleted under the gateway is an error that says so, not an empty answer', async () => {
  const folder = temporaryFolder();
  const store = await open(folder);
  await store.add(drawn(1), call);
  await rm(join(folder, 'lancedb'), { recursive: true });
  const gone = { code: 'provider_error', message: expect.stringMatching(/is gone/) };
  await expect(store.list(listOf('ana'), call)).rejects.toMatchObject(gone);
  await expect(store.add(drawn(2), call)).rejects.toMatchObject(gone);
  await expect(store.ping(call)).rejects.toMatchObject(gone);
  await store.close();
});
