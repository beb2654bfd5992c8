import { type Case, idsOf, type Kit, same } from '../kit.ts';
import type { Memory } from '../protocol.ts';

const SCOPES = [
  'coding',
  'coding/preferences',
  'coding/preferences/editor',
  'coding-secret/keys',
  'health/diet',
  undefined,
];
const scopesOf = (memories: readonly Memory[]) => memories.map(({ scope }) => scope ?? null).sort();
async function addScopes({ add, user }: Kit): Promise<string> {
  const user_id = user();
  for (const scope of SCOPES) await add({ user_id, content: 'a shared note', scope });
  return user_id;
}

/** The glob of lists, the prefix of searches. */
export const SCOPED: readonly Case[] = [
  {
    id: 'scopes.glob',
    clauses: ['GET /memories scope'],
    title: 'list with a pattern that ends in /* finds what is below that path, and nothing beside it',
    needs: ['list', 'scopes'],
    async run(kit) {
      const user_id = await addScopes(kit);
      for (const [scope, expected] of [
        ['coding/*', ['coding/preferences', 'coding/preferences/editor']],
        ['coding/preferences/*', ['coding/preferences/editor']],
        ['health/*', ['health/diet']],
        ['cod/*', []],
      ] as const) {
        same(scopesOf(await kit.pages({ user_id, scope })), expected, `the scopes with scope=${scope}`);
      }
    },
  },
  {
    id: 'scopes.exact',
    clauses: ['GET /memories scope'],
    title: 'list with a scope without wildcards finds that scope',
    needs: ['list', 'scopes'],
    async run(kit) {
      const user_id = await addScopes(kit);
      for (const scope of ['coding', 'coding/preferences', 'health/diet']) {
        same(scopesOf(await kit.pages({ user_id, scope })), [scope], `the scopes with scope=${scope}`);
      }
      same(scopesOf(await kit.pages({ user_id, scope: 'cod' })), [], 'the scopes with scope=cod');
    },
  },
  {
    id: 'scopes.unfiltered',
    clauses: ['GET /memories scope', 'GET /memories user_id'],
    title: 'without the filter, memories without a scope are listed too',
    needs: ['list', 'scopes'],
    async run(kit) {
      const user_id = await addScopes(kit);
      same(scopesOf(await kit.pages({ user_id })), SCOPES.map((scope) => scope ?? null).sort(), 'the scopes');
    },
  },
  {
    id: 'scopes.prefix',
    clauses: ['GET /memories/search scope'],
    title: 'search with a scope finds the scopes that start with it',
    needs: ['search', 'scopes'],
    async run(kit) {
      const user_id = await addScopes(kit);
      for (const [scope, expected] of [
        ['coding', ['coding', 'coding-secret/keys', 'coding/preferences', 'coding/preferences/editor']],
        ['coding/', ['coding/preferences', 'coding/preferences/editor']],
        ['coding/preferences', ['coding/preferences', 'coding/preferences/editor']],
        ['coding/preferences/editor', ['coding/preferences/editor']],
        ['health', ['health/diet']],
        ['diet', []],
      ] as const) {
        const hits = await kit.search({ user_id, q: 'a shared note', scope });
        same(scopesOf(hits.map(({ memory }) => memory)), expected, `the scopes with scope=${scope}`);
      }
    },
  },
  {
    id: 'scopes.rare',
    clauses: ['GET /memories scope', 'GET /memories/search scope'],
    title: 'a rare scope is found behind many others',
    needs: ['list', 'search', 'scopes'],
    async run({ add, addAll, pages, search, user }) {
      const user_id = user();
      const { id } = await add({ user_id, content: 'needle note', scope: 'rare/one' });
      await addAll(user_id, 60, { content: 'hay note', scope: 'hay/stack' });
      same(idsOf(await pages({ user_id, scope: 'rare/*', limit: 5 })), [id], 'the ids of the list');
      const hits = await search({ user_id, q: 'note', scope: 'rare', limit: 5 });
      same(
        hits.map(({ memory }) => memory.id),
        [id],
        'the ids of the search',
      );
    },
  },
  {
    id: 'scopes.pages',
    clauses: ['GET /memories scope', 'GET /memories pagination'],
    title: 'the pages of a filtered list hold everything that matches, once',
    needs: ['list', 'scopes'],
    async run({ addAll, pages, user }) {
      const user_id = user();
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) {
        ids.push(...idsOf(await addAll(user_id, 1, { scope: `open/${n}` })));
        await addAll(user_id, 2, { scope: 'closed' });
      }
      same(idsOf(await pages({ user_id, scope: 'open/*', limit: 2 })).sort(), ids.sort(), 'the ids of all pages');
    },
  },
  {
    id: 'scopes.tag',
    clauses: ['GET /memories tag', 'GET /memories scope'],
    title: 'tag and scope together narrow to both',
    needs: ['list', 'scopes', 'tags'],
    async run({ add, pages, user }) {
      const user_id = user();
      const { id } = await add({ user_id, scope: 's/a', tags: ['t'] });
      await add({ user_id, scope: 's/a', tags: ['u'] });
      await add({ user_id, scope: 'r/a', tags: ['t'] });
      await add({ user_id, tags: ['t'] });
      same(idsOf(await pages({ user_id, tag: 't', scope: 's/*' })), [id], 'the ids of the list');
    },
  },
  {
    id: 'scopes.no-tags',
    clauses: ['Memory tags', 'GET /memories tag', 'Capabilities features.scopes'],
    title: 'scopes are not among the tags that are returned',
    needs: ['list', 'get', 'scopes', 'tags'],
    async run({ add, get, list, user }) {
      const user_id = user();
      const added = await add({ user_id, scope: 'coding/preferences', tags: ['mine'] });
      const [listed] = (await list({ user_id })).items;
      for (const memory of [added, await get(added.id), listed]) same(memory?.tags, ['mine'], 'tags');
      const plain = await add({ user_id, scope: 'coding/preferences' });
      same((await get(plain.id)).tags ?? [], [], 'tags of a memory without tags');
    },
  },
  {
    id: 'scopes.not-by-tag',
    clauses: ['POST /memories tags', 'GET /memories scope'],
    title: 'no tag is found as a scope, and no scope as a tag',
    needs: ['list', 'scopes', 'tags'],
    async run({ add, pages, user }) {
      const user_id = user();
      await add({ user_id, tags: ['coding', 'scope:coding', 'coding/x'] });
      for (const scope of ['coding', 'coding/*', '*'])
        same(idsOf(await pages({ user_id, scope })), [], `the ids with scope=${scope}`);
      const other = user();
      await add({ user_id: other, scope: 'coding/x' });
      for (const tag of ['coding', 'scope:coding', 'coding/x']) {
        same(idsOf(await pages({ user_id: other, tag })), [], `the ids with tag=${tag}`);
      }
    },
  },
  {
    id: 'scopes.update',
    clauses: ['PATCH /memories/{id} scope', 'GET /memories scope', 'GET /memories/search scope'],
    title: 'filters follow a changed scope',
    needs: ['list', 'update', 'search', 'scopes'],
    async run({ add, update, pages, search, user }) {
      const user_id = user();
      const { id } = await add({ user_id, content: 'moving note', scope: 'old/place' });
      await update(id, { scope: 'new/place' });
      const searchIds = async (scope: string) =>
        (await search({ user_id, q: 'moving note', scope })).map(({ memory }) => memory.id);
      same(
        [idsOf(await pages({ user_id, scope: 'old/*' })), await searchIds('old')],
        [[], []],
        'the ids in the old scope',
      );
      same(
        [idsOf(await pages({ user_id, scope: 'new/*' })), await searchIds('new')],
        [[id], [id]],
        'the ids in the new scope',
      );
    },
  },
];
