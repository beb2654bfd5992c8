import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Embedder } from '#contract';
import { type Answer, askAll } from '../../eval/ask.ts';
import { MODES, type Mode, openBackends } from '../../eval/backends.ts';
import { readDataset } from '../../eval/dataset.ts';
import { memoised } from '../../eval/memo.ts';
import { openEmbedder } from '../../src/embedding/open.ts';
import { leastSimilar } from '../../src/verbs/add.ts';
import { call } from '../support/requests.ts';

const DATA = join(import.meta.dirname, '../../eval/data');
const silent = { info() {}, warn() {}, error() {} };

/** A fact of the set in other words, or as it became later. */
interface Restatement {
  readonly fact: string;
  readonly kind: 'restated' | 'changed';
  readonly text: string;
}

/** For each mode, what is found at least. */
const SHARES: Readonly<Record<Mode, { restated: number; changed: number; others: number }>> = {
  hybrid: { restated: 0.99, changed: 0.9, others: 0.18 },
  vector: { restated: 0.95, changed: 0.82, others: 0.28 },
  keyword: { restated: 0.96, changed: 0.92, others: 0.18 },
};

describe('the least score of a similar memory', () => {
  let local: Embedder;
  beforeAll(async () => {
    local = await openEmbedder({ kind: 'local', cache_size: 0, workers: 1 }, silent);
  });
  afterAll(() => local.close());

  it.each(MODES)('[Decision 58] tells restated and changed facts from others: %s', async (mode) => {
    const { facts } = await readDataset(DATA);
    const restatements: Restatement[] = JSON.parse(await readFile(join(DATA, 'restatements.json'), 'utf8'));
    const backends = await openBackends(memoised(local), silent, undefined);
    const store = await backends[0]?.open(mode, 'similar');
    if (!store) throw new Error('there is no store');
    const least = leastSimilar(store.capabilities);
    const ask = (user: string, question: string) => ({ user, question, kind: 'add', evidence: [] });
    const userOf = (fact: string) => fact.split('/')[0] as string;
    const questions = [
      ...restatements.map(({ fact, text }) => ask(userOf(fact), text)),
      ...facts.map(({ user, content }) => ask(user, content)),
    ];
    const answers = await askAll(store, { facts, questions }, call);
    const found = (answer: Answer | undefined) => answer?.filter(({ score }) => score >= least).map(({ key }) => key);
    const share = (kind: Restatement['kind']) => {
      const all = restatements.flatMap(({ fact, ...one }, i) =>
        one.kind === kind ? [found(answers[i])?.includes(fact)] : [],
      );
      return all.filter(Boolean).length / all.length;
    };
    const wrong = facts.filter(({ key }, i) => found(answers[restatements.length + i])?.some((other) => other !== key));
    const { restated, changed, others } = SHARES[mode];
    expect(share('restated')).toBeGreaterThanOrEqual(restated);
    expect(share('changed')).toBeGreaterThanOrEqual(changed);
    expect(wrong.length / facts.length).toBeLessThanOrEqual(others);
    await store.close();
    for (const { remove } of backends) await remove();
  });
});
