import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RateLimiter } from '../../src/core/rate-limiter.ts';
import { slidingWindow } from '../../src/rate-limit/sliding-window.ts';
import { memoryStore } from '../../src/rate-limit/stores.ts';

const MINUTE = 60_000;
/** Where a window begins; far from the real clock, which must not matter. */
const START = 1_000_000 * MINUTE;

/** A limiter of one process whose clock stands where the test puts it. */
function limiterAt(limit: number, time = START) {
  const clock = { time };
  const limiter = slidingWindow(memoryStore().counters('test'), limit, () => clock.time);
  const take = (key = 'somebody') => limiter.take(key);
  return { clock, limiter, take };
}

async function admitted(limiter: RateLimiter, requests: number): Promise<number> {
  const taken = await Promise.all(Array.from({ length: requests }, () => limiter.take('somebody')));
  return taken.filter(({ allowed }) => allowed).length;
}

describe('[Decision 17] [SPEC Limits limits.rate_limit_per_minute] the sliding window', () => {
  it('admits the limit at once, counting down, and then says how long to wait', async () => {
    const { take, clock } = limiterAt(3, START + 20_000);
    expect(await take()).toEqual({ allowed: true, remaining: 2, reset: 41 });
    expect(await take()).toEqual({ allowed: true, remaining: 1, reset: 41 });
    expect(await take()).toEqual({ allowed: true, remaining: 0, reset: 41 });
    expect(await take()).toEqual({ allowed: false, remaining: 0, reset: 41 });
    clock.time += 30_000;
    expect(await take()).toEqual({ allowed: false, remaining: 0, reset: 11 });
  });

  it('remembers so many callers and forgets those of longest ago, whatever addresses there are', async () => {
    const counters = memoryStore().counters('test');
    for (let i = 0; i <= 100_000; i++) await counters.add(`${i}`, 1);
    expect(await counters.read('0')).toBe(0);
    expect(await counters.add('1', 1)).toBe(2);
    expect(await counters.read('100000')).toBe(1);
  });

  it('admits no second burst around the border of two windows', async () => {
    const { limiter, clock } = limiterAt(60, START + 59_900);
    expect(await admitted(limiter, 60)).toBe(60);
    clock.time = START + MINUTE;
    expect(await admitted(limiter, 60)).toBe(0);
    // Half of the minute gives half of the limit back.
    clock.time = START + MINUTE + 30_000;
    expect(await admitted(limiter, 60)).toBe(30);
    expect(await admitted(limiter, 60)).toBe(0);
  });

  it('forgets what was used two windows ago', async () => {
    const { limiter, clock } = limiterAt(5, START + 59_999);
    expect(await admitted(limiter, 5)).toBe(5);
    clock.time = START + 2 * MINUTE;
    expect(await admitted(limiter, 6)).toBe(5);
  });

  it('admits a limit of one once a minute', async () => {
    const { take, clock } = limiterAt(1);
    expect((await take()).allowed).toBe(true);
    const { allowed, reset } = await take();
    expect(allowed).toBe(false);
    clock.time += reset * 1_000;
    expect((await take()).allowed).toBe(true);
  });

  it('lets a client that never stops hammering have its share', async () => {
    const { limiter, clock } = limiterAt(60);
    let total = 0;
    for (; clock.time < START + 5 * MINUTE; clock.time += 100) total += await admitted(limiter, 3);
    expect(total).toBe(5 * 60);
  });

  it('counts callers apart', async () => {
    const { take } = limiterAt(1);
    expect((await take('one')).allowed).toBe(true);
    expect((await take('other')).allowed).toBe(true);
    expect((await take('one')).allowed).toBe(false);
  });

  it('locks nobody out when the clock is set back', async () => {
    const { take, clock } = limiterAt(1);
    await take();
    expect((await take()).allowed).toBe(false);
    clock.time -= 60 * MINUTE;
    expect((await take()).allowed).toBe(true);
  });

  it('never admits more than the limit at once, nor more than the limit and what came back in any stretch of time', async () => {
    const run = fc.record({
      limit: fc.integer({ min: 1, max: 20 }),
      steps: fc.array(
        fc.record({ wait: fc.integer({ min: 0, max: 25_000 }), requests: fc.integer({ min: 1, max: 25 }) }),
        {
          minLength: 1,
          maxLength: 40,
        },
      ),
    });
    await fc.assert(
      fc.asyncProperty(run, async ({ limit, steps }) => {
        const { limiter, clock } = limiterAt(limit);
        const bursts: { time: number; count: number }[] = [];
        for (const { wait, requests } of steps) {
          clock.time += wait;
          bursts.push({ time: clock.time, count: await admitted(limiter, requests) });
        }
        for (const [from, first] of bursts.entries()) {
          let total = 0;
          for (const { time, count } of bursts.slice(from)) {
            total += count;
            // One more for rounding.
            expect(total).toBeLessThan(limit * (1 + (time - first.time) / MINUTE) + 1 + 1e-6);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('keeps its word: whoever waits as told is admitted, and not much earlier', async () => {
    const run = fc.record({
      limit: fc.integer({ min: 1, max: 50 }),
      waits: fc.array(fc.integer({ min: 0, max: 40_000 }), { minLength: 1, maxLength: 10 }),
    });
    await fc.assert(
      fc.asyncProperty(run, async ({ limit, waits }) => {
        const { limiter, take, clock } = limiterAt(limit);
        for (const wait of waits) {
          clock.time += wait;
          await admitted(limiter, 60);
          const { allowed, reset } = await take();
          expect(allowed).toBe(false);
          expect(reset).toBeGreaterThanOrEqual(1);
          expect(reset).toBeLessThanOrEqual(61);
          // Never backwards: before the border of two windows something else may hold.
          clock.time += Math.max(0, (reset - 1) * 1_000 - 1);
          expect((await take()).allowed).toBe(false);
          clock.time += 1_001;
          expect((await take()).allowed).toBe(true);
        }
      }),
      { numRuns: 300 },
    );
  });
});
