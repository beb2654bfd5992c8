import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { analyse, fromHalfBits, toHalfBits, toUnitHalf } from '#ranking';
import { createVectors } from '../../providers/memory/vectors.ts';
import { toBigintArray, toHalfvec, toIso, toKeys } from '../../providers/postgres/sql/values.ts';
import { randomVector } from '../ranking/random-vectors.ts';
import { storeForAll } from './store.ts';

const keywordsOf = (user: string, text: string) => toKeys(user, analyse(text));
const store = storeForAll();
const WORDS = Array.from({ length: 20_000 }, (_, i) => `w${i}`);

describe('toKeys', () => {
  it('gives one key a term, the same for text and query', () => {
    const text = 'She prefers green tea; the teas of XK-4471';
    const keys = keywordsOf('u', text);
    expect(keys).toHaveLength(analyse(text).length);
    expect(keywordsOf('u', 'tea')).toEqual([keys[analyse(text).indexOf('tea')]]);
  });

  it('gives whole numbers that JavaScript and bigint hold exactly, and hardly ever the same one twice', () => {
    const keys = toKeys('u', WORDS);
    expect(keys.every((key) => Number.isSafeInteger(key) && key >= 0)).toBe(true);
    expect(new Set(keys).size).toBe(20_000);
  });

  it('shares no key between users, however alike their names', () => {
    const keys = ['u', 'U', 'u ', 'v', 'uu', 'é', 'e\u0301', '😀', '\u{1f601}', ''].map((user) => toKeys(user, WORDS));
    expect(new Set(keys.flat()).size).toBe(keys.length * 20_000);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (one, other) => {
        fc.pre(one !== other);
        expect(keywordsOf(one, 'tea')).not.toEqual(keywordsOf(other, 'tea'));
      }),
      { numRuns: 1000 },
    );
  });

  it.each([[[]], [[1, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1]]])('is written as Postgres reads arrays: %j', async (keys) => {
    expect(await store.sql('select $1::bigint[]::text as text', [toBigintArray(keys)])).toEqual([
      { text: `{${keys}}` },
    ]);
  });

  // What is stored has to be found by every later release.
  it('never changes', () => {
    expect(keywordsOf('user-1', 'green tea')).toMatchInlineSnapshot(`
      [
        6317997042037202,
        2470708501998228,
      ]
    `);
  });
});

/** What pgvector says it received. */
const asText = async (vector: Float32Array): Promise<string> =>
  (await store.sql<{ text: string }>(`select $1::${store.names.halfvec}::text as text`, [toHalfvec(vector)]))[0]
    ?.text ?? '';
const received = async (vector: Float32Array): Promise<number[]> =>
  (JSON.parse(await asText(vector)) as number[]).map(Math.fround);

describe('the binary form of a vector', () => {
  it('carries every finite half to pgvector unchanged', async () => {
    const finite = Array.from({ length: 65_536 }, (_, bits) => fromHalfBits(bits)).filter(Number.isFinite);
    expect(finite).toHaveLength(2 * 31 * 1024);
    for (let start = 0; start < finite.length; start += 15_872) {
      const part = finite.slice(start, start + 15_872);
      expect(await received(Float32Array.from(part))).toEqual(part);
    }
  });

  it('writes dimensions, an unused word and big-endian halves', () => {
    expect(toHalfvec(Float32Array.of(1, -2)).toString('hex')).toBe('00020000' + '3c00' + 'c000');
  });

  it('is read as written, subnormals and zeros included', async () => {
    expect(await asText(Float32Array.of(0, 1, -0.5, 65504, 2 ** -24, 2 ** -14))).toBe(
      '[0,1,-0.5,65504,5.9604645e-08,6.1035156e-05]',
    );
  });

  it('rounds as pgvector rounds the same numbers written as text', async () => {
    const value = fc.oneof(
      fc.float({ min: -65_504, max: 65_504, noNaN: true }),
      fc.float({ min: -1, max: 1, noNaN: true }),
      fc.float({ min: Math.fround(-(2 ** -13)), max: Math.fround(2 ** -13), noNaN: true }),
      // Half way between two neighbours, where ties go to the even one, and one step beside it.
      fc.tuple(fc.integer({ min: 0, max: 31_742 }), fc.integer({ min: -1, max: 1 })).map(([bits, nudge]) => {
        const middle = (fromHalfBits(bits) + fromHalfBits(bits + 1)) / 2;
        return Math.fround(middle * (1 + nudge * 2 ** -23));
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 200 }), async (values) => {
        const rows = await store.sql<{ ours: string; theirs: string }>(
          `select $1::${store.names.halfvec}::text as ours, $2::text::${store.names.halfvec}::text as theirs`,
          [toHalfvec(Float32Array.from(values)), `[${values.map((x) => (Object.is(x, -0) ? '-0' : x)).join(',')}]`],
        );
        expect(rows[0]?.ours).toBe(rows[0]?.theirs);
      }),
      { numRuns: 60 },
    );
  });

  it('is rejected by pgvector beyond the range of halves', async () => {
    expect(toHalfBits(65_519)).toBe(toHalfBits(65_504));
    await expect(asText(Float32Array.of(65_520))).rejects.toThrow(/infinite/);
  });
});

it.each([64, 512, 1536])(
  'cosine on the grid of toUnitHalf is the same number in pgvector and in the memory provider, %i dimensions',
  async (size) => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.nat(), fc.integer({ min: 0, max: 8 }), async (one, other, likeness) => {
        const b = randomVector(size, other);
        const near = randomVector(size, one).map((x, i) => x + likeness * (b[i] as number));
        const [left, right] = [toUnitHalf(near), toUnitHalf(b)];
        const vectors = createVectors(size);
        vectors.set(0, left);
        const [row] = await store.sql<{ cosine: number }>(
          `select 1 - ($1::${store.names.halfvec} ${store.names.cosineDistance} $2::${store.names.halfvec}) as cosine`,
          [toHalfvec(left), toHalfvec(right)],
        );
        expect(Math.abs((row?.cosine as number) - (vectors.cosines(right, 1)[0] as number))).toBeLessThan(1e-12);
      }),
      { numRuns: 40 },
    );
  },
);

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
