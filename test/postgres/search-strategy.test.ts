import { describe, expect, it } from 'vitest';
import type { Call, RankingOptions } from '#contract';
import type { Database, Statement } from '../../providers/postgres/client/connections.ts';
import { rememberStatements } from '../../providers/postgres/client/connections.ts';
import { toNames } from '../../providers/postgres/tables/names.ts';
import { createRarity, createTableSearch } from '../../providers/postgres/tables/search-strategy.ts';
import { call, searchFor, until } from './store.ts';

const names = toNames('omp', 'public');
const query = searchFor;

/** Searches of a large user. `sent`: the ways they were made, the one through the indexes which finds these rows. */
const searching = (
  counts: { matching: number; walkPays: number; rows: number },
  { found = [], mode = 'keyword' }: { found?: readonly object[]; mode?: RankingOptions['mode'] } = {},
) => {
  const sent: string[] = [];
  const answer = (settings: string, text: string) => {
    // Compiling a statement takes longer than the search.
    expect(settings).toContain('jit = off');
    if (text.endsWith(' as holding')) return [{ rows: counts.rows, holding: [1] }];
    if (text.includes(' as matching')) return [{ matching: counts.matching }];
    const way = settings.includes('hnsw') ? 'indexes' : text.includes('mine as') ? 'exact' : 'matching';
    sent.push(way);
    return way === 'indexes' ? [...found] : [];
  };
  const run = createTableSearch({
    db: {
      query: async ({ text }: Statement, _values: unknown, _call: Call, settings = '') => answer(settings, text),
    } as unknown as Database,
    names: names,
    statement: rememberStatements(),
    ranking: { mode, keyword_weight: 0.5 },
    largeUsers: { has: () => true, walkPaysAbove: () => counts.walkPays, observe() {}, close: async () => {} },
  });
  return { run, sent };
};

it.each([
  { matching: 2_000, walkPays: 0, rows: 9_000, way: 'matching' },
  { matching: 2_001, walkPays: 0, rows: 9_000, way: 'indexes' },
  { matching: 3_000, walkPays: 3_000, rows: 9_000, way: 'matching' },
  { matching: 3_001, walkPays: 3_000, rows: 9_000, way: 'indexes' },
  { matching: 3_001, walkPays: 9_000, rows: 9_000, way: 'matching' },
  { matching: 9_001, walkPays: 9_000, rows: 9_000, way: 'exact' },
])(
  'a filtered search of a large user ranks what costs least: $matching match of $rows, and a walk pays above $walkPays',
  async (counts) => {
    const { run, sent } = searching(counts);
    await run(query('u', 'amber', { tags: ['kept'] }), call);
    expect(sent).toEqual([counts.way]);
  },
);

it.each([
  { mode: 'hybrid', found: [{ score: 0.5 }, { score: 0.1 }], ways: ['indexes'] },
  { mode: 'hybrid', found: [{ score: 0.5 }, { score: 0 }], ways: ['indexes', 'exact'] },
  { mode: 'hybrid', found: [{ score: 0.5 }], ways: ['indexes', 'exact'] },
  { mode: 'hybrid', found: [], ways: ['indexes', 'exact'] },
  { mode: 'hybrid', found: [{ score: 0.5, complete: true }], ways: ['indexes'] },
  { mode: 'keyword', found: [{ score: 0.5 }], ways: ['indexes'] },
] as const)(
  'a search of a large user compares all memories if its page is short or ends at 0: $mode, $found',
  async ({ mode, found, ways }) => {
    const { run, sent } = searching({ matching: 0, walkPays: 0, rows: 9_000 }, { found, mode });
    await run(query('u', 'amber', { limit: 2 }), call);
    expect(sent).toEqual(ways);
  },
);

describe('the rarity of words', () => {
  it('is counted again a minute later, beside the search that uses the old counts', async () => {
    let [rows, failing, minutes, runs] = [100, false, 0, 0];
    const ask = createRarity(
      names,
      async () => {
        runs++;
        if (failing) throw new Error('no connection');
        return [{ rows, holding: [rows / 10] }];
      },
      () => minutes * 60_001,
    );
    const rarity = () => ask(query('u', 'amber'), [1], call);
    expect(await rarity()).toEqual({ rows: 100, holding: [10] });
    rows = 200;
    expect(await rarity()).toEqual({ rows: 100, holding: [10] });
    expect(runs).toBe(1);
    [minutes, failing] = [1, true];
    expect(await Promise.all([rarity(), rarity()])).toEqual(Array(2).fill({ rows: 100, holding: [10] }));
    expect(runs).toBe(2);
    failing = false;
    await until(async () => (await rarity()).rows === 200);
    expect(await rarity()).toEqual({ rows: 200, holding: [20] });
  });

  it('is counted again before the search once it is an hour old, word by word', async () => {
    let [rows, minutes] = [100, 0];
    const asked: unknown[] = [];
    const ask = createRarity(
      names,
      async (_, values) => {
        asked.push(values[0]);
        return [
          {
            rows,
            holding: String(values[0])
              .split(',')
              .map(() => rows / 10),
          },
        ];
      },
      () => minutes * 60_000,
    );
    await ask(query('u', ''), [1, 2], call);
    // The first is counted again meanwhile, like all memories.
    for (minutes of [40, 80]) {
      await ask(query('u', ''), [1], call);
      await new Promise(setImmediate);
    }
    rows = 200;
    expect(await ask(query('u', ''), [2], call)).toEqual({ rows: 100, holding: [20] });
    minutes = 180;
    rows = 300;
    expect(await ask(query('u', ''), [1], call)).toEqual({ rows: 300, holding: [30] });
    expect(asked).toEqual(['{1,2}', '{1}', '{1}', '{2}', '{1}']);
  });

  it('never says that more memories hold a word than there are', async () => {
    const counts = [
      { rows: 10, holding: [4] },
      { rows: null, holding: [5000] },
    ];
    const ask = createRarity(
      names,
      async () => [counts.shift() ?? {}],
      () => 0,
    );
    expect(await ask(query('u', ''), [1], call)).toEqual({ rows: 10, holding: [4] });
    // Added meanwhile. Less than no rarity would turn the order round.
    expect(await ask(query('u', ''), [1, 2], call)).toEqual({ rows: 5000, holding: [4, 5000] });
  });

  it('survives that the counts it builds on are dropped meanwhile', async () => {
    const waiting: (() => void)[] = [];
    const ask = createRarity(names, async (_, values) => {
      const holding = String(values[0])
        .split(',')
        .map(() => 1);
      if (values[0] === '{2}') await new Promise<void>((done) => void waiting.push(done));
      return [{ rows: 10_100, holding }];
    });
    await ask(query('u', ''), [1], call);
    const second = ask(query('u', ''), [1, 2], call);
    await ask(
      query('u', ''),
      Array.from({ length: 10_001 }, (_, i) => i + 3),
      call,
    );
    await ask(query('u', ''), [3], call);
    for (const go of waiting) go();
    expect(await second).toEqual({ rows: 10_100, holding: [1, 1] });
  });

  it('is kept for a bounded number of words', async () => {
    const counted: unknown[] = [];
    const ask = createRarity(names, async (_, values) => {
      counted.push(values[0]);
      return [
        {
          rows: 1,
          holding: String(values[0])
            .split(',')
            .map(() => 1),
        },
      ];
    });
    const many = Array.from({ length: 10_001 }, (_, i) => i);
    for (const keys of [many, [1], [1]]) await ask(query('u', ''), keys, call);
    expect(counted.slice(1)).toEqual(['{1}']);
  });
});
