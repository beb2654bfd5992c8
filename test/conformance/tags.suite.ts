import { beforeAll, describe, expect, it } from 'vitest';
import { freshUser } from '../support/gateway.ts';
import type { WireHit } from '../support/wire.ts';
import { type GetSubject, needs, testOf } from './subject.ts';

/** Each is its own tag and matches nothing but itself; the later ones resemble what stores and emulations use inside. */
const TAGS: readonly string[] = [
  ...['editor', 'Editor', 'editor ', ' editor', 'editor,theme', 'edit%', 'edit_r', 'édith'],
  ...['e\u0301dith', '記録', '😀', '"quoted"', "it's", '{a,b}', '["editor"]', 'null', '*', 'NULL', 'a/b'],
  ...['scope:coding', 'omp:scope:coding', 'omp:scope:coding/preferences', 'omp:scope'],
  ...['omp:under:coding', 'omp:tag:omp:scope:coding', 'omp:', 'omp_scope:coding', '__omp_scope__coding'],
  ...['x-omp-scope=coding', 'omp:tag:editor', 'omp:scope:coding%2Fpreferences'],
];

const ids = (hits: readonly WireHit[]) => hits.map(({ memory }) => memory.id);

export const tagsSuite = (subject: GetSubject) =>
  describe('tags', () => {
    const test = testOf(subject);
    const user_id = freshUser();
    const idOf = new Map<string, string>();
    const find = async (query: { tag?: string; scope?: string }, owner = user_id) =>
      (await subject().client.list({ user_id: owner, ...query })).items.map((item) => item.id);

    beforeAll(async () => {
      if (!subject().capabilities.features.tags) return;
      for (const tag of TAGS) {
        idOf.set(tag, (await subject().client.add({ user_id, content: 'a tagged note', tags: [tag, 'common'] })).id);
      }
    });

    it.for(TAGS)('[SPEC GET /memories tag] the tag %j finds exactly its record', async (tag, { skip }) => {
      needs(skip, subject(), 'list', 'tags');
      expect(await find({ tag })).toEqual([idOf.get(tag)]);
    });

    it.for(TAGS)('[Decision 18] a search with the tag %j finds exactly its record', async (tag, { skip }) => {
      needs(skip, subject(), 'search', 'tag_search');
      const { client } = subject();
      expect(ids(await client.search({ user_id, q: 'a tagged note', tag }))).toEqual([idOf.get(tag)]);
      expect(await client.search({ user_id: freshUser(), q: 'a tagged note', tag })).toEqual([]);
    });

    test('[Decision 18] a tag filters a search before its limit, and the rarity of words still counts all', async (need) => {
      need('search', 'tag_search');
      const owner = freshUser();
      const { client } = subject();
      const { id } = await client.add({ user_id: owner, content: 'tea and more', tags: ['one', 'two'] });
      for (let i = 0; i < 5; i++) await client.add({ user_id: owner, content: 'green tea', tags: ['two'] });
      const find = (query: { tag?: string; limit?: number }) =>
        client.search({ user_id: owner, q: 'green tea', ...query });
      const [best, ...others] = await find({ tag: 'one', limit: 1 });
      expect([best?.memory.id, others]).toEqual([id, []]);
      expect(best).toEqual((await find({})).find(({ memory }) => memory.id === id));
      expect(await find({ tag: 'two', limit: 10 })).toHaveLength(6);
      expect(await find({ tag: 'three' })).toEqual([]);
    });

    test('[Decision 18] [Decision 6] without features.tag_search the answer says that the tag of a search is ignored', async (need) => {
      need('search');
      const { client, capabilities } = subject();
      const owner = freshUser();
      await client.add({ user_id: owner, content: 'green tea' });
      const reply = await client.ask('/memories/search', { user_id: owner, q: 'green tea', tag: 'none' });
      const { results } = reply.body as { results: readonly unknown[] };
      const isAble = capabilities.features.tag_search;
      expect([results.length, reply.headers.get('x-ignored-fields')]).toEqual(isAble ? [0, null] : [1, 'tag']);
    });

    test('[SPEC GET /memories tag] does not see the tags of others', async (need) => {
      need('list', 'tags');
      expect(await find({ tag: 'common' }, freshUser())).toEqual([]);
    });

    test('[SPEC POST /memories tags] no tag is found as a scope', async (need) => {
      need('list', 'search', 'tags', 'scopes');
      for (const scope of ['coding', 'coding/*', '*', 'coding/preferences']) expect(await find({ scope })).toEqual([]);
      expect(await subject().client.search({ user_id, q: 'tagged note', scope: 'cod' })).toEqual([]);
    });

    test('[SPEC GET /memories tag] no scope is found as a tag or returned among the tags', async (need) => {
      need('list', 'tags', 'scopes');
      const owner = freshUser();
      const { client } = subject();
      const { id } = await client.add({
        user_id: owner,
        content: 'scoped',
        scope: 'coding/preferences',
        tags: ['mine'],
      });
      for (const tag of TAGS) expect(await find({ tag }, owner), tag).toEqual([]);
      expect((await client.get(id)).tags).toEqual(['mine']);
      expect((await client.list({ user_id: owner })).items[0]?.tags).toEqual(['mine']);
    });

    test('[Decision 8] 64 tags fit beside the longest scope', async (need) => {
      need('list', 'tags');
      const owner = freshUser();
      const tags = Array.from({ length: 64 }, (_, i) => `${i}`.padEnd(128, 't'));
      const scope = Array.from({ length: 32 }, (_, i) => `${i}`.padEnd(15, 's'))
        .join('/')
        .padEnd(512, 's');
      const scoped = subject().capabilities.features.scopes === 'none' ? {} : { scope };
      const added = await subject().client.add({ user_id: owner, content: 'full', tags, ...scoped });
      expect(added).toMatchObject({ tags, ...scoped });
      expect(await find({ tag: tags[63] ?? '' }, owner)).toEqual([added.id]);
      if ('scope' in scoped) expect(await find({ scope }, owner)).toEqual([added.id]);
    });
  });
