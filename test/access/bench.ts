import type { Embedder, Provider } from '#contract';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import type { Subject, SubjectOptions } from '../support/subject.ts';
import type { WireErrorCode } from '../support/wire.ts';
import { type Backdoor, bearer, clientWith, openBackdoor } from './callers.ts';
import { SEEDER } from './read-cases.ts';
import { openWorld, type World } from './world.ts';

/** Opens the gateway on the provider under test. */
export type Open = (options: Pick<SubjectOptions, 'authenticator' | 'embedder' | 'alter'>) => Promise<Subject>;

/** What the provider under test is expected to have. */
export interface Expected {
  readonly audit: boolean;
  readonly keys: boolean;
}

/** Everything the cases of one provider are tried with. */
export interface Bench {
  readonly subject: Subject;
  readonly world: World;
  readonly door: Backdoor;
  readonly expected: Expected;
  /** Texts embedded so far. */
  readonly embedded: () => number;
  /** What the backend was asked so far by id, verb by verb. */
  readonly lookUps: readonly string[];
  /** Counts what was tried, by how it had to end. */
  readonly tally: Map<WireErrorCode | 'ok', number>;
  /** What errors said so far, by code. */
  readonly messages: Map<WireErrorCode, Set<string>>;
}

/** Counts what it is given to embed. */
export function countingEmbedder(): { embedder: Embedder; embedded: () => number } {
  const inner = hashingEmbedder();
  let count = 0;
  const embedder: Embedder = {
    ...inner,
    embed(texts, purpose, call) {
      count += texts.length;
      return inner.embed(texts, purpose, call);
    },
  };
  return { embedder, embedded: () => count };
}

/** Notes what a provider is asked by id. */
export function noteLookUps(noted: string[]): (provider: Provider) => Provider {
  const note =
    <Arguments extends readonly [unknown, ...unknown[]], Result>(verb: string, ask: (...given: Arguments) => Result) =>
    (...given: Arguments): Result => {
      noted.push(verb);
      return ask(...given);
    };
  return ({ get, update, delete: remove, ...provider }) => ({
    ...provider,
    get: note('get', get),
    ...(update && { update: note('update', update) }),
    ...(remove && { delete: note('delete', remove) }),
  });
}

export async function openBench(open: Open, expected: Expected): Promise<Bench> {
  const door = openBackdoor();
  const { embedder, embedded } = countingEmbedder();
  const lookUps: string[] = [];
  const subject = await open({ authenticator: door.authenticator, embedder, alter: noteLookUps(lookUps) });
  const caller = (app: string) => clientWith(subject, bearer(door.admit(app)));
  const world = await openWorld(caller(SEEDER), caller('master'));
  return { subject, world, door, expected, embedded, lookUps, tally: new Map(), messages: new Map() };
}

export const totalOf = ({ tally }: Bench): number => [...tally.values()].reduce((sum, count) => sum + count, 0);
