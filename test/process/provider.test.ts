import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runProgram, startGateway, startMeasuredGateway, temporaryFolder } from './gateway.ts';

/** A folder with these files. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

const ENTRY = JSON.stringify(join(import.meta.dirname, '../../dist/src/provider.js'));
/** A provider that shows its options as the content of every memory. */
const SHOWING = `import { defineProvider, newRecord } from ${ENTRY};
const options = { '~standard': { version: 1, vendor: 'test', validate: (value) =>
  typeof value.url === 'string' ? { value } : { issues: [{ message: 'must be a text, not ' + value.url, path: ['url'] }] } } };
class Showing {
  constructor(url) { this.url = url; }
  async get() { return newRecord({ content: this.url, user_id: 'ana', scope: null, tags: [], source: null, confidence: null,
    valid_from: null, valid_to: null, supersedes: [], extensions: {} }, null); }
  async ping() {}
  async close() {}
}
export default defineProvider({ specVersion: 1, name: 'showing', options, open: async ({ url }) => new Showing(url) });
`;
const SHOWN = { OMP_PROVIDER_OPTIONS: '{"url": "one"}' };

describe('a provider of others', () => {
  it.each([
    ['a path with # and spaces', './a #1/b c.js', { 'a #1/b c.js': SHOWING }],
    ['a folder', './mine', { 'mine/package.json': '{"type": "module", "main": "lib.js"}', 'mine/lib.js': SHOWING }],
    [
      'a package that can only be imported',
      '@me/showing',
      {
        'node_modules/@me/showing/package.json':
          '{"type": "module", "exports": {".": {"types": "./x.d.ts", "require": "./no.cjs", "import": {"node": "./dist/in.js"}}}}',
        'node_modules/@me/showing/dist/in.js': SHOWING,
      },
    ],
  ])('[Decision 50] may be %s, found from the working directory', async (_, OMP_PROVIDER, files) => {
    const gateway = await startGateway({ cwd: folderWith(files), env: { OMP_PROVIDER, ...SHOWN } });
    expect(await gateway.client.capabilities()).toMatchObject({ provider: 'showing', verbs: ['get'] });
    expect((await gateway.client.get('any')).content).toBe('one');
    expect((await gateway.client.ask('/healthz')).body).toMatchObject({ provider: 'showing' });
  });

  it('[Decision 50] has its options in the file, and its name in metrics and errors', async () => {
    const folder = folderWith({
      'showing.js': SHOWING.replace('async ping', 'async delete() { throw new Error("no") }\n  async ping'),
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
      'gateway.yaml': 'provider: ./showing.js\noptions:\n  url: ${SHOWN}\n',
    });
    const gateway = await startMeasuredGateway({
      OMP_PROVIDER: join(folder, 'showing.js'),
      OMP_CONFIG: join(folder, 'gateway.yaml'),
      SHOWN: 'from the file',
    });
    expect((await gateway.client.get('any')).content).toBe('from the file');
    const { body } = await gateway.client.tell('DELETE', '/memories/any');
    expect(body).toMatchObject({ error: { code: 'provider_error', provider: 'showing' } });
    expect(await gateway.text()).toMatch(/\bomp_\w+\{[^}]*="showing"/);
  });

  it('[Decision 59] that takes memories and cannot count them stops a gateway with limits of users', async () => {
    const cwd = folderWith({ 'showing.js': SHOWING.replace('async ping', 'async add() {}\n  async ping') });
    const env = { OMP_SEARCH_MODE: 'keyword', OMP_PROVIDER: './showing.js', OMP_USER_LIMIT_MEMORIES: '5', ...SHOWN };
    const { status, stderr } = await runProgram({ cwd, env });
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/user_limits is set, and the store showing cannot count/),
    ]);
  });

  /** What doctor reports; the start opens the same way. */
  const failing = async (OMP_PROVIDER: string, files: Readonly<Record<string, string>>, own = {}) => {
    const env = { OMP_SEARCH_MODE: 'keyword', OMP_PROVIDER, ...own };
    const { status, stdout } = await runProgram({ args: ['doctor', '--json'], cwd: folderWith(files), env });
    expect(status).toBe(1);
    return JSON.stringify(JSON.parse(stdout));
  };

  it('[Decision 50] that is not there stops the start', async () => {
    const ending = await runProgram({ env: { OMP_SEARCH_MODE: 'keyword', OMP_PROVIDER: './none.js' } });
    expect(ending).toMatchObject({ status: 1, stderr: expect.stringContaining('the provider ./none.js is not found') });
  });

  it.each([
    ['that is not there', './none.js', {}, /the provider \.\/none\.js is not found: there is no file \/\S*none\.js/],
    ['that is not installed', 'omp-none', {}, /the provider omp-none is not found: no package of this name/],
    [
      'without a default export',
      './x.js',
      { 'x.js': 'export const a = 1' },
      /must end with .{0,3}export default define/,
    ],
    [
      'of another version',
      './x.mjs',
      { 'x.mjs': 'export default { specVersion: 3, name: "x", open() {} }' },
      /for version 3 of the contract \(specVersion\), and omp-gateway 0\.1\.0 supports 1 and 2;/,
    ],
    [
      'that throws when it is loaded',
      './x.mjs',
      { 'x.mjs': 'throw new Error("needs a key")' },
      /cannot be loaded from \/\S*x\.mjs: needs a key/,
    ],
    [
      'that finds no contract',
      './x.mjs',
      { 'x.mjs': 'import "omp-gateway/provider"' },
      /Cannot find package 'omp-gateway' .*install omp-gateway beside the provider/,
    ],
    [
      'with a bad name',
      './x.mjs',
      { 'x.mjs': 'export default { specVersion: 1, name: "X Y", open() {} }' },
      /a name of lower-case letters/,
    ],
  ])('[Decision 50] %s is reported', async (_, provider, files, message) => {
    expect(await failing(provider, files)).toMatch(message);
  });

  it('[Decision 50] checks its options, and no message shows a value', async () => {
    const files = {
      'showing.js': SHOWING.replace("typeof value.url === 'string'", 'false'),
      secret: '{"url": "geheim"}',
    };
    for (const env of [{ OMP_PROVIDER_OPTIONS: '{"url": "geheim"}' }, { OMP_PROVIDER_OPTIONS_FILE: 'secret' }]) {
      const text = await failing('./showing.js', files, env);
      expect(text).toMatch(/the provider showing rejects its options: url: must be a text, not …/);
      expect(text).not.toContain('geheim');
    }
    const text = await failing('./showing.js', files, { OMP_PROVIDER_OPTIONS: 'geheim' });
    expect(text).toContain('OMP_PROVIDER_OPTIONS must be an object, in the environment as JSON (its value is secret');
    expect(text).not.toContain('geheim');
  });
});
