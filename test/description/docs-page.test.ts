import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/package.ts';
import { expectError } from '../support/expect-error.ts';
import { connectRaw, request } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';

const ASSETS = {
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui.css': 'text/css; charset=utf-8',
  'favicon-32x32.png': 'image/png',
  'start.js': 'text/javascript; charset=utf-8',
  LICENSE: 'text/plain; charset=utf-8',
  NOTICE: 'text/plain; charset=utf-8',
};

describe('the page at /docs', () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server.close());

  it('refers only to its own assets', async () => {
    const page = await server.client.ask('/docs');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const referred = [...page.text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address as string);
    expect(referred.length).toBeGreaterThan(2);
    for (const address of referred) expect(Object.keys(ASSETS)).toContain(address.replace(/^docs\//, ''));
    expect(page.text).not.toMatch(/<script(?![^>]*\ssrc=)/);
  });

  it('is the redirect of a browser from the root, also behind a path prefix', async () => {
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8';
    const browser = await server.client.raw('/', { headers: { accept }, redirect: 'manual' });
    expect(browser.status).toBe(302);
    expect(browser.headers.get('location')).toBe('docs');
    const { message } = expectError(await server.client.ask('/'), 'not_found');
    expect(message).toContain('/docs');
    expect(message).toContain('/capabilities');
  });

  it('serves each asset with its type, byte for byte', async () => {
    for (const [name, type] of Object.entries(ASSETS)) {
      const response = await fetch(`${server.url}/docs/${name}`);
      expect(response.status, name).toBe(200);
      expect(response.headers.get('content-type'), name).toBe(type);
      if (name === 'start.js') continue;
      const file = await readFile(join(packageRoot(), 'assets', 'swagger-ui', name));
      expect(Buffer.compare(Buffer.from(await response.arrayBuffer()), file), name).toBe(0);
    }
  });

  it('serves no other file', async () => {
    for (const path of [
      '/docs/',
      '/docs/index.html',
      '/docs/package.json',
      '/docs/../package.json',
      '/docs/..%2f..%2fpackage.json',
      '/docs/%2e%2e%2fswagger-ui%2fLICENSE',
      '/docs/constructor',
      '/docs/__proto__',
      '/docs/swagger-ui.css%00',
    ]) {
      // As bytes, because a client library would normalize the path.
      const connection = connectRaw(server.port);
      connection.write(request('GET', path));
      const reply = await connection.next();
      connection.destroy();
      expect(reply.status, path).toBe(404);
      expectError(reply, 'not_found');
    }
  });
});

/** The installed build is deeper below the root of the package than the source. */
describe('the page of a built package', () => {
  let bare: string;
  beforeAll(async () => {
    bare = await mkdtemp(join(tmpdir(), 'omp-package-'));
    for (const name of ['dist', 'package.json'])
      await cp(join(packageRoot(), name), join(bare, name), { recursive: true });
    await symlink(join(packageRoot(), 'node_modules'), join(bare, 'node_modules'));
  });
  afterAll(() => rm(bare, { recursive: true, force: true }));

  it('finds its assets', async () => {
    const answers = await askBuilt(packageRoot(), ['/docs', '/docs/swagger-ui.css', '/openapi.json']);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(answers[1]?.text).toBe(await readFile(join(packageRoot(), 'assets/swagger-ui/swagger-ui.css'), 'utf8'));
    expect(JSON.parse(answers[2]?.text ?? '')).toMatchObject({ openapi: '3.1.1' });
  });

  it('is 404 without them, and everything else works', async () => {
    const answers = await askBuilt(bare, ['/docs', '/docs/swagger-ui.css', '/openapi.json', '/docs']);
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 200, 404]);
    expect(JSON.parse(answers[0]?.text ?? '')).toMatchObject({ error: { code: 'not_found', type: 'not_found' } });
  });
});

/** Sends requests to the built app below `root`, in its own process. The paths are public and need no provider. */
const askBuilt = async (root: string, paths: readonly string[]): Promise<{ status: number; text: string }[]> => {
  const script = `
    const { createApp } = await import(${JSON.stringify(pathToFileURL(join(root, 'dist/src/http/app.js')).href)});
    const log = { info() {}, warn() {}, error() {} };
    const gate = { provider: 'none', capabilities: {}, description: {} };
    const app = createApp({ gate, log, max_request_bytes: 1, request_timeout_ms: 60_000 });
    const answers = [];
    for (const path of ${JSON.stringify(paths)}) {
      const response = await app.request(path, {}, {});
      answers.push({ status: response.status, text: await response.text() });
    }
    console.log(JSON.stringify(answers));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    maxBuffer: 16_777_216,
  });
  return JSON.parse(stdout);
};
