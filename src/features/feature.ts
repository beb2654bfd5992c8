import type { Verb } from '../verbs/verb.ts';

/** A feature beside the verbs of the specification, as one folder: `src/features/index.ts` lists them. */
export interface Feature<Verbs extends Readonly<Record<string, Verb>> = Readonly<Record<string, Verb>>> {
  /** By their names in the table of verbs. A path with `{id}` comes after those that it would match too. */
  readonly verbs: Verbs;
}

export const feature = <Verbs extends Readonly<Record<string, Verb>>>(definition: Feature<Verbs>): Feature<Verbs> =>
  definition;
