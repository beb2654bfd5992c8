import { describe, expect, it, vi } from 'vitest';
import { hasChromium } from '../support/chromium.ts';
import { openSubject } from '../support/subject.ts';
import { useConsole } from './browser.ts';

describe.skipIf(!hasChromium)('the growth of a user in the console', () => {
  const open = useConsole();

  it.each([
    { times: ['2020-01-30', '2020-02-01', '2020-02-01'], heights: [60, 0, 120], labels: ['2020-01-30', '2020-02-01'] },
    {
      times: ['2019-12-31', '2020-03-31', '2020-05-01'],
      heights: [120, 0, 0, 120, 0, 120],
      labels: ['2019-12', '2020-05'],
    },
  ])('[Decision 37] is drawn from $labels, with the periods without memories', async ({ times, heights, labels }) => {
    const { provider, client } = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
    try {
      for (const time of times) {
        vi.useFakeTimers({ toFake: ['Date'], now: new Date(time) });
        await client.add({ user_id: 'ana', content: 'x' });
      }
    } finally {
      vi.useRealTimers();
    }
    const { page, troubles } = await open('#/users?user=ana', { provider });
    const columns = page.locator('.chart rect');
    await expect.poll(() => columns.count()).toBe(heights.length);
    const drawn = await Promise.all(heights.map((_, n) => columns.nth(n).getAttribute('height')));
    expect(drawn.map(Number)).toEqual(heights);
    const axis = page.locator('.axis span');
    await expect.poll(() => axis.allTextContents()).toEqual(labels);
    await page.getByText('As a table').click();
    await expect.poll(() => page.locator('.chart tr').count()).toBe(new Set(times).size);
    expect(troubles).toEqual([]);
  });
});
