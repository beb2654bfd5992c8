import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { CHROMIUM_OPTIONS, hasChromium, NO_CHROMIUM } from '../support/chromium.ts';
import { closedTo } from '../support/closed.ts';
import { PATIENCE_MS } from '../support/full.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { endpointsOf, fetchDocument } from './document.ts';

if (!hasChromium) console.warn(`docs-page.browser.test.ts is ${NO_CHROMIUM}`);

describe.skipIf(!hasChromium)('the page at /docs, in a browser', () => {
  let server: RunningServer;
  let profile: string;
  let browser: BrowserContext;
  let page: Page;
  /** Whatever went wrong on the page, and every address it asked for. */
  const troubles: string[] = [];
  const asked: string[] = [];
  beforeAll(async () => {
    server = await startServer();
    profile = await mkdtemp(join(tmpdir(), 'omp-chromium-'));
    browser = await chromium.launchPersistentContext(profile, CHROMIUM_OPTIONS);
    browser.setDefaultTimeout(PATIENCE_MS);
    page = await browser.newPage();
    page.on('request', (request) => asked.push(request.url()));
    page.on('requestfailed', (request) => troubles.push(`${request.url()} failed: ${request.failure()?.errorText}`));
    page.on('response', (response) => {
      if (response.status() >= 400) troubles.push(`${response.url()} answered ${response.status()}`);
    });
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) troubles.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => troubles.push(`uncaught: ${error.message}`));
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    if (profile) await rm(profile, { recursive: true, force: true });
  });

  it('shows every endpoint', async () => {
    await page.goto(`${server.url}/docs`);
    await page.locator('.opblock').first().waitFor();
    expect(await page.title()).toBe('Open Memory Protocol gateway');
    const endpoints = endpointsOf(await fetchDocument(server.client));
    await expect.poll(() => page.locator('.opblock').count()).toBe(endpoints.length);
    expect(await page.locator('.info').textContent()).toContain('Open Memory Protocol gateway');
    expect(await page.locator('.errors-wrapper').count()).toBe(0);
  });

  it('creates a memory from its own example', async () => {
    const add = page.locator('#operations-memories-addMemory');
    await add.locator('.opblock-summary-control').click();
    await add.getByRole('button', { name: 'Try it out' }).click();
    await add.getByRole('button', { name: 'Execute' }).click();
    const answer = add.locator('.live-responses-table .response');
    expect(await answer.locator('.response-col_status').textContent()).toMatch(/^201/);
    const { items } = await server.client.list({ user_id: 'u1' });
    expect(await answer.textContent()).toContain(items[0]?.id);
  });

  it('and finds it with the example of the search', async () => {
    const search = page.locator('#operations-memories-searchMemories');
    await search.locator('.opblock-summary-control').click();
    await search.getByRole('button', { name: 'Try it out' }).click();
    await search.getByRole('button', { name: 'Execute' }).click();
    const answer = search.locator('.live-responses-table .response');
    expect(await answer.locator('.response-col_status').textContent()).toMatch(/^200/);
    expect(await answer.textContent()).toContain('user prefers pnpm');
  });

  it('[SPEC Authentication 2] lets in who gives it a key, on a closed gateway', async () => {
    const { authenticator, keys } = await closedTo('browser');
    const closed = await startServer({ authenticator });
    onTestFinished(() => closed.close());
    const other = await browser.newPage();
    await other.goto(`${closed.url}/docs`);
    const list = other.locator('#operations-memories-listMemories');
    await list.locator('.opblock-summary-control').click();
    await list.getByRole('button', { name: 'Try it out' }).click();
    const statusNow = async () => {
      const [answer] = await Promise.all([
        other.waitForResponse((response) => response.url().startsWith(`${closed.url}/memories`)),
        list.getByRole('button', { name: 'Execute' }).click(),
      ]);
      return answer.status();
    };
    expect(await statusNow()).toBe(401);
    await other.getByRole('button', { name: 'Authorize' }).first().click();
    const dialog = other.locator('.auth-container', { hasText: 'bearer' });
    await dialog.locator('input').fill(keys.browser);
    await dialog.getByRole('button', { name: 'Apply credentials' }).click();
    await other.locator('.auth-container', { hasText: 'Authorized' }).waitFor();
    await other.locator('.close-modal').click();
    expect(await statusNow()).toBe(200);
  });

  it('works below a prefix that a proxy takes off, and is found from its root', async () => {
    const PREFIX = '/team/memory';
    const beside: string[] = [];
    const proxy = createServer((request, response) => {
      const { method, headers, url = '' } = request;
      if (!url.startsWith(`${PREFIX}/`)) {
        beside.push(url);
        response.writeHead(404).end();
        return;
      }
      const options = { port: server.port, method, headers, path: url.slice(PREFIX.length) };
      request.pipe(
        forward(options, (answer) => answer.pipe(response.writeHead(answer.statusCode ?? 502, answer.headers))),
      );
    }).listen(0, '127.0.0.1');
    onTestFinished(() => {
      proxy.closeAllConnections();
      proxy.close();
    });
    await once(proxy, 'listening');
    const other = await browser.newPage();
    const root = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${PREFIX}`;
    await other.goto(`${root}/`);
    expect(other.url()).toBe(`${root}/docs`);
    const add = other.locator('#operations-memories-addMemory');
    await add.locator('.opblock-summary-control').click();
    await add.getByRole('button', { name: 'Try it out' }).click();
    const [answer] = await Promise.all([
      other.waitForResponse((response) => response.request().method() === 'POST'),
      add.getByRole('button', { name: 'Execute' }).click(),
    ]);
    expect(answer.url().split('?')[0]).toBe(`${root}/memories`);
    expect(answer.status()).toBe(201);
    expect(beside).toEqual([]);
    await other.close();
  });

  it('asked this server only, and nothing went wrong', async () => {
    expect(asked).toContain(`${server.url}/openapi.json`);
    expect(asked.filter((url) => !url.startsWith(server.url) && !url.startsWith('data:'))).toEqual([]);
    expect(troubles).toEqual([]);
  });
});
