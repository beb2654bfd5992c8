import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FULL } from '../support/full.ts';
import { freshUser } from '../support/subject.ts';
import { dataFolder, runProgram, startGateway, startProgram, temporaryFolder } from './gateway.ts';

test('a second gateway on the same data folder does not start, and the first continues', async () => {
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
});

test('the data folder of a killed or stopped gateway is free at once', async () => {
  const env = { OMP_DATA_DIR: await dataFolder() };
  const killed = await startGateway({ env });
  const { id } = await killed.client.add({ user_id: freshUser(), content: 'kept' });
  expect((await killed.kill()).signal).toBe('SIGKILL');
  const stopped = await startGateway({ env });
  expect((await stopped.client.get(id)).content).toBe('kept');
  expect((await stopped.stop()).status).toBe(0);
  const { client } = await startGateway({ env });
  expect((await client.get(id)).content).toBe('kept');
});

test.runIf(FULL)('memories without vectors are not searched by vectors', async () => {
  const env = { OMP_DATA_DIR: await dataFolder() };
  const keyword = await startGateway({ env });
  const { id } = await keyword.client.add({ user_id: freshUser(), content: 'added without a vector' });
  await keyword.stop();
  const hybrid = await runProgram({ env: { ...env, OMP_SEARCH_MODE: 'hybrid' } });
  expect(hybrid.status).toBe(1);
  expect(hybrid.stderr).toMatch(/have no vector.*OMP_SEARCH_MODE=keyword.*omp-gateway reembed/s);
  expect(hybrid.stderr).not.toMatch(/^\s+at /m);
  const again = await startGateway({ env });
  expect((await again.client.get(id)).content).toBe('added without a vector');
});

test('[Decision 13] a gateway whose database was lost does not start, so that it cannot start open', async () => {
  const env = { OMP_DATA_DIR: await dataFolder() };
  const made = await runProgram({ args: ['keys', 'create', 'mine', '--grant', '*:*'], env });
  expect(made.status, made.stderr).toBe(0);
  rmSync(join(env.OMP_DATA_DIR, 'postgres/PG_VERSION'));
  const refused = await runProgram({ env });
  expect(refused.status).toBe(1);
  expect(refused.stderr).toMatch(/PG_VERSION is missing.*restore the whole data folder from a backup/);
  expect(refused.stderr).not.toMatch(/^\s+at /m);
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
