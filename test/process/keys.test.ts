import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { dataFolder, type RunningGateway, runProgram, startGateway, temporaryFolder } from './gateway.ts';

type Environment = Readonly<Record<string, string>>;

/** Runs `omp-gateway keys …`, which must succeed; returns what it printed. */
async function keys(env: Environment, ...args: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await runProgram({ args: ['keys', ...args], env });
  expect(status, stderr).toBe(0);
  return stdout;
}

const create = async (env: Environment, ...args: readonly string[]): Promise<string> => {
  const key = (await keys(env, 'create', ...args)).trimEnd();
  expect(key).toMatch(/^omp_[a-z0-9]{12}_[A-Za-z0-9_-]{43}$/);
  return key;
};

const listAs = (gateway: RunningGateway, key?: string) =>
  gateway.client.ask('/memories', { user_id: 'ana' }, key === undefined ? {} : { authorization: `Bearer ${key}` });

const filesUnder = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

it('[SPEC Authentication 2|5] [Decision 13] [Decision 41] a key is shown once, is stored nowhere, and closes the gateway for good', async () => {
  const folder = await dataFolder();
  const env = { OMP_DATA_DIR: folder, TMPDIR: temporaryFolder(), OMP_LOG_LEVEL: 'trace' };
  const printed = await runProgram({ args: ['keys', 'create', 'printed', '--grant', 'read:*', '--print'] });
  const [configured = ''] = printed.stdout.split('\n');
  const [, OMP_AUTH_KEYS = ''] = /OMP_AUTH_KEYS=(.*)/.exec(printed.stderr) ?? [];
  const admin = await create(env, 'admin', '--grant', 'admin:*');
  const gateway = await startGateway({ env: { ...env, OMP_AUTH_KEYS } });
  const wanted = { name: 'editor', grants: ['read:*'], users: ['ana'] };
  expectError(await gateway.client.tell('POST', '/keys', wanted), 'unauthorized');
  const made = await gateway.client.tell('POST', '/keys', wanted, { authorization: `Bearer ${admin}` });
  const { id, key } = made.body as { id: string; key: string };

  expectError(await listAs(gateway), 'unauthorized');
  expectError(await listAs(gateway, `${key.slice(0, -1)}-`), 'unauthorized');
  expectError(await listAs(gateway, admin), 'scope_denied');
  for (const good of [configured, key]) expect((await listAs(gateway, good)).status).toBe(200);

  const processes = execFileSync('ps', ['-ww', '-p', String(gateway.child.pid), '-o', 'args='], { encoding: 'utf8' });
  expect(processes).toContain('main.js');
  const { stdout, stderr } = await gateway.stop();
  expect(stdout).toContain(id);
  expect(stdout + stderr).not.toMatch(/sha256:[0-9a-f]{64}/);
  const json = await keys(env, 'list', '--json');
  const used = { last_used_at: expect.stringMatching(/Z$/) };
  expect(JSON.parse(json)).toMatchObject([{ ...wanted, ...used }, { name: 'admin' }]);

  const files = filesUnder(folder).map((file) => readFileSync(file));
  expect(files.some((bytes) => bytes.includes('editor'))).toBe(true);
  for (const secret of [configured, admin, key].map((one) => one.slice(-43))) {
    for (const text of [processes, stdout, stderr, json]) expect(text).not.toContain(secret);
    expect(files.some((bytes) => bytes.includes(secret))).toBe(false);
  }

  const again = await startGateway({ env });
  expect((await listAs(again, key)).status).toBe(200);
  await keys(env, 'revoke', 'editor');
  // It notices within seconds.
  await eventually(async () => expect((await listAs(again, key)).status).toBe(401));
  expectError(await listAs(again), 'unauthorized');
});
