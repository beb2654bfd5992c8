import { endianness } from 'node:os';
import { toHalfBits } from '#ranking';

/** The largest vector pgvector indexes as `halfvec`. */
export const MAX_INDEXED_DIMENSIONS = 4_000;

/**
 * pgvector's binary form of a `halfvec`: dimensions, an unused word, then one half each, big-endian.
 * The text form would cost a fifth of the throughput.
 */
export function toHalfvec(vector: Float32Array): Buffer {
  const words = new Uint16Array(vector.length + 2);
  words[0] = vector.length;
  for (let i = 0; i < vector.length; i++) words[i + 2] = toHalfBits(vector[i] as number);
  const buffer = Buffer.from(words.buffer);
  return endianness() === 'LE' ? buffer.swap16() : buffer;
}
