import { afterEach, expect, it, vi } from 'vitest';
import { createMeter, shares } from '../../src/embedding/meter.ts';

afterEach(() => void vi.useRealTimers());

/** The same numbers in every run. */
function numbers(seed: number) {
  let state = seed;
  return (below: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

it('[Decision 63] shares of tokens are whole, add up, and are less than 1 from what is proportional', () => {
  const next = numbers(63);
  for (let round = 0; round < 2_000; round++) {
    const sizes = Array.from({ length: 1 + next(20) }, () => 1 + next(next(2) === 0 ? 10 : 1_000_000));
    const total = next(next(2) === 0 ? 5 : 1_000_000_000);
    const parts = shares(total, sizes);
    const all = sizes.reduce((sum, size) => sum + size, 0);
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(total);
    for (const [i, part] of parts.entries()) {
      expect(Number.isInteger(part) && part >= 0).toBe(true);
      expect(Math.abs(part - (total * (sizes[i] as number)) / all)).toBeLessThanOrEqual(1);
    }
  }
});

it('[Decision 63] a request counts for its first text, texts and tokens for who gave them', () => {
  const meter = createMeter('model');
  const apps = ['editor', null, 'editor'];
  meter.sent(apps);
  meter.answered(['four', 'twelve chars', ''], apps, 17);
  const rows = meter.take().map(({ day: _, ...row }) => row);
  expect(rows).toEqual([
    { app: 'editor', model: 'model', texts: 2, tokens: 5, requests: 1 },
    { app: null, model: 'model', texts: 1, tokens: 12, requests: 0 },
  ]);
  expect(meter.take()).toEqual([]);
  expect(meter.totals()).toEqual({ texts: 3, tokens: 17, texts_without_tokens: 0, requests: 1 });
});

it.each([undefined, null, -1, 1.5, '7', Number.NaN, 1e15])(
  '[Decision 63] tokens are unknown, not 0, where the service reports %s',
  (reported) => {
    const meter = createMeter('model');
    meter.answered(['tea'], ['editor'], 3);
    meter.answered(['tea'], ['editor'], reported);
    meter.answered(['tea'], ['other'], 4);
    expect(meter.take().map(({ app, texts, tokens }) => [app, texts, tokens])).toEqual([
      ['editor', 2, null],
      ['other', 1, 4],
    ]);
    expect(meter.totals()).toMatchObject({ texts: 3, tokens: 7, texts_without_tokens: 1 });
  },
);

it('[Decision 63] of one day 1,000 names count by themselves, also after their counts were taken', () => {
  vi.useFakeTimers({ now: Date.parse('2026-03-01T23:59:00Z'), toFake: ['Date'] });
  const meter = createMeter('model');
  for (let n = 0; n < 1_000; n++) meter.sent([`subject ${n}`]);
  expect(meter.take()).toHaveLength(1_000);
  for (const app of ['late', 'later', 'subject 7', null]) meter.sent([app]);
  expect(meter.take().map(({ day, app, requests }) => [day, app, requests])).toEqual([
    ['2026-03-01', '(others)', 2],
    ['2026-03-01', 'subject 7', 1],
    ['2026-03-01', null, 1],
  ]);
  vi.setSystemTime(Date.parse('2026-03-02T00:00:00Z'));
  meter.sent(['late']);
  expect(meter.take()).toMatchObject([{ day: '2026-03-02', app: 'late', requests: 1 }]);
});

it('[Decision 63] a name is one that every database can hold', () => {
  const meter = createMeter('model');
  for (const app of ['a\0b\ud800', 'x'.repeat(1_000), '\0']) meter.sent([app]);
  expect(meter.take().map(({ app }) => app)).toEqual(['ab\ufffd', 'x'.repeat(256), null]);
});
