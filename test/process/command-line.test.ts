import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { runProgram, startGateway, temporaryFolder } from './gateway.ts';

test('--version prints the version of the package, --help explains every setting of the environment and ends with status 0', async () => {
  const { status, stdout, stderr } = await runProgram({ args: ['--help'] });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  for (const word of ['Usage: omp-gateway', '--port', 'OMP_PROVIDER', 'OMP_DATA_DIR', 'DATABASE_URL'])
    expect(stdout).toContain(word);
  expect(await runProgram({ args: ['--version'] })).toMatchObject({
    status: 0,
    stdout: `${packageJson.version}\n`,
    stderr: '',
  });
});

test('a port in use is reported with its setting before a database is created', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const taken = String((other.address() as AddressInfo).port);
  for (const name of ['OMP_PORT', 'OMP_METRICS_PORT']) {
    const folder = temporaryFolder();
    const { status, stderr } = await runProgram({ env: { OMP_DATA_DIR: folder, [name]: taken } });
    expect(status).toBe(1);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(stderr).toContain(`port ${taken} is in use by another program; set ${name} to another one`);
    expect(readdirSync(folder)).toEqual([]);
  }
});

test('an unknown flag ends with status 2, a suggestion and a hint at --help', async () => {
  const { status, stdout, stderr } = await runProgram({ args: ['--prot', '1'] });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toMatch(/'--prot'.*--port.*--help/s);
});

test('a broken configuration lists all mistakes at once, from file, environment and command line', async () => {
  const config = join(temporaryFolder(), 'omp.yaml');
  writeFileSync(config, 'search:\n  keyword_weight: 7\nprot: 1\n');
  const { status, stdout, stderr } = await runProgram({
    args: ['--config', config, '--log-level', 'loud'],
    env: { OMP_PORT: 'eighty', OMP_MAX_REQUEST_BYTES: '1' },
  });
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  for (const mistake of ['keyword_weight', 'prot', '--log-level', 'OMP_PORT', 'OMP_MAX_REQUEST_BYTES'])
    expect(stderr).toContain(mistake);
  expect(stderr).not.toMatch(/^\s+at /m);
});

test('the command line wins over the environment, the environment over the file', async () => {
  const config = join(temporaryFolder(), 'omp.yaml');
  writeFileSync(config, 'provider: postgres\nhost: 127.0.0.2\nmemory:\n  scopes: none\n');
  const { url, client } = await startGateway({
    args: ['--config', config, '--host', '127.0.0.3'],
    env: { OMP_PROVIDER: 'memory', OMP_HOST: '127.0.0.4' },
  });
  expect(new URL(url).hostname).toBe('127.0.0.3');
  expect(await client.capabilities()).toMatchObject({ provider: 'memory', features: { scopes: 'tags' } });
});

test('an unreachable database is reported without stack trace and password', async () => {
  const { status, stdout, stderr } = await runProgram({
    // Nothing listens on the first port.
    env: { DATABASE_URL: 'postgres://omp:s3cret-word@127.0.0.1:1/omp', OMP_SEARCH_MODE: 'keyword' },
  });
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/cannot connect to the database.*DATABASE_URL/s);
  expect(stderr).not.toContain('s3cret-word');
  expect(stderr).not.toMatch(/^\s+at /m);
});
