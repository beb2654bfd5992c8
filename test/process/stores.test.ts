import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { WireMemory } from '../support/wire.ts';
import { dataFolder, runProgram, startGateway, startProgram, temporaryFolder } from './gateway.ts';

const KEYWORD = { search: { mode: 'keyword' } };

it('[Decision 48] one store of several is saved, restored, exported and compared by its name', async () => {
  const folder = temporaryFolder();
  const withNotesIn = (data_dir: string) => ({
    OMP_PROVIDER: 'memory',
    OMP_SEARCH_MODE: 'keyword',
    OMP_STORES: JSON.stringify({ notes: { mount: 'a/notes', data_dir, ...KEYWORD } }),
    TMPDIR: folder,
  });
  const env = withNotesIn(await dataFolder());
  const run = async (own: Record<string, string>, ...args: string[]) => {
    const { status, stdout, stderr } = await runProgram({ args, env: own });
    expect(status, `${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
  };
  const written = (file: string) =>
    readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .slice(1, -1)
      .map((line) => JSON.parse(line) as WireMemory);
  const [all, alone, backup] = ['all', 'alone', 'backup'].map((name) => join(folder, name)) as [string, string, string];

  const gateway = await startGateway({ env });
  const note = await gateway.client.add({ user_id: 'ana', content: 'a note', scope: 'a/notes/x' });
  const own = await gateway.client.add({ user_id: 'ana', content: 'of the root store' });
  await run(env, 'export', all, '--from', gateway.url);
  expect(written(all)).toEqual([own, note]);
  await run(env, 'backup', backup, '--store', 'notes');
  expect((await gateway.stop()).status).toBe(0);

  const restored = withNotesIn(join(folder, 'restored'));
  await run(restored, 'restore', backup, '--store', 'notes');
  await run(restored, 'export', alone, '--store', 'notes');
  expect(written(alone)).toEqual([{ ...note, id: note.id.replace('~notes~', ''), scope: 'x' }]);
  await run(env, 'verify', 'config#notes', alone);
});

it('[Decision 48] a required store that cannot be opened stops the start, and the message names it and its settings', async () => {
  const stores = { far: { mount: 'far', ...KEYWORD, postgres: { url: 'postgres://127.0.0.1:1/x' } } };
  const env = { OMP_PROVIDER: 'memory', OMP_SEARCH_MODE: 'keyword', OMP_STORES: JSON.stringify(stores) };
  const { status, stderr } = await startProgram({ env }).ended;
  expect(status).toBe(1);
  expect(stderr).toMatch(/^omp-gateway: stores\.far: /);
  expect(stderr.split('\n')[0]).not.toMatch(/DATABASE_URL|OMP_/);
});
