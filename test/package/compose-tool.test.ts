import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { DEFAULT, FILE, PROFILES, services } from './compose.ts';

const installed = (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, 'docker-compose')));

/** The file as compose itself understands it, in an environment of nothing but the given variables. */
const resolved = (profiles: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const { stdout, stderr, status } = spawnSync(
    'docker-compose',
    ['-f', FILE, ...profiles.flatMap((name) => ['--profile', name]), 'config'],
    { encoding: 'utf8', env: { PATH: process.env.PATH, ...env } },
  );
  return { status, stderr, services: (parse(stdout) as { services: typeof services } | null)?.services ?? services };
};

test
  .skipIf(!installed)
  .each([[], ...Object.keys(PROFILES).map((name) => [name]), ['redis', 'monitoring'], Object.keys(PROFILES)])(
  'compose accepts the file with profiles %s',
  (...profiles) => {
    expect(resolved(profiles)).toMatchObject({ status: 0, stderr: '' });
  },
);

test.skipIf(!installed)('compose uses its defaults, and values from the environment', () => {
  const defaults = resolved(Object.keys(PROFILES)).services;
  expect(Object.keys(defaults).sort()).toEqual([...DEFAULT, ...Object.values(PROFILES).flat()].sort());
  expect(defaults.gateway.ports).toEqual(['127.0.0.1:8080:8080/tcp']);
  const password = 'p@ss/w?rd#';
  const access = { OMP_AUTH: 'required', OMP_AUTH_KEYS: '[{"name": "a"}]', OMP_ALLOWED_HOSTS: 'memory.example.com' };
  const own = resolved(['embedded'], { POSTGRES_PASSWORD: password, OMP_PORT: '9000', ...access }).services;
  expect(own.gateway.environment).toMatchObject(access);
  expect(own.embedded.environment).toMatchObject(access);
  expect(own.gateway.ports).toEqual(['127.0.0.1:9000:8080/tcp']);
  expect(own.postgres.environment?.POSTGRES_PASSWORD).toBe(password);
  expect(own.gateway.environment?.PGPASSWORD).toBe(password);
});
