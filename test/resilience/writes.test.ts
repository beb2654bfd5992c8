import fc from 'fast-check';
import { expect, it } from 'vitest';
import { OmpError } from '#contract';
import { createDependency } from '../../src/resilience/dependencies.ts';
import { call } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';

/** What becomes of one attempt, and whether it may have acted. */
const OUTCOMES = {
  done: undefined,
  refused: new OmpError('invalid_request', 'no'),
  limited: new OmpError('rate_limited', 'later', { provider: 'store', retryAfter: 1 }),
  unreachable: new OmpError('provider_error', 'unreachable', { provider: 'store', retry: 'safe', down: true }),
  'rolled back': new OmpError('provider_error', 'rolled back', { provider: 'store', retry: 'safe' }),
  lost: new OmpError('provider_error', 'lost', { provider: 'store', retry: 'reads', down: true }),
  'too long': new OmpError('provider_error', 'too long', { provider: 'store', down: true }),
  broken: new TypeError('a mistake of ours'),
} as const;
type Outcome = keyof typeof OUTCOMES;
const NOTHING_HAPPENED: readonly Outcome[] = ['unreachable', 'rolled back'];

it('[Decision 27] a write is retried only if all earlier attempts are known to have had no effect', async () => {
  const outcome = fc.constantFrom(...(Object.keys(OUTCOMES) as Outcome[]));
  const story = fc.record({
    outcomes: fc.array(outcome, { minLength: 4, maxLength: 4 }),
    retries: fc.integer({ min: 0, max: 2 }),
    reads: fc.boolean(),
  });
  // The pauses are real: many at once.
  const stories = fc.sample(story, 400);
  const operation = { kind: 'backend', dependency: 'store', name: 'any' } as const;
  const told = stories.map(async ({ outcomes, retries, reads }) => {
    const sent: Outcome[] = [];
    const options = { name: 'store', retries, breaker_failures: 1_000, probe_ms: 1_000, log: recordingLog() };
    const dependency = createDependency({ ...options, probe: async () => {} });
    const work = async () => {
      const now = outcomes[sent.length] as Outcome;
      sent.push(now);
      if (OUTCOMES[now]) throw OUTCOMES[now];
      return now;
    };
    const ended = await dependency.run({ ...operation, reads }, call, work).catch((error: unknown) => error);
    // Whatever came last is the answer.
    expect(ended).toBe(OUTCOMES[sent.at(-1) as Outcome] ?? 'done');
    expect(sent.length).toBeLessThanOrEqual(retries + 1);
    const again = sent.slice(0, -1);
    const allowed: readonly Outcome[] = reads ? [...NOTHING_HAPPENED, 'lost'] : NOTHING_HAPPENED;
    expect(again.filter((before) => !allowed.includes(before))).toEqual([]);
    // And it is sent again wherever that is allowed.
    if (sent.length <= retries) expect(allowed).not.toContain(sent.at(-1));
    return again.length;
  });
  expect((await Promise.all(told)).filter((again) => again > 0).length).toBeGreaterThan(0);
});
