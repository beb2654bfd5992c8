import { endianness } from 'node:os';
import { invalidRequest, type Vector } from '#contract';
import { toHalfBits } from '#ranking';
import type { Row } from './client/connections.ts';

/** The first version with `halfvec`, which the gateway's tables need. */
export const LEAST_PGVECTOR = '0.7.0';
/** The first version whose filtered index scans continue until they have found enough. */
export const ITERATIVE_PGVECTOR = '0.8.0';
/** The first version that fixes CVE-2026-3172 and HNSW indexes damaged by vacuum. */
export const SAFE_PGVECTOR = '0.8.4';

/** What is wrong with an older version; undefined: nothing. */
export const unsafeVersion = (version: string): string | undefined =>
  isOlder(version, SAFE_PGVECTOR)
    ? `pgvector ${version} is older than ${SAFE_PGVECTOR}, which fixes CVE-2026-3172 and HNSW indexes damaged by vacuum`
    : undefined;

/** Compares versions of three numbers. */
export function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number));
  for (let i = 0; i < 3; i++) if (a?.[i] !== b?.[i]) return (a?.[i] ?? 0) < (b?.[i] ?? 0);
  return false;
}

/** The vectors of rows with `id` and `vector`, in the text form. */
export const vectorsIn = (rows: readonly Row[]): Map<string, Float32Array> =>
  new Map(rows.map(({ id, vector }) => [id as string, Float32Array.from(JSON.parse(vector as string))]));

/** The largest vector that pgvector indexes as `halfvec`. */
export const MAX_INDEXED_DIMENSIONS = 4_000;

/** The largest number of half precision. */
const MAX_COMPONENT = 65_504;

/** Throws if a vector from another store cannot be stored as `halfvec`: the statement would fail for all its memories. */
export function requireHalf(vector: Vector | undefined): void {
  if (!vector || vector.every((component) => Math.abs(component) <= MAX_COMPONENT)) return;
  throw invalidRequest(
    `vector: this store keeps numbers from -${MAX_COMPONENT} to ${MAX_COMPONENT}; without a vector, it is computed again`,
  );
}

/**
 * pgvector's binary form of a `halfvec`: dimensions, an unused word, then one half for each, big-endian. Written here
 * because the text form, the only one that the package `pgvector` has, costs a fifth of the throughput of adds. A search of
 * 50 vectors of 1,536 dimensions takes 0.9 ms with it instead of 0.3 ms.
 */
export function toHalfvec(vector: Float32Array): Buffer {
  const words = new Uint16Array(vector.length + 2);
  words[0] = vector.length;
  for (let i = 0; i < vector.length; i++) words[i + 2] = toHalfBits(vector[i] as number);
  const buffer = Buffer.from(words.buffer);
  return endianness() === 'LE' ? buffer.swap16() : buffer;
}
