import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { Fault, Pinecone } from '../pinecone-server/start.ts';
import { laterMoment } from '../support/subject.ts';
import { expectAgreement } from './agreement.ts';
import type { CheckOptions } from './check.ts';
import { changes, needsVersions, type Operation, type Sequence, sequences, USERS, within } from './operations.ts';
import { type Answer, openWorld, type WorldStore } from './world.ts';

/** What Pinecone goes through during one step: nothing, or everything written becomes visible, or faults. */
export type Weather = 'calm' | 'settle' | readonly Fault[];

export interface Stage {
  readonly model: WorldStore;
  readonly store: WorldStore;
  /** Another gateway on the same index, which writes nothing: it has nothing but what Pinecone shows. */
  readonly replica: WorldStore;
  readonly pinecone: Pinecone;
  /** How often something happened that the check is about. */
  readonly seen: { steps: number; failed: number; happened: number };
}

export interface WeatherOptions extends CheckOptions {
  readonly weather: fc.Arbitrary<Weather>;
}

/**
 * Puts random sequences of requests to the model and to a gateway whose Pinecone goes through some weather. A request that
 * failed is not made on the model; where that cannot be known from the answer, the store is asked what happened.
 */
export async function checkThroughWeather(stage: Stage, options: WeatherOptions): Promise<void> {
  const { weather, runs, seed, shrink } = options;
  const drawn = fc.tuple(sequences, fc.array(weather, { minLength: 50, maxLength: 50 }));
  const property = fc.asyncProperty(drawn, ([sequence, weathers]) => playThrough(sequence, weathers, stage));
  await fc.assert(property, { numRuns: runs, seed, endOnFailure: !shrink });
}

async function playThrough(
  { callers, operations }: Sequence,
  weathers: readonly Weather[],
  { model, store, replica, pinecone, seen }: Stage,
): Promise<void> {
  const run = randomUUID();
  const truth = openWorld(model, callers, run);
  const world = openWorld(store, callers, run);
  const compare = async (wanted: Operation, given: Answer): Promise<void> =>
    expectAgreement(wanted, { model: truth, other: world }, await truth.perform(wanted), given);

  for (const [step, drawn] of operations.entries()) {
    const wanted = within(drawn);
    if (needsVersions(wanted) && !world.versioned) continue;
    const weather = weathers[step % weathers.length] ?? 'calm';
    const faults = typeof weather === 'object' ? weather : [];
    try {
      if (changes(wanted)) await laterMoment();
      if (weather === 'settle') await pinecone.settle();
      for (const fault of faults) await pinecone.fail(fault);
      const given = await world.perform(wanted);
      if (faults.length > 0) await pinecone.clearFaults();
      seen.steps++;
      // What fails once is asked again, and nobody notices.
      if (given.status < 429 || faults[0]?.times !== 0) {
        await compare(wanted, given);
        continue;
      }
      seen.failed++;
      expect([LIMITED, FAILED]).toContainEqual(given);
      expect(given.status === 429).toBe(faults[0]?.kind === '429');
      // Only where the connection broke after the deed is it not known whether it was done.
      if (!changes(wanted) || faults[0]?.kind !== 'reset-after' || !(await world.happened(wanted))) continue;
      seen.happened++;
      await truth.perform(wanted);
    } catch (cause) {
      const where = `step ${step}, ${JSON.stringify(wanted)}, weather ${JSON.stringify(weather)}`;
      throw new Error(`${where}: ${(cause as Error).message}`, { cause });
    }
  }
  // Nothing was forgotten, nothing came back; and it is in Pinecone, not just in the memory of who wrote it.
  await pinecone.settle();
  for (let user = 0; user < USERS; user++) {
    const everything: Operation = { do: 'list', by: 0, user, since: null, until: null, query: { limit: 500 } };
    await compare(everything, await world.perform(everything));
  }
  expect(await world.contents(replica.subject.client)).toEqual(await world.contents(store.subject.client));
}

const LIMITED: Answer = { status: 429, code: 'rate_limited' };
const FAILED: Answer = { status: 502, code: 'provider_error' };
