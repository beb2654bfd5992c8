import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { inFormOf, toIso } from '../../providers/pinecone/mapped/mapped-record.ts';

// Not UTC, so that what is read in the time zone of the machine shows.
beforeAll(() => void vi.stubEnv('TZ', 'America/New_York'));
afterAll(() => void vi.unstubAllEnvs());

describe('the times of an index that somebody else fills', () => {
  it.each([
    ['2025-03-01T16:30:15.123Z', '2025-03-01T16:30:15.123Z'],
    ['2025-03-01T16:30:15Z', '2025-03-01T16:30:15.000Z'],
    ['2025-03-01T16:30Z', '2025-03-01T16:30:00.000Z'],
    ['2025-03-01t16:30:15.9z', '2025-03-01T16:30:15.900Z'],
    ['2025-03-01T08:30:15.123456-08:00', '2025-03-01T16:30:15.123Z'],
    ['2025-03-01T22:00:15.123999+0530', '2025-03-01T16:30:15.123Z'],
    ['2025-03-01T17:30:15+01', '2025-03-01T16:30:15.000Z'],
    ['2025-03-01 16:30:15.123456+00:00', '2025-03-01T16:30:15.123Z'],
    ['2025-03-01 16:30:15 +00:00', '2025-03-01T16:30:15.000Z'],
    ['2025-03-01T16:30:15,5Z', '2025-03-01T16:30:15.500Z'],
    [' 2025-03-01T16:30:15Z ', '2025-03-01T16:30:15.000Z'],
    // Without an offset: UTC, wherever this machine is.
    ['2025-03-01T16:30:15.123456', '2025-03-01T16:30:15.123Z'],
    ['2025-03-01 16:30', '2025-03-01T16:30:00.000Z'],
    ['2025-03-01', '2025-03-01T00:00:00.000Z'],
    ['0001-01-01', '0001-01-01T00:00:00.000Z'],
    // Seconds, with or without a fraction, and milliseconds.
    [1_740_846_615, '2025-03-01T16:30:15.000Z'],
    [1_740_846_615.123, '2025-03-01T16:30:15.123Z'],
    [1_740_846_615_123, '2025-03-01T16:30:15.123Z'],
    [99_999_999_999, '5138-11-16T09:46:39.000Z'],
    [100_000_000_000, '1973-03-03T09:46:40.000Z'],
    [0, '1970-01-01T00:00:00.000Z'],
    [-86_400, '1969-12-31T00:00:00.000Z'],
  ])('%s is %s', (value, iso) => {
    expect(toIso(value)).toBe(iso);
  });

  it.each([
    undefined,
    '',
    'yesterday',
    '2025',
    '2025-03',
    '2025-13-01',
    '2025-03-01T25:00Z',
    '2025-03-01T16:30:15+99:00',
    '16:30:15Z',
    '1740846615',
    'March 1, 2025',
    '0000-12-31',
    '9999-12-31T23:59:59-01:00',
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e18,
    true,
    ['2025-03-01'],
  ])('%s names no moment', (value) => {
    expect(toIso(value)).toBeUndefined();
  });

  it('this machine is in another time zone', () => {
    expect(new Date('2025-03-01T00:00').getTimezoneOffset()).toBe(300);
  });

  it('is written in the form that the record has', () => {
    const iso = '2025-03-01T16:30:15.123Z';
    expect(inFormOf('2025-01-01', iso)).toBe(iso);
    expect(inFormOf(undefined, iso)).toBe(iso);
    expect(inFormOf(1_700_000_000, iso)).toBe(1_740_846_615.123);
    expect(inFormOf(1_700_000_000_000, iso)).toBe(1_740_846_615_123);
    for (const form of [1_700_000_000, 1_700_000_000_000, 'x']) expect(toIso(inFormOf(form, iso))).toBe(iso);
  });
});
