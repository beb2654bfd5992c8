import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { temporaryFolder, watch } from '../process/gateway.ts';
import { clientOf } from '../support/client.ts';
import { freshUser } from '../support/subject.ts';
import { endGroup, NO_TARBALL, TARBALL } from './installed.ts';

/** An empty folder with the package installed. */
function install(): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'package.json'), '{"private": true}');
  execFileSync('npm', ['install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts', TARBALL], { cwd: folder });
  return folder;
}

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));

describe('the packed package', () => {
  test('can be installed in an empty folder, serves through npx, and creates keys', async ({ skip }) => {
    skip(TARBALL === '', NO_TARBALL);
    const folder = install();
    const installed = join(folder, 'node_modules', packageJson.name);

    const files = filesBelow(installed).filter((path) => !path.startsWith('node_modules/'));
    for (const file of ['README.md', 'LICENSE', 'CHANGELOG.md', 'omp-gateway.example.yaml', 'dist/src/main.js'])
      expect(files).toContain(file);
    expect(files.filter((path) => /^(src|providers|test|eval|bench|\.|scripts)|\.ts$/.test(path))).toEqual([
      'dist/src/provider.d.ts',
      'dist/test/conformance/provider-tests.d.ts',
    ]);
    // Nothing but the two entries can be imported.
    const imported = (entry: string) =>
      execFileSync(process.execPath, ['-e', `import('${entry}').catch(({ code }) => console.log(code))`], {
        cwd: folder,
        encoding: 'utf8',
      });
    expect(imported('omp-gateway/provider')).toBe('');
    for (const entry of ['omp-gateway', 'omp-gateway/dist/src/registry.js'])
      expect(imported(entry)).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED\n');

    const version = execFileSync('npx', ['--no-install', 'omp-gateway', '--version'], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(version).toBe(`${packageJson.version}\n`);

    // A group of its own, since npx runs the gateway as a child of a child.
    const npx = spawn('npx', ['--no-install', 'omp-gateway'], {
      cwd: folder,
      detached: true,
      env: { PATH: process.env.PATH, HOME: folder, TMPDIR: folder, OMP_PORT: '0' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const group = -(npx.pid as number);
    onTestFinished(() => endGroup(group));
    const { output, ended } = watch(npx);
    const [, url = ''] = await output(/ listens on (http:\/\/[^"\s]+)/);
    const client = clientOf((path, init) => fetch(url + path, init));

    expect(await client.capabilities()).toMatchObject({
      provider: 'postgres',
      features: { vector_search: true, keyword_search: true },
    });
    const user_id = freshUser();
    const { id } = await client.add({ user_id, content: 'I take my tea without sugar' });
    const [hit] = await client.search({ user_id, q: 'what does the user drink?' });
    expect(hit?.memory.id).toBe(id);
    expect(hit?.score).toBeGreaterThan(0);
    expect(await client.context({ user_id, query: 'tea' })).toMatchObject({ citations: [{ memory_id: id }] });
    const page = await client.ask('/docs');
    expect(page.status).toBe(200);
    for (const [, asset = ''] of page.text.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g))
      expect((await fetch(new URL(asset, `${url}/docs`))).status, asset).toBe(200);
    // The default place of durable files.
    expect(existsSync(join(folder, '.omp/postgres/PG_VERSION'))).toBe(true);

    process.kill(group, 'SIGTERM');
    expect((await ended).stdout).toMatch(/"msg":"stopping"/);

    const made = execFileSync('npx', ['--no-install', 'omp-gateway', 'keys', 'create', 'mine', '--grant', '*:*'], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: folder, TMPDIR: folder },
    });
    expect(made).toMatch(/\bomp_[a-z0-9]{12}_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])/);
  });
});
