import type { Page } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import { openWebhooks } from '../../src/features/webhooks/webhooks.ts';
import { call, openMemoryStore, SECRET } from '../features/webhooks/gateway.ts';
import { openReceiver } from '../features/webhooks/receiver.ts';
import { hasChromium } from '../support/chromium.ts';
import { recordingLog } from '../support/subject.ts';
import { expectAccessible, LOOKS, useConsole, useKey } from './browser.ts';
import { expectKeyboard } from './keyboard.ts';

const [ADMIN, NARROW] = [newKey(), newKey()];

describe.skipIf(!hasChromium)('the page of webhooks', () => {
  const open = useConsole();
  let opened: Awaited<ReturnType<typeof openAll>>;
  const openAll = async () => {
    const log = recordingLog();
    const provider = await openMemoryStore();
    const webhooks = openWebhooks({ secret: SECRET, allow_private: true }, provider, log);
    const authenticator = await openAuthenticator({
      keys: [
        { name: 'admin', key: toHashedKey(ADMIN), grants: ['admin:*'] },
        { name: 'narrow', key: toHashedKey(NARROW), grants: ['*:*'] },
      ],
      ...{ store: undefined, jwt: undefined, required: true, log },
    });
    return { provider, webhooks, authenticator };
  };
  beforeEach(async () => {
    opened = await openAll();
  });
  const openAs = async ({ key }: { key: string }) => {
    const { page, ...rest } = await open('#/webhooks', opened);
    await useKey(page, key);
    await page.locator('h1').waitFor();
    return { page, ...rest };
  };
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const text = (page: Page) => page.locator('main').textContent();
  const shownSecret = async (page: Page): Promise<string> =>
    (await page.locator('section', { hasText: 'only time' }).locator('pre').textContent()) ?? '';

  it('[Decision 52] makes a webhook, shows its secret once, tests, rotates, resumes and deletes it', async () => {
    const receiver = await openReceiver();
    const { page, troubles } = await openAs(ADMIN);
    await page.getByLabel('URL').fill(receiver.url);
    await page.getByLabel('Users').fill('ana\nben, the second\n');
    await page.getByLabel('Scopes').fill('work/*');
    await page.getByLabel('erase').uncheck();
    await button(page, 'Create webhook').press('Enter');
    const secret = await shownSecret(page);
    expect(secret).toMatch(/^whsec_/);
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toContain('The secret');
    await button(page, 'I have it').click();
    await button(page, 'Send a test').click();
    await expect.poll(() => text(page)).toContain('Test: delivered (204).');
    expect(receiver.accepts(secret)).toBe(true);
    const [stored] = (await opened.provider.webhooks?.list(call)) ?? [];
    expect(stored).toMatchObject({
      ...{ url: receiver.url, users: ['ana', 'ben, the second'], scope: 'work/*' },
      actions: ['add', 'update', 'delete', 'import'],
    });
    expect(await page.content()).not.toContain(secret);

    await button(page, 'New secret').click();
    expect(await shownSecret(page)).not.toBe(secret);
    await button(page, 'I have it').click();

    const delivery = { id: 'msg_1', type: 'memory.add', at: '2026-01-01T00:00:00.000Z', status: 500, milliseconds: 3 };
    await opened.provider.webhooks?.change(
      {
        id: stored?.id as string,
        patch: { state: 'given_up', undelivered: 1234, deliveries: [{ ...delivery, outcome: 'rejected' }] },
      },
      call,
    );
    await button(page, 'Refresh').click();
    await expect.poll(() => text(page)).toMatch(/given up after a day.*1,234 changes were not delivered/);
    await expect.poll(() => page.locator('tbody tr').textContent()).toMatch(/memory\.addrejected5003msg_1/);
    await button(page, 'Resume').click();
    await expect.poll(() => text(page)).toContain('The deliveries go on.');
    expect((await opened.provider.webhooks?.list(call))?.[0]?.state).toBe('active');
    await expectKeyboard(page, 'the form and a webhook');

    await button(page, 'Delete').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await expect.poll(() => text(page)).toContain('There is no webhook');
    expect(troubles).toEqual([]);
  });

  it('[Decision 52] says what is wrong with a webhook, and why the page is empty', async () => {
    const { page } = await openAs(ADMIN);
    await page.getByLabel('URL').fill('https://user:pass@example.com/');
    await button(page, 'Create webhook').click();
    await expect.poll(() => page.locator('.failure').textContent()).toMatch(/no credentials.*Request [\w-]+/);
    const narrow = await openAs(NARROW);
    await expect.poll(() => text(narrow.page)).toMatch(/lacks the grant admin:\*/);
    const unsupported = await open('#/webhooks');
    await expect.poll(() => text(unsupported.page)).toMatch(/OMP_WEBHOOK_SECRET.*openssl rand/);
    await expectAccessible(unsupported.page, 'unsupported');
  });

  it.each(LOOKS)('is accessible and fits, %s at %d pixels', async (colorScheme, width) => {
    const { page } = await openAs(ADMIN);
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 800 });
    const receiver = await openReceiver();
    await opened.webhooks?.create(
      { url: `${receiver.url}?${'x'.repeat(200)}`, users: ['ana'], scope: 'work/*', actions: null },
      call,
    );
    await page.reload();
    await button(page, 'New webhook').click();
    await expectAccessible(page, 'the form');
    await page.getByLabel('URL').fill(receiver.url);
    await button(page, 'Create webhook').click();
    await shownSecret(page);
    await expectAccessible(page, 'a new secret');
    await button(page, 'I have it').click();
    await button(page, 'Send a test').first().click();
    await expect.poll(() => text(page)).toContain('Test: delivered');
    await button(page, 'Delete').first().click();
    await expectAccessible(page, 'the question');
    await page.keyboard.press('Escape');
    await expectAccessible(page, 'the list');
  });
});
