import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { CHROMIUM_OPTIONS, hasChromium, NO_CHROMIUM } from '../support/chromium.ts';
import { FULL, PATIENCE_MS } from '../support/full.ts';
import { type RunningServer, type ServerOptions, serverForTest } from '../support/server.ts';
import { OBSERVE } from './keyboard.ts';

if (!hasChromium) console.warn(`the tests of the console are ${NO_CHROMIUM}`);

/** The console of a gateway, open in a tab of its own. */
export interface OpenConsole extends RunningServer {
  readonly page: Page;
  /** Errors of the page, and requests to other servers. */
  readonly troubles: readonly string[];
}

/** A deletion waits until the test decides: its eight seconds pass only on a clock of Playwright, which is installed over this. */
const HOLD_DELETIONS = `{
  const start = setTimeout;
  globalThis.setTimeout = (work, ms, ...rest) => (ms === 8000 ? 0 : start(work, ms, ...rest));
}`;

/** Starts a browser for the tests of a `describe`. The function opens the console of a new gateway, after `fill`. */
export function useConsole() {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch(CHROMIUM_OPTIONS);
  });
  afterAll(() => browser?.close());
  return async (
    hash: string,
    options: ServerOptions = {},
    fill?: (server: RunningServer) => Promise<unknown>,
  ): Promise<OpenConsole> => {
    const server = await serverForTest({ console: 'on', ...options });
    await fill?.(server);
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    context.setDefaultTimeout(PATIENCE_MS);
    await context.addInitScript(HOLD_DELETIONS);
    await context.addInitScript(OBSERVE);
    const page = await context.newPage();
    const troubles: string[] = [];
    page.on('pageerror', (error) => troubles.push(error.message));
    page.on('console', (message) => {
      // The browser's own line for an answer that the page shows.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        troubles.push(message.text());
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(server.url) && !request.url().startsWith('blob:')) troubles.push(request.url());
    });
    await page.goto(`${server.url}/console/${hash}`);
    return { page, troubles, ...server };
  };
}

/** Adds memories of ana, in the scope `work/tools`. */
export const ana =
  (...contents: string[]) =>
  async ({ client }: Pick<RunningServer, 'client'>) => {
    for (const content of contents) await client.add({ user_id: 'ana', content, scope: 'work/tools', tags: ['tea'] });
  };

/** The memories of ana that the gateway has, newest first. */
export const stored = async (client: RunningServer['client']): Promise<string[]> =>
  (await client.list({ user_id: 'ana' })).items.map(({ content }) => content);

/** The rows of the list of memories that are drawn. */
export const rows = (page: Page) => page.locator('.row [data-row]');

/** Opens the console with this key, as if it had been typed. */
export async function useKey(page: Page, key: string): Promise<void> {
  await page.evaluate(`sessionStorage.setItem('omp-key', ${JSON.stringify(key)})`);
  await page.reload();
}

/** `TEST_SCREENSHOTS=1` renews the pictures of docs/console.md. */
const PICTURES = process.env.TEST_SCREENSHOTS === '1' ? join(import.meta.dirname, '../../docs/images') : undefined;

const EVERY_LOOK = [
  ['light', 1280],
  ['dark', 320],
  ['dark', 1280],
  ['light', 2560],
] as const;
/**
 * Color schemes and widths in pixels in which every page is checked; 320 is that of WCAG's reflow. The quick run has both
 * schemes, wide and narrow.
 */
export const LOOKS = FULL || PICTURES ? EVERY_LOOK : EVERY_LOOK.slice(0, 2);

/** The width of a window of 1,280 pixels at 200 % zoom. */
const ZOOMED = 640;

/**
 * WCAG 2.2 AA as far as axe can tell, and nothing beyond the side of the window, zoomed too. `what` is shown in a failure.
 */
export async function expectAccessible(page: Page, what: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page })
    // Without a second page that puts the results of frames together: the console has none.
    .setLegacyMode()
    .options({ resultTypes: ['violations'] })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'])
    .analyze();
  expect(
    violations.map(({ id, nodes }) => [id, nodes[0]?.html]),
    what,
  ).toEqual([]);
  const { width, height } = page.viewportSize() ?? { width: 0, height: 0 };
  const fits = async (wide: number) =>
    expect(await page.evaluate('document.documentElement.scrollWidth'), `${what} at ${wide}`).toBeLessThanOrEqual(wide);
  await fits(width);
  if (width !== 2 * ZOOMED) return;
  await page.setViewportSize({ width: ZOOMED, height: height / 2 });
  await fits(ZOOMED);
  await page.setViewportSize({ width, height });
}

if (PICTURES) mkdirSync(PICTURES, { recursive: true });

export async function takePicture(page: Page, name: string): Promise<void> {
  if (PICTURES) await page.screenshot({ path: join(PICTURES, `console-${name}.jpg`), quality: 75 });
}
