import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RateLimiter } from '../../src/core/rate-limiter.ts';
import { createFallback } from '../../src/rate-limit/rate-limits.ts';
import { slidingWindow } from '../../src/rate-limit/sliding-window.ts';
import { memoryStore } from '../../src/rate-limit/stores.ts';
import { recordingLog } from '../support/subject.ts';

const MINUTE = 60_000;
/** The beginning of a window, far from the real time. */
const START = 1_000_000 * MINUTE;

/** A limiter of one process with a clock of the test. */
function limiterAt(limit: number, time = START) {
  const clock = { time };
  const limiter = slidingWindow(memoryStore().counters('test'), limit, () => clock.time);
  const take = (key = 'caller') => limiter.take(key);
  return { clock, limiter, take };
}

async function admitted(limiter: RateLimiter, requests: number): Promise<number> {
  const taken = await Promise.all(Array.from({ length: requests }, () => limiter.take('caller')));
  return taken.filter(({ allowed }) => allowed).length;
}

describe('[Decision 17] [SPEC Limits limits.rate_limit_per_minute] the sliding window', () => {
  it('admits the limit at once, then returns the time to wait', async () => {
    const { take, clock } = limiterAt(3, START + 20_000);
    expect(await take()).toEqual({ allowed: true, remaining: 2, reset: 41 });
    expect(await take()).toEqual({ allowed: true, remaining: 1, reset: 41 });
    expect(await take()).toEqual({ allowed: true, remaining: 0, reset: 41 });
    expect(await take()).toEqual({ allowed: false, remaining: 0, reset: 41 });
    clock.time += 30_000;
    expect(await take()).toEqual({ allowed: false, remaining: 0, reset: 11 });
  });

  it('evicts the least recently used callers', async () => {
    const counters = memoryStore().counters('test');
    for (let i = 0; i <= 100_000; i++) await counters.add(`${i}`, 1);
    expect(await counters.read('0')).toBe(0);
    expect(await counters.add('1', 1)).toBe(2);
    expect(await counters.read('100000')).toBe(1);
  });

  it('admits no second burst across the border of two windows', async () => {
    const { limiter, clock } = limiterAt(60, START + 59_900);
    expect(await admitted(limiter, 60)).toBe(60);
    clock.time = START + MINUTE;
    expect(await admitted(limiter, 60)).toBe(0);
    // Half of the minute gives half of the limit back.
    clock.time = START + MINUTE + 30_000;
    expect(await admitted(limiter, 60)).toBe(30);
    expect(await admitted(limiter, 60)).toBe(0);
  });

  it('ignores requests of two windows ago', async () => {
    const { limiter, clock } = limiterAt(5, START + 59_999);
    expect(await admitted(limiter, 5)).toBe(5);
    clock.time = START + 2 * MINUTE;
    expect(await admitted(limiter, 6)).toBe(5);
  });

  it('admits the limit to a client that never stops', async () => {
    const { limiter, clock } = limiterAt(60);
    let total = 0;
    for (; clock.time < START + 5 * MINUTE; clock.time += 100) total += await admitted(limiter, 3);
    expect(total).toBe(5 * 60);
  });

  it('counts callers separately', async () => {
    const { take } = limiterAt(1);
    expect((await take('one')).allowed).toBe(true);
    expect((await take('other')).allowed).toBe(true);
    expect((await take('one')).allowed).toBe(false);
  });

  it('admits requests after the clock is set back', async () => {
    const { take, clock } = limiterAt(1);
    await take();
    expect((await take()).allowed).toBe(false);
    clock.time -= 60 * MINUTE;
    expect((await take()).allowed).toBe(true);
  });

  it('never admits more than the limit plus the refill in any interval', async () => {
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
            // Plus one for rounding.
            expect(total).toBeLessThan(limit * (1 + (time - first.time) / MINUTE) + 1 + 1e-6);
          }
        }
      }),
      { numRuns: 100 },
    );
  });

  it('admits a caller after the returned time, and not much earlier', async () => {
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
          // Never backwards: the previous window has another usage.
          clock.time += Math.max(0, (reset - 1) * 1_000 - 1);
          expect((await take()).allowed).toBe(false);
          clock.time += 1_001;
          expect((await take()).allowed).toBe(true);
        }
      }),
      { numRuns: 100 },
    );
  });
});

/** A store that answers when the test says so. */
function slowStore() {
  const asked: { answer: () => void; fail: () => void }[] = [];
  const ask = () =>
    new Promise<string>((resolve, reject) => {
      asked.push({ answer: () => resolve('shared'), fail: () => reject(new Error('down')) });
    });
  return { asked, ask };
}
const fallback = async () => 'local';

describe('[Decision 17] the fallback of a store', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('starts at the first failure, and one request per second tries the store', async () => {
    const log = recordingLog();
    const orElse = createFallback('redis', log);
    let down = true;
    let asked = 0;
    const ask = async () => {
      asked++;
      if (down) throw new Error('down');
      return 'shared';
    };
    const request = () => orElse(ask, fallback);
    for (let i = 0; i < 10; i++) expect(await request()).toBe('local');
    expect(asked).toBe(1);
    vi.advanceTimersByTime(1_000);
    // Concurrent requests do not all try it.
    expect(await Promise.all(Array.from({ length: 10 }, request))).toEqual(Array(10).fill('local'));
    expect(asked).toBe(2);
    down = false;
    expect(await request()).toBe('local');
    vi.advanceTimersByTime(1_000);
    for (let i = 0; i < 10; i++) expect(await request()).toBe('shared');
    expect(asked).toBe(12);
    expect(log.lines.map(({ level }) => level)).toEqual(['warn', 'info']);
  });

  it('does not end with an answer to an earlier request', async () => {
    const log = recordingLog();
    const orElse = createFallback('redis', log);
    const { asked, ask } = slowStore();
    const requests = [orElse(ask, fallback), orElse(ask, fallback)];
    asked[1]?.fail();
    expect(await requests[1]).toBe('local');
    asked[0]?.answer();
    expect(await requests[0]).toBe('shared');
    expect(log.lines.map(({ level }) => level)).toEqual(['warn']);
    expect(await orElse(ask, fallback)).toBe('local');
  });

  it('starts when an answer is late', async () => {
    const orElse = createFallback('redis', recordingLog());
    const { asked, ask } = slowStore();
    const requests = [orElse(ask, fallback), orElse(ask, fallback)];
    await vi.advanceTimersByTimeAsync(501);
    expect(await Promise.all(requests)).toEqual(['local', 'local']);
    asked[0]?.answer();
    asked[1]?.fail();
    expect(await orElse(ask, fallback)).toBe('local');
  });
});
