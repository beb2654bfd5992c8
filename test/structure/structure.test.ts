import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ProviderContext, ProviderModule } from '#contract';
import { PROVIDER_NAMES } from '../../src/config/provider-names.ts';
import { openProvider } from '../../src/registry.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { RECORDED, recordingLog } from '../support/subject.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const filesUnder = (folder: string, ending = '.ts'): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending))
    .map((file) => `${folder}/${file}`)
    .sort();
const SOURCES = [...filesUnder('src'), ...filesUnder('providers')];

/** What a file imports, types included: our own files by their path, packages by their name. */
const importsOf = (file: string): string[] =>
  [...read(file).matchAll(/(?:^(?:import|export|\})[^'\n]*\bfrom|^import|\bimport\()\s*'([^'\s]+)'/gm)].map(
    ([, specifier = '']) => {
      if (specifier.startsWith('.')) return relative(ROOT, join(ROOT, dirname(file), specifier));
      return /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier;
    },
  );

it('finds the sources and what they import', () => {
  expect(SOURCES.length).toBeGreaterThan(50);
  expect(importsOf('src/registry.ts')).toEqual([
    '#contract',
    'src/config/provider-names.ts',
    'providers/postgres/index.ts',
    'providers/pinecone/index.ts',
    'providers/memory/index.ts',
  ]);
  expect(importsOf('providers/postgres/embedded/worker.ts')).toContain('@electric-sql/pglite');
});

describe('who may import whom', () => {
  /** By folder, the beginnings of everything its files may import; `node:` modules are named where they are allowed. */
  const ALLOWED: Readonly<Record<string, readonly string[]>> = {
    'src/contract/': ['src/contract/', 'zod', 'ulid', 'node:util'],
    'src/ranking/': ['src/ranking/', '#contract', 'stemmer', 'node:module', 'node:worker_threads'],
    'src/core/': ['src/core/', '#contract', '#ranking', 'gpt-tokenizer', 'node:crypto'],
    'src/http/': [
      'src/http/',
      'src/core/',
      'src/package-root.ts',
      'src/cli/version.ts',
      'src/rate-limit/addresses.ts',
      '#contract',
      'hono',
      '@hono/',
      'zod',
      'zod-openapi',
      'luxon',
      'node:',
    ],
    'src/auth/': ['src/auth/', 'src/core/', '#contract', 'jose', 'lru-cache', 'zod', 'node:'],
    'src/rate-limit/': [
      'src/rate-limit/',
      'src/core/',
      '#contract',
      'rate-limiter-flexible',
      'lru-cache',
      'pg',
      '@redis/client',
      'node:',
    ],
    'src/embedding/': [
      'src/embedding/',
      'src/core/telemetry.ts',
      '#contract',
      '#ranking',
      'openai',
      '@energetic-ai/',
      'lru-cache',
      'zod',
      'node:',
    ],
    'src/resilience/': ['src/resilience/', 'src/core/', '#contract', 'cockatiel', 'node:'],
    'src/telemetry/': [
      'src/telemetry/',
      'src/core/',
      'src/cli/version.ts',
      '#contract',
      '@opentelemetry/',
      'prom-client',
      'node:',
    ],
    'src/config/': [
      'src/config/',
      'src/contract/',
      'src/auth/credentials.ts',
      'src/auth/configured-keys.ts',
      'src/rate-limit/addresses.ts',
      '#contract',
      'yaml',
      'zod',
      'node:',
    ],
    'src/cli/': [
      'src/cli/',
      'src/config/',
      'src/auth/',
      'src/embedding/open.ts',
      'src/registry.ts',
      'src/package-root.ts',
      '#contract',
      'zod',
      'node:',
    ],
    'providers/memory/': ['providers/memory/', '#contract', '#ranking', 'zod'],
    'providers/pinecone/': [
      'providers/pinecone/',
      '#contract',
      '#ranking',
      'zod',
      'lru-cache',
      '@pinecone-database/pinecone',
      'node:',
    ],
    'providers/postgres/': [
      'providers/postgres/',
      '#contract',
      '#ranking',
      'zod',
      'pg',
      'lru-cache',
      '@electric-sql/',
      'fs-native-extensions',
      'node:',
    ],
  };

  it.each(Object.entries(ALLOWED))('%s stays within %j', (folder, allowed) => {
    const files = SOURCES.filter((file) => file.startsWith(folder));
    expect(files.length).toBeGreaterThan(1);
    const strays = files.flatMap((file) =>
      importsOf(file)
        .filter(
          (imported) => !allowed.some((one) => imported === one || (/[/:]$/.test(one) && imported.startsWith(one))),
        )
        .map((imported) => `${file} imports ${imported}`),
    );
    expect(strays).toEqual([]);
  });

  it('every folder of sources has its rule', () => {
    const folders = new Set(
      SOURCES.map((file) => file.split('/').slice(0, 2).join('/')).filter((path) => !path.endsWith('.ts')),
    );
    expect([...folders].map((folder) => `${folder}/`).sort()).toEqual(Object.keys(ALLOWED).sort());
  });

  it('only the registry names providers', () => {
    const others = SOURCES.filter((file) => !file.startsWith('providers/') && file !== 'src/registry.ts');
    expect(others.filter((file) => importsOf(file).some((imported) => imported.startsWith('providers/')))).toEqual([]);
  });

  it('nothing that is shipped imports tests or measurements', () => {
    const strays = SOURCES.filter((file) => importsOf(file).some((path) => /^(test|bench|eval|scripts)\//.test(path)));
    expect(strays).toEqual([]);
  });

  it('everything imported by name is a dependency, and every dependency is used', () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    const named = new Set(SOURCES.flatMap(importsOf).filter((name) => !/^(node:|#|src\/|providers\/)/.test(name)));
    // Named by the embedding package as what its user has to bring along.
    named.add('@energetic-ai/core');
    expect([...named].sort()).toEqual(Object.keys(dependencies).sort());
  });
});

describe('a provider', () => {
  const folders = readdirSync(join(ROOT, 'providers'));

  it('has a folder exactly when it can be configured', () => {
    expect(folders.sort()).toEqual([...PROVIDER_NAMES].sort());
  });

  it.each(PROVIDER_NAMES)('%s is what its folder is called', async (name) => {
    const module = (await import(`../../providers/${name}/index.ts`)) as { default: ProviderModule };
    expect(Object.keys(module)).toEqual(['default']);
    expect(module.default.name).toBe(name);
    expect(read(`providers/${name}/index.ts`)).toMatch(/^export default defineProvider\(\{$/m);
  });

  it.each(PROVIDER_NAMES)('%s refuses options it does not know', async (name) => {
    const context: ProviderContext = {
      embedder: hashingEmbedder(),
      ranking: { mode: 'hybrid', keyword_weight: 0.5 },
      audit: RECORDED,
      data_dir: '/nowhere',
      log: recordingLog(),
    };
    await expect(openProvider(name, { no_such_option: 1 }, context)).rejects.toThrow(/no_such_option/);
  });

  it.each(PROVIDER_NAMES)('%s runs the conformance suite', (name) => {
    const suites = filesUnder('test/providers', '.test.ts')
      .map(read)
      .filter((text) => /\bconformance\(/.test(text) && text.includes(`provider: '${name}'`));
    expect(suites.length).toBeGreaterThan(0);
  });
});

describe('a source file', () => {
  it('is at most 600 lines long', () => {
    expect(SOURCES.filter((file) => read(file).split('\n').length > 601)).toEqual([]);
  });

  it('reads the environment in src/main.ts alone, but for what the SDK of Pinecone reads behind our back', () => {
    expect(
      SOURCES.filter((file) =>
        /process\s*(\.|\?\.)\s*env\b|\{[^}]*\benv\b[^}]*\}\s*=\s*process\b|process\[/.test(read(file)),
      ),
    ).toEqual(['src/main.ts', 'providers/pinecone/client/transport.ts']);
  });

  it('has a name in kebab case that says more than "helpers"', () => {
    const names = SOURCES.map((file) => file.split('/').at(-1) ?? '');
    expect(names.filter((name) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.ts$/.test(name))).toEqual([]);
    expect(names.filter((name) => /util|helper|misc|manager/.test(name))).toEqual([]);
  });

  it('leaves nothing for later', () => {
    expect(SOURCES.filter((file) => /\b(TODO|FIXME|XXX|HACK)\b/.test(read(file)))).toEqual([]);
  });

  it('has a default export only where the registry needs one', () => {
    const exporting = SOURCES.filter((file) => /^export default\b/m.test(read(file)));
    expect(exporting).toEqual(PROVIDER_NAMES.map((name) => `providers/${name}/index.ts`).sort());
  });
});
