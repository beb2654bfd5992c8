import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { copyEmptyPostgres } from '../support/empty-postgres.ts';
import { expectError } from '../support/expect-error.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { freshUser } from '../support/subject.ts';
import { type RunningGateway, runProgram, startGateway, temporaryFolder } from './gateway.ts';

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

/** Asks until the answer has this status; the test's own time limit is the only one. */
async function untilStatus(status: number, gateway: RunningGateway, key?: string): Promise<void> {
  while ((await listAs(gateway, key)).status !== status) await new Promise((resolve) => setTimeout(resolve, 100));
}

const filesUnder = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

describe('keys of an embedded Postgres', () => {
  it('[SPEC Authentication 5] [Decision 13] a key is shown once, works, and is found nowhere else', async () => {
    const folder = temporaryFolder();
    await copyEmptyPostgres(folder);
    const env = { OMP_DATA_DIR: folder, TMPDIR: temporaryFolder() };
    const key = await create(env, 'editor', '--grant', 'read:*', '--user', 'ana');
    const gateway = await startGateway({ env });

    expectError(await listAs(gateway), 'unauthorized');
    expectError(await listAs(gateway, `${key.slice(0, -1)}-`), 'unauthorized');
    expect((await listAs(gateway, key)).status).toBe(200);
    const add = gateway.client.tell(
      'POST',
      '/memories',
      { user_id: 'ana', content: 'x' },
      { authorization: `Bearer ${key}` },
    );
    expectError(await add, 'scope_denied');

    expect(await keys(env, 'list')).toContain('editor');
    const second = await create(env, 'second', '--grant', 'read:*', '--user', 'ana');
    expect((await listAs(gateway, second)).status).toBe(200);
    await keys(env, 'revoke', 'second');
    await untilStatus(401, gateway, second);

    const processes = execFileSync('ps', ['-ww', '-p', String(gateway.child.pid), '-o', 'args='], { encoding: 'utf8' });
    expect(processes).toContain('main.js');
    const { stdout, stderr } = await gateway.stop();
    const table = await keys(env, 'list');
    const json = await keys(env, 'list', '--json');
    const [, editor] = JSON.parse(json);
    expect(editor).toMatchObject({ name: 'editor', last_used_at: expect.stringMatching(/Z$/) });

    const secret = key.slice(-43);
    for (const text of [processes, stdout, stderr, table, json]) expect(text).not.toContain(secret);
    const files = filesUnder(folder).map((file) => readFileSync(file));
    expect(files.some((bytes) => bytes.includes('editor'))).toBe(true);
    expect(files.some((bytes) => bytes.includes(secret))).toBe(false);
  });
});

describe('keys of the configuration', () => {
  it('[SPEC Authentication 2] what --print prints makes a gateway that keeps none of its own know the key', async () => {
    const printed = await runProgram({ args: ['keys', 'create', 'editor', '--grant', '*:*', '--print'] });
    const [key = ''] = printed.stdout.split('\n');
    const [, OMP_AUTH_KEYS = ''] = /OMP_AUTH_KEYS=(.*)/.exec(printed.stderr) ?? [];
    const gateway = await startGateway({ env: { OMP_PROVIDER: 'memory', OMP_AUTH_KEYS } });
    expectError(await listAs(gateway), 'unauthorized');
    expect((await listAs(gateway, key)).status).toBe(200);
    const viaHeader = await gateway.client.ask('/memories', { user_id: freshUser() }, { 'x-api-key': key });
    expect(viaHeader.status).toBe(200);
    const { stdout, stderr } = await gateway.stop();
    expect(stdout + stderr).not.toContain(key.slice(-43));
  });
});

describe('keys of several replicas', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

  it('[Decision 13] the first key closes all of them, works on all, and is refused by all once revoked', async () => {
    const schema = `omp_test_${randomBytes(6).toString('hex')}`;
    onTestFinished(async () => {
      const client = new pg.Client({ connectionString: SERVER_URL });
      await client.connect();
      await client.query(`drop schema if exists "${schema}" cascade`);
      await client.end();
    });
    const env = { DATABASE_URL: SERVER_URL, OMP_POSTGRES_SCHEMA: schema };
    const replicas = [await startGateway({ env }), await startGateway({ env })] as const;
    for (const gateway of replicas) expect((await listAs(gateway)).status).toBe(200);

    const key = await create(env, 'editor', '--grant', 'read:*');
    for (const gateway of replicas) {
      expect((await listAs(gateway, key)).status).toBe(200);
      await untilStatus(401, gateway);
      expect((await listAs(gateway, key)).status).toBe(200);
    }
    await keys(env, 'revoke', 'editor');
    for (const gateway of replicas) await untilStatus(401, gateway, key);
    for (const gateway of replicas) expectError(await listAs(gateway), 'unauthorized');
  });
});
