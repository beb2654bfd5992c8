import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, parse as parsePath } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';

interface File {
  readonly services: Readonly<Record<string, { readonly environment?: Readonly<Record<string, string | null>> }>>;
}
interface Service {
  readonly image: string;
  readonly ports?: readonly string[];
  readonly volumes: readonly string[];
}
const FILES = ['docker-compose.yml', 'deploy/compose/stores.yml'] as const;
const [whole, stores] = FILES.map((file) => parse(readFileSync(file, 'utf8'), { merge: true }) as File) as [File, File];

test('[Decision 48] the stores of the override are a configuration that the gateway accepts, on services that exist', () => {
  expect(Object.keys(stores.services)).toEqual(['gateway']);
  const given = { ...whole.services.gateway?.environment, ...stores.services.gateway?.environment };
  const env = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [name, value?.replace(/^\$\{\w+:-(.*)\}$/, '$1')]),
  );
  const { config, warnings } = loadConfig({ env });
  expect(warnings).toEqual([]);
  expect(config.stores.map(({ name, mount, required }) => [name, mount, required])).toEqual([
    ['archive', 'archive', true],
    ['crm', 'crm', false],
  ]);
  const hosts = config.stores.map(
    ({ config: { postgres, pinecone } }) => new URL(postgres.url ?? pinecone.index_host ?? ''),
  );
  for (const { hostname } of hosts) expect(Object.keys(whole.services)).toContain(hostname);
  // What the comment starts.
  const [, started = ''] = /up --build (.+)$/m.exec(readFileSync(FILES[1], 'utf8')) ?? [];
  expect(Object.keys(whole.services)).toEqual(expect.arrayContaining(started.split(' ')));
});

const installed = (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, 'docker-compose')));

test.skipIf(!installed)('[Decision 48] docker-compose merges the two files', () => {
  const { status, stderr } = spawnSync('docker-compose', [...FILES.flatMap((file) => ['-f', file]), 'config', '-q'], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

/** Of databases to try: each file is one, with what it needs. */
const TRIED = readdirSync('deploy/compose').filter((file) => file !== 'stores.yml');

test.each(TRIED)(
  '[Decision 64] %s starts what its page describes, in versions, for this machine only, with its data in volumes',
  (file) => {
    const name = parsePath(file).name;
    const text = readFileSync(`deploy/compose/${file}`, 'utf8');
    const { services, volumes } = parse(text) as {
      services: Readonly<Record<string, Service>>;
      volumes: Readonly<Record<string, null>>;
    };
    const mounted = Object.values(services).flatMap((service) => {
      expect(service.image).toMatch(/:(?:v?\d+\.\d+\.\d+|RELEASE\.[\w-]+)$/);
      expect(service).toMatchObject({ restart: 'unless-stopped', volumes: [expect.stringMatching(/^\w+:\//)] });
      return service.volumes.map((volume) => volume.split(':')[0]);
    });
    expect(mounted.sort()).toEqual(Object.keys(volumes).sort());
    const { [name]: database, ...others } = services;
    for (const other of Object.values(others)) expect(other.ports).toBeUndefined();
    const ports = database?.ports?.map((each) => /^127\.0\.0\.1:(\d+):\d+$/.exec(each)?.[1]) ?? [];
    expect(ports).not.toContain(undefined);
    const page = `docs/backends/${name}.md`;
    expect(readFileSync(page, 'utf8')).toContain(`http://127.0.0.1:${ports[0]}`);
    expect(readFileSync(page, 'utf8')).toContain(`docker compose -f deploy/compose/${file} up --detach`);
    expect(text).toContain(`docker compose -f deploy/compose/${file} up --detach`);
    expect(text).toContain(page);
  },
);

test.skipIf(!installed).each(TRIED)('docker-compose accepts %s', (file) => {
  const { status, stderr } = spawnSync('docker-compose', ['-f', `deploy/compose/${file}`, 'config', '-q'], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
