import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { embeddingOptions } from '../../src/config/embedding-options.ts';
import { loadConfig } from '../../src/config/load.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { openEmbedder } from '../../src/embedding/open.ts';
import { recordingLog } from '../support/subject.ts';

type Name = 'gateway' | 'postgres' | 'embedded' | 'redis' | 'pinecone' | 'pinecone-gateway';

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly platform?: string;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>> | readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly profiles?: readonly string[];
  readonly restart: string;
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
}

const FILE = 'docker-compose.yml';
const PROFILES = ['embedded', 'redis', 'pinecone-local'];
const { services, volumes } = parse(readFileSync(FILE, 'utf8'), { merge: true }) as {
  services: Readonly<Record<Name, Service>>;
  volumes: Readonly<Record<string, null>>;
};
const { gateway, postgres, embedded, redis, pinecone, 'pinecone-gateway': onPinecone } = services;
const GATEWAYS = [gateway, embedded, onPinecone];

const installed = (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, 'docker-compose')));

/** The file as compose itself understands it, in an environment of nothing but the given variables. */
const resolved = (env: Readonly<Record<string, string>>): string =>
  execFileSync('docker-compose', ['-f', FILE, ...PROFILES.flatMap((name) => ['--profile', name]), 'config'], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...env },
  });

test('compose up starts the gateway once Postgres is ready, and nothing else', () => {
  expect(Object.keys(services).filter((name) => !services[name as Name].profiles)).toEqual(['gateway', 'postgres']);
  expect(gateway.depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
  expect(postgres.healthcheck?.test).toContain('pg_isready');
  expect(gateway.environment?.DATABASE_URL).toBe('postgres://omp@postgres:5432/omp');
  expect(postgres.environment).toMatchObject({ POSTGRES_USER: 'omp', POSTGRES_DB: 'omp' });
  expect(postgres.environment?.POSTGRES_PASSWORD).toBe(gateway.environment?.PGPASSWORD);
});

test('pgvector is pinned to a release that has its known faults fixed', () => {
  // Below 0.8.4: CVE-2026-3172, and HNSW indexes that a vacuum may corrupt.
  const [, ...version] = /^pgvector\/pgvector:(\d+)\.(\d+)\.(\d+)-pg\d+$/.exec(postgres.image) ?? [];
  const [major = 0, minor = 0, patch = 0] = version.map(Number);
  expect(major * 1_000_000 + minor * 1_000 + patch).toBeGreaterThanOrEqual(8_004);
});

test('only this machine reaches the gateway, and nobody outside the network of compose what stands behind it', () => {
  for (const { ports } of GATEWAYS) {
    expect(ports).toHaveLength(1);
    expect(ports?.[0]).toMatch(/^127\.0\.0\.1:.*:8080$/);
  }
  for (const { ports } of [postgres, redis, pinecone]) expect(ports).toBeUndefined();
});

test('data outlives its containers in named volumes', () => {
  expect(postgres.volumes).toEqual(['postgres:/var/lib/postgresql/data']);
  expect(embedded.volumes).toEqual(['embedded:/data']);
  expect(Object.keys(volumes)).toEqual(['postgres', 'embedded']);
});

test('the gateway writes to its volume and to memory only', () => {
  for (const service of GATEWAYS) {
    expect(service).toMatchObject({ build: '.', read_only: true, tmpfs: ['/tmp'] });
    expect(service).toMatchObject({ cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
  }
});

test('what decides who gets in reaches the gateway, under names that exist', () => {
  const known = new Set([...SETTINGS.map(({ env }) => env), 'PGPASSWORD']);
  for (const { environment = {} } of GATEWAYS) {
    expect(Object.keys(environment).filter((name) => !known.has(name))).toEqual([]);
    for (const name of ['OMP_AUTH', 'OMP_AUTH_KEYS', 'OMP_JWT_JWKS_URL'])
      expect(environment).toHaveProperty(name, null);
    // Published to this machine alone, an open gateway must not be reached through a name that a web page brings along.
    expect(environment.OMP_ALLOWED_HOSTS).toMatch(/^\$\{OMP_ALLOWED_HOSTS:-localhost,127\.0\.0\.1,/);
  }
  expect(redis.profiles).toEqual(['redis']);
});

test('the Pinecone emulator holds the vectors that the gateway in front of it makes', async () => {
  for (const { profiles } of [pinecone, onPinecone]) expect(profiles).toEqual(['pinecone-local']);
  expect(pinecone).toMatchObject({
    image: 'ghcr.io/pinecone-io/pinecone-index:latest',
    platform: 'linux/amd64',
    environment: { INDEX_TYPE: 'serverless', VECTOR_TYPE: 'dense', METRIC: 'cosine', PORT: '5081' },
  });
  expect(onPinecone.depends_on).toEqual(['pinecone']);
  const given = Object.entries(onPinecone.environment ?? {}).flatMap(([name, value]) =>
    value === null || value.startsWith('$') ? [] : [[name, value]],
  );
  const { config } = loadConfig({ env: Object.fromEntries(given) });
  expect(config).toMatchObject({ provider: 'pinecone', pinecone: { index_host: 'http://pinecone:5081' } });
  const embedder = await openEmbedder(embeddingOptions(config), recordingLog());
  expect(pinecone.environment?.DIMENSION).toBe(String(embedder.dimensions));
  await embedder.close();
});

test('everything comes back after a restart of the machine', () => {
  for (const service of Object.values(services)) expect(service.restart).toBe('unless-stopped');
});

test.skipIf(!installed)('compose accepts the file, with its defaults and with values of one’s own', () => {
  const defaults = parse(resolved({})) as { services: typeof services };
  expect(Object.keys(defaults.services).sort()).toEqual([
    'embedded',
    'gateway',
    'pinecone',
    'pinecone-gateway',
    'postgres',
    'redis',
  ]);
  expect(defaults.services.gateway.ports).toEqual(['127.0.0.1:8080:8080/tcp']);
  const password = 'p@ss/w?rd#';
  const access = { OMP_AUTH: 'required', OMP_AUTH_KEYS: '[{"name": "a"}]', OMP_ALLOWED_HOSTS: 'memory.example.com' };
  const own = parse(resolved({ POSTGRES_PASSWORD: password, OMP_PORT: '9000', ...access })) as {
    services: typeof services;
  };
  expect(own.services.gateway.environment).toMatchObject(access);
  expect(own.services.embedded.environment).toMatchObject(access);
  expect(own.services.gateway.ports).toEqual(['127.0.0.1:9000:8080/tcp']);
  expect(own.services.postgres.environment?.POSTGRES_PASSWORD).toBe(password);
  expect(own.services.gateway.environment?.PGPASSWORD).toBe(password);
});
