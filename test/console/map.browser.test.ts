import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { hasChromium } from '../support/chromium.ts';
import type { RunningServer } from '../support/server.ts';
import { openSubject } from '../support/subject.ts';
import { ana, useConsole } from './browser.ts';

const HOSTILE = '<img src=x onerror="document.title=1"> שלום 👩‍👩‍👧';

describe.skipIf(!hasChromium)('the map of the console', () => {
  const open = useConsole();
  /** The console of a store with vectors. */
  const openMap = async (hash: string, fill: Parameters<typeof open>[2]) => {
    const { provider } = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
    return open(hash, { provider }, fill);
  };
  const marks = (page: Page) => page.locator('.plane > svg path');

  it('[Decision 42] draws a mark for each memory, and shows its text at the pointer', async () => {
    const { page, client, troubles } = await openMap('#/map?user=ana', ana('green tea', HOSTILE));
    await client.add({ user_id: 'ana', content: 'x'.repeat(100_000), scope: 'home' });
    await page.reload();
    await expect.poll(() => marks(page).count()).toBe(3);
    // The colour and the form of a scope.
    await expect.poll(() => page.locator('.legend li').allTextContents()).toEqual([' work/tools (2)', ' home (1)']);
    const forms = await Promise.all([0, 1, 2].map((n) => marks(page).nth(n).getAttribute('d')));
    expect(new Set(forms).size).toBe(2);
    await marks(page).nth(1).hover();
    await expect.poll(() => page.locator('.tip span').first().textContent()).toBe(HOSTILE);
    await marks(page).nth(1).click();
    await expect.poll(() => page.locator('.content').textContent()).toBe(HOSTILE);
    await expect.poll(() => page.url()).toMatch(/#\/memory\?id=mem_\w+&user=ana$/);
    expect(troubles).toEqual([]);
  });

  it('[Decision 42] has a list of the same memories, which the keyboard reaches', async () => {
    const { page } = await openMap('#/map?user=ana', ana('green tea', 'black coffee'));
    const link = page.getByRole('link', { name: 'green tea' });
    await link.focus();
    await expect.poll(() => page.locator('.tip span').first().textContent()).toBe('green tea');
    await expect.poll(() => page.locator('.ring').count()).toBe(1);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.content').textContent()).toBe('green tea');
  });

  it('[Decision 42] is filtered and coloured by its address', async () => {
    const fill = async (server: RunningServer) => {
      await ana('green tea', 'black coffee')(server);
      await server.client.add({ user_id: 'ana', content: 'a bicycle', scope: 'home' });
    };
    const { page, url } = await openMap('#/map?user=ana&scope=work/*&colour=age', fill);
    await expect.poll(() => marks(page).count()).toBe(2);
    await expect.poll(() => page.locator('.legend li').count()).toBe(2);
    await page.getByLabel('Colour by').selectOption('scope');
    await page.getByRole('button', { name: 'Draw' }).click();
    await expect.poll(() => page.locator('.legend li').allTextContents()).toEqual([' work/tools (2)']);
    await expect.poll(() => page.url()).toBe(`${url}/console/#/map?user=ana&scope=work%2F*&colour=scope`);
    await page.goto(`${url}/console/#/map?user=nobody`);
    await expect.poll(() => page.locator('main').textContent()).toMatch(/No memory to draw/);
  });

  it('[Decision 42] says why it is absent', async () => {
    const { page } = await open('#/map?user=ana');
    await expect.poll(() => page.locator('main').textContent()).toMatch(/needs stored vectors/);
  });

  it.each([
    ['light', 1280],
    ['dark', 320],
  ] as const)('is accessible and fits, %s at %d pixels', async (colorScheme, width) => {
    const { page } = await openMap('', ana('green tea', 'black coffee', 'a bicycle'));
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 800 });
    await page.evaluate('location.hash = "#/map?user=ana"');
    await expect.poll(() => marks(page).count()).toBe(3);
    await marks(page).first().hover();
    const { violations } = await new AxeBuilder({ page })
      .withTags(['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'])
      .analyze();
    expect(violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
  });
});
