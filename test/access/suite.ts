import { afterAll, beforeAll, describe } from 'vitest';
import { type Bench, type Expected, type Open, openBench, totalOf } from './bench.ts';
import { foreignSuite } from './foreign.suite.ts';
import { kindsSuite } from './kinds.suite.ts';
import { rightsSuite } from './rights.suite.ts';

/**
 * The access matrix of one provider. It shows, case by case, that
 * - what a key is granted is what it gets, no more and no less, whatever the kind of the key (rights, kinds);
 * - a refused request changes nothing, embeds nothing, and says the same whatever it was refused for (rights);
 * - an id of a user out of reach cannot be told from one that names nothing, by text, headers or work done (foreign);
 * - without a good credential there is nothing but 401 (kinds).
 * Random data, grants and sequences are in `view.test.ts` and `sequences.test.ts`, scopes and globs one against another
 * in `neighbours.test.ts`.
 */
export const accessMatrix = (label: string, expected: Expected, open: Open) =>
  describe(`access matrix, ${label}`, () => {
    let opened: Bench | undefined;
    beforeAll(async () => {
      opened = await openBench(open, expected);
    });
    afterAll(async () => {
      await opened?.subject.close();
      if (opened) console.log(`access matrix, ${label}: ${totalOf(opened)} cases, ${tallied(opened)}`);
    });
    const bench = (): Bench => {
      if (opened === undefined) throw new Error(`${label} did not open`);
      return opened;
    };
    rightsSuite(bench);
    foreignSuite(bench);
    kindsSuite(bench);
  });

export const tallied = ({ tally }: Bench): string => [...tally].map(([code, count]) => `${count} ${code}`).join(', ');
