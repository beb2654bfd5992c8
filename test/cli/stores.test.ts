import { expect, it } from 'vitest';
import { runBackup } from '../../src/cli/backup.ts';
import { runReembed } from '../../src/cli/reembed.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { runHere } from '../move/run.ts';
import { commandHere } from '../support/command.ts';

const stores = {
  scratch: { mount: 'scratch', provider: 'memory', search: { mode: 'keyword' } },
  notes: { mount: 'notes', search: { mode: 'keyword' } },
};
const env = { OMP_PROVIDER: 'memory', OMP_SEARCH_MODE: 'keyword', OMP_STORES: JSON.stringify(stores) };

/** What a command prints. */
async function told(run: (terminal: Terminal) => Promise<number>): Promise<string> {
  const ending = await commandHere(run, env);
  expect(ending).toMatchObject({ status: 1, stdout: '' });
  return ending.stderr;
}

it('[Decision 48] commands name the store and its setting', async () => {
  expect(await told((terminal) => runBackup(['file', '--store', 'scratch'], terminal))).toBe(
    'omp-gateway: stores.scratch: the provider memory stores nothing in a data folder\n',
  );
  expect(await told((terminal) => runReembed(['--store', 'notes'], terminal))).toBe(
    'omp-gateway: stores.notes: search.mode is keyword, which uses no embedder; set it to hybrid or vector\n',
  );
  expect(await told((terminal) => runBackup(['file', '--store', 'crm'], terminal))).toBe(
    'omp-gateway: stores.crm: there is no such store; there are root, scratch, notes\n',
  );
  expect((await runHere(['export', 'file', '--store', 'crm'], env)).stderr).toContain(
    'stores.crm: there is no such store',
  );
});
