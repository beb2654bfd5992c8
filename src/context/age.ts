import type { Memory, SearchHit } from '#contract';
import { roundScore } from '#ranking';

/** When it was said what a memory holds: from when it is valid, else when it was created. */
export const saidAt = ({ valid_from, created_at }: Pick<Memory, 'valid_from' | 'created_at'>): string =>
  valid_from ?? created_at;

/** Best first again, with scores times these factors. Of equal scores, the one that was first stays so. */
export const weighted = <Hit extends SearchHit>(hits: readonly Hit[], factorOf: (memory: Memory) => number): Hit[] =>
  hits
    .map((hit) => ({ ...hit, score: roundScore(hit.score * factorOf(hit.memory)) }))
    .sort((a, b) => b.score - a.score);

const DAY_MS = 86_400_000;

/** Whether this time, in milliseconds, is that of a store without times: all its memories are of the first day of 1970. */
export const isUnknown = (said: number): boolean => said >= 0 && said < DAY_MS;

/**
 * The factor for the age of a memory: 1 for a new one or an unknown age, 0.75 after `half_life_days`, never below a half. A good match of long ago
 * stays ahead of a bad one of today.
 */
export const ageFactor =
  (half_life_days: number, now: Date) =>
  (memory: Memory): number => {
    const said = Date.parse(saidAt(memory));
    if (isUnknown(said)) return 1;
    const days = Math.max(0, now.getTime() - said) / DAY_MS;
    return 0.5 + 0.5 ** (1 + days / half_life_days);
  };
