import { CLAUSES as SPECIFIED } from '../../src/conformance/clauses.ts';

/**
 * Every clause of SPEC.md, named as tests cite them, and every decision: `Decision N` is `docs/decisions`, page N. A string
 * instead of `true` says why no test cites the clause; once one does, the reason has to go.
 */
export type Coverage = true | string;

const decisions = (last: number): Record<string, Coverage> =>
  Object.fromEntries(Array.from({ length: last }, (_, index) => [`Decision ${index + 1}`, true]));

export const CLAUSES: Readonly<Record<string, Coverage>> = {
  ...Object.fromEntries(Object.keys(SPECIFIED).map((clause) => [`SPEC ${clause}`, true])),
  'SPEC Versioning 4': 'binds clients: it asks them to ignore fields they do not know',
  'SPEC Versioning 5': 'binds the people who publish new versions',

  ...decisions(64),
  'Decision 32': 'a setting that no longer exists: nothing to test',
  'Decision 47': 'says how the code is made; the tests of every verb check that it works',
};
