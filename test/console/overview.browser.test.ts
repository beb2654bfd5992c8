import type { Page } from 'playwright-core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openTelemetry } from '../../src/telemetry/telemetry.ts';
import { hasChromium } from '../support/chromium.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { knownCallers } from '../support/known-callers.ts';
import { openSubject, recordingLog } from '../support/subject.ts';
import { ana, expectAccessible, LOOKS, takePicture, useConsole, useKey } from './browser.ts';

describe.skipIf(!hasChromium)('the overview of the console', () => {
  const open = useConsole();
  const tile = (page: Page, name: string) => page.locator('.tile', { hasText: name });
  const figure = (page: Page, name: string) => tile(page, name).locator('b').textContent();

  it('counts what there is and who wrote it, and shows each change as it happens', async () => {
    const { page, client, followers, troubles } = await open('', {}, ana('green tea', 'black coffee'));
    await expect.poll(() => figure(page, 'Memories')).toBe('2');
    await expect.poll(() => figure(page, 'Users')).toBe('1');
    await expect.poll(() => figure(page, 'Added today')).toBe('2');
    await expect.poll(() => page.locator('.bars li').allTextContents()).toEqual(['anonymous (http) 2']);
    await expect.poll(() => page.locator('.feed li').count()).toBe(2);
    // A change before the page waits for one would be missed.
    await expect.poll(followers).toBe(1);
    const { id } = await client.add({ user_id: 'ben', content: 'a bicycle' });
    const first = page.locator('.feed li').first();
    await expect.poll(() => first.textContent()).toMatch(/^a bicycleben · by anonymous/);
    await expect.poll(() => figure(page, 'Users')).toBe('2');
    await client.remove(id);
    await expect.poll(() => first.textContent()).toMatch(/^A memory was deleted/);
    await expect.poll(() => figure(page, 'Memories')).toBe('2');
    expect(troubles).toEqual([]);
  });

  it('counts again while changes go on without a pause', async () => {
    const { page, client, followers } = await open('', {}, ana('green tea'));
    await expect.poll(() => figure(page, 'Memories')).toBe('1');
    await expect.poll(followers).toBe(1);
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    for (const content of ['one', 'two', 'three', 'four', 'five']) {
      await client.add({ user_id: 'ana', content });
      await expect
        .poll(async () => {
          await page.clock.runFor(10);
          return page.locator('.feed li').first().textContent();
        })
        .toContain(content);
      await page.clock.runFor(1_000);
    }
    await expect
      .poll(async () => {
        await page.clock.runFor(1);
        return figure(page, 'Memories');
      })
      .not.toBe('1');
  });

  it('[Decision 33] shows searches, times, errors and the queue of a gateway with metrics', async () => {
    const telemetry = await openTelemetry({ metrics: true, tracing: undefined }, recordingLog());
    onTestFinished(telemetry.close);
    const embedder = { ...hashingEmbedder(), stats: () => ({ queue_length: 3, cache_hits: 1, cache_misses: 3 }) };
    const { provider } = await openSubject({ provider: 'memory', options: { scopes: 'native' }, embedder });
    telemetry.watch({ provider: { name: 'memory' }, embedder, breakers: () => new Map([['memory', 'open' as const]]) });
    const { page, client } = await open('', { provider, telemetry, scrape: telemetry.scrape }, ana('green tea'));
    await expect.poll(() => figure(page, 'Embedding queue')).toBe('3');
    await expect.poll(() => figure(page, 'Time to answer')).toMatch(/^[\d.,]+ ms$/);
    await expect.poll(() => figure(page, 'Errors')).toBe('0');
    await expect.poll(() => page.locator('.stores li').textContent()).toContain('memory does not answer');
    await client.search({ user_id: 'ana', q: 'tea' });
    await expect.poll(() => figure(page, 'Searches a minute')).toMatch(/[1-9]/);
    await page.getByRole('link', { name: 'Time to answer' }).click();
    await expect
      .poll(() => page.locator('.findings').textContent())
      .toMatch(/memory does not answer: its circuit breaker is open; seen here first.*Texts wait for their vector: 3/);
  });

  it('counts for a narrow key what it may read, and says what it may not see', async () => {
    const callers = knownCallers();
    const { authorization = '' } = callers.admit({ users: ['ana'], grants: ['read:work/*'] });
    const { page, client } = await open('#/keys', { authenticator: callers.authenticator }, ana('green tea'));
    await client.add({ user_id: 'ben', content: 'private' });
    await useKey(page, authorization.slice('Bearer '.length));
    await page.evaluate('location.hash = "#/overview"');
    await expect.poll(() => figure(page, 'Memories')).toBe('1');
    expect(await page.locator('main').textContent()).not.toContain('private');
    await expect.poll(() => page.locator('main').textContent()).toContain('Searches, times and errors are not shown');
  });

  it.each(LOOKS)('is accessible and fits when the gateway is empty, %s at %d pixels', async (colorScheme, width) => {
    const { page } = await open('');
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 800 });
    await page.locator('.steps').waitFor();
    await expectAccessible(page, 'empty');
    if (width === 1280) await takePicture(page, `empty-${colorScheme}`);
    if (width !== 320) return;
    // The navigation of a small window.
    await page.getByRole('button', { name: 'Overview' }).press('Enter');
    await expectAccessible(page, 'the navigation');
    await page.getByRole('link', { name: 'Health' }).press('Enter');
    await expect.poll(() => page.locator('h1').textContent()).toBe('Health');
    await expect.poll(() => page.locator('nav').isVisible()).toBe(false);
  });
});
