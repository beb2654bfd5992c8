import { chromium, type Page } from 'playwright-core';
import { withGateway } from './default.ts';
import { dropSchema } from './engine.ts';
import { load } from './load.ts';
import { batchesOf } from './workload.ts';

const USER = 'ana';
const MEMORIES = 100_000;
const FRAME_MS = 1_000 / 60;
/** Seconds of scrolling: a frame more or less is a thousandth. */
const SECONDS = 15;
const OPENINGS = 5;

/** Frames drawn while a list scrolled. */
interface Scroll {
  readonly name: string;
  readonly perSecond: number;
  /** Share of frames, 0 to 1, that came more than half a frame late. */
  readonly late: number;
  readonly longestMs: number;
  /** Memories that the list held at the end. */
  readonly loaded: number;
}

export interface ConsoleResult {
  /** From the request of the page to the first row, in milliseconds, sorted. */
  readonly firstScreenMs: readonly number[];
  readonly scrolls: readonly Scroll[];
}

/** Opens and scrolls the list of a user with 100,000 memories in Chromium (`CHROMIUM`, default /usr/bin/chromium). */
export async function measureConsole(url: string | undefined): Promise<ConsoleResult> {
  const schema = `omp_bench_${process.pid}_console`;
  const env = {
    OMP_SEARCH_MODE: 'keyword',
    ...(url !== undefined && { DATABASE_URL: url, OMP_POSTGRES_SCHEMA: schema }),
  };
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  try {
    return await withGateway(env, async (gateway) => {
      await load(gateway.url, batchesOf(USER, MEMORIES), { connections: 4, seconds: 'once' });
      const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
      const address = `${gateway.url}/console/#/memories?user=${USER}`;
      const firstScreenMs: number[] = [];
      for (let opening = 0; opening < OPENINGS; opening++) firstScreenMs.push(await open(page, address));
      const loading = await scroll(page, 'while pages load');
      await loadAll(page);
      const loaded = await scroll(page, 'with all loaded');
      return { firstScreenMs: firstScreenMs.sort((a, b) => a - b), scrolls: [loading, loaded] };
    });
  } finally {
    await browser.close();
    if (url !== undefined) await dropSchema(url, schema);
  }
}

async function open(page: Page, address: string): Promise<number> {
  await page.goto('about:blank');
  const start = performance.now();
  await page.goto(address, { waitUntil: 'commit' });
  await page.waitForSelector('[data-row]');
  return performance.now() - start;
}

/** Turns the wheel as a fast hand does, and counts frames meanwhile. */
async function scroll(page: Page, name: string): Promise<Scroll> {
  await page.evaluate('document.querySelector(".window").scrollTop = 0');
  await page.mouse.move(800, 500);
  // A text, because the compiler would put its helpers into a function.
  const frames = page.evaluate<number[]>(`new Promise((resolve) => {
    const found = [];
    const start = performance.now();
    let before = start;
    requestAnimationFrame(function frame(now) {
      found.push(now - before);
      before = now;
      if (now - start < ${SECONDS * 1_000}) requestAnimationFrame(frame);
      else resolve(found.slice(1));
    });
  })`);
  let done = false;
  void frames.finally(() => {
    done = true;
  });
  while (!done) await page.mouse.wheel(0, 400);
  const times = await frames;
  return {
    name,
    perSecond: (1_000 * times.length) / times.reduce((sum, time) => sum + time, 0),
    late: times.filter((time) => time > 1.5 * FRAME_MS).length / times.length,
    longestMs: Math.max(...times),
    loaded: await countLoaded(page),
  };
}

/** Jumps to the end until there is no more. */
async function loadAll(page: Page): Promise<void> {
  while ((await countLoaded(page)) < MEMORIES) {
    await page.evaluate('document.querySelector(".window").scrollTop = 1e9');
    await page.waitForTimeout(20);
  }
}

const countLoaded = async (page: Page): Promise<number> =>
  Number((await page.locator('.toolbar output').textContent())?.match(/^[\d,.\s]+/)?.[0].replaceAll(/\D/g, ''));
