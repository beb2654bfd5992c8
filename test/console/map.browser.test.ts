import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { Provider } from '#contract';
import { hasChromium } from '../support/chromium.ts';
import { knownCallers } from '../support/known-callers.ts';
import type { RunningServer } from '../support/server.ts';
import { openSubject, type SubjectOptions } from '../support/subject.ts';
import { ana, useConsole, useKey } from './browser.ts';

const HOSTILE = '<img src=x onerror="document.title=1"> שלום 👩‍👩‍👧';

describe.skipIf(!hasChromium)('the map of the console', () => {
  const open = useConsole();
  /** The console of a store with vectors. */
  const openMap = async (hash: string, fill: Parameters<typeof open>[2], alter?: SubjectOptions['alter']) => {
    const { provider } = await openSubject({
      provider: 'memory',
      options: { scopes: 'native' },
      ...(alter && { alter }),
    });
    return open(hash, { provider }, fill);
  };
  const marks = (page: Page) => page.locator('.plane > svg path');
  const places = (page: Page) => marks(page).evaluateAll((all) => all.map((one) => one.getAttribute('transform')));

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

  it('[Decision 42] puts like memories near each other, and each time in the same place', async () => {
    const tea = Array.from({ length: 15 }, (_, n) => `green tea ${n}`);
    const oil = Array.from({ length: 15 }, (_, n) => `engine oil ${n}`);
    const { page } = await openMap('#/map?user=ana', ana(...tea, ...oil));
    await expect.poll(() => marks(page).count()).toBe(30);
    const first = await places(page);
    const points = first.map((one) => (/([\d.]+) ([\d.]+)/.exec(one ?? '') ?? []).slice(1).map(Number));
    const nearest = points.map(([x = 0, y = 0]) => {
      const far = points.map(([right = 0, down = 0], n) => ({ n, far: Math.hypot(right - x, down - y) }));
      return far.sort((a, b) => a.far - b.far)[1]?.n ?? -1;
    });
    expect(nearest.filter((near, n) => near < 15 === n < 15).length).toBeGreaterThan(27);
    await page.reload();
    await expect.poll(() => places(page)).toEqual(first);
  });

  it.each([1, 2])('[Decision 42] draws %d equal memories', async (number) => {
    const { page } = await openMap('#/map?user=ana', ana(...Array(number).fill('green tea')));
    await expect.poll(() => places(page)).toHaveLength(number);
    for (const place of await places(page)) expect(place).toMatch(/^translate\(\d+(\.\d+)? \d+(\.\d+)?\)$/);
  });

  it('[Decision 42] has the newest 2,000 memories, without those that have no known word', async () => {
    const fill = async ({ client }: RunningServer) => {
      for (let n = 0; n < 2_001; n += 100) {
        const contents = Array.from({ length: Math.min(100, 2_001 - n) }, (_, i) => `tea ${n + i}`);
        await client.batch(contents.map((content) => ({ user_id: 'ana', content })));
      }
    };
    const withoutWord = (provider: Provider): Provider => ({
      ...provider,
      async export(query, call) {
        const { items, next } = await (provider as Required<Provider>).export(query, call);
        const zeros = (of: Float32Array | null) => of && new Float32Array(of.length);
        return {
          items: items.map((one) => (one.memory.content === 'tea 1000' ? { ...one, vector: zeros(one.vector) } : one)),
          next,
        };
      },
    });
    const { page } = await openMap('#/map?user=ana', fill, withoutWord);
    await expect.poll(() => marks(page).count()).toBe(1_999);
    await expect.poll(() => page.locator('main').textContent()).toMatch(/1,999 memories, the newest\. 1 more have no/);
  });

  it('[Decision 42] says which key it needs', async () => {
    const { provider } = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
    const { authenticator, admit } = knownCallers();
    const { authorization = '' } = admit({ users: ['ana'], grants: ['read:work/*'] });
    const { page } = await open('', { provider, authenticator }, ana('green tea'));
    await useKey(page, authorization.slice('Bearer '.length));
    await page.evaluate('location.hash = "#/map?user=ana"');
    await expect.poll(() => page.locator('main').textContent()).toMatch(/A map needs a key that may read every scope/);
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
