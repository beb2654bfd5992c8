import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type GatewayAuthenticator, openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { OPEN } from '../../src/core/grants.ts';
import { call } from '../auth/call.ts';
import { openStore, type TestDatabase } from '../postgres/store.ts';
import { hasChromium } from '../support/chromium.ts';
import type { Store } from '../support/stores.ts';
import { recordingLog } from '../support/subject.ts';
import { expectAccessible, LOOKS, takePicture, useConsole, useKey } from './browser.ts';
import { expectKeyboard } from './keyboard.ts';

const [ADMIN, NARROW] = [newKey(), newKey()];

describe.skipIf(!hasChromium)('the page of keys', () => {
  const open = useConsole();
  let store: TestDatabase;
  let provider: Store;
  let authenticator: GatewayAuthenticator;
  beforeAll(async () => {
    store = await openStore();
    provider = await store.open({ mode: 'keyword' });
    authenticator = await openAuthenticator({
      keys: [
        { name: 'admin', key: toHashedKey(ADMIN), grants: ['admin:*'] },
        { name: 'narrow', key: toHashedKey(NARROW), grants: ['*:*'] },
      ],
      ...{ store: provider.keys, jwt: undefined, required: true, log: recordingLog() },
    });
  });
  afterAll(() => store?.close());
  beforeEach(() => store.sql(`delete from ${store.names.apiKeys}`));

  const openAs = async ({ key }: { key: string }) => {
    const opened = await open('#/keys', { provider, authenticator });
    await useKey(opened.page, key);
    await opened.page.locator('h1').waitFor();
    return opened;
  };
  const grants = (page: Page) => expect.poll(() => page.getByLabel('Grants', { exact: true }).textContent());
  const box = (page: Page, name: string, line = 0) => page.getByRole('checkbox', { name }).nth(line);
  const shownKey = async (page: Page): Promise<string> =>
    (await page.locator('section', { hasText: 'only time' }).locator('pre').textContent()) ?? '';
  const create = (page: Page) => page.getByRole('button', { name: 'Create key' }).click();
  const list = (url: string, key: string, user_id: string) =>
    fetch(`${url}/memories?user_id=${user_id}`, { headers: { 'x-api-key': key } }).then(({ status }) => status);

  it('[Decision 41] makes a key from boxes, shows it once, and revokes it', async () => {
    const { page, url, troubles } = await openAs(ADMIN);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    // By the keyboard alone.
    await page.getByLabel('Name').focus();
    await page.keyboard.type('editor');
    await page.getByLabel('Users').fill('ana\nben, the second\n');
    await box(page, 'write').focus();
    await page.keyboard.press('Space');
    await grants(page).toBe('read:*  write:*');
    await box(page, 'delete').press('Space');
    await grants(page).toBe('*:*');
    await page.getByLabel('in the scopes').fill('work/*');
    await page.getByRole('button', { name: 'Other scopes' }).press('Enter');
    await page.getByLabel('in the scopes').nth(1).fill('home of ana');
    await box(page, 'manage keys').press('Space');
    await grants(page).toBe('*:work/*  read:home of ana  admin:*');
    await box(page, 'manage keys').press('Space');
    await box(page, 'untrusted').press('Space');
    await page.getByLabel('Name').press('Enter');

    const key = await shownKey(page);
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toContain('The key editor');
    await page.getByRole('button', { name: 'Copy the key' }).click();
    await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe(key);
    const [stored] = (await provider.keys?.list({}, call)) ?? [];
    expect(stored).toMatchObject({
      ...{ name: 'editor', users: ['ana', 'ben, the second'], grants: ['*:work/*', 'read:home of ana'] },
      ...{ expires_at: expect.stringMatching(/T00:00:00.000Z$/), untrusted: true },
    });
    expect([await list(url, key, 'ana'), await list(url, key, 'cleo')]).toEqual([200, 403]);

    await page.getByRole('button', { name: 'I have it' }).click();
    await page.getByRole('button', { name: 'Revoke editor' }).waitFor();
    await expect.poll(() => page.locator('tbody .mark').allTextContents()).toEqual(['active', 'untrusted']);
    expect(await page.content()).not.toContain(key.slice(17));
    await expectKeyboard(page, 'the form and the list');

    await page.getByRole('button', { name: 'Revoke editor' }).press('Enter');
    await page.keyboard.press('Escape');
    expect(await list(url, key, 'ana')).toBe(200);
    await page.getByRole('button', { name: 'Revoke editor' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await expect.poll(() => page.locator('main').textContent()).toContain('editor is revoked');
    await expect.poll(() => page.getByRole('button', { name: 'Revoke editor' }).count()).toBe(0);
    await expect.poll(() => page.evaluate('document.activeElement.ariaLabel')).toBe('Stored keys');
    await expect.poll(() => list(url, key, 'ana')).toBe(401);
    expect(troubles).toEqual([]);
  });

  it('[Decision 41] says what is wrong with a key, and offers no way to revoke its own', async () => {
    const { page } = await openAs(ADMIN);
    await page.getByLabel('Name').fill('second admin');
    await box(page, 'read').uncheck();
    await grants(page).toBe('none');
    await expect.poll(() => page.getByRole('button', { name: 'Create key' }).isDisabled()).toBe(true);
    await box(page, 'manage keys').check();
    await create(page);
    const key = await shownKey(page);
    await useKey(page, key);
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByLabel('Name').fill('second admin');
    await create(page);
    await expect.poll(() => page.locator('.failure').textContent()).toMatch(/exists already.*Request [\w-]+/);
    await expect.poll(() => page.locator('tbody tr').textContent()).toContain('in use here');
    expect(await page.getByRole('button', { name: /^Revoke/ }).count()).toBe(0);
  });

  it('[Decision 41] lists keys page by page', async () => {
    const { page } = await openAs(ADMIN);
    for (let n = 0; n < 51; n++) {
      const { id, hash } = newKey();
      await provider.keys?.create(
        { id, hash, name: `key ${n}`, users: null, grants: ['read:*'], expires_at: null },
        call,
      );
    }
    await page.reload();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(50);
    await page.getByRole('button', { name: 'Older' }).click();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(51);
    await expect.poll(() => page.getByRole('button', { name: 'Older' }).count()).toBe(0);
  });

  it('[Decision 41] is absent with its reason, and with the command that helps', async () => {
    const narrow = await openAs(NARROW);
    const main = ({ page }: { page: Page }) => page.locator('main').textContent();
    await expect.poll(() => main(narrow)).toMatch(/lacks the grant admin:\*.*keys create admin --grant 'admin:\*'/);
    await expectAccessible(narrow.page, 'narrow');
    const anybody = await open('#/keys', { provider, authenticator: OPEN });
    await expect.poll(() => main(anybody)).toMatch(/keys create admin.*If it is the first key/);
    const unsupported = await open('#/keys');
    await expect.poll(() => main(unsupported)).toMatch(/stores no keys.*--print/);
    await expectAccessible(unsupported.page, 'unsupported');
  });

  it.each(LOOKS)('is accessible and fits, %s at %d pixels', async (colorScheme, width) => {
    const { page } = await openAs(ADMIN);
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 800 });
    for (const name of ['laptop', 'backup']) {
      if (name === 'backup') await page.getByRole('button', { name: 'New key' }).click();
      await page.getByLabel('Name').fill(name);
      await create(page);
      await shownKey(page);
      if (name === 'laptop') await expectAccessible(page, 'a new key');
      await page.getByRole('button', { name: 'I have it' }).click();
    }
    await page.getByRole('button', { name: 'Revoke laptop' }).click();
    await expectAccessible(page, 'the question');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await expect.poll(() => page.locator('main').textContent()).toContain('laptop is revoked');
    await expectAccessible(page, 'the list');
    await page.getByRole('button', { name: 'New key' }).click();
    await page.getByRole('button', { name: 'Other scopes' }).click();
    await expectAccessible(page, 'the form');
    if (width === 1280) await takePicture(page, `keys-${colorScheme}`);
  });
});
