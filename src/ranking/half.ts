import type { Vector } from '#contract';

/** IEEE 754 half precision, in which vectors are kept: a 512-dimensional row then stays inline in a Postgres page. */
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
  const kept = value >>> dropped;
  const rest = value & ((1 << dropped) - 1);
  const tie = 1 << (dropped - 1);
  return rest > tie || (rest === tie && (kept & 1) === 1) ? kept + 1 : kept;
}

export function fromHalfBits(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >>> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 31) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}

/** Components are multiples of 1/4096, and vectors just short of unit length: see `toUnitHalf`. */
const GRID = 4096;
const STEP = 1 / 1024;

/**
 * The vector just short of unit length, its components rounded to a grid that half precision holds exactly. On that
 * grid every sum of products below 1 is exact even in single precision, so all stores compute the very same cosine in
 * whatever order they add, and near ties are ordered alike everywhere. The rounding itself moves a cosine by about
 * 1e-4. The zero vector stays zero.
 */
export function toUnitHalf(vector: ArrayLike<number>): Float32Array {
  let squares = 0;
  for (let i = 0; i < vector.length; i++) squares += (vector[i] as number) ** 2;
  if (squares === 0) return new Float32Array(vector.length);
  const scale = 1 / Math.sqrt(squares);
  // Rounding can lengthen a vector whose components are alike; then it is made a little shorter still.
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
 * Scaled to length 1. An embedder's vectors may be a thousandth shorter, since they are rounded; distances and inner
 * products would show that. The zero vector stays zero. For providers that always get vectors: throws at null.
 */
export function toUnit(vector: Vector): Float32Array {
  if (!vector) throw new TypeError('this provider needs a vector');
  const length = Math.sqrt(vector.reduce((sum, component) => sum + component * component, 0));
  return length === 0 ? vector : vector.map((component) => component / length);
}
