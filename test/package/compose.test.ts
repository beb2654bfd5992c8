import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { embeddingOptions } from '../../src/config/config-options.ts';
import { loadConfig } from '../../src/config/load.ts';
import { SETTINGS } from '../../src/config/schema-reader.ts';
import { configSchema } from '../../src/config/settings.ts';
import { openEmbedder } from '../../src/embedding/open.ts';
import { CLOSE_MS } from '../../src/shutdown.ts';
import { recordingLog } from '../support/subject.ts';

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly platform?: string;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>> | readonly string[];
  readonly healthcheck?: { readonly test: readonly string[]; readonly start_period?: string };
  readonly profiles?: readonly string[];
  readonly restart: string;
  readonly read_only?: boolean;
  readonly tmpfs?: readonly string[];
  readonly mem_limit?: string;
  readonly stop_grace_period?: string;
}

const FILE = 'docker-compose.yml';
const TEXT = readFileSync(FILE, 'utf8');
/** What a plain `docker compose up` starts. */
const DEFAULT = ['gateway', 'postgres'] as const;
const PROFILES = {
  embedded: ['embedded'],
  'pinecone-local': ['pinecone-gateway', 'pinecone'],
  redis: ['redis'],
  monitoring: ['prometheus', 'grafana'],
} as const;
type Name = (typeof PROFILES)[keyof typeof PROFILES][number] | (typeof DEFAULT)[number];

const { services, volumes } = parse(TEXT, { merge: true }) as {
  services: Readonly<Record<Name, Service>>;
  volumes: Readonly<Record<string, null>>;
};

const { gateway, postgres, embedded, redis, pinecone, prometheus, grafana, 'pinecone-gateway': onPinecone } = services;
const GATEWAYS = [gateway, embedded, onPinecone];

const STARTABLE: readonly string[] = [...DEFAULT, ...Object.values(PROFILES).flat()];

test('the gateway and Postgres start without a profile, everything else needs one', () => {
  for (const name of DEFAULT) expect(services[name].profiles, name).toBeUndefined();
  for (const [profile, names] of Object.entries(PROFILES))
    for (const name of names) expect(services[name].profiles, name).toEqual([profile]);
  expect(Object.keys(services).sort()).toEqual([...STARTABLE].sort());
});

test.each(['README.md', 'docs/operations.md', 'docs/backends/pinecone.md', FILE])(
  '%s starts services and profiles that exist',
  (file) => {
    const commands = [
      ...readFileSync(file, 'utf8').matchAll(
        /docker compose ((?:--profile \S+ )*)up\b(?: --build)?( [a-z][a-z-]+\b)?/g,
      ),
    ];
    expect(commands.length).toBeGreaterThan(0);
    for (const [command, flags = '', service = ''] of commands) {
      const profiles = [...flags.matchAll(/--profile (\S+)/g)].map(([, name = '']) => name);
      expect(Object.keys(PROFILES), command).toEqual(expect.arrayContaining(profiles));
      // Words such as "starts" follow the command in prose.
      if (service !== '' && service !== ' starts') expect(STARTABLE, command).toContain(service.trim());
      // These publish the port that the gateway of a plain `up` publishes too.
      for (const profile of ['embedded', 'pinecone-local']) expect(profiles, command).not.toContain(profile);
    }
  },
);

