import { afterEach, describe, expect, it, vi } from 'vitest';
import { newIdentity } from '#contract';

afterEach(() => {
  vi.restoreAllMocks();
});

/** The wall clock, set by hand: the only way to see it go back. */
const setClock = (time: string) => vi.spyOn(Date, 'now').mockReturnValue(Date.parse(time));

describe('newIdentity', () => {
  it('is an id of ours and the time of now', () => {
    const before = new Date().toISOString();
    const { id, created_at } = newIdentity();
    expect(id).toMatch(/^mem_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(created_at >= before && created_at <= new Date().toISOString()).toBe(true);
  });

  it('grows within one millisecond, and never repeats', () => {
    setClock('2040-01-01T00:00:00.000Z');
    const made = Array.from({ length: 1000 }, newIdentity);
    expect(new Set(made.map(({ created_at }) => created_at))).toEqual(new Set(['2040-01-01T00:00:00.000Z']));
    const ids = made.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].sort());
  });

  it('does not go back when the clock does, and goes on when the clock has caught up', () => {
    const made = [
      '2041-01-01T00:00:00.000Z',
      '2040-06-01T00:00:00.000Z',
      '2001-01-01T00:00:00.000Z',
      '2041-01-01T00:00:00.001Z',
    ].map((time) => {
      setClock(time);
      return newIdentity();
    });
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
});
