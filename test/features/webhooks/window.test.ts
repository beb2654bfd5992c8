import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createWindow, type Pending, pauseAfter } from '../../../src/features/webhooks/window.ts';

const item = (cursor: string, user_id: string): Pending => ({
  ...{ cursor, user_id },
  ...{ state: 'waiting', failing_since: undefined, due: 0 },
});
const open = (cursor = '0', failing_since: string | null = null) =>
  createWindow<Pending>({ cursor, failing_since }, (lasting) => lasting + 10);
const HOUR_MS = 3_600_000;

describe('[Decision 52] a window', () => {
  it('sends one change of each user at a time, the oldest first, four together', () => {
    const window = open();
    window.add(
      ['a1', 'a2', 'b1', 'c1', 'd1', 'e1'].map((cursor) => item(cursor, cursor[0] as string)),
      'end',
    );
    const taken = [window.take(0), window.take(0), window.take(0), window.take(0)];
    expect(taken.map((one) => one?.cursor)).toEqual(['a1', 'b1', 'c1', 'd1']);
    expect(window.take(0)).toBeUndefined();
    window.delivered(taken[0] as Pending);
    expect(window.take(0)?.cursor).toBe('a2');
  });

  it('moves its cursor to the last change that was delivered without a gap', () => {
    const window = open();
    window.add([item('1', 'a'), item('2', 'b'), item('3', 'c')], '9');
    const [first, second, third] = [window.take(0), window.take(0), window.take(0)] as [Pending, Pending, Pending];
    window.delivered(second);
    expect([window.cursor, window.undelivered]).toEqual(['0', 2]);
    window.delivered(first);
    expect(window.cursor).toBe('2');
    window.delivered(third);
    expect([window.cursor, window.readUntil]).toEqual(['9', '9']);
    window.add([], '12');
    expect(window.cursor).toBe('12');
  });

  it('holds up the user of a failed change only, and sends one at a time until one succeeds', () => {
    const window = open();
    window.add([item('1', 'a'), item('2', 'a'), item('3', 'b'), item('4', 'c')], '9');
    const first = window.take(0) as Pending;
    window.failed(first, 0);
    const other = window.take(1) as Pending;
    expect(other.cursor).toBe('3');
    expect(window.take(1)).toBeUndefined();
    expect(window.nextDue(1)).toBe(10);
    window.delivered(other);
    expect(window.take(1)?.cursor).toBe('4');
    expect(window.cursor).toBe('0');
    expect(window.take(10)?.cursor).toBe('1');
  });

  it('rests after three failures in a row, or as long as the receiver asks, at most an hour', () => {
    const window = open();
    window.add(
      [...'abcd'].map((user) => item(user, user)),
      'end',
    );
    for (const now of [0, 1, 2]) window.failed(window.take(now) as Pending, now);
    // All failures have lasted 2 ms.
    expect(window.take(13)).toBeUndefined();
    expect(window.nextDue(13)).toBe(14);
    const again = window.take(14) as Pending;
    expect(again.cursor).toBe('a');
    window.failed(again, 14, 60);
    expect(window.nextDue(14)).toBe(14 + 60_000);
    const late = window.take(60_014) as Pending;
    window.failed(late, 60_014, 999_999);
    expect(window.nextDue(60_014)).toBe(60_014 + HOUR_MS);
  });

  it('is hopeless when the change after the cursor has failed for a day, also under other gateways', () => {
    const since = '2026-01-01T00:00:00.000Z';
    const window = open('0', since);
    const start = Date.parse(since);
    expect(window.isHopeless(start)).toBe(false);
    window.add([item('1', 'a'), item('2', 'b')], '9');
    const [first, second] = [window.take(start), window.take(start)];
    // The receiver failed before: one at a time.
    expect([first?.cursor, second]).toEqual(['1', undefined]);
    window.failed(first as Pending, start + 24 * HOUR_MS - 1);
    expect(window.isHopeless(start + 24 * HOUR_MS - 1)).toBe(false);
    expect(window.isHopeless(start + 24 * HOUR_MS)).toBe(true);
  });

  it('is full with 1,000 changes', () => {
    const window = open();
    window.add(
      Array.from({ length: 999 }, (_, n) => item(`${n}`, 'a')),
      '999',
    );
    expect(window.isFull).toBe(false);
    window.add([item('1000', 'a')], '1000');
    expect(window.isFull).toBe(true);
    window.delivered(window.take(0) as Pending);
    expect(window.isFull).toBe(false);
  });

  it('lets the first copies of each user arrive in order, whatever fails and whoever takes over', () => {
    const script = fc.record({
      users: fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 30 }),
      /** What happens to an attempt: it fails, arrives but seems to fail, or works. Four: the gateway dies. */
      fates: fc.array(fc.nat({ max: 4 }), { maxLength: 200 }),
      chosen: fc.array(fc.nat({ max: 3 }), { maxLength: 200 }),
    });
    fc.assert(
      fc.property(script, ({ users, fates, chosen }) => {
        const all = users.map((user, n) => ({ cursor: String(n + 1), user }));
        const rest = (cursor: string) => all.slice(Number(cursor)).map((one) => item(one.cursor, one.user));
        const arrived: Pending[] = [];
        let window = open();
        window.add(rest('0'), String(all.length));
        let sending: Pending[] = [];
        let now = 0;
        const takeOver = () => {
          // What the dead gateway was sending may still arrive, after anything that the next one sends.
          window = open(window.cursor);
          window.add(rest(window.cursor), String(all.length));
          sending = [];
        };
        for (let step = 0; window.first; step++) {
          now += 1_000;
          for (let one = window.take(now); one; one = window.take(now)) sending.push(one);
          if (sending.length === 0) {
            now = window.nextDue(now) ?? now;
            continue;
          }
          const [one] = sending.splice((chosen[step] ?? 0) % sending.length, 1) as [Pending];
          const fate = fates[step] ?? 2;
          if (fate > 0) arrived.push(one);
          if (fate === 4) takeOver();
          else if (fate < 2) window.failed(one, now);
          else window.delivered(one);
        }
        const seen = new Set<string>();
        const first = arrived.filter(({ cursor }) => !seen.has(cursor) && seen.add(cursor));
        for (const user of new Set(users)) {
          const expected = all.filter((one) => one.user === user).map(({ cursor }) => cursor);
          expect(first.filter(({ user_id }) => user_id === user).map(({ cursor }) => cursor)).toEqual(expected);
        }
      }),
      { numRuns: 300 },
    );
  });
});

it('[Decision 52] a pause is as long as the failures last, from five seconds to an hour, with jitter', () => {
  const bounds = (lasting: number) => {
    const pauses = Array.from({ length: 200 }, () => pauseAfter(lasting));
    return [Math.min(...pauses), Math.max(...pauses)] as const;
  };
  for (const [lasting, pause] of [
    [0, 5_000],
    [60_000, 60_000],
    [20 * HOUR_MS, HOUR_MS],
  ] as const) {
    const [least, most] = bounds(lasting);
    expect(least).toBeGreaterThanOrEqual(0.75 * pause);
    expect(most).toBeLessThanOrEqual(1.25 * pause);
    expect(most).toBeGreaterThan(least);
  }
});
