import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openLocal } from '../../src/embedding/open.ts';
import { hasChromium } from '../support/chromium.ts';
import { openSubject, recordingLog, type Subject } from '../support/subject.ts';
import { expectAccessible, LOOKS, takePicture, useConsole } from './browser.ts';

interface Fact {
  readonly key: string;
  readonly user: string;
  readonly content: string;
}
const FACTS = JSON.parse(readFileSync(new URL('../../eval/data/facts.json', import.meta.url), 'utf8')) as Fact[];

describe.skipIf(!hasChromium)('every page of the console', () => {
  const open = useConsole();
  let subject: Subject;
  let id = '';
  beforeAll(async () => {
    const embedder = openLocal(1, recordingLog());
    await embedder.loaded;
    subject = await openSubject({ provider: 'postgres', options: {}, embedder });
    const { client } = subject;
    const [old] = await client.batch(
      FACTS.slice(0, 100).map(({ key, user, content }) => ({
        user_id: 'ana',
        content,
        scope: `people/${user}`,
        tags: key.slice(user.length + 1).split('-'),
      })),
    );
    const changed = { user_id: 'ana', content: 'Maya works day shifts now.', scope: 'people/maya', tags: ['job'] };
    ({ id } = await client.add({ ...changed, supersedes: [old?.memory?.id] }));
    await client.add({ user_id: 'ben', content: 'Prefers short answers.' });
  });
  afterAll(() => subject?.close());

  const pages = [
    ['overview', () => 'overview'],
    ['memories', () => 'memories?user=ana'],
    ['start', () => 'memories'],
    ['search', () => 'search?user=ana&q=when+does+the+dog+need+the+rabies+shot'],
    ['memory', () => `memory?id=${id}`],
    ['users', () => 'users'],
    ['user', () => 'users?user=ana'],
    ['map', () => 'map?user=ana'],
    ['audit', () => 'audit?user=ana'],
    ['health', () => 'health'],
  ] as const;
  describe.each(LOOKS)('%s at %d pixels', (colorScheme, width) => {
    it.each(pages)('is accessible and fits: %s', async (name, hash) => {
      const { page, troubles } = await open(`#/${hash()}`, { provider: subject.provider });
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.setViewportSize({ width, height: 800 });
      await page.locator('h1').waitFor({ state: 'attached' });
      await expect.poll(() => page.locator('main').textContent()).not.toMatch(/…$/);
      await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
      await expectAccessible(page, name);
      // With figures it stands in health.browser.test.ts.
      if (width === 1280 && name !== 'health') await takePicture(page, `${name}-${colorScheme}`);
      expect(troubles).toEqual([]);
    });
  });
});
