import { EventEmitter, once } from 'node:events';
import { expect, it } from 'vitest';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { runConformance } from '../../src/cli/conformance.ts';
import { commandHere } from '../support/command.ts';
import { FULL } from '../support/full.ts';
import { beforeGet, serverForTest } from '../support/server.ts';
import { dataFolder, serveHere, startGateway, startProgram } from './gateway.ts';

const conformance = (argv: readonly string[], env = {}) =>
  commandHere((terminal) => runConformance(argv, terminal), env);

it('omp-gateway conformance passes on a gateway with keys, and leaves nothing', async () => {
  const [all, narrow] = [newKey(), newKey()];
  const keys = [
    { name: 'all', key: toHashedKey(all), grants: ['*:*'] },
    { name: 'narrow', key: toHashedKey(narrow), grants: ['*:elsewhere'] },
  ];
  const { url } = await serveHere({ OMP_AUTH_KEYS: JSON.stringify(keys) });
  const argv = ['--url', url, '--narrow-key-env', 'NARROW'];
  const { status, stdout, stderr } = await conformance(argv, { OMP_KEY: all.key, NARROW: narrow.key });
  expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(/^105 passed, 0 failed, 0 warnings, 2 skipped$/m);
  const users = await fetch(`${url}/users`, { headers: { authorization: `Bearer ${all.key}` } });
  expect(await users.json()).toEqual({ items: [], next_cursor: null });
});

it('omp-gateway conformance waits for memories that are ingested asynchronously', async () => {
  const env = { OMP_INGESTION: 'async', OMP_SEARCH_MODE: 'hybrid', OMP_DATA_DIR: await dataFolder() };
  const gateway = await startGateway({ env });
  // What a memory is while it waits, test/postgres/ingestion.test.ts decides.
  const argv = ['--url', gateway.url, ...(FULL ? ['--profile', 'lifecycle'] : []), '--profile', 'search'];
  const { status, stdout, stderr } = await conformance(argv);
  expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
  expect((await gateway.client.users()).items).toEqual([]);
});

it('Ctrl-C ends omp-gateway conformance after the current check, which deletes what it added', async () => {
  const events = new EventEmitter();
  const released = once(events, 'release');
  const asked = once(events, 'get');
  const hold = () => {
    events.emit('get');
    return released;
  };
  const { url, client } = await serverForTest({ alter: beforeGet(hold) });
  const program = startProgram({ args: ['conformance', '--url', url] });
  await program.output(/^ok +add\.id/m);
  await asked;
  program.child.kill('SIGINT');
  events.emit('release');
  const { status, stdout, stderr } = await program.ended;
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('stopped before the end') });
  expect(stdout).not.toContain('context.budget');
  expect((await client.users()).items).toEqual([]);
});
