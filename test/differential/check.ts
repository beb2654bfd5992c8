import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { laterMoment } from '../support/subject.ts';
import { expectAgreement } from './agreement.ts';
import { changes, type Sequence, sequences, within } from './operations.ts';
import { openWorld, type WorldStore } from './world.ts';

export interface CheckOptions {
  /** How many sequences are tried. */
  readonly runs: number;
  readonly seed: number;
  /** Whether a failing sequence is made as short as possible, which takes many more runs. */
  readonly shrink: boolean;
}

/** Puts random sequences of requests to the model and to the other stores. Rejects at the first answer that differs. */
export const checkAgreement = async (
  model: WorldStore,
  others: readonly WorldStore[],
  options: CheckOptions,
): Promise<void> => {
  const sameAnswers = async ({ callers, operations }: Sequence) => {
    const run = randomUUID();
    const truth = openWorld(model, callers, run);
    const worlds = others.map((store) => ({ label: store.label, world: openWorld(store, callers, run) }));
    const can = {
      once: worlds.every(({ world }) => world.once),
      etags: worlds.every(({ world }) => world.etags),
    };
    for (const [step, drawn] of operations.entries()) {
      const wanted = within(drawn, can);
      if (wanted.do === 'erase' && !worlds.every(({ world }) => world.erases)) continue;
      // Times decide the order of lists and what since and until let through: they must not depend on luck.
      if (changes(wanted)) await laterMoment();
      const expected = await truth.perform(wanted);
      for (const { label, world } of worlds) {
        const given = await world.perform(wanted);
        await expectAgreement(wanted, { model: truth, other: world }, expected, given).catch((cause: Error) => {
          throw new Error(`${label}, step ${step}, ${JSON.stringify(wanted)}: ${cause.message}`, { cause });
        });
      }
    }
  };
  const { runs, seed, shrink } = options;
  const property = fc.asyncProperty(sequences, sameAnswers);
  await fc.assert(property, { numRuns: runs, seed, endOnFailure: !shrink });
};
