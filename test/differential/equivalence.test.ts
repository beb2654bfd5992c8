import { afterEach, describe, it } from 'vitest';
import type { RankingOptions } from '#contract';
import { FULL } from '../support/full.ts';
import { openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { openSubject, type Subject, type SubjectOptions } from '../support/subject.ts';
import { checkAgreement } from './check.ts';
import { openStore, type WorldStore } from './world.ts';

/** Set OMP_TEST_RUNS for a longer search, OMP_TEST_SEED for another one or to repeat a failure. */
const RUNS = Number(process.env.OMP_TEST_RUNS ?? (FULL ? 30 : 12));
const SEED = Number(process.env.OMP_TEST_SEED ?? 20_250_101);

type Mode = RankingOptions['mode'];
type Options = Pick<SubjectOptions, 'mode' | 'authenticator'>;
type Open = readonly [label: string, open: (options: Options) => Promise<Subject>];

const memory = (scopes: 'native' | 'none') => (options: Options) =>
  openSubject({ provider: 'memory', options: { scopes }, ...options });
const MODEL: Open = ['memory', memory('native')];
const OTHERS: readonly Open[] = [
  ['memory with emulated scopes', memory('none')],
  ['embedded postgres', (options) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...options })],
  ...(SERVER_URL === ''
    ? []
    : [['postgres server', ({ mode, ...more }: Options) => openServerSubject({}, mode, more)] as const]),
];

/**
 * The memory provider is the model: it is short and passes the conformance suite. Every other store must give the same
 * answers to any sequence of requests by any callers.
 */
describe('every store gives the same answers', () => {
  const opened: WorldStore[] = [];
  afterEach(async () => {
    for (const { subject } of opened.splice(0)) await subject.close();
  });
  const open = async ([label, start]: Open, mode: Mode): Promise<WorldStore> => {
    const store = await openStore(label, (options) => start({ mode, ...options }));
    opened.push(store);
    return store;
  };
  const check = async (mode: Mode, runs: number) => {
    const model = await open(MODEL, mode);
    const others: WorldStore[] = [];
    for (const other of OTHERS) others.push(await open(other, mode));
    await checkAgreement(model, others, { runs, seed: SEED, shrink: true });
  };

  it('[Decision 1] [Decision 3] [Decision 4] [Decision 14] [Decision 20] [Decision 21] [SPEC GET /memories/search order] in hybrid search', () =>
    check('hybrid', RUNS));
  it.runIf(FULL)(
    '[SPEC Capabilities features.keyword_search] [SPEC GET /memories/search order] in keyword search',
    () => check('keyword', Math.ceil(RUNS / 4)),
  );
  it.runIf(FULL)('[SPEC Capabilities features.vector_search] [SPEC GET /memories/search order] in vector search', () =>
    check('vector', Math.ceil(RUNS / 4)),
  );
});
