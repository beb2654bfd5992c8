import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hasChromium } from '../support/chromium.ts';
import { closedTo } from '../support/closed.ts';
import { openSubject, type Subject } from '../support/subject.ts';
import { stored, useConsole } from './browser.ts';
import { expectFocus, expectKeyboard, press, tabTo } from './keyboard.ts';

describe.skipIf(!hasChromium)('the console by the keyboard alone', () => {
  const open = useConsole();
  let subject: Subject;
  let page: Page;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
  });
  afterAll(() => subject?.close());
  /** On the start page, with two memories of ana. */
  beforeEach(async () => {
    await subject.client.erase('ana');
    for (const content of ['black coffee', 'green tea'])
      await subject.client.add({ user_id: 'ana', content, scope: 'work/tools', tags: ['drink'] });
    ({ page } = await open('', { provider: subject.provider }));
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await link('green tea').waitFor();
  });
  const main = () => page.getByRole('main');
  const link = (name: string | RegExp) => main().getByRole('link', { name, exact: true });
  const button = (name: string | RegExp) => main().getByRole('button', { name, exact: true });
  const dialog = () => page.getByRole('dialog');
  const heading = (name: RegExp) => main().getByRole('heading', { name, level: 1 });
  const type = (text: string) => page.keyboard.type(text);
  const text = () => expect.poll(() => main().textContent());
  /** Ctrl-K, what is typed, Enter. */
  const go = async (where: string) => {
    await page.keyboard.press('Control+k');
    await type(where);
    await page.keyboard.press('Enter');
    await dialog().waitFor({ state: 'hidden' });
  };
  const openMemory = async () => {
    await link('green tea').waitFor();
    await expectKeyboard(page, 'the page');
    await press(link('green tea'));
    await heading(/^Memory/).waitFor();
  };
  /** Every page with what is done on it. The second of memories is the page of one. */
  const pages = [
    { title: 'Overview', use: openMemory },
    {
      title: 'Memories',
      use: async () => {
        await press(button('Filters'));
        await button(/^work\//).waitFor();
        await press(button('Add memory'));
        await expectFocus(main().getByLabel('Text'));
        await type('likes oolong');
        await expectKeyboard(page, 'the form and the filters');
        await press(button('Add'));
        await link('likes oolong').waitFor();
        await tabTo(link('likes oolong'));
        await page.keyboard.press('ArrowDown');
        await expectFocus(link('green tea'));
        await page.keyboard.press('e');
        await expectFocus(main().getByLabel('Text'));
        await page.keyboard.press('Escape');
        await expectFocus(link('green tea'));
        await page.keyboard.press('x');
        await press(button('Select none'));
        await tabTo(link('likes oolong'));
        await page.keyboard.press('Delete');
        await press(page.getByRole('button', { name: 'Delete now' }));
        await expect.poll(() => stored(subject.client)).toEqual(['green tea', 'black coffee']);
      },
    },
    {
      title: 'Memories',
      use: async () => {
        await press(link('black coffee'));
        await heading(/^Memory/).waitFor();
        await button('Edit').waitFor();
        await expectKeyboard(page, 'the page of one memory');
        await press(button('Edit'));
        await expectFocus(main().getByLabel('Text'));
        await page.keyboard.press('Control+a');
        await type('espresso');
        await press(button('Save'));
        await button('Restore version 1').waitFor();
        await expectKeyboard(page, 'the versions');
        await press(button('Restore version 1'));
        await expect.poll(() => stored(subject.client)).toContain('black coffee');
      },
    },
    {
      title: 'Users',
      use: async () => {
        await press(button(/^Erase/));
        await expectKeyboard(page, 'the question');
        await page.keyboard.press('Escape');
        await expectFocus(button(/^Erase/));
        await expectKeyboard(page, 'the page of one user');
        await press(link('Show 2 memories'));
        await heading(/^Memories/).waitFor();
      },
    },
    {
      title: 'Context lab',
      use: async () => {
        await tabTo(main().getByLabel('Query'));
        await type('tea');
        await page.keyboard.press('Enter');
        await text().toContain('recalled data, not instructions');
        await link('green tea').first().waitFor();
        await expectKeyboard(page, 'the page');
        await tabTo(main().getByRole('slider'));
        await page.keyboard.press('ArrowRight');
        await expect.poll(() => page.url()).toContain('budget=550');
        await press(main().getByText('The block as it is sent'));
        await button(/^Copy/).waitFor();
      },
    },
    { title: 'Map', use: openMemory },
    {
      title: 'Audit',
      use: async () => {
        await main().getByRole('table').waitFor();
        await tabTo(main().getByLabel('Caller'));
        await type('nobody');
        await page.keyboard.press('Enter');
        await text().toContain('No entries');
        await expectKeyboard(page, 'the page');
      },
    },
    {
      title: 'Rollback',
      use: async () => {
        await press(button('Show what would happen'));
        await button(/^Roll back/).waitFor();
        await expectKeyboard(page, 'the list');
        await press(button(/^Roll back/));
        await expectKeyboard(page, 'the question');
        await page.keyboard.press('Escape');
        await expectFocus(button(/^Roll back/));
      },
    },
    {
      title: 'Health',
      use: async () => {
        await press(main().getByText('What this gateway can do'));
        await main().getByRole('rowheader', { name: 'Protocol' }).waitFor();
        await expectKeyboard(page, 'the page');
      },
    },
    // With keys and webhooks: keys.browser.test.ts and webhooks.browser.test.ts.
    ...['Keys', 'Webhooks'].map((title) => ({
      title,
      use: async () => {
        await button(/^Copy/).waitFor();
        await expectKeyboard(page, 'the page');
        await press(button(/^Copy/));
        await text().toMatch(/Copied|Selected/);
      },
    })),
  ];

  it.each(pages)('reaches, uses and leaves: $title', async ({ title, use }) => {
    await go('ana');
    await heading(/of ana$/).waitFor();
    await go(title);
    const current = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: title });
    await expect.poll(() => current.getAttribute('aria-current')).toBe('page');
    await use();
    await go('Overview');
    await link('green tea').first().waitFor();
  });

  it('gives a key, and shows the keys and the places to go', async () => {
    const { authenticator, keys } = await closedTo('all');
    ({ page } = await open('', { provider: subject.provider, authenticator }));
    await expectFocus(page.getByLabel('Key or token'));
    await expectKeyboard(page, 'the form for a key');
    await tabTo(page.getByLabel('Key or token'));
    await type(keys.all);
    await page.keyboard.press('Enter');
    await link('green tea').waitFor();
    await page.keyboard.press('?');
    await expectKeyboard(page, 'the keys');
    await press(dialog().getByRole('button'));
    await dialog().waitFor({ state: 'hidden' });
    await page.keyboard.press('Control+k');
    await expectKeyboard(page, 'the places to go');
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'hidden' });
    await press(page.getByRole('button', { name: 'Skip to the page' }));
    await expectFocus(main());
    await press(page.getByRole('link', { name: 'Users' }).first());
    await heading(/^Users/).waitFor();
    await expectKeyboard(page, 'all users');
    await press(page.getByRole('button', { name: 'Forget key' }));
    await expectFocus(page.getByLabel('Key or token'));
  });
});
