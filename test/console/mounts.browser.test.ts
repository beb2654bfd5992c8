import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { providerError } from '#contract';
import type { Store } from '../../src/core/store.ts';
import { hasChromium } from '../support/chromium.ts';
import { openMounted } from '../support/mounted.ts';
import { openSubject, type Subject, type SubjectOptions } from '../support/subject.ts';
import { expectAccessible, rows, useConsole } from './browser.ts';

const inMemory = (options: Partial<SubjectOptions>) => openSubject({ provider: 'memory', options: {}, ...options });

describe.skipIf(!hasChromium)('the console of a gateway with several stores', () => {
  const openConsole = useConsole();
  let subject: Subject;
  let isDown = false;
  beforeAll(async () => {
    let down: Store | undefined;
    const fail = async (): Promise<never> => {
      throw providerError('crm', 'down');
    };
    const current = (store: Store) => {
      down ??= { ...store, list: fail, search: fail, userStats: fail };
      return isDown ? down : store;
    };
    subject = await openMounted(inMemory, [
      { name: 'crm', mount: 'team/crm', required: false, weight: 0.5, open: inMemory, current },
      { name: 'handbook', mount: 'team/handbook', open: inMemory },
    ]);
    for (const scope of [undefined, 'team/crm/acme'])
      await subject.client.add({ user_id: 'ana', content: 'green tea', scope });
  });
  afterAll(() => subject?.close());

  it('[Decision 48] shows mounts in the tree of scopes, the store of a hit, and what each store can do', async () => {
    const { page, troubles, url } = await openConsole('#/memories?user=ana', { provider: subject.provider });
    await expect.poll(() => rows(page).count()).toBe(2);
    await page.getByRole('button', { name: 'Filters' }).click();
    await expect.poll(() => page.locator('.tree .mark').allTextContents()).toEqual(['crm', 'handbook']);
    expect(await page.locator('.missing').count()).toBe(0);
    await page.goto(`${url}/console/#/search?user=ana&q=tea`);
    await expect.poll(() => page.locator('.results .mark').first().textContent()).toBe('crm');
    await expect.poll(() => page.locator('.parts', { hasText: '0.5 × (' }).count()).toBeGreaterThan(0);
    await page.goto(`${url}/console/#/health`);
    await expect.poll(() => page.locator('main').textContent()).toContain('at team/handbook: add, search');
    await expectAccessible(page, 'health');
    expect(troubles).toEqual([]);
  });

  it('[Decision 49] says what an answer lacks', async () => {
    isDown = true;
    const { page, url } = await openConsole('#/memories?user=ana', { provider: subject.provider });
    await expect.poll(() => rows(page).count()).toBe(1);
    await expect
      .poll(() => page.locator('.missing').textContent())
      .toBe('Incomplete: nothing from crm, which does not answer.');
    await expectAccessible(page, 'memories');
    await page.goto(`${url}/console/#/search?user=ana&q=tea`);
    await expect.poll(() => page.locator('.missing').count()).toBe(2);
  });
});
