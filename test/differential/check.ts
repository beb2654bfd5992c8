import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { laterMoment } from '../support/subject.ts';
import { expectAgreement } from './agreement.ts';
import { changes, needsVersions, type Operation, type Sequence, sequences, within } from './operations.ts';
import { openWorld, type World, type WorldStore } from './world.ts';

export interface CheckOptions {
  /** How many sequences are tried. */
  readonly runs: number;
  readonly seed: number;
  /** Whether a failing sequence is made as short as possible, which takes many more runs. */
  readonly shrink: boolean;
  /** What every caller is granted besides. */
  readonly grants?: readonly string[];
  /** Operations that one of the stores cannot do for all of its memories. */
  readonly skipped?: readonly Operation['do'][];
  /** Whether all stores have ETags and origins, and can search by time; default: their capabilities say it. */
  readonly etags?: boolean;
}

/** Puts random sequences of requests to the model and to the other stores. Rejects at the first answer that differs. */
export const checkAgreement = async (
  model: WorldStore,
  others: readonly WorldStore[],
  options: CheckOptions,
): Promise<void> => {
  const { runs, seed, shrink, grants = [], skipped = [], etags = true } = options;
  const mounts = [...new Set(others.flatMap((store) => store.mounts ?? []))];
  const sameAnswers = async ({ callers: drawnCallers, operations }: Sequence) => {
    const run = randomUUID();
    const callers = drawnCallers.map((right) => ({ ...right, grants: [...right.grants, ...grants] }));
    const truth = openWorld(model, callers, run);
    const worlds = others.map((store) => ({ label: store.label, world: openWorld(store, callers, run) }));
    const can = {
      // A key belongs to one store.
      once: mounts.length === 0 && worlds.every(({ world }) => world.once),
      etags: etags && worlds.every(({ world }) => world.etags),
      origins: etags && worlds.every(({ world }) => world.origins),
      times: etags && worlds.every(({ world }) => world.times),
    };
    const erased = new Set<number>();
    for (const [step, drawn] of operations.entries()) {
      const wanted = within(drawn, can);
      // An erase has an entry for each store that had memories of the user (Decision 49).
      if (wanted.do === 'erase' && mounts.length > 0) erased.add(wanted.user);
      if (wanted.do === 'audit' && erased.has(wanted.user)) continue;
      if (needsVersions(wanted) && !worlds.every(({ world }) => world.versioned)) continue;
      if (wanted.do === 'erase' && !worlds.every(({ world }) => world.erases)) continue;
      if (skipped.includes(wanted.do) || isSpread(wanted, mounts) || leavesStore(wanted, truth, mounts)) continue;
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
  const property = fc.asyncProperty(sequences, sameAnswers);
  await fc.assert(property, { numRuns: runs, seed, endOnFailure: !shrink });
};

const mountOf = (scope: string | null | undefined, mounts: readonly string[]): string | undefined =>
  mounts.find((mount) => scope === mount || scope?.startsWith(`${mount}/`));

/** Whether a patch would move a memory to another store, which is refused (Decision 48). */
function leavesStore(wanted: Operation, truth: World, mounts: readonly string[]): boolean {
  if (wanted.do !== 'patch' || !('scope' in wanted.fields)) return false;
  const before = truth.scopeOf(wanted.record);
  return before !== undefined && mountOf(before, mounts) !== mountOf(wanted.fields.scope as string, mounts);
}

/** Whether the memories of a batch go to several stores. Then the order of those of one millisecond is another. */
const isSpread = (wanted: Operation, mounts: readonly string[]): boolean =>
  wanted.do === 'batch' &&
  new Set(wanted.items.map(({ fields }) => mountOf((fields as { scope?: string }).scope, mounts))).size > 1;
