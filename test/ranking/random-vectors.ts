/** Numbers from 0 to 1 that depend on the seed alone (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A vector such as embedding models give: components spread around zero. */
export function randomVector(dimensions: number, seed: number): number[] {
  const random = randomNumbers(seed);
  return Array.from({ length: dimensions }, () => random() + random() + random() - 1.5);
}
