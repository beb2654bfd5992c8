import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';

interface Locked {
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
}

const ROOT = join(import.meta.dirname, '../..');
const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
  lockfileVersion: number;
  packages: Record<
    string,
    Locked & { dependencies?: Record<string, string>; devDependencies?: Record<string, string> }
  >;
};
const { '': root, ...packages } = lock.packages;
const entries = Object.entries(packages);
const REGISTRY = 'https://registry.npmjs.org/';

it('the lock file holds every dependency', () => {
  const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as typeof root;
  expect(lock.lockfileVersion).toBe(3);
  expect(entries.length).toBeGreaterThan(100);
  expect(root?.dependencies).toEqual(own?.dependencies);
  expect(root?.devDependencies).toEqual(own?.devDependencies);
});

it('every package has the hash of its contents and comes from the registry', () => {
  expect(
    entries.filter(([, { integrity }]) => !/^sha512-[\w+/]{86}==$/.test(integrity ?? '')).map(([at]) => at),
  ).toEqual([]);
  // Without an address it comes from the registry that is configured, and must have the same contents there.
  const elsewhere = entries.filter(([, { resolved, link }]) => link || !(resolved ?? REGISTRY).startsWith(REGISTRY));
  expect(elsewhere.map(([at]) => at)).toEqual([]);
});

it('every dependency has a version', () => {
  const asked = Object.entries({ ...root?.dependencies, ...root?.devDependencies });
  expect(asked.filter(([, range]) => !/^[\^~]?\d+\.\d+\.\d+( \|\| \^\d+\.\d+\.\d+)*$/.test(range))).toEqual([]);
});

it.each([
  ['pg', 'private members (providers/postgres/client/pg-internals.ts)'],
  ['@electric-sql/pglite', 'the files of its data folder'],
  ['@electric-sql/pglite-pgvector', 'the files of its data folder'],
])('%s has one exact version, since the gateway depends on %s', (name) => {
  expect(root?.dependencies?.[name]).toMatch(/^\d/);
});

it('no runtime dependency has an install script, and only known development dependencies do', () => {
  const scripts = entries.filter(([, { hasInstallScript }]) => hasInstallScript);
  expect(scripts.filter(([, { dev }]) => !dev).map(([at]) => at)).toEqual([]);
  // esbuild only makes its binary start faster; scarf would report the installation; protobufjs would warn of versions. package.json forbids them.
  expect(scripts.map(([at]) => at).sort()).toEqual([
    'node_modules/@scarf/scarf',
    'node_modules/esbuild',
    'node_modules/protobufjs',
  ]);
  expect(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))).toMatchObject({
    scarfSettings: { enabled: false },
    allowScripts: { '@scarf/scarf': false, esbuild: false, protobufjs: false },
  });
});

it('npm ci warns of nothing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'omp-npm-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const file of ['package.json', 'package-lock.json', '.npmrc'])
    copyFileSync(join(ROOT, file), join(folder, file));
  // Of npm's own settings only those of this folder count.
  const env = { PATH: process.env.PATH, HOME: folder, npm_config_update_notifier: 'false' };
  const { status, stderr } = spawnSync('npm', ['ci', '--dry-run', '--offline'], { cwd: folder, env, encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

it('every dependency is named by a source', () => {
  const sources = ['src', 'providers'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(join(ROOT, folder, file), 'utf8')),
  );
  const isNamed = (name: string) => sources.some((text) => text.includes(`'${name}'`) || text.includes(`'${name}/`));
  expect(Object.keys(root?.dependencies ?? {}).filter((name) => !isNamed(name))).toEqual([]);
});