test('a service that depends on another waits until that one is healthy, if it has a health check', () => {
  expect(gateway.depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
  expect(grafana.depends_on).toEqual({ prometheus: { condition: 'service_healthy' } });
  for (const { depends_on = {} } of Object.values(services)) {
    if (Array.isArray(depends_on)) continue;
    for (const name of Object.keys(depends_on)) expect(services[name as Name].healthcheck?.test[0]).toBe('CMD');
  }
  expect(postgres.healthcheck?.test).toContain('pg_isready');
  // The recovery after a crash takes minutes.
  expect(Number.parseInt(postgres.healthcheck?.start_period ?? '', 10)).toBeGreaterThanOrEqual(300);
  expect(gateway.environment?.DATABASE_URL).toBe(`\${DATABASE_URL:-postgres://omp@postgres:5432/omp}`);
  expect(postgres.environment).toMatchObject({ POSTGRES_USER: 'omp', POSTGRES_DB: 'omp' });
  expect(postgres.environment?.POSTGRES_PASSWORD).toBe(gateway.environment?.PGPASSWORD);
});

test('every service restarts with the machine, and every image has a version, except the emulator', () => {
  for (const [name, { image, build, restart }] of Object.entries(services)) {
    expect(restart, name).toBe('unless-stopped');
    if (build === undefined && name !== 'pinecone') expect(image, name).toMatch(/:v?\d+\.\d+[\w.-]*$/);
  }
});

test('pgvector is pinned to a release without the known faults', () => {
  // Below 0.8.4: CVE-2026-3172, and HNSW indexes that a vacuum may corrupt.
  const [, ...version] = /^pgvector\/pgvector:(\d+)\.(\d+)\.(\d+)-pg\d+$/.exec(postgres.image) ?? [];
  const [major = 0, minor = 0, patch = 0] = version.map(Number);
  expect(major * 1_000_000 + minor * 1_000 + patch).toBeGreaterThanOrEqual(8_004);
});

test('ports are published to this machine only, and databases publish none', () => {
  for (const { ports } of GATEWAYS) {
    expect(ports).toHaveLength(1);
    expect(ports?.[0]).toMatch(/^127\.0\.0\.1:.*:8080$/);
  }
  expect(prometheus.ports).toEqual(['127.0.0.1:9090:9090']);
  expect(grafana.ports).toEqual(['127.0.0.1:3000:3000']);
  for (const { ports } of [postgres, redis, pinecone]) expect(ports).toBeUndefined();
});

test('Prometheus scrapes the metrics port of every gateway, and Grafana reads from Prometheus', () => {
  const read = (file: string): unknown => parse(readFileSync(join('deploy/monitoring', file), 'utf8'));
  expect(read('prometheus.yml')).toMatchObject({
    rule_files: ['alerts.yml'],
    scrape_configs: [
      { dns_sd_configs: [{ names: ['gateway', 'embedded', 'pinecone-gateway'], type: 'A', port: 9464 }] },
    ],
  });
  for (const { environment } of GATEWAYS)
    expect(environment).toMatchObject({ OMP_METRICS_PORT: '9464', OMP_METRICS_HOST: '0.0.0.0' });
  expect(read('grafana/provisioning/datasources/prometheus.yml')).toMatchObject({
    datasources: [{ url: 'http://prometheus:9090' }],
  });
  // Where the folder of dashboards is mounted.
  const { providers } = read('grafana/provisioning/dashboards/omp-gateway.yml') as {
    providers: { options: { path: string } }[];
  };
  for (const { options } of providers)
    expect(grafana.volumes).toContainEqual(expect.stringContaining(`:${options.path}:ro`));
});

test('mounted folders exist and are read-only', () => {
  const mounts = [prometheus, grafana].flatMap(({ volumes: each = [] }) =>
    each.filter((mount) => mount.startsWith('.')),
  );
  expect(mounts.length).toBeGreaterThan(1);
  for (const mount of mounts) {
    const [source = '', , mode] = mount.split(':');
    expect(statSync(source).isDirectory(), source).toBe(true);
    expect(mode).toBe('ro');
  }
});

test('data is in named volumes', () => {
  expect(postgres.volumes).toEqual(['postgres:/var/lib/postgresql/data']);
  expect(embedded.volumes).toEqual(['embedded:/data']);
  expect(prometheus.volumes).toContain('prometheus:/prometheus');
  expect(grafana.volumes).toContain('grafana:/var/lib/grafana');
  expect(Object.keys(volumes)).toEqual(['postgres', 'embedded', 'prometheus', 'grafana']);
});

test('the gateway can write only to its volume and to memory', () => {
  for (const service of GATEWAYS) {
    expect(service).toMatchObject({ build: '.', read_only: true, tmpfs: ['/tmp'] });
    expect(service).toMatchObject({ cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
  }
});

/** Settings that the file sets. */
const FIXED = ['provider', 'host', 'port', 'data_dir', 'postgres.url', 'metrics.port', 'metrics.host'];
/** Settings of one gateway only, and of providers that the file does not start. */
const ELSEWHERE = /^(?:(?:mapping|memory|pinecone|lancedb|libsql|milvus|qdrant|chroma|weaviate)\.|options$)/;

test('every setting reaches the gateway under a name that exists', () => {
  const passed = ({ environment = {} }: Service) => Object.keys(environment);
  // The client of Postgres and the exporter of traces read the others.
  const known = new Set([...SETTINGS.map(({ env }) => env), 'PGPASSWORD', 'OTEL_EXPORTER_OTLP_HEADERS']);
  for (const each of GATEWAYS) expect(passed(each).filter((name) => !known.has(name))).toEqual([]);
  const wanted = SETTINGS.filter(({ key }) => !FIXED.includes(key) && !ELSEWHERE.test(key)).map(({ env }) => env);
  for (const each of [gateway, embedded]) expect(passed(each)).toEqual(expect.arrayContaining(wanted));
  const settingsOf = (group: RegExp) => SETTINGS.filter(({ key }) => group.test(key)).map(({ env }) => env);
  expect(passed(gateway)).toEqual(expect.arrayContaining(settingsOf(/^mapping\./)));
  expect(passed(onPinecone)).toEqual(expect.arrayContaining(settingsOf(/^pinecone\./)));
  for (const name of wanted) {
    const value = gateway.environment?.[name];
    if (name !== 'OMP_ALLOWED_HOSTS' && name !== 'OMP_AUTH') expect(value, name).toBeNull();
  }
  // Without a key it would not start: in a container the address is not loopback.
  for (const { environment } of GATEWAYS) expect(environment?.OMP_AUTH).toBe(`\${OMP_AUTH:-open}`);
  // A web page must not reach an open gateway by DNS rebinding.
  for (const { environment } of GATEWAYS)
    expect(environment?.OMP_ALLOWED_HOSTS).toMatch(/^\$\{OMP_ALLOWED_HOSTS:-localhost,127\.0\.0\.1,/);
});

test('the file contains no secret, except defaults for development', () => {
  const given = Object.values(services).flatMap(({ environment = {} }) => Object.entries(environment));
  const secrets = given.filter(([name, value]) => /KEY|PASSWORD|SECRET|TOKEN/.test(name) && value !== null);
  const defaults = secrets.map(([, value]) => value?.replace(/^\$\{\w+:-(.*)\}$/, '$1'));
  expect(new Set(defaults)).toEqual(new Set(['omp', 'admin', 'local']));
});

test('the gateway has the time to stop that its settings require', () => {
  const { shutdown_delay_ms, shutdown_timeout_ms } = configSchema.parse({});
  for (const { stop_grace_period = '' } of GATEWAYS)
    expect(Number.parseInt(stop_grace_period, 10) * 1_000).toBeGreaterThan(
      shutdown_delay_ms + shutdown_timeout_ms + CLOSE_MS,
    );
});

test('the Pinecone emulator has the dimension of the vectors that its gateway makes', async () => {
  for (const { profiles } of [pinecone, onPinecone]) expect(profiles).toEqual(['pinecone-local']);
  expect(pinecone).toMatchObject({
    image: 'ghcr.io/pinecone-io/pinecone-index:latest',
    platform: 'linux/amd64',
    environment: { INDEX_TYPE: 'serverless', VECTOR_TYPE: 'dense', METRIC: 'cosine', PORT: '5081' },
  });
  expect(onPinecone.depends_on).toEqual(['pinecone']);
  expect(onPinecone.environment?.PINECONE_INDEX_HOST).toBe(`\${PINECONE_INDEX_HOST:-http://pinecone:5081}`);
  const { config } = loadConfig({ env: {} });
  const embedder = await openEmbedder(embeddingOptions(config), recordingLog());
  expect(pinecone.environment?.DIMENSION).toBe(String(embedder.dimensions));
  await embedder.close();
});

test('what compose passes by default is a configuration that the gateway accepts', () => {
  for (const { environment = {} } of GATEWAYS) {
    const env = Object.fromEntries(
      Object.entries(environment).flatMap(([name, value]) =>
        value === null ? [] : [[name, value.replace(/^\$\{\w+:-(.*)\}$/, '$1')]],
      ),
    );
    expect(() => loadConfig({ env })).not.toThrow();
  }
});

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
