import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { WireMemory } from '../support/wire.ts';
import { dataFolder, runProgram, startGateway, startProgram, temporaryFolder } from './gateway.ts';

const KEYWORD = { search: { mode: 'keyword' } };

/** A gateway with the root store and `notes` in data folders, and `scratch` in memory. */
async function configured() {
  const [root, notes] = [await dataFolder(), await dataFolder()];
  const stores = {
    notes: { mount: 'a/notes', data_dir: notes, ...KEYWORD },
    scratch: { mount: 'scratch', provider: 'memory', ...KEYWORD, required: false },
  };
  return {
    OMP_DATA_DIR: root,
    OMP_SEARCH_MODE: 'keyword',
    OMP_STORES: JSON.stringify(stores),
    TMPDIR: temporaryFolder(),
  };
}

it('[Decision 48] each store is saved, restored, exported and compared by its name', async () => {
  const env = await configured();
  const run = async (own: Record<string, string>, ...args: string[]) => {
    const { status, stdout, stderr } = await runProgram({ args, env: own });
    expect(status, `${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
  };
  const gateway = await startGateway({ env });
  const note = await gateway.client.add({ user_id: 'ana', content: 'a note', scope: 'a/notes/x' });
  await gateway.client.add({ user_id: 'ana', content: 'of the root store' });
  await gateway.client.add({ user_id: 'ana', content: 'scratch', scope: 'scratch' });
  expect((await gateway.stop()).status).toBe(0);

  const folder = temporaryFolder();
  const contents = async (name: string, ...args: string[]) => {
    const file = join(folder, `${name}.ndjson`);
    await run(env, 'export', file, ...args);
    const lines = readFileSync(file, 'utf8').trim().split('\n').slice(1, -1);
    return lines.map((line) => JSON.parse(line) as WireMemory);
  };
  const all = await contents('all');
  expect(all.map(({ id, scope }) => [id === note.id, scope]).sort()).toEqual([
    [false, null],
    [true, 'a/notes/x'],
  ]);
  const alone = await contents('notes', '--store', 'notes');
  expect(alone).toEqual([{ ...note, id: note.id.replace('~notes~', ''), scope: 'x' }]);

  const backup = join(folder, 'notes.backup');
  await run(env, 'backup', backup, '--store', 'notes');
  const stores = JSON.parse(env.OMP_STORES);
  stores.notes.data_dir = join(folder, 'restored');
  const restored = { ...env, OMP_STORES: JSON.stringify(stores) };
  await run(restored, 'restore', backup, '--store', 'notes');
  await run(restored, 'verify', 'config#notes', join(folder, 'notes.ndjson'));
});

it('[Decision 48] a required store that cannot be opened stops the start, and the message names it and its settings', async () => {
  const stores = { far: { mount: 'far', ...KEYWORD, postgres: { url: 'postgres://127.0.0.1:1/x' } } };
  const env = { OMP_PROVIDER: 'memory', OMP_SEARCH_MODE: 'keyword', OMP_STORES: JSON.stringify(stores) };
  const { status, stderr } = await startProgram({ env }).ended;
  expect(status).toBe(1);
  expect(stderr).toMatch(/^omp-gateway: stores\.far: /);
  expect(stderr.split('\n')[0]).not.toMatch(/DATABASE_URL|OMP_/);
});
