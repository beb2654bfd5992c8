import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { RankingOptions } from '#contract';
import { FULL } from '../support/full.ts';
import { openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { openSubject, type Subject, type SubjectOptions } from '../support/subject.ts';
import { openBackdoor } from './callers.ts';
import { RUNS, SEED } from './random.ts';
import { checkView, scene } from './view.ts';

/** A store of random scenes. */
interface Store {
  readonly label: string;
  readonly mode: RankingOptions['mode'];
  /** Of the runs; the slower ones get fewer. */
  readonly share: number;
  readonly open: (more: Omit<SubjectOptions, 'provider' | 'options'>) => Promise<Subject>;
}

type More = Parameters<Store['open']>[0];
const memory = (scopes: 'native' | 'none') => (more: More) =>
  openSubject({ provider: 'memory', options: { scopes }, ...more });
const embedded = (more: More) => openSubject({ provider: 'postgres', options: { schema: 'omp' }, ...more });
const server = (more: More) => openServerSubject({}, more.mode, more);

/** Under emulated scopes rarity counts hidden records too (Decision 21), so only vectors rank there. */
const STORES: readonly Store[] = [
  { label: 'memory', mode: 'hybrid', share: FULL ? 2 : 1, open: memory('native') },
  { label: 'memory with emulated scopes', mode: 'vector', share: 1, open: memory('none') },
  ...(FULL ? [{ label: 'embedded postgres', mode: 'hybrid' as const, share: 0.5, open: embedded }] : []),
  ...(!FULL || SERVER_URL === ''
    ? []
    : [{ label: 'postgres on a server', mode: 'keyword' as const, share: 0.5, open: server }]),
];

/**
 * For random data and random grants, what a key sees through any verb is what anybody sees of a store that holds
 * nothing else: limits, pages, budgets, rarity and scores know nothing of what is hidden.
 */
describe('a key sees what it would see if there were nothing else', () => {
  const opened: Subject[] = [];
  afterEach(async () => {
    for (const subject of opened.splice(0)) await subject.close();
  });

  it.for(STORES)('[Decision 14] [Decision 21] on $label, ranking $mode', async ({ open, mode, share }) => {
    const door = openBackdoor();
    const start = async () => {
      const subject = await open({ mode, authenticator: door.authenticator });
      opened.push(subject);
      return subject;
    };
    const seen = { records: 0, hidden: 0, refused: 0, entries: 0 };
    const stores = { whole: await start(), part: await start(), door, seen };
    const property = fc.asyncProperty(scene, (drawn) => checkView(drawn, stores));
    await fc.assert(property, { numRuns: Math.ceil(RUNS * share), seed: SEED });
    const { entries, ...rest } = seen;
    expect(Math.min(...Object.values(rest))).toBeGreaterThan(0);
    expect(entries > 0).toBe(stores.whole.capabilities.features.supports_audit);
  });
});
