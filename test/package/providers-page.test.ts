import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ROOT } from '../docs/markdown.ts';
import { temporaryFolder, watch } from '../process/gateway.ts';
import { clientOf } from '../support/client.ts';
import { freshUser } from '../support/gateway.ts';
import { endGroup, NO_TARBALL, TARBALL } from './installed.ts';

/** The environment of a reader's shell: the vitest of this run is another one. */
const env = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST|NODE_ENV|FORCE_COLOR)/.test(name)),
  ),
  NO_COLOR: '1',
};

interface Step {
  readonly language: string;
  /** Of the file to save. */
  readonly file: string;
  readonly code: string;
}

/** Commands and files, in order. */
const steps = (text: string): Step[] =>
  [...text.matchAll(/^```(\w+) ?(\S*)\n(.*?)^```$/gms)].map(([, language = '', file = '', code = '']) => ({
    language,
    file,
    code,
  }));

test('docs/providers.md leads from an empty folder to a provider that passes and serves', async ({ skip }) => {
  skip(TARBALL === '', NO_TARBALL);
  const folder = temporaryFolder();
  const shell = (code: string) => execFileSync('sh', ['-euc', code], { cwd: folder, env, encoding: 'utf8' });
  const served: unknown[] = [];
  let suites = 0;
  const page = readFileSync(join(ROOT, 'docs/providers.md'), 'utf8');
  for (const { language, file, code } of steps(page.slice(0, page.indexOf('## What each method promises')))) {
    if (file !== '') writeFileSync(join(folder, file), code);
    else if (code.includes('npx omp-gateway')) served.push(await serve(folder, code));
    else if (language === 'sh') {
      const output = shell(code.replace('--save-dev omp-gateway', `--save-dev ${TARBALL}`));
      if (!code.includes('vitest run')) continue;
      suites++;
      expect(output).toMatch(/Tests .*\d+ passed.* \d+ skipped/);
    }
  }
  expect(suites).toBe(2);
  expect(served).toEqual([
    { provider: 'notes', verbs: ['add', 'get', 'list'], found: [] },
    {
      provider: 'notes',
      verbs: ['add', 'search', 'get', 'update', 'delete', 'list', 'context'],
      found: ['drinks green tea'],
    },
  ]);
  // An adapter of a vector database.
  const adapter = steps(page).filter(({ file }) => file.startsWith('collection.'));
  for (const { file, code } of adapter) writeFileSync(join(folder, file), code);
  expect(shell('npx vitest run collection.test.js')).toMatch(/Tests .*\d+ passed.* \d+ skipped/);
  // What the page says of the types holds for the types of the package.
  const options = '--noEmit --allowJs --checkJs --strict --module nodenext --target es2024 --types node'.split(' ');
  const types = ['--typeRoots', join(ROOT, 'node_modules/@types')];
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, ...options, ...types, 'index.js', 'errors.js', 'collection.js'], {
    cwd: folder,
    stdio: 'pipe',
  });
});

/** Runs the command on a free port, and returns what a client sees. */
async function serve(folder: string, code: string) {
  const child = spawn('sh', ['-euc', code], {
    cwd: folder,
    detached: true,
    env: { ...env, OMP_PORT: '0', OMP_SEARCH_MODE: 'keyword' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const group = -(child.pid as number);
  onTestFinished(() => endGroup(group));
  const { output, ended } = watch(child);
  const [, url = ''] = await output(/ listens on (http:\/\/[^"\s]+)/);
  const client = clientOf((path, init) => fetch(url + path, init));
  const { provider, verbs } = await client.capabilities();
  const user_id = freshUser();
  await client.add({ user_id, content: 'drinks green tea' });
  expect((await client.list({ user_id })).items).toHaveLength(1);
  const hits = verbs.includes('search') ? await client.search({ user_id, q: 'green tea' }) : [];
  endGroup(group);
  await ended;
  return { provider, verbs, found: hits.map(({ memory }) => memory.content) };
}
