import { type Case, check, type Kit, record, same } from '../kit.ts';

const NOTES = [
  'prefers dark roast coffee in the morning',
  'prefers green tea in the afternoon',
  'allergic to peanuts and shellfish',
  'works as a marine biologist in Lisbon',
  'keeps two cats called Ada and Grace',
  'Lieblingsessen ist Käsespätzle',
];
async function addNotes({ add, user }: Kit): Promise<string> {
  const user_id = user();
  for (const content of NOTES) await add({ user_id, content });
  return user_id;
}

/** Ranked results of one user. */
export const SEARCH: readonly Case[] = [
  {
    id: 'search.results',
    clauses: ['GET /memories/search', 'SearchResult memory'],
    title: 'answers whole memories with scores',
    needs: ['search'],
    async run({ add, search, stores, user }) {
      const user_id = user();
      const added = await add({ user_id, content: 'a note', ...((await stores('tags')) && { tags: ['a'] }) });
      const hits = await search({ user_id, q: 'a note' });
      same(
        hits.map(({ memory }) => record(memory)),
        [record(added)],
        'the memories of the results',
      );
      same(typeof hits[0]?.score, 'number', 'the type of score');
    },
  },
  {
    id: 'search.empty',
    clauses: ['GET /memories/search', 'GET /memories/search user_id'],
    title: 'a user without memories has no results',
    needs: ['search'],
    readOnly: true,
    run: async ({ search, user }) => same(await search({ user_id: user(), q: 'tea' }), [], 'results'),
  },
  {
    id: 'search.order',
    clauses: ['SearchResult score', 'GET /memories/search order'],
    title: 'scores lie in 0 to 1, highest first',
    needs: ['search'],
    async run(kit) {
      const user_id = await addNotes(kit);
      for (const q of [
        'dark roast coffee',
        'tea',
        'the',
        '??',
        'quantum chromodynamics',
        '緑茶',
        '🍵',
        'x'.repeat(2000),
      ]) {
        const scores = (await kit.search({ user_id, q })).map(({ score }) => score);
        check(
          scores.every((score) => typeof score === 'number' && score >= 0 && score <= 1),
          `scores must lie in 0 to 1, are ${scores}`,
        );
        same(
          scores,
          scores.toSorted((a, b) => b - a),
          'the scores',
        );
      }
    },
  },
  {
    id: 'search.ranking',
    clauses: ['GET /memories/search order', 'SearchResult score'],
    title: 'the memory whose text is the query is first',
    needs: ['search'],
    async run(kit) {
      const user_id = await addNotes(kit);
      for (const q of NOTES) same((await kit.search({ user_id, q }))[0]?.memory.content, q, 'the best result');
    },
  },
  {
    id: 'search.user_id',
    clauses: ['GET /memories/search user_id', 'Service users'],
    title: 'finds only the memories of that user',
    needs: ['search'],
    async run({ add, search, user }) {
      const [ana, ben] = [user(), user()];
      const mine = await add({ user_id: ana, content: 'drinks green tea' });
      await add({ user_id: ben, content: 'drinks green tea' });
      const hits = await search({ user_id: ana, q: 'drinks green tea', limit: 100 });
      same(
        hits.map(({ memory }) => memory.id),
        [mine.id],
        'the ids of the results',
      );
    },
  },
  {
    id: 'search.required',
    clauses: ['GET /memories/search q', 'GET /memories/search user_id', 'Errors invalid_request'],
    title: 'q and user_id are required',
    needs: ['search'],
    readOnly: true,
    async run({ ask, refused, user }) {
      for (const query of [{}, { q: 'tea' }, { user_id: user() }])
        await refused(ask('/memories/search', query), 'invalid_request');
    },
  },
  {
    id: 'search.any-text',
    clauses: ['GET /memories/search q'],
    title: 'any text is a query',
    needs: ['search'],
    async run(kit) {
      const user_id = await addNotes(kit);
      const texts = [
        "' or 1=1 --",
        'a & b | !c <-> (d:*',
        '"unbalanced',
        '\\',
        '%',
        '*',
        '-',
        '$1',
        '??',
        '👩‍👩‍👧',
        'x'.repeat(2000),
      ];
      for (const q of texts) check((await kit.search({ user_id, q })).length <= 10, 'there must be at most 10 results');
    },
  },
  {
    id: 'search.limit',
    clauses: ['GET /memories/search limit', 'Limits search', 'Capabilities limits.max_search_results'],
    title: 'there are at most limit results, by default 10',
    needs: ['search'],
    async run({ addAll, search, user, capabilities }) {
      const user_id = user();
      await addAll(user_id, 12, { content: 'a common note' });
      const most = Number(capabilities.limits?.max_search_results ?? 100);
      for (const [limit, expected] of [
        [undefined, Math.min(10, most)],
        [1, 1],
        [3, Math.min(3, most)],
        [Math.min(100, most), Math.min(12, most)],
      ] as const) {
        same(
          (await search({ user_id, q: 'a common note', limit })).length,
          expected,
          `the number of results at limit ${limit ?? 'unset'}`,
        );
      }
    },
  },
  {
    id: 'search.limit-wrong',
    clauses: ['GET /memories/search limit', 'Limits limits.max_search_results', 'Errors invalid_request'],
    title: 'a limit outside 1 to 100, or above the declared one, answers 400',
    needs: ['search'],
    readOnly: true,
    async run({ ask, refused, user, capabilities }) {
      const most = Math.min(100, Number(capabilities.limits?.max_search_results ?? 100));
      const user_id = user();
      for (const limit of ['0', '-1', `${most + 1}`, 'abc', '1.5']) {
        await refused(ask('/memories/search', { user_id, q: 'tea', limit }), 'invalid_request');
      }
    },
  },
  {
    id: 'search.min_score',
    clauses: ['GET /memories/search min_score'],
    title: 'removes exactly the results below it',
    needs: ['search'],
    async run(kit) {
      const user_id = await addNotes(kit);
      const q = 'dark roast coffee';
      const all = await kit.search({ user_id, q });
      for (const min_score of [0, 0.1, 0.5, 0.9, 1, all[1]?.score ?? 0]) {
        const hits = await kit.search({ user_id, q, min_score });
        const expected = all.filter(({ score }) => score >= min_score);
        same(
          hits.map(({ score }) => score),
          expected.map(({ score }) => score),
          `the scores with min_score=${min_score}`,
        );
      }
    },
  },
  {
    id: 'search.min_score-wrong',
    clauses: ['GET /memories/search min_score', 'Errors invalid_request'],
    title: 'a min_score outside 0 to 1 answers 400',
    needs: ['search'],
    readOnly: true,
    async run({ ask, refused, user }) {
      const user_id = user();
      for (const min_score of ['-0.1', '1.1', 'abc']) {
        await refused(ask('/memories/search', { user_id, q: 'tea', min_score }), 'invalid_request');
      }
    },
  },
];
