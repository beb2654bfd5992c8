/** Numbers from 0 up to 1, the same in every run. */
export type Random = () => number;

/** Mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A different seed for each number within a series. */
export const seedOf = (series: number, number: number): number => Math.imul(series + 1, 0x9e3779b1) ^ (number * 2 + 1);

export const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;

/** Picks the first far more often than the last, like words in a language: half of all picks are in the first eighth. */
export const pickSkewed = <T>(random: Random, from: readonly T[]): T =>
  from[Math.floor(random() ** 3 * from.length)] as T;
