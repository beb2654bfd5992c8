import type { Answer } from './ask.ts';

/** Largest difference of one score between two stores. */
const TOLERANCE = 1e-3;

/** The same facts in the same order, their scores within the tolerance. */
const agree = (a: Answer, b: Answer): boolean =>
  a.length === b.length &&
  a.every((hit, rank) => {
    const other = b[rank];
    return other?.key === hit.key && Math.abs(other.score - hit.score) <= TOLERANCE;
  });

/** The positions of the questions on which two providers differ. */
export const disagreements = (a: readonly Answer[], b: readonly Answer[]): number[] => {
  if (a.length !== b.length) throw new Error('The providers were asked different numbers of questions.');
  return a.flatMap((answer, index) => (agree(answer, b[index] ?? []) ? [] : [index]));
};
