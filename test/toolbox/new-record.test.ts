import { afterEach, describe, expect, it, vi } from 'vitest';
import { newIdentity } from '#toolbox';

afterEach(() => {
  vi.restoreAllMocks();
});

/** The wall clock, set by hand: the only way to see it go back. */
const setClock = (time: string) => vi.spyOn(Date, 'now').mockReturnValue(Date.parse(time));

describe('newIdentity', () => {
  it('has an id of the gateway and the current time', () => {
    const before = new Date().toISOString();
    const { id, created_at } = newIdentity();
    expect(id).toMatch(/^mem_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(created_at >= before && created_at <= new Date().toISOString()).toBe(true);
  });

  it('increases within one millisecond and never repeats', () => {
    setClock('2040-01-01T00:00:00.000Z');
    const made = Array.from({ length: 1000 }, newIdentity);
    expect(new Set(made.map(({ created_at }) => created_at))).toEqual(new Set(['2040-01-01T00:00:00.000Z']));
    const ids = made.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].sort());
  });

  const madeAt = (times: readonly string[]) =>
    times.map((time) => {
      setClock(time);
      return newIdentity();
    });

  it('does not decrease when the clock is set back by at most a day, and continues once the clock has caught up', () => {
    const made = madeAt([
      '2041-01-01T00:00:00.000Z',
      '2040-12-31T23:00:00.000Z',
      '2040-12-31T00:00:00.000Z',
      '2041-01-01T00:00:00.001Z',
    ]);
    expect(made.map(({ created_at }) => created_at)).toEqual([
      '2041-01-01T00:00:00.000Z',
      '2041-01-01T00:00:00.000Z',
      '2041-01-01T00:00:00.000Z',
      '2041-01-01T00:00:00.001Z',
    ]);
    const ids = made.map(({ id }) => id);
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(4);
  });

  it('[SPEC Memory created_at] is correct again after a clock that was 30 years ahead is corrected, and increases from there', () => {
    const times = ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z'];
    const [ahead, ...made] = madeAt(['2056-01-01T00:00:00.000Z', ...times]);
    expect(ahead?.created_at).toBe('2056-01-01T00:00:00.000Z');
    expect(made.map(({ created_at }) => created_at)).toEqual(times);
    const ids = made.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].sort());
    // An id begins with the time of its making, too.
    expect((ahead?.id ?? '') > (ids.at(-1) ?? '')).toBe(true);
  });
});
