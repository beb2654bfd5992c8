import type { RankingOptions, Vector } from '#contract';

/** IEEE 754 half precision, the stored form of vectors: a row with 512 dimensions stays inline in a Postgres page. */
const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** The half-precision bit pattern nearest to `value`, ties to even. Beyond ±65504: infinity. */
export function toHalfBits(value: number): number {
  float[0] = value;
  const word = bits[0] as number;
  const sign = (word >>> 16) & 0x8000;
  const exponent = ((word >>> 23) & 0xff) - 112;
  const mantissa = word & 0x7fffff;
  if (exponent >= 31) return sign | (exponent === 143 && mantissa !== 0 ? 0x7e00 : 0x7c00);
  if (exponent > 0) return sign | roundToEven((exponent << 23) | mantissa, 13);
  if (exponent < -10) return sign;
  return sign | roundToEven(mantissa | 0x800000, 14 - exponent);
}

/** Rounding may carry into the exponent, which is exactly the next representable number. */
function roundToEven(value: number, dropped: number): number {
  const rounded = value >>> dropped;
  const rest = value & ((1 << dropped) - 1);
  const tie = 1 << (dropped - 1);
  return rest > tie || (rest === tie && (rounded & 1) === 1) ? rounded + 1 : rounded;
}

export function fromHalfBits(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >>> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 31) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}

/** Components are multiples of 1/4096, and vectors are slightly shorter than 1: see `toUnitHalf`. */
const GRID = 4096;
const STEP = 1 / 1024;

/**
 * Scales a vector to slightly less than length 1 and rounds its components to a grid that half precision represents
 * exactly. On that grid every sum of products below 1 is exact even in single precision, so all stores compute the same
 * cosine in any order of addition and order near ties alike. The rounding changes a cosine by about 1e-4. The zero vector
 * stays zero.
 */
export function toUnitHalf(vector: ArrayLike<number>): Float32Array {
  let squares = 0;
  for (let i = 0; i < vector.length; i++) squares += (vector[i] as number) ** 2;
  if (squares === 0) return new Float32Array(vector.length);
  const scale = 1 / Math.sqrt(squares);
  // Rounding can lengthen a vector with similar components; then the target length decreases.
  for (let length = 1 - STEP; ; length -= STEP) {
    const unit = new Float32Array(vector.length);
    let rounded = 0;
    for (let i = 0; i < vector.length; i++) {
      const component = fromHalfBits(toHalfBits(Math.round((vector[i] as number) * scale * length * GRID) / GRID));
      unit[i] = component;
      rounded += component * component;
    }
    if (rounded < 1) return unit;
  }
}

/**
 * Scales a vector to length 1. The rounded vectors of an embedder may be a thousandth shorter, which would change distances
 * and inner products. The zero vector stays zero. Throws at null: for providers that always get vectors.
 */
export function toUnit(vector: Vector): Float32Array {
  if (!vector) throw new TypeError('this provider requires a vector');
  const length = Math.sqrt(vector.reduce((sum, component) => sum + component * component, 0));
  return length === 0 ? vector : vector.map((component) => component / length);
}

/** Rarity of a term among one user's memories; positive even if every memory has the term. */
export const inverseDocumentFrequency = (memories: number, memoriesWithTerm: number): number =>
  Math.log(1 + (memories - memoriesWithTerm + 0.5) / (memoriesWithTerm + 0.5));

/** Resolution of scores in comparisons and responses: finer differences are rounding errors of the store. */
const RESOLUTION = 1e6;
export const roundScore = (score: number): number => Math.floor(score * RESOLUTION + 0.5) / RESOLUTION;

/**
 * Weights of one query: `score = vector·max(0, cosine) + keyword·coverage`. A query of stop words has no terms; hybrid mode
 * then uses the vector alone, so that a text equal to the query still scores 1.
 */
export function weights(ranking: RankingOptions, queryTerms: number): { vector: number; keyword: number } {
  if (ranking.mode === 'keyword') return { vector: 0, keyword: 1 };
  if (ranking.mode === 'vector' || queryTerms === 0) return { vector: 1, keyword: 0 };
  return { vector: 1 - ranking.keyword_weight, keyword: ranking.keyword_weight };
}
