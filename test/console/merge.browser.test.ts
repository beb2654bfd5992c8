import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { OmpError, type Provider } from '#contract';
import { hasChromium } from '../support/chromium.ts';
import { knownCallers } from '../support/known-callers.ts';
import { ana, expectAccessible, LOOKS, useConsole, useKey } from './browser.ts';

const OLD = 'Ana lives in Lisbon.';
const NEW = 'Ana lives in Lisbon since May.';
const FACTS = [OLD, 'The dog is called Rex.', NEW, 'Green tea is on the shelf.'];

describe.skipIf(!hasChromium)('the page that merges memories', () => {
  const open = useConsole();
  const groups = (page: Page) => page.locator('main section');
  const merge = (page: Page) => page.getByRole('button', { name: 'Merge 2' });
  const confirm = (page: Page) => page.getByRole('dialog').getByRole('button', { name: 'Merge' });

  it('[Decision 58] makes one of two memories, and their pages show what replaced what', async () => {
    const { page, client, troubles } = await open('#/users?user=ana', {}, ana(...FACTS));
    await page.getByRole('link', { name: 'Merge what says' }).press('Enter');
    await merge(page).waitFor();
    await expect.poll(() => groups(page).count()).toBe(1);
    await expect.poll(() => page.getByRole('radio', { name: `Stays: ${NEW}` }).isChecked()).toBe(true);
    await expect.poll(() => groups(page).locator('ins').allTextContents()).toEqual([' since May']);
    await merge(page).press('Enter');
    await page.getByRole('dialog').getByLabel('What stays').fill('Ana has lived in Lisbon since May.');
    await confirm(page).press('Enter');
    await expect
      .poll(() => page.locator('p.panel:focus').textContent())
      .toBe(`Merged: Ana has lived in Lisbon since May.`);

    const { items } = await client.list({ user_id: 'ana' });
    const [newest, old] = [
      items.find(({ supersedes }) => supersedes?.length),
      items.find((one) => one.content === OLD),
    ];
    expect(newest).toMatchObject({ content: 'Ana has lived in Lisbon since May.', supersedes: [old?.id] });
    const hits = await client.search({ q: 'Lisbon', user_id: 'ana', current: 'true' });
    expect(hits.map(({ memory }) => memory.id)).toEqual([newest?.id]);
    await page.locator('p.panel a').press('Enter');
    const line = page.locator('.line > li');
    await expect.poll(() => line.count()).toBe(2);
    await expect.poll(() => line.first().textContent()).toContain(OLD);
    await line.first().getByRole('link').press('Enter');
    await expect.poll(() => page.locator('.content').textContent()).toBe(OLD);
    await expect.poll(() => line.last().textContent()).toContain('Ana has lived');
    await page.goto(page.url().replace(/#.*/, '#/merge?user=ana'));
    await expect.poll(() => page.getByRole('status').first().textContent()).toMatch(/^0 found among 3 /);
    expect(troubles).toEqual([]);
  });

  it('[Decision 58] keeps the one that is chosen, and replaces nothing that somebody has changed meanwhile', async () => {
    const { page, client } = await open('#/merge?user=ana', {}, ana(...FACTS));
    const { items } = await client.list({ user_id: 'ana' });
    const [old, newer] = [OLD, NEW].map((text) => items.find(({ content }) => content === text)?.id ?? '');
    await page.getByRole('radio', { name: `Stays: ${OLD}` }).check();
    await client.update(newer ?? '', { content: 'Ana lives in Lisbon, and moves to Porto.' });
    await merge(page).press('Enter');
    await confirm(page).press('Enter');
    await expect.poll(() => page.getByRole('dialog').textContent()).toContain('so nothing is merged');
    await page.keyboard.press('Escape');
    await expect.poll(() => groups(page).locator('del').allTextContents()).toEqual([', and moves to Porto']);
    expect((await client.get(old ?? '')).supersedes ?? []).toEqual([]);
    await merge(page).press('Enter');
    await confirm(page).press('Enter');
    await expect.poll(() => page.locator('p.panel').textContent()).toBe(`Merged: ${OLD}`);
    expect(await client.get(old ?? '')).toMatchObject({ content: OLD, supersedes: [newer] });
  });

  it('[Decision 58] hides in this tab what is not the same, and takes that back', async () => {
    const { page } = await open('#/merge?user=ana', {}, ana(...FACTS));
    const apart = page.getByRole('button', { name: `Not the same: ${OLD}` });
    await apart.press('Enter');
    await expect.poll(() => merge(page).count()).toBe(0);
    await apart.press('Enter');
    await merge(page).waitFor();
    await apart.press('Enter');
    await page.reload();
    await expect.poll(() => page.getByRole('status').first().textContent()).toMatch(/^0 found among 4 /);
  });

  it('[Decision 58] searches for four texts at once, goes on after an error, and stops when the page is left', async () => {
    let [running, most, stopped, isRefused] = [0, 0, 0, false];
    const waiting: (() => void)[] = [];
    const release = () => {
      for (const one of waiting.splice(0)) one();
    };
    onTestFinished(release);
    const alter = (provider: Provider): Provider => ({
      ...provider,
      search: async (...input) => {
        most = Math.max(most, ++running);
        await new Promise<void>((resolve) => waiting.push(resolve));
        running--;
        // The client asks again after most other errors.
        if (isRefused) throw new OmpError('invalid_request', 'refused');
        return (await provider.search?.(...input)) ?? [];
      },
    });
    const texts = Array.from({ length: 20 }, (_, n) => `word${n}`);
    const { page, url } = await open('#/merge?user=ana', { alter }, ana(...texts));
    await expect.poll(() => waiting.length).toBe(4);
    isRefused = true;
    release();
    await page.getByRole('alert').waitFor();
    isRefused = false;
    await page.getByRole('button', { name: 'Try again' }).press('Enter');
    await expect.poll(() => waiting.length).toBe(4);
    release();
    await expect.poll(() => page.locator('main label').textContent()).toBe('4 of 20 looked at');
    await expect.poll(() => waiting.length).toBe(4);
    page.on('requestfailed', (request) => {
      if (request.url().includes('/memories/search?')) stopped++;
    });
    await page.goto(`${url}/console/#/keys`);
    await expect.poll(() => stopped).toBe(4);
    expect(most).toBe(4);
  });

  it('[Decision 58] says why a key merges nothing', async () => {
    const { authenticator, admit } = knownCallers();
    const { page, client } = await open('#/merge?user=ana', { authenticator }, ana(...FACTS));
    const { authorization = '' } = admit({ users: ['ana'], grants: ['read:*'] });
    await useKey(page, authorization.slice('Bearer '.length));
    await merge(page).press('Enter');
    await confirm(page).press('Enter');
    await expect.poll(() => page.getByRole('dialog').getByRole('alert').textContent()).toMatch(/permission/);
    await expect.poll(() => confirm(page).isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    await expect
      .poll(() => groups(page).textContent())
      .toContain('The key of this tab may not change the one that stays.');
    expect((await client.list({ user_id: 'ana' })).items.flatMap(({ supersedes }) => supersedes ?? [])).toEqual([]);
  });

  it.each([
    ['without search', ({ search: _, ...provider }: Provider): Provider => provider, /^This backend cannot search/],
    [
      'without supersession',
      (provider: Provider): Provider => ({
        ...provider,
        capabilities: { ...provider.capabilities, supports_supersession: false },
      }),
      /does not keep what replaces what.*1 found among 4 /,
    ],
    ['that only reads', ({ update: _, ...provider }: Provider): Provider => provider, /only reads.*1 found among 4 /],
  ])('[Decision 58] says why a store %s merges nothing', async (_, alter, why) => {
    const { page } = await open('#/merge?user=ana', { alter }, ana(...FACTS));
    await expect.poll(() => page.locator('main').textContent()).toMatch(why);
    expect([await merge(page).count(), await page.getByRole('radio').count()]).toEqual([0, 0]);
  });

  it.each([...LOOKS, ['light', 390] as const])(
    'is accessible and fits, %s at %d pixels',
    async (colorScheme, width) => {
      const { page } = await open('#/merge?user=ana', {}, ana(...FACTS, 'x'.repeat(3_000), `${'x'.repeat(3_000)} y`));
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.setViewportSize({ width, height: 800 });
      await merge(page).first().waitFor();
      await expectAccessible(page, 'the groups');
      await merge(page).last().press('Enter');
      await expectAccessible(page, 'the question');
      await confirm(page).press('Enter');
      await page.locator('p.panel').waitFor();
      await expectAccessible(page, 'what was merged');
    },
  );
});
