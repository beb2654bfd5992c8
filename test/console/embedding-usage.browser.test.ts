import { describe, expect, it, onTestFinished } from 'vitest';
import type { EmbeddingUsage } from '#contract';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { compose } from '../../src/core/compose.ts';
import { openProvider } from '../../src/registry.ts';
import { hasChromium } from '../support/chromium.ts';
import { contextOf } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';
import { expectAccessible, useConsole, useKey } from './browser.ts';

const [ADMIN, NARROW] = [newKey(), newKey()];

describe.skipIf(!hasChromium)('what embedding costs', () => {
  const open = useConsole();
  /** The page of keys of a gateway whose embedders have used this today. */
  const openWith = async (
    used: readonly (Omit<EmbeddingUsage, 'day' | 'model'> & { readonly model?: string })[],
    { key } = ADMIN,
  ) => {
    const day = new Date().toISOString().slice(0, 10);
    const rows = used.map((one) => ({ model: 'm', ...one, day }));
    const log = recordingLog();
    const opened = await openProvider('memory', { scopes: 'native' }, contextOf({}));
    const provider = compose(opened, { embedder: undefined, log, takeUsage: () => rows.splice(0) });
    onTestFinished(provider.close);
    const keys = [
      { name: 'admin', key: toHashedKey(ADMIN), grants: ['admin:*'] },
      { name: 'narrow', key: toHashedKey(NARROW), grants: ['*:*'] },
    ];
    const authenticator = await openAuthenticator({ keys, store: undefined, jwt: undefined, required: true, log });
    const { page, troubles } = await open('#/keys', { provider, authenticator });
    await useKey(page, key);
    await page.locator('h1').waitFor();
    return { page, troubles };
  };

  it('[Decision 63] is drawn by day and listed by key, where there are no stored keys too', async () => {
    const { page, troubles } = await openWith([
      { app: 'editor', texts: 2, tokens: 1_234, requests: 1 },
      { app: null, texts: 1, tokens: 6, requests: 1 },
    ]);
    const table = page.getByLabel('Embedding service by key');
    await table.waitFor();
    expect(await page.locator('main').textContent()).toMatch(/Counted since.*tokens of 30 days, UTC: 1,240/);
    expect(await page.locator('.chart rect').count()).toBe(30);
    expect(await table.locator('tbody tr').allTextContents()).toEqual(['editor1,23421', 'none, or the gateway611']);
    await expectAccessible(page, 'usage');
    expect(troubles).toEqual([]);
  });

  it('[Decision 63] is drawn in texts where tokens are unknown', async () => {
    const { page } = await openWith([{ app: 'editor', texts: 2, tokens: null, requests: 1 }]);
    await expect.poll(() => page.locator('main').textContent()).toMatch(/texts of 30 days, UTC: 2.*unknown/);
  });

  it('[Decision 63] is read page by page', async () => {
    const one = { app: 'editor', texts: 1, tokens: 2, requests: 1 };
    const { page } = await openWith(Array.from({ length: 10_001 }, (_, n) => ({ ...one, model: `m-${n}` })));
    const table = page.getByLabel('Embedding service by key');
    await expect.poll(() => table.locator('tbody tr').allTextContents()).toEqual(['editor20,00210,00110,001']);
  });

  it('[Decision 63] is absent for a key without admin:*', async () => {
    const { page } = await openWith([], NARROW);
    await page.waitForLoadState('networkidle');
    expect(await page.locator('main').textContent()).not.toContain('Embedding service');
    expect(await page.locator('.failure').count()).toBe(0);
  });
});
