import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';

interface File {
  readonly services: Readonly<Record<string, { readonly environment?: Readonly<Record<string, string | null>> }>>;
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

test.each([
  ['qdrant', 6333, '/qdrant/storage'],
  ['chroma', 8000, '/data'],
] as const)(
  '%s of its compose file has a version, its data in a volume, and is published to this machine only',
  (name, port, folder) => {
    const text = readFileSync(`deploy/compose/${name}.yml`, 'utf8');
    const { services } = parse(text) as { services: Record<string, object> };
    expect(services).toEqual({
      [name]: expect.objectContaining({
        image: expect.stringMatching(/:v?\d+\.\d+\.\d+$/),
        ports: [`127.0.0.1:${port}:${port}`],
        volumes: [`${name}:${folder}`],
      }),
    });
    expect(loadConfig({ env: { OMP_PROVIDER: name } }).config[name].url).toBe(`http://127.0.0.1:${port}`);
  },
);

test.skipIf(!installed).each(['qdrant', 'chroma'])('docker-compose accepts the file of %s', (name) => {
  const { status, stderr } = spawnSync('docker-compose', ['-f', `deploy/compose/${name}.yml`, 'config', '-q'], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});
