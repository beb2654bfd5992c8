import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openLocal } from '../../src/embedding/local.ts';
import { hasChromium } from '../support/chromium.ts';
import { openSubject, recordingLog, type Subject } from '../support/subject.ts';
import { useConsole } from './browser.ts';

/** `TEST_SCREENSHOTS=1` renews the pictures of docs/console.md. */
const PICTURES = process.env.TEST_SCREENSHOTS === '1' ? join(import.meta.dirname, '../../docs/images') : undefined;
if (PICTURES) mkdirSync(PICTURES, { recursive: true });

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
    const embedder = await openLocal(1, recordingLog());
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

  it.each([
    ['light', 1280],
    ['dark', 1280],
    ['dark', 360],
    ['light', 2560],
  ] as const)('is accessible and fits, %s at %d pixels', async (colorScheme, width) => {
    const { page, url, troubles } = await open('', { provider: subject.provider });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 800 });
    for (const [name, hash] of Object.entries({
      memories: 'memories?user=ana',
      start: 'memories',
      search: 'search?user=ana&q=when+does+the+dog+need+the+rabies+shot',
      memory: `memory?id=${id}`,
      users: 'users',
      user: 'users?user=ana',
      audit: 'audit?user=ana',
      health: 'health',
    })) {
      await page.goto(`${url}/console/#/${hash}`);
      await page.waitForLoadState('networkidle');
      await page.locator('h1').waitFor({ state: 'attached' });
      const { violations } = await new AxeBuilder({ page })
        .withTags(['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'])
        .analyze();
      expect(
        violations.map(({ id, nodes }) => [id, nodes[0]?.html]),
        hash,
      ).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth'), hash).toBeLessThanOrEqual(width);
      if (PICTURES && width === 1280)
        await page.screenshot({ path: join(PICTURES, `console-${name}-${colorScheme}.jpg`), quality: 75 });
    }
    expect(troubles).toEqual([]);
  });
});
