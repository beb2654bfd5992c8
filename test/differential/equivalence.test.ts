import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, describe, it } from 'vitest';
import { openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { laterMoment, openSubject, type Subject } from '../support/subject.ts';
import { expectAgreement } from './agreement.ts';
import { changes, type Operation, operation } from './operations.ts';
import { openWorld } from './world.ts';

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED to look elsewhere or to repeat what a failure printed. */
const RUNS = Number(process.env.OMP_TEST_RUNS ?? 40);
const SEED = Number(process.env.OMP_TEST_SEED ?? 20_250_101);
const OPERATIONS = { minLength: 15, maxLength: 60 };
const TEN_MINUTES = 600_000;

type Mode = 'hybrid' | 'keyword' | 'vector';
type Open = readonly [label: string, open: (mode: Mode) => Promise<Subject>];

const MODEL: Open = ['memory', (mode) => openSubject({ provider: 'memory', options: { scopes: 'native' }, mode })];
const OTHERS: readonly Open[] = [
  ['memory with emulated scopes', (mode) => openSubject({ provider: 'memory', options: { scopes: 'none' }, mode })],
  ['embedded postgres', (mode) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, mode })],
  ...(SERVER_URL === '' ? [] : [['postgres server', (mode: Mode) => openServerSubject({}, mode)] as const]),
];

/**
 * The memory provider is the model: short, without storage of its own, and it passes the conformance suite.
 * Whatever sequence of requests is made, every other store has to give the same answers.
 */
describe('every store gives the same answers', () => {
  const opened: Subject[] = [];
  afterEach(async () => {
    for (const subject of opened.splice(0)) await subject.close();
  });
  const open = async ([label, start]: Open, mode: Mode) => {
    const subject = await start(mode);
    opened.push(subject);
    return { label, subject };
  };

  const check = async (mode: Mode, numRuns: number) => {
    const model = await open(MODEL, mode);
    const others: Awaited<ReturnType<typeof open>>[] = [];
    for (const other of OTHERS) others.push(await open(other, mode));

    const sameAnswers = async (operations: readonly Operation[]) => {
      const run = randomUUID();
      const truth = openWorld(model.label, model.subject, run);
      const worlds = others.map(({ label, subject }) => openWorld(label, subject, run));
      for (const [step, wanted] of operations.entries()) {
        // Times decide the order of lists and what since and until let through: they must not depend on luck.
        if (changes(wanted)) await laterMoment();
        const expected = await truth.perform(wanted);
        for (const world of worlds) {
          const given = await world.perform(wanted);
          await expectAgreement(wanted, truth, expected, given).catch((cause: Error) => {
            throw new Error(`${world.label}, step ${step}, ${JSON.stringify(wanted)}: ${cause.message}`, { cause });
          });
        }
      }
    };
    await fc.assert(fc.asyncProperty(fc.array(operation, OPERATIONS), sameAnswers), { numRuns, seed: SEED });
  };

  it(
    '[SPEC Service capabilities] [SPEC GET /memories] [SPEC GET /memories/search order] in hybrid search',
    { timeout: TEN_MINUTES },
    () => check('hybrid', RUNS),
  );
  it('[SPEC Service capabilities] [SPEC GET /memories/search order] in keyword search', { timeout: TEN_MINUTES }, () =>
    check('keyword', Math.ceil(RUNS / 4)),
  );
  it('[SPEC Service capabilities] [SPEC GET /memories/search order] in vector search', { timeout: TEN_MINUTES }, () =>
    check('vector', Math.ceil(RUNS / 4)),
  );
});
