import { describe, expect, it } from 'vitest';
import { askContexts, contextReport, contextResults } from '../../eval/contexts.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { call } from '../support/requests.ts';
import { openStoreOf } from '../support/stores.ts';

const silent = { info() {}, warn() {}, error() {} };
const turn = (user: string, n: number, content: string) => ({
  key: `${user}/D1:${n}`,
  user,
  content,
  ref: `${user}/session_1`,
  at: `2023-05-08T13:56:0${n}.000Z`,
});
const conversations = {
  facts: [
    turn('ada', 1, 'Ben: Which colour has the boat?'),
    turn('ada', 2, `Ada: The boat is green, ${'and green it will stay, '.repeat(100)}`),
    turn('bob', 1, 'Bob: I sold the boat.'),
  ],
  questions: [
    { question: 'Which colour has the boat?', user: 'ada', kind: 'plain', evidence: ['ada/D1:1', 'ada/D1:2'] },
    { question: 'Who sold the boat?', user: 'bob', kind: 'other', evidence: ['bob/D1:1'] },
  ],
};

describe('asking for contexts', () => {
  it('cites the turns of the asking user that fit each budget', async () => {
    const store = await openStoreOf(
      'memory',
      { scopes: 'native' },
      {
        embedder: hashingEmbedder(),
        ranking: { mode: 'hybrid', keyword_weight: 0.5 },
        audit: undefined,
        data_dir: '/nonexistent',
        log: silent,
      },
    );
    const [ada, bob] = await askContexts(store, conversations, silent, call);
    expect(ada?.map((cited) => [...cited].sort())).toEqual([
      ['ada/D1:1'],
      ['ada/D1:1', 'ada/D1:2'],
      ['ada/D1:1', 'ada/D1:2'],
    ]);
    expect(bob).toEqual([['bob/D1:1'], ['bob/D1:1'], ['bob/D1:1']]);
  });

  it('reports recall at each budget: over all, for every second conversation, and by kind', () => {
    const both = ['ada/D1:2', 'ada/D1:1'];
    const results = contextResults('memory', conversations, [
      [['ada/D1:1'], both, both],
      [[], [], ['bob/D1:1']],
    ]);
    expect(results.map(({ half, recall, missing }) => ({ half, recall, missing }))).toEqual([
      { half: 'first', recall: [0.5, 1, 1], missing: [['ada/D1:2'], [], []] },
      { half: 'second', recall: [0, 0, 1], missing: [['bob/D1:1'], ['bob/D1:1'], []] },
    ]);
    expect(contextReport(results).replaceAll(/ +/g, ' ').split('\n')).toEqual([
      'context, memory 500 tokens 1000 tokens 2000 tokens',
      'all (2) 0.250 0.500 1.000',
      'first half (1) 0.500 1.000 1.000',
      'second half (1) 0.000 0.000 1.000',
      'plain (1) 0.500 1.000 1.000',
      'other (1) 0.000 0.000 1.000',
    ]);
  });
});
