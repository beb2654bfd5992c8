import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromHalfBits, toHalfBits, toUnitHalf } from '#ranking';
import { randomNumbers, randomVector } from './random-vectors.ts';

describe('half precision', () => {
  it('preserves every bit pattern, including infinities, both zeros and 2,046 NaN', () => {
    let nan = 0;
    for (let bits = 0; bits < 65_536; bits++) {
      const value = fromHalfBits(bits);
      if (Number.isNaN(value)) {
        nan++;
        expect(fromHalfBits(toHalfBits(value))).toBeNaN();
      } else if (toHalfBits(value) !== bits) expect.fail(`${bits} became ${toHalfBits(value)}`);
    }
    expect(nan).toBe(2 * 1023);
  });

  it.each([
    [0x0000, 0],
    [0x0001, 2 ** -24],
    [0x03ff, 1023 * 2 ** -24],
    [0x0400, 2 ** -14],
    [0x3555, 0.333251953125],
    [0x3c00, 1],
    [0xc000, -2],
    [0x7bff, 65_504],
    [0x7c00, Number.POSITIVE_INFINITY],
    [0xfc00, Number.NEGATIVE_INFINITY],
  ])('reads %i as %d', (bits, value) => {
    expect(fromHalfBits(bits)).toBe(value);
  });

  it('rounds to the nearest, ties to even', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0x7bfe }), fc.double({ min: 0, max: 1, noNaN: true }), (bits, part) => {
        const [low, high] = [fromHalfBits(bits), fromHalfBits(bits + 1)];
        const middle = (low + high) / 2;
        expect(toHalfBits(middle)).toBe(bits + (bits % 2));
        expect(toHalfBits(-middle)).toBe(0x8000 + bits + (bits % 2));
        const value = Math.fround(low + part * (high - low));
        if (value !== middle) expect(toHalfBits(value)).toBe(value < middle ? bits : bits + 1);
      }),
      { numRuns: 2000 },
    );
  });

  it('overflows to infinity half a step beyond the greatest', () => {
    expect(toHalfBits(65_519.99)).toBe(0x7bff);
    expect(toHalfBits(65_520)).toBe(0x7c00);
    expect(toHalfBits(-1e300)).toBe(0xfc00);
  });

  it('underflows to zero at half the least', () => {
    expect(toHalfBits(2 ** -25)).toBe(0);
    expect(toHalfBits(2 ** -25 * 1.001)).toBe(1);
    expect(toHalfBits(-(2 ** -26))).toBe(0x8000);
    expect(toHalfBits(1e-300)).toBe(0);
  });
});

const GRID = 4096;
const squares = (vector: Float32Array): number => vector.reduce((sum, x) => sum + x * x, 0);
/** Few components that matter, most of them alike, as counts of words or one-hot features are. */
const alike = (dimensions: number, seed: number, used: number): number[] => {
  const random = randomNumbers(seed);
  const vector = Array<number>(dimensions).fill(0);
  for (let i = 0; i < used; i++) vector[Math.floor(random() * dimensions)] = random() < 0.5 ? -1 : 1;
  return vector;
};

describe('toUnitHalf', () => {
  const size = fc.constantFrom(2, 3, 64, 512, 1536);

  it('gives components that half precision holds, on a grid of 1/4096', () => {
    fc.assert(
      fc.property(size, fc.nat(), (dimensions, seed) => {
        for (const x of toUnitHalf(randomVector(dimensions, seed))) {
          expect(Number.isInteger(x * GRID)).toBe(true);
          expect(fromHalfBits(toHalfBits(x))).toBe(x);
        }
      }),
    );
  });

  it('gives nearly unit length, in nearly the same direction', () => {
    fc.assert(
      fc.property(size, fc.nat(), (dimensions, seed) => {
        const vector = randomVector(dimensions, seed);
        const unit = toUnitHalf(vector);
        const length = Math.sqrt(squares(unit));
        const dot = vector.reduce((sum, x, i) => sum + x * (unit[i] as number), 0);
        const cosine = dot / length / Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
        expect(Math.abs(length - (1 - 1 / 1024))).toBeLessThan(1e-3);
        expect(cosine).toBeGreaterThan(1 - 5e-5);
      }),
    );
  });

  it('does not depend on the length of the input', () => {
    fc.assert(
      fc.property(size, fc.nat(), fc.integer({ min: -40, max: 40 }), (dimensions, seed, power) => {
        const vector = randomVector(dimensions, seed);
        expect(toUnitHalf(vector.map((x) => x * 2 ** power))).toEqual(toUnitHalf(vector));
      }),
    );
  });

  it('stays below length 1 for any vector, so that sums are exact', () => {
    fc.assert(
      fc.property(size, fc.nat(), fc.integer({ min: 1, max: 1536 }), (dimensions, seed, used) => {
        for (const vector of [alike(dimensions, seed, used), randomVector(dimensions, seed)]) {
          expect(squares(toUnitHalf(vector))).toBeLessThan(1);
        }
      }),
      { numRuns: 300, seed: 1 },
    );
  });

  it('keeps the zero vector and does not change its input', () => {
    expect(toUnitHalf([0, 0, 0])).toEqual(new Float32Array(3));
    expect(toUnitHalf([])).toEqual(new Float32Array(0));
    const given = [3, 4];
    expect([...toUnitHalf(given)].map((x) => x * GRID)).toEqual([2456, 3274]);
    expect(given).toEqual([3, 4]);
  });

  it('keeps signs, and gives opposite vectors opposite results', () => {
    fc.assert(
      fc.property(size, fc.nat(), (dimensions, seed) => {
        const vector = randomVector(dimensions, seed);
        const unit = toUnitHalf(vector);
        unit.forEach((x, i) => {
          if (x !== 0) expect(Math.sign(x)).toBe(Math.sign(vector[i] as number));
        });
      }),
    );
  });
});
