import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createRetrySchedule,
  pauseAfter,
  type ScheduledChange,
} from '../../../src/features/webhooks/retry-schedule.ts';

const item = (cursor: string, user_id: string): ScheduledChange => ({
  ...{ cursor, user_id },
  ...{ state: 'waiting', failing_since: undefined, due: 0 },
});
const open = (cursor = '0', failing_since: string | null = null) =>
  createRetrySchedule<ScheduledChange>({ cursor, failing_since }, (lasting) => lasting + 10);
const HOUR_MS = 3_600_000;

describe('[Decision 52] the retry schedule', () => {
  it('sends one change of each user at a time, the oldest first, four together', () => {
    const pending = open();
    pending.add(
      ['a1', 'a2', 'b1', 'c1', 'd1', 'e1'].map((cursor) => item(cursor, cursor[0] as string)),
      'end',
    );
    const taken = [pending.take(0), pending.take(0), pending.take(0), pending.take(0)];
    expect(taken.map((one) => one?.cursor)).toEqual(['a1', 'b1', 'c1', 'd1']);
    expect(pending.take(0)).toBeUndefined();
    pending.delivered(taken[0] as ScheduledChange);
    expect(pending.take(0)?.cursor).toBe('a2');
  });

  it('moves its cursor to the last change that was delivered without a gap', () => {
    const pending = open();
    pending.add([item('1', 'a'), item('2', 'b'), item('3', 'c')], '9');
    const [first, second, third] = [pending.take(0), pending.take(0), pending.take(0)] as [
      ScheduledChange,
      ScheduledChange,
      ScheduledChange,
    ];
    pending.delivered(second);
    expect([pending.cursor, pending.undelivered]).toEqual(['0', 2]);
    pending.delivered(first);
    expect(pending.cursor).toBe('2');
    pending.delivered(third);
    expect([pending.cursor, pending.readUntil]).toEqual(['9', '9']);
    pending.add([], '12');
    expect(pending.cursor).toBe('12');
  });

  it('holds up the user of a failed change only, and sends one at a time until one succeeds', () => {
    const pending = open();
    pending.add([item('1', 'a'), item('2', 'a'), item('3', 'b'), item('4', 'c')], '9');
    const first = pending.take(0) as ScheduledChange;
    pending.failed(first, 0);
    const other = pending.take(1) as ScheduledChange;
    expect(other.cursor).toBe('3');
    expect(pending.take(1)).toBeUndefined();
    expect(pending.nextDue(1)).toBe(10);
    pending.delivered(other);
    expect(pending.take(1)?.cursor).toBe('4');
    expect(pending.cursor).toBe('0');
    expect(pending.take(10)?.cursor).toBe('1');
  });

  it('rests after three failures in a row, or as long as the receiver asks, at most an hour', () => {
    const pending = open();
    pending.add(
      [...'abcd'].map((user) => item(user, user)),
      'end',
    );
    for (const now of [0, 1, 2]) pending.failed(pending.take(now) as ScheduledChange, now);
    // All failures have lasted 2 ms.
    expect(pending.take(13)).toBeUndefined();
    expect(pending.nextDue(13)).toBe(14);
    const again = pending.take(14) as ScheduledChange;
    expect(again.cursor).toBe('a');
    pending.failed(again, 14, 60);
    expect(pending.nextDue(14)).toBe(14 + 60_000);
    const late = pending.take(60_014) as ScheduledChange;
    pending.failed(late, 60_014, 999_999);
    expect(pending.nextDue(60_014)).toBe(60_014 + HOUR_MS);
  });

  it('is hopeless when the change after the cursor has failed for a day, also under other gateways', () => {
    const since = '2026-01-01T00:00:00.000Z';
    const pending = open('0', since);
    const start = Date.parse(since);
    expect(pending.isHopeless(start)).toBe(false);
    pending.add([item('1', 'a'), item('2', 'b')], '9');
    const [first, second] = [pending.take(start), pending.take(start)];
    // The receiver failed before: one at a time.
    expect([first?.cursor, second]).toEqual(['1', undefined]);
    pending.failed(first as ScheduledChange, start + 24 * HOUR_MS - 1);
    expect(pending.isHopeless(start + 24 * HOUR_MS - 1)).toBe(false);
    expect(pending.isHopeless(start + 24 * HOUR_MS)).toBe(true);
  });

  it('is full with 1,000 changes', () => {
    const pending = open();
    pending.add(
      Array.from({ length: 999 }, (_, n) => item(`${n}`, 'a')),
      '999',
    );
    expect(pending.isFull).toBe(false);
    pending.add([item('1000', 'a')], '1000');
    expect(pending.isFull).toBe(true);
    pending.delivered(pending.take(0) as ScheduledChange);
    expect(pending.isFull).toBe(false);
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
        const arrived: ScheduledChange[] = [];
        let pending = open();
        pending.add(rest('0'), String(all.length));
        let sending: ScheduledChange[] = [];
        let now = 0;
        const takeOver = () => {
          // What the dead gateway was sending may still arrive, after anything that the next one sends.
          pending = open(pending.cursor);
          pending.add(rest(pending.cursor), String(all.length));
          sending = [];
        };
        for (let step = 0; pending.first; step++) {
          now += 1_000;
          for (let one = pending.take(now); one; one = pending.take(now)) sending.push(one);
          if (sending.length === 0) {
            now = pending.nextDue(now) ?? now;
            continue;
          }
          const [one] = sending.splice((chosen[step] ?? 0) % sending.length, 1) as [ScheduledChange];
          const fate = fates[step] ?? 2;
          if (fate > 0) arrived.push(one);
          if (fate === 4) takeOver();
          else if (fate < 2) pending.failed(one, now);
          else pending.delivered(one);
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
