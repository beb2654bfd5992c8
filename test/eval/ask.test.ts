import { describe, expect, it } from 'vitest';
import { Call, type Embedder, type RankingOptions } from '#contract';
import { askAll } from '../../eval/ask.ts';
import { embedAll, memoised } from '../../eval/memo.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { openStoreOf } from '../support/stores.ts';

const call = new Call('test');
const silent = { info() {}, warn() {}, error() {} };

const openMemory = (mode: RankingOptions['mode']) =>
  openStoreOf(
    'memory',
    { scopes: 'native' },
    {
      embedder: mode === 'keyword' ? undefined : hashingEmbedder(),
      ranking: { mode, keyword_weight: 0.5 },
      audit: undefined,
      data_dir: '/nonexistent',
      log: silent,
    },
  );

describe('asking a provider', () => {
  const dataset = {
    facts: [
      { key: 'tea', user: 'ada', content: 'Ada drinks tea.' },
      { key: 'more-tea', user: 'ada', content: 'Tea is also what Ada sells.' },
      { key: 'rowing', user: 'ada', content: 'Ada rows on Sundays.' },
      { key: 'bob-tea', user: 'bob', content: 'Bob cannot stand tea.' },
    ],
    questions: [
      { question: 'Ada drinks tea.', user: 'ada', kind: 'plain', evidence: ['tea'] },
      { question: 'Which tea?', user: 'ada', kind: 'multi', evidence: ['tea', 'more-tea'] },
      { question: 'Which tea?', user: 'bob', kind: 'plain', evidence: ['bob-tea'] },
    ],
  };

  it('answers by fact keys, best first, within the asking user', async () => {
    const [equal, shared, other] = await askAll(await openMemory('hybrid'), dataset, call);
    expect(equal?.[0]?.key).toBe('tea');
    expect(equal?.[0]?.score).toBeCloseTo(1, 3);
    expect(shared?.map(({ key }) => key).sort()).toEqual(['more-tea', 'rowing', 'tea']);
    expect(other?.map(({ key }) => key)).toEqual(['bob-tea']);
  });

  it('leaves equal scores in the order of the facts, newest first', async () => {
    const [, shared] = await askAll(await openMemory('keyword'), dataset, call);
    expect(shared?.slice(0, 2)).toEqual([
      { key: 'more-tea', score: 1 },
      { key: 'tea', score: 1 },
    ]);
  });
});

describe('the memoised embedder', () => {
  it('passes every text on once and answers like the embedder inside', async () => {
    const asked: string[] = [];
    const plain = hashingEmbedder();
    const counting: Embedder = {
      ...plain,
      embed: (texts, purpose, ...rest) => {
        asked.push(...texts);
        return plain.embed(texts, purpose, ...rest);
      },
    };
    const embedder = memoised(counting);
    const texts = Array.from({ length: 100 }, (_, index) => `text ${index}`);
    await embedAll(embedder, [...texts, ...texts.slice(0, 10)], call);
    const again = ['text 7', 'new', 'text 99', 'new'];
    expect(await embedder.embed(again, 'query', call)).toEqual(await plain.embed(again, 'query', call));
    expect(asked).toEqual([...texts, 'new']);
  });
});
