/**
 * Search terms as stored in the `keywords` column: 53-bit hashes of user and term, half the size of the words. Because the
 * user is part of the key, one index over all users answers "memories of this user with this term" without reading
 * entries of others. Two terms of one user collide about once in 10^10 vocabularies.
 */
export function toKeys(userId: string, terms: readonly string[]): number[] {
  const seed = hash53(userId, 0);
  return terms.map((term) => hash53(term, seed));
}

/** PostgreSQL's code of the type `bigint`. */
const BIGINT = 20;

/**
 * The binary form of a `bigint[]` parameter, of whole numbers from 0 to 2^53: dimensions, no nulls, type, length, first index, then the
 * length and value of each. Its text takes a twentieth of the processor time of an add.
 */
export function toBigintArray(values: readonly number[]): Buffer {
  const words = [1, 0, BIGINT, values.length, 1];
  for (const value of values) words.push(8, Math.floor(value / 2 ** 32), value >>> 0);
  const bytes = Buffer.alloc(4 * words.length);
  for (const [i, word] of words.entries()) bytes.writeUInt32BE(word, 4 * i);
  return bytes;
}

/** cyrb53, a public-domain string hash: two 32-bit multiply-xor lanes, 53 bits of which fit a JavaScript number exactly. */
function hash53(text: string, seed: number): number {
  let a = 0xdeadbeef ^ (seed >>> 0);
  let b = 0x41c6ce57 ^ Math.floor(seed / 2 ** 32);
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 2654435761);
    b = Math.imul(b ^ unit, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return 2 ** 32 * (2097151 & b) + (a >>> 0);
}
