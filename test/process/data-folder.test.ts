import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FULL } from '../support/full.ts';
import { freshUser } from '../support/subject.ts';
import { dataFolder, runProgram, startGateway, startProgram, temporaryFolder } from './gateway.ts';

test('a second gateway on a data folder does not start, the first continues, and once it is killed the folder is free', async () => {
  const folder = await dataFolder();
  const env = { OMP_DATA_DIR: folder, OMP_SEARCH_MODE: 'keyword' };
  const first = await startGateway({ env });
  const second = await runProgram({ env });
  expect(second).toMatchObject({ status: 1, stdout: '' });
  expect(second.stderr).toContain(`the data folder ${folder} is in use by another omp-gateway`);
  expect(second.stderr).toContain('OMP_DATA_DIR');
  expect(second.stderr).not.toMatch(/^\s+at /m);
  const { id } = await first.client.add({ user_id: freshUser(), content: 'still here' });
  expect((await first.client.get(id)).content).toBe('still here');
  expect((await first.kill()).signal).toBe('SIGKILL');
  const { client } = await startGateway({ env });
  expect((await client.get(id)).content).toBe('still here');
});

/** What the steps of a first start leave in the folder. */
const STEPS = ['lock', 'postgres.unfinished', 'postgres.unfinished/global/pg_control', 'postgres', 'omp-gateway.json'];

// test/chaos/first-start.test.ts kills at random moments.
test.runIf(FULL).each(STEPS)('after a kill when a first start has made %s, the next start serves', async (step) => {
  const folder = temporaryFolder();
  const env = { OMP_DATA_DIR: folder, OMP_SEARCH_MODE: 'keyword', TMPDIR: temporaryFolder() };
  const first = startProgram({ env });
  while (!existsSync(join(folder, step))) await new Promise((resolve) => setImmediate(resolve));
  first.child.kill('SIGKILL');
  await first.ended;
  const { client, stop } = await startGateway({ env });
  const { id } = await client.add({ user_id: freshUser(), content: 'kept' });
  expect((await client.get(id)).content).toBe('kept');
  expect((await stop()).status).toBe(0);
  expect(readdirSync(folder).sort()).toEqual(['lock', 'omp-gateway.json', 'postgres']);
});

test.runIf(FULL)('a first start takes little more memory than any other', async ({ skip }) => {
  skip(!existsSync('/proc/self/status'), 'there is no /proc');
  const gateway = await startGateway({ env: { OMP_SEARCH_MODE: 'hybrid' } });
  const status = readFileSync(`/proc/${gateway.child.pid}/status`, 'utf8');
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(status) ?? [];
  // V8 13.6 takes 600 MB for a moment to compile one function of the engine.
  const limit = Number.parseInt(process.versions.v8, 10) < 13 ? 640 : 1_200;
  expect(Number(kilobytes) / 1_024).toBeLessThan(limit);
});
