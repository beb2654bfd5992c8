import { toHalfBits } from '#ranking';

/** The largest vector pgvector indexes as `halfvec`. */
export const MAX_INDEXED_DIMENSIONS = 4_000;

/**
 * pgvector's binary form of a `halfvec`: dimensions, an unused word, then one half each, big-endian.
 * The text form would cost a fifth of the throughput.
 */
export function toHalfvec(vector: Float32Array): Buffer {
  const buffer = Buffer.allocUnsafe(4 + vector.length * 2);
  buffer.writeUInt16BE(vector.length, 0);
  buffer.writeUInt16BE(0, 2);
  for (let i = 0; i < vector.length; i++) buffer.writeUInt16BE(toHalfBits(vector[i] as number), 4 + i * 2);
  return buffer;
}
