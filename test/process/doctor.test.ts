import { beforeEach, describe, expect, test } from 'vitest';
import { testDatabase } from '../postgres/databases.ts';
import { FULL } from '../support/full.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { dataFolder, runProgram, startGateway, temporaryFolder } from './gateway.ts';

const doctor = (env: Readonly<Record<string, string>>, ...args: readonly string[]) =>
  runProgram({ args: ['doctor', ...args], env: { OMP_SEARCH_MODE: 'keyword', ...env } });

test('doctor reports on standard output and ends with a status for scripts', async () => {
  const fine = await doctor({ OMP_PROVIDER: 'memory' });
  expect(fine).toMatchObject({
    status: 0,
    stderr: '',
    stdout: expect.stringContaining('No problems found.'),
  });
  expect(fine.stdout).not.toContain('\u001b');
  const coloured = await doctor({ OMP_PROVIDER: 'memory', FORCE_COLOR: '1' });
  expect(coloured.stdout).toContain('\u001b[32m');
  const url = 'postgres://omp:hunter2@127.0.0.1:1/omp';
  const bad = await doctor({ DATABASE_URL: url, OPENAI_API_KEY: 'sk-hunter2' }, '--json');
  expect(bad).toMatchObject({ status: 1, stderr: '' });
  expect(JSON.parse(bad.stdout)).toMatchObject({ ok: false });
  expect(bad.stdout).not.toContain('hunter2');
  expect(await doctor({}, '--jsn')).toMatchObject({ status: 2, stdout: '' });
});

test.runIf(FULL)(
  'doctor checks the embedded database of a running and of a killed gateway and changes nothing',
  async () => {
    // The socket of the running gateway is in this TMPDIR.
    const env = { OMP_DATA_DIR: await dataFolder(), TMPDIR: temporaryFolder() };
    const gateway = await startGateway({ env });
    const { id } = await gateway.client.add({ user_id: 'penelope', content: 'lives in Lisbon' });
    const running = await doctor(env);
    expect(running).toMatchObject({
      status: 0,
      stderr: '',
      stdout: expect.stringContaining('a gateway runs on the data folder'),
    });
    await gateway.kill();
    const after = await doctor(env);
    expect(after).toMatchObject({
      status: 0,
      stderr: '',
      stdout: expect.stringContaining('all indexes of the gateway exist'),
    });
    expect(after.stdout).not.toMatch(/penelope|Lisbon|ANALYZE/);
    const again = await startGateway({ env });
    expect(await again.client.get(id)).toMatchObject({ content: 'lives in Lisbon' });
  },
);

describe('on a PostgreSQL server', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

  test('doctor checks it while gateways serve, and shows no password', async () => {
    const db = await testDatabase();
    const url = await db.role(
      'grant create on database DATABASE to ROLE'.replace('DATABASE', new URL(db.url).pathname.slice(1)),
    );
    await db.sql('create extension vector');
    const env = { DATABASE_URL: url };
    const gateway = await startGateway({ env });
    const [found] = await Promise.all([doctor(env), gateway.client.add({ user_id: 'ana', content: 'x' })]);
    expect(found).toMatchObject({ status: 0, stderr: '' });
    expect(found.stdout).toContain('the role may read and write all tables of the gateway');
    expect(found.stdout).not.toContain('hunter2');
  });
});
