import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openAuthenticator } from '../../src/auth/authenticator.ts';
import { toHashedKey } from '../../src/auth/configured-keys.ts';
import { newKey } from '../../src/auth/credentials.ts';
import type { Authenticator } from '../../src/core/grants.ts';
import { hasChromium } from '../support/chromium.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { openSubject, recordingLog, type Subject } from '../support/subject.ts';
import { rows, stored, useConsole, useKey } from './browser.ts';

const HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script> שלום 👩‍👩‍👧';

/** What stands on each page, or why nothing does. */
const EVERYTHING = {
  users: 'ana',
  'users?user=ana': 'Largest scopes',
  'audit?user=ana': 'delete',
  'map?user=ana': '3 memories',
};

const STORES = [
  {
    name: 'memory',
    open: () => openSubject({ provider: 'memory', options: { scopes: 'native' } }),
    longest: 100_000,
    shown: { ...EVERYTHING, keys: 'This backend stores no keys' },
    orders: 3,
  },
  {
    name: 'embedded Postgres',
    open: () => openSubject({ provider: 'postgres', options: {} }),
    longest: 100_000,
    shown: { ...EVERYTHING, keys: "--grant 'admin:*'" },
    orders: 3,
  },
  {
    name: 'Pinecone',
    open: () => openPineconeSubject(),
    longest: 9_000,
    shown: {
      users: 'This backend cannot list its users',
      'users?user=ana': 'This backend cannot count the memories',
      'audit?user=ana': 'No audit log is kept',
      'map?user=ana': '3 memories',
      keys: 'This backend stores no keys',
    },
    // By meaning only: it has no keyword search.
    orders: 1,
  },
];

/** A gateway that accepts these keys, of which one may read one scope of one user, and one has expired. */
async function closedGateway(): Promise<{ authenticator: Authenticator; narrow: string; expired: string }> {
  const [narrow, expired] = [newKey(), newKey()];
  const authenticator = await openAuthenticator({
    keys: [
      { name: 'narrow', key: toHashedKey(narrow), users: ['ana'], grants: ['read:work/*'] },
      { name: 'expired', key: toHashedKey(expired), grants: ['*:*'], expires_at: '2020-01-01' },
    ],
    store: undefined,
    jwt: undefined,
    required: true,
    log: recordingLog(),
  });
  return { authenticator, narrow: narrow.key, expired: expired.key };
}

describe.skipIf(!hasChromium).each(STORES)('the console on $name', ({ open, longest, shown, orders }) => {
  const openConsole = useConsole();
  let subject: Subject;
  beforeAll(async () => {
    subject = await open();
  });
  afterAll(() => subject?.close());

  it('shows and changes what is there on every page', async () => {
    const { page, client, troubles, url } = await openConsole(
      '#/memories?user=ana',
      { provider: subject.provider },
      async ({ client }) => {
        for (const content of ['x'.repeat(longest), HOSTILE, 'black coffee', 'green tea']) {
          await client.add({ user_id: 'ana', content, scope: 'work/tools', tags: ['tea'] });
        }
      },
    );
    await expect.poll(() => rows(page).count()).toBe(4);
    await expect.poll(() => rows(page).nth(2).textContent()).toBe(HOSTILE);
    await rows(page).nth(1).focus();
    await page.keyboard.press('e');
    await page.locator('.row.open textarea').fill('mint tea');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await expect.poll(() => rows(page).nth(1).textContent()).toBe('mint tea');
    // The focus comes back with a later frame.
    await expect.poll(() => page.locator('[data-row]:focus').textContent()).toBe('mint tea');
    await rows(page).first().focus();
    await page.keyboard.press('Delete');
    await page.getByRole('button', { name: 'Delete now' }).click();
    await expect.poll(() => rows(page).count()).toBe(3);
    await expect.poll(() => stored(client)).toEqual(['mint tea', HOSTILE, 'x'.repeat(longest)]);

    await rows(page).nth(1).click();
    await expect.poll(() => page.locator('.content').textContent()).toBe(HOSTILE);
    await page.goto(`${url}/console/#/search?user=ana&q=teas`);
    await expect.poll(() => page.locator('.results li').first().textContent()).toContain('mint tea');
    await expect.poll(() => page.locator('.orders section').count()).toBe(orders);
    await expect.poll(() => page.locator('.parts').count()).toBeGreaterThanOrEqual(3);
    await expect.poll(() => page.locator('section pre').textContent()).toContain('mint tea');
    for (const [hash, text] of Object.entries(shown)) {
      await page.goto(`${url}/console/#/${hash}`);
      await expect.poll(() => page.locator('main').textContent(), { message: hash }).toContain(text);
    }
    await page.goto(`${url}/console/#/health`);
    await expect.poll(() => page.locator('main').textContent()).toContain('All is well');
    await expect.poll(() => page.title()).toBe('Health');
    expect(troubles).toEqual([]);
  });

  it('shows a narrow key its part, and an expired one the form for another', async () => {
    const { authenticator, narrow, expired } = await closedGateway();
    await subject.client.add({ user_id: 'ana', content: 'private', scope: 'home' });
    const { page } = await openConsole('#/memories?user=ana', { provider: subject.provider, authenticator });
    await useKey(page, expired);
    await expect.poll(() => page.locator('.failure').textContent()).toMatch(/expired/);
    await useKey(page, narrow);
    await expect.poll(() => rows(page).count()).toBe(3);
    expect(await page.locator('main').textContent()).not.toContain('private');
    await rows(page).first().focus();
    await page.keyboard.press('Delete');
    await page.getByRole('button', { name: 'Delete now' }).click();
    await expect.poll(() => page.locator('.notice').textContent()).toMatch(/could not be deleted.*Request [\w-]+/);
    expect(await rows(page).count()).toBe(3);
  });
});
