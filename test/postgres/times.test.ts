import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toIso } from '../../providers/postgres/tables/timestamps.ts';

const FIRST = Date.parse('0001-01-01T00:00:00.000Z');
const LAST = Date.parse('9999-12-31T23:59:59.999Z');

describe('toIso', () => {
  it('says what Date says, in any order of days', () => {
    const near = fc.integer({ min: -2 * 86_400_000, max: 2 * 86_400_000 });
    fc.assert(
      fc.property(fc.array(fc.oneof(near, fc.integer({ min: FIRST, max: LAST }))), (moments) => {
        for (const moment of moments) expect(toIso(moment)).toBe(new Date(moment).toISOString());
      }),
      { numRuns: 500 },
    );
  });

  it.each([FIRST, LAST, 0, -1, 86_399_999, 86_400_000, -86_400_000, -86_400_001])('of %i', (moment) => {
    expect(toIso(moment)).toBe(new Date(moment).toISOString());
  });

  it('takes the milliseconds as Postgres computes them from seconds', () => {
    fc.assert(
      fc.property(fc.integer({ min: FIRST, max: LAST }), (moment) => {
        expect(toIso((moment / 1000) * 1000)).toBe(new Date(moment).toISOString());
      }),
    );
  });
});
