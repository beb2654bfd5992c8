import { describe, expect, it, onTestFinished } from 'vitest';
import { openTelemetry } from '../../src/telemetry/telemetry.ts';
import { hasChromium } from '../support/chromium.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { knownCallers } from '../support/known-callers.ts';
import { openSubject, recordingLog } from '../support/subject.ts';
import { ana, expectAccessible, LOOKS, takePicture, useConsole, useKey } from './browser.ts';

describe.skipIf(!hasChromium)('the health page of the console', () => {
  const open = useConsole();
  const measured = async () => {
    const telemetry = await openTelemetry({ metrics: true, tracing: undefined }, recordingLog());
    onTestFinished(telemetry.close);
    return telemetry;
  };

  it('[Decision 33] draws the metrics of the gateway over the time that it is open', async () => {
    const telemetry = await measured();
    const embedder = { ...hashingEmbedder(), stats: () => ({ queue_length: 3, cache_hits: 1, cache_misses: 3 }) };
    const { provider } = await openSubject({ provider: 'memory', options: { scopes: 'native' }, embedder });
    const breakers = () => new Map([['memory', 'half-open' as const]]);
    telemetry.watch({ provider: { name: 'memory' }, embedder, breakers });
    const { page, client, troubles } = await open(
      '#/health',
      { provider, telemetry, scrape: telemetry.scrape },
      ana('green tea'),
    );
    const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) });
    await expect.poll(() => row('Circuit breaker of memory').textContent()).toMatch(/half-open$/);
    await expect.poll(() => row('Texts queued').textContent()).toMatch(/3$/);
    await expect.poll(() => row('Queries whose vector').textContent()).toMatch(/1 of 4$/);
    await expect.poll(() => row('Embedding model').textContent()).toContain(embedder.model);
    const cells = () => expect.poll(async () => (await row('POST /memories').locator('td').allTextContents()).join());
    // What came before the page was opened is in the last column alone.
    await cells().toBe('0,,,1');
    for (const _ of [1, 2, 3]) await client.add({ user_id: 'ana', content: 'x' });
    await expect.poll(() => row('POST /memories').locator('td').first().textContent()).toBe('3');
    await cells().toMatch(/^3,[\d.,]+ ms,[\d.,]+ ms,4$/);
    await page.getByLabel('Which').selectOption('POST /memories');
    await expect.poll(() => page.locator('.series').nth(1).textContent()).toMatch(/99 % within: [\d.,]+ ms/);
    // Its own looks are no load.
    expect(await row('GET /metrics').count()).toBe(0);
    for (const [colorScheme, width] of LOOKS) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.setViewportSize({ width, height: 800 });
      await expectAccessible(page, `${colorScheme} at ${width}`);
      if (width === 1280) await takePicture(page, `health-${colorScheme}`);
    }
    expect(troubles).toEqual([]);
  });

  it('[Decision 33] says what the gateway says now, and looks again after a look that failed', async () => {
    const { scrape } = await measured();
    const { page } = await open('#/health', { scrape });
    await page.clock.install();
    await page.reload();
    const said = expect.poll(() => page.locator('.findings').textContent());
    await said.toMatch(/^All is well.*Nothing is slow/);
    const fail = (path: string, status: number, code: string) =>
      page.route(`**/${path}`, (route) => route.fulfill({ status, json: { error: { code, message: 'not now' } } }));
    await fail('metrics', 429, 'rate_limited');
    await page.clock.fastForward(5_000);
    await expect.poll(() => page.locator('main').textContent()).toContain('Not shown: not now');
    expect(await page.locator('.findings').textContent()).not.toContain('Nothing is slow');
    await page.unroute('**/metrics');
    await page.clock.fastForward(5_000);
    await expect.poll(() => page.locator('main').textContent()).not.toContain('Not shown');
    await fail('healthz', 503, 'provider_error');
    await page.clock.fastForward(20_000);
    await expect.poll(() => page.locator('.state').textContent()).toBe('Does not answer');
    await expect.poll(() => page.locator('.failure').textContent()).toBe('not now');
    expect(await page.locator('.findings').textContent()).not.toContain('All is well');
    await page.unroute('**/healthz');
    await page.clock.fastForward(20_000);
    await expect.poll(() => page.locator('.findings').textContent()).toContain('All is well');
  });

  it('[Decision 33] says why there are none, and what helps', async () => {
    const off = await open('#/health');
    await expect
      .poll(() => off.page.locator('main').textContent())
      .toMatch(/collects no metrics; set OMP_METRICS_PORT/);
    const callers = knownCallers();
    const { scrape } = await measured();
    const { authorization = '' } = callers.admit({ users: ['ana'], grants: ['*:*'] });
    const { page } = await open('#/health', { authenticator: callers.authenticator, scrape });
    await useKey(page, authorization.slice('Bearer '.length));
    await expect.poll(() => page.locator('main').textContent()).toMatch(/need a key for all users with the grant read/);
  });
});
