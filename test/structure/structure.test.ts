import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROVIDER_NAMES } from '../../src/config/settings.ts';
import { openProvider } from '../../src/registry.ts';
import { FULL_ONLY } from '../support/full.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { RECORDED, recordingLog } from '../support/subject.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const foldersIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? entry.name : []));
const filesIn = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`);

it('biome.json states for every folder what it may import', () => {
  const { overrides } = JSON.parse(read('biome.json')) as { overrides: { includes: string[]; linter: object }[] };
  const rooms = overrides
    .filter(({ linter }) => JSON.stringify(linter).includes('noRestrictedImports'))
    .flatMap(({ includes }) => includes);
  const folders = ['src', 'providers'].flatMap((parent) => foldersIn(parent).map((folder) => `${parent}/${folder}/**`));
  expect(rooms).toEqual(expect.arrayContaining(['src/*.ts', ...folders]));
});

it('every file of the full run exists', () => {
  expect(FULL_ONLY.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

describe('a provider', () => {
  it('has a folder, or a file in providers/collections, exactly when it can be configured', () => {
    const folders = foldersIn('providers').filter((folder) => folder !== 'collections');
    const adapters = readdirSync(join(ROOT, 'providers/collections')).flatMap((file) =>
      file.endsWith('.ts') ? file.slice(0, -3) : [],
    );
    expect([...folders, ...adapters].sort()).toEqual([...PROVIDER_NAMES].sort());
  });

  it('of providers/collections is one file of at most 300 lines', () => {
    for (const file of filesIn('providers/collections').filter((each) => each.endsWith('.ts')))
      expect(read(file).trimEnd().split('\n').length, file).toBeLessThanOrEqual(300);
  });

  it.each(PROVIDER_NAMES)('%s rejects unknown options', async (name) => {
    const ranking = { mode: 'hybrid', keyword_weight: 0.5 } as const;
    const context = {
      embedder: hashingEmbedder(),
      ranking,
      audit: RECORDED,
      data_dir: '/nowhere',
      log: recordingLog(),
    };
    await expect(openProvider(name, { no_such_option: 1 }, context)).rejects.toThrow(/no_such_option/);
  });

  it.each(PROVIDER_NAMES)('%s has a file that runs the conformance suite', (name) => {
    expect(filesIn('test/providers').some((file) => file.startsWith(`test/providers/${name}`))).toBe(true);
  });
});

describe('Postgres', () => {
  const sources = filesIn('providers/postgres').filter((file) => file.endsWith('.ts'));
  const naming = (what: RegExp) => sources.filter((file) => what.test(read(file))).map((file) => file.split('/')[2]);

  it('has the SQL of Citus in one folder, which statements call', () => {
    const own = /\bcitus\.|\bcitus_|pg_dist_|run_command_on|create_distributed|get_shard_id|skip locked/;
    expect([...new Set(naming(own))]).toEqual(['scaling']);
  });

  it('serves a mapped table without the statements of its own tables', () => {
    expect(naming(/from '\.\.\/tables\//)).not.toContain('mapped');
    expect(naming(/from '\.\.\/mapped\//)).not.toContain('tables');
  });
});

/** Time limits that a busy machine reaches, what to use instead, and where one is allowed. */
const LIMITS: readonly { what: RegExp; instead: string; allowed?: string }[] = [
  { what: /\bvi\.wait(For|Until)\(/, instead: '`eventually`' },
  {
    what: /^\s*\}, [\d_]{3,}\);$|\b(it|test|describe)\b.*\{ timeout:|^\s*timeout: [\dA-Z_]+,$/m,
    instead: 'testTimeout of the config',
  },
  { what: /\.poll\(.*\btimeout: /, instead: 'expect.poll of the config' },
  { what: /\bAbortSignal\.timeout\(/, instead: '`holdTimers`, or a controller', allowed: 'test/support/ledger.ts' },
];

describe('no test sets its own time limit', () => {
  // Chaos runs alone on the machine.
  const files = filesIn('test').filter(
    (file) => file.endsWith('.ts') && !/node_modules|^test\/chaos/.test(file) && !import.meta.filename.endsWith(file),
  );

  it.each(LIMITS)('$what', ({ what, instead, allowed }) => {
    const found = files.filter((file) => what.test(read(file)));
    expect(found, `use ${instead}`).toEqual(allowed === undefined ? [] : [allowed]);
  });
});
