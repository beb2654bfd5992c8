import { describe, expect, it } from 'vitest';
import type { Memory, RankingOptions, Within } from '#contract';
import { withinMatcher } from '#toolbox';
import type { TextQuery } from '../../src/core/store.ts';
import { randomNumbers } from '../ranking/random-vectors.ts';
import { FULL } from '../support/full.ts';
import type { WritableStore } from '../support/stores.ts';
import { call, memoryOf, storeForEach, until } from './store.ts';

const store = storeForEach();

// Who may read, change and delete one record: test/conformance and test/access.
it('[Decision 14] a record that leaves the allowed scopes during an update is not changed', async () => {
  const provider = await store.open({
    embedder: {
      model: 'moves the record while it embeds',
      dimensions: 2,
      embed: async (texts) => {
        if (texts[0] === 'changed') await store.sql(`update ${store.names.memories} set scope = 'secret/x'`);
        return texts.map(() => new Float32Array([1, 0]));
      },
      close: async () => {},
    },
  });
  const { id } = await provider.add({ input: memoryOf('u', 'first', { scope: 'open/x' }) }, call);
  expect(
    await provider.update?.({ ref: { id, users: null, within: ['open/*'] }, patch: { content: 'changed' } }, call),
  ).toBeUndefined();
  expect(await store.sql(`select content from ${store.names.memories}`)).toEqual([{ content: 'first' }]);
});

const ROWS = 520;
const THRESHOLD = 50;
const WORDS = ['amber', 'birch', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'heath', 'inlet', 'jetty'];
const SCOPES = [
  null,
  'coding',
  'coding/ts',
  'coding/ts/x',
  'coding-secret/x',
  'Coding/ts',
  'work/mail',
  'work',
  'ho%e/a_b',
];
const GRANTS: readonly Within[] = [
  ['coding/*'],
  ['coding'],
  ['coding*', 'work'],
  ['*/ts', 'work/mail'],
  ['?oding/ts'],
  ['ho%e/*'],
  ['h*a_b'],
  ['nothing/*'],
  ['a', 'b', 'c', 'd', 'work/*', 'coding/ts'],
  ['*'],
  [],
];

/** Adds every memory for `all`, and those that grant i admits also for `only i`. */
const fill = async (provider: WritableStore): Promise<readonly Memory[]> => {
  const random = randomNumbers(7);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const inputs = Array.from({ length: ROWS }, (_, i) =>
    memoryOf('all', `${pick(WORDS)} ${pick(WORDS)} note ${i}`, {
      scope: pick(SCOPES),
      tags: i % 3 === 0 ? ['kept'] : [],
    }),
  );
  for (const [i, within] of GRANTS.entries()) {
    const visible = inputs.filter(({ scope }) => withinMatcher(within)(scope));
    await Promise.all(visible.map((input) => provider.add({ input: { ...input, user_id: `only ${i}` } }, call)));
  }
  return Promise.all(inputs.map((input) => provider.add({ input }, call)));
};

describe('[Decision 14] under a grant', () => {
  it('[Decision 1] [Decision 2] pages of memories with the same time repeat and skip none', async () => {
    const provider = await store.open({ mode: 'keyword' });
    for (let i = 0; i < 5; i++) await provider.add({ input: memoryOf('tied', `note ${i}`) }, call);
    await store.sql(`update ${store.names.memories} set created_at = '2024-01-01' where user_id = 'tied'`);
    const query = { user_id: 'tied', tags: [], within: null, max_bytes: 1e9, limit: 2 };
    const seen: string[] = [];
    let after: Memory | undefined;
    do {
      const page = (await provider.list?.({ ...query, ...(after && { after }) }, call)) ?? [];
      seen.push(...page.map(({ id }) => id));
      after = page.at(-1);
    } while (after);
    expect(seen).toHaveLength(5);
    expect(new Set(seen).size).toBe(5);
  });

  const found = async (provider: WritableStore, query: TextQuery) =>
    ((await provider.search?.(query, call)) ?? []).map(({ memory, score }) => [memory.content, memory.scope, score]);

  const QUESTIONS: readonly Partial<TextQuery>[] = [
    {},
    { scope: 'coding' },
    { scope: 'cod', tags: ['kept'] },
    { scope: 'work/' },
    { limit: 3 },
    { limit: 450 },
  ];
  const MODES = FULL ? (['hybrid', 'vector', 'keyword'] as const) : (['hybrid'] as const);
  const ASKED = MODES.flatMap((mode) =>
    (['exactly', 'through the indexes'] as const).map((how) => [mode, how] as const),
  );

  it.each(ASKED)(
    'search, %s and %s, answers as if the hidden memories did not exist',
    async (mode: RankingOptions['mode'], how) => {
      const options = { large_user_rows: how === 'exactly' ? 1_000_000 : THRESHOLD };
      const provider = await store.open({ mode, options });
      await fill(provider);
      const base = { tags: [], within: null, max_bytes: 1e9, limit: 20 };
      if (how !== 'exactly') {
        await found(provider, { ...base, user_id: 'all', text: 'amber' });
        const ready = `select from ${store.names.largeUsers} where ready and user_id = 'all'`;
        await until(async () => (await store.sql(ready)).length > 0);
      }
      // Looks at every row.
      const exact = await store.open({ mode, options: { large_user_rows: 1_000_000 } });
      for (const [i, within] of GRANTS.entries()) {
        for (const text of ['amber', 'cedar birch note 17', 'the', 'zzz']) {
          for (const more of QUESTIONS) {
            const query = { ...base, text, ...more };
            const restricted = await found(provider, { ...query, user_id: 'all', within });
            const alone = await found(exact, { ...query, user_id: `only ${i}` });
            expect(restricted, JSON.stringify({ within, text, more })).toEqual(alone);
          }
        }
      }
    },
  );

  it('a user is large only if the search saw more memories than the threshold', async () => {
    const provider = await store.open({ options: { large_user_rows: THRESHOLD } });
    const add = (user: string, scope: string, rows: number) =>
      Promise.all(
        Array.from({ length: rows }, (_, i) => provider.add({ input: memoryOf(user, `note ${i}`, { scope }) }, call)),
      );
    await add('few', 'open/x', THRESHOLD);
    await add('few', 'secret/x', THRESHOLD);
    await add('many', 'open/x', THRESHOLD + 1);
    const base = { text: 'note', tags: [], within: ['open/*'], max_bytes: 1e9, limit: 1 };
    const ready = () => store.sql(`select user_id from ${store.names.largeUsers} where ready`);
    await found(provider, { ...base, user_id: 'few' });
    await found(provider, { ...base, user_id: 'many' });
    await until(async () => (await ready()).length > 0);
    // Had the first search begun a move, it would be over as well: moves of one gateway close with it.
    await provider.close();
    expect(await ready()).toEqual([{ user_id: 'many' }]);
  });
});
