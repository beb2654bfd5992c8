import { beforeAll, describe, expect, it } from 'vitest';
import type { Query } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, laterMoment } from '../support/gateway.ts';
import type { WireCapabilities, WireHit } from '../support/wire.ts';
import { addLarge, bytesOf, MAX_ANSWER_BYTES } from './large.ts';
import { type Admit, type GetSubject, needs, testOf } from './subject.ts';

const NOTES: readonly string[] = [
  'prefers dark roast coffee in the morning',
  'prefers green tea in the afternoon',
  'drinks dark roast coffee',
  'allergic to peanuts and shellfish',
  'works as a marine biologist in Lisbon',
  'keeps two cats called Ada and Grace',
  'Lieblingsessen ist Käsespätzle',
  '好きな飲み物は緑茶です',
];

/** The documented formula gives each score from its explanation, up to the rounding of the parts. */
export function expectExplained(
  explained: readonly WireHit[],
  plain: readonly WireHit[],
  { vector_search, keyword_search }: Pick<WireCapabilities['features'], 'vector_search' | 'keyword_search'>,
): void {
  expect(explained.map(({ explanation: _, ...hit }) => hit)).toEqual(plain);
  for (const { score, explanation } of explained) {
    const { cosine = null, coverage = null, terms = null, weights } = explanation ?? {};
    const { vector, keyword } = weights ?? { vector: 0, keyword: 0 };
    expect(Math.min(1, vector * (cosine ?? 0) + keyword * (coverage ?? 0))).toBeCloseTo(score, 5);
    expect(vector + keyword).toBeCloseTo(1, 6);
    expect([vector > 0 && !vector_search, keyword > 0 && !keyword_search]).toEqual([false, false]);
    expect([cosine === null, coverage === null, terms === null]).toEqual([vector === 0, keyword === 0, keyword === 0]);
    for (const part of [cosine ?? 0, coverage ?? 0]) expect(part >= 0 && part <= 1).toBe(true);
    expect((terms ?? []).length > 0).toBe((coverage ?? 0) > 0);
  }
}

export const searchSuite = (subject: GetSubject, admit: Admit) =>
  describe('search', () => {
    const test = testOf(subject);
    const user_id = freshUser();
    const search = (query: Query) => subject().client.search({ user_id, ...query });
    const ids = (hits: readonly WireHit[]) => hits.map((hit) => hit.memory.id);

    beforeAll(async () => {
      for (const content of NOTES) await subject().client.add({ user_id, content });
    });

    test('[SPEC GET /memories/search] with vectors every memory is a hit, down to score 0', async (need) => {
      need('search', 'vector_search');
      const owner = freshUser();
      const { client } = subject();
      for (let i = 0; i < 24; i++) await client.add({ user_id: owner, content: `${String.fromCharCode(97 + i)} ${i}` });
      expect(await client.search({ user_id: owner, q: 'zebra crossing', limit: 50 })).toHaveLength(24);
    });

    test('[Decision 29] a response that would be too large omits results, and says so', async (need) => {
      need('search');
      const { user_id: owner, count } = await addLarge(subject());
      const ask = async (query: Query) =>
        (await subject().client.ask('/memories/search', { user_id: owner, q: 'apple', ...query })).body as {
          results: WireHit[];
          'x-truncated'?: boolean;
        };
      const { results, 'x-truncated': truncated } = await ask({ limit: 100 });
      expect(results.length).toBeGreaterThan(1);
      expect(bytesOf(results.map(({ memory }) => memory))).toBeLessThanOrEqual(MAX_ANSWER_BYTES);
      // A hundred of what Pinecone can hold fit in.
      expect(truncated).toBe(results.length < Math.min(100, count) || undefined);
      if (subject().capabilities.features.max_content_length === null) expect(truncated).toBe(true);
      expect(await ask({ limit: 2 })).toEqual({ results: results.slice(0, 2) });
      // Where the last one did not score enough, all that did are there.
      const best = results.filter(({ score }) => score === 1);
      expect(await ask({ limit: 100, min_score: 1 })).toEqual({
        results: best,
        ...(truncated && best.length === results.length && { 'x-truncated': true }),
      });
    });

    test('[Decision 6] results hold whole records, with extensions', async (need) => {
      need('search', 'tags', 'extensions');
      const owner = freshUser();
      const added = await subject().client.add({ user_id: owner, content: 'a note', tags: ['t'], 'x-n': 1 });
      const reply = await subject().client.ask('/memories/search', { user_id: owner, q: 'a note' });
      expect(reply.status).toBe(200);
      expect(reply.body).toEqual({ results: [{ memory: added, score: expect.any(Number) }] });
    });

    test('[SPEC GET /memories/search order] ranks what answers the query above what does not', async (need) => {
      need('search');
      const contents = (await search({ q: 'dark roast coffee' })).map((hit) => hit.memory.content);
      expect(contents.slice(0, 2).toSorted()).toEqual([NOTES[2], NOTES[0]]);
    });

    test('[SPEC SearchResult score] a text equal to the query scores 1 and is first', async (need) => {
      need('search');
      for (const q of NOTES) {
        const [first] = await search({ q });
        expect(first?.memory.content).toBe(q);
        expect(first?.score).toBeGreaterThan(0.999);
        expect(first?.score).toBeLessThanOrEqual(1);
      }
    });

    test('[SPEC GET /memories/search order] equal scores come newest first', async (need) => {
      need('search', 'list');
      const owner = freshUser();
      for (let i = 0; i < 12; i++) await subject().client.add({ user_id: owner, content: 'the very same note' });
      const listed = (await subject().client.list({ user_id: owner })).items.map((item) => item.id);
      for (const limit of [12, 5]) {
        const hits = await subject().client.search({ user_id: owner, q: 'same note', limit });
        expect(ids(hits)).toEqual(listed.slice(0, limit));
      }
    });

    test('[Decision 1] since and until filter searches and contexts by created_at, both inclusive', async (need) => {
      need('add', 'context', 'temporal_search');
      const owner = freshUser();
      const { client } = subject();
      const times: string[] = [];
      for (let i = 0; i < 3; i++) {
        if (i > 0) await laterMoment();
        times.push((await client.add({ user_id: owner, content: 'the very same note' })).created_at);
      }
      const [first, second, third] = times;
      const after = new Date(Date.parse(second as string) + 1).toISOString();
      for (const [since, until, expected] of [
        [second, undefined, [third, second]],
        [undefined, second, [second, first]],
        [second, second, [second]],
        [after, undefined, [third]],
        [third, first, []],
        ['1999-12-31', '2000-01-01', []],
      ] as const) {
        const bounds = { ...(since && { since }), ...(until && { until }) };
        for (const limit of [1, 10]) {
          const hits = await client.search({ user_id: owner, q: 'same note', limit, ...bounds });
          expect(hits.map(({ memory }) => memory.created_at)).toEqual(expected.slice(0, limit));
        }
        const { citations } = await client.context({ user_id: owner, query: 'same note', ...bounds });
        // Copies share a line.
        expect(citations.flatMap((one) => [one.memory_id, ...(one['x-copies'] ?? [])])).toHaveLength(expected.length);
      }
      for (const since of ['soon', '2024-13-01']) {
        expectError(await client.ask('/memories/search', { user_id: owner, q: 'note', since }), 'invalid_request');
        expectError(await client.tell('POST', '/context', { user_id: owner, query: 'note', since }), 'invalid_request');
      }
    });

    test('[SPEC GET /memories/search] the same question gets the same answer', async (need) => {
      need('search');
      expect(await search({ q: 'what does she drink?' })).toEqual(await search({ q: 'what does she drink?' }));
    });

    test('[Decision 39] an explanation gives the score, and changes nothing else', async (need) => {
      need('search', 'explain');
      const { features } = subject().capabilities;
      for (const q of ['Dark ROAST coffees', 'tea', 'the', '緑茶', 'allergic to café', 'quantum chromodynamics']) {
        const plain = await search({ q, limit: 100 });
        expectExplained(await search({ q, limit: 100, explain: 'true' }), plain, features);
        expect(await search({ q, limit: 100, explain: 'false' })).toEqual(plain);
      }
      const [best] = await search({ q: 'Drinks “dark” ROASTS, coffees!', explain: 'true', limit: 1 });
      expect(best?.memory.content).toBe(NOTES[2]);
      const terms = ['Drinks', 'dark', 'ROASTS', 'coffees'];
      expect(best?.explanation?.terms).toEqual(features.keyword_search ? terms : null);
    });

    test('[Decision 21] a rare word counts more than a common one, wherever it stands in the query', async (need) => {
      need('search', 'keyword_search', 'explain');
      const owner = freshUser();
      const { client } = subject();
      for (const content of ['zebra alone', 'paper one', 'paper two', 'paper three', 'paper four'])
        await client.add({ user_id: owner, content });
      for (const q of ['zebra paper', 'paper zebra']) {
        const hits = await client.search({ user_id: owner, q, explain: 'true', limit: 100 });
        const coverage = new Map(hits.map(({ memory, explanation }) => [memory.content, explanation?.coverage]));
        expect(coverage.get('zebra alone'), q).toBeGreaterThan(coverage.get('paper one') as number);
      }
    });

    test('[Decision 40] [Decision 21] several users are searched together, each with its own scores', async (need) => {
      need('search');
      const [ana, ben, nobody] = [freshUser(), freshUser(), freshUser()];
      for (const content of NOTES.slice(0, 4)) {
        await subject().client.add({ user_id: ana, content });
        await subject().client.add({ user_id: ben, content: `${content}, too` });
      }
      await subject().client.add({ user_id: freshUser(), content: NOTES[0] });
      const { client } = subject();
      const one = (owner: string) => client.search({ user_id: owner, q: 'green tea', limit: 100 });
      const truth = [...(await one(ana)), ...(await one(ben))].sort((a, b) => b.score - a.score);
      const users = [ben, nobody, ana];
      const all = await client.search({ user_id: users, q: 'green tea', limit: 100 });
      expect(all.map(({ score }) => score)).toEqual(truth.map(({ score }) => score));
      expect(new Set(all)).toEqual(new Set(truth));
      expect(await client.search({ user_id: users, q: 'green tea', limit: 3 })).toEqual(all.slice(0, 3));
      const { citations } = await client.context({ user_id: users, query: 'green tea', min_score: 0 });
      const positive = all.filter(({ score }) => score > 0);
      expect(citations).toEqual(positive.map(({ memory, score }) => ({ memory_id: memory.id, score })));
    });

    test('[SPEC Limits search] [SPEC Capabilities limits.max_search_results] up to 100 results are possible', async (need) => {
      need('search');
      const owner = freshUser();
      for (let i = 0; i < 102; i++) await subject().client.add({ user_id: owner, content: `a common note ${i}` });
      const count = async (limit: number) =>
        (await subject().client.search({ user_id: owner, q: 'common note', limit })).length;
      const most = subject().capabilities.limits?.max_search_results ?? 100;
      expect(await count(Math.min(100, most))).toBe(Math.min(100, most));
    });

    test('[Decision 12] hides neither expired nor superseded memories', async (need) => {
      need('search', 'supersession');
      const owner = freshUser();
      const { client } = subject();
      const old = await client.add({ user_id: owner, content: 'lives in Oslo' });
      const expired = await client.add({ user_id: owner, content: 'lives in Bergen', valid_to: '2001-01-01' });
      const now = await client.add({ user_id: owner, content: 'lives in Turku', supersedes: [old.id, expired.id] });
      const found = await client.search({ user_id: owner, q: 'lives in' });
      expect(ids(found).toSorted()).toEqual([old.id, expired.id, now.id].sort());
    });

    test('[Decision 12] says which hit supersedes another, and leaves it out when asked for current ones', async (need) => {
      need('search', 'supersession', 'extensions');
      const [owner, other] = [freshUser(), freshUser()];
      const { client } = subject();
      const old = await client.add({ user_id: owner, content: 'lives in Lisbon', 'x-superseded-by': ['forged'] });
      const now = await client.add({ user_id: owner, content: 'lives in Porto', supersedes: [old.id] });
      const foreign = await client.add({ user_id: other, content: 'lives in Faro', supersedes: [old.id, now.id] });
      const find = (query: Query) => client.search({ user_id: [owner, other], q: 'lives in', limit: 10, ...query });
      const marks = new Map((await find({})).map((hit) => [hit.memory.id, hit['x-superseded-by']]));
      expect(marks).toEqual(
        new Map([
          [old.id, [now.id]],
          [now.id, undefined],
          [foreign.id, undefined],
        ]),
      );
      const current = await find({ current: 'true' });
      expect(ids(current).toSorted()).toEqual([now.id, foreign.id].sort());
      expect(current.filter((hit) => 'x-superseded-by' in hit)).toEqual([]);
      // The superseding one scores less than the limit lets in.
      const [best] = await client.search({ user_id: owner, q: 'lives in Lisbon', limit: 1 });
      expect(best).toMatchObject({ memory: { id: old.id, 'x-superseded-by': ['forged'] } });
      expect(best).not.toHaveProperty('x-superseded-by');
      const only = { user_id: owner, q: 'lives in Lisbon', limit: 1, current: 'true' };
      expect(ids(await client.search(only))).toEqual([now.id]);
      if (!subject().capabilities.features.explain) return;
      const [explained] = await client.search({ ...only, explain: 'true' });
      expect(explained?.explanation).toBeDefined();
    });

    test('[Decision 58] gives one result for each text of a user when asked, and names the others', async (need) => {
      need('search');
      const { client, capabilities } = subject();
      const [owner, other] = [freshUser(), freshUser()];
      const old = await client.add({ user_id: owner, content: 'Jonas likes chess.' });
      const now = await client.add({ user_id: owner, content: 'Jonas likes chess' });
      const foreign = await client.add({ user_id: other, content: 'Jonas likes chess' });
      const go = await client.add({ user_id: owner, content: 'Jonas likes go' });
      expect(capabilities.features.distinct).toBe(true);
      const find = (query: Query) => client.search({ user_id: [owner, other], q: 'Jonas likes chess', ...query });
      const plain = await find({});
      expect(ids(plain).toSorted()).toEqual([old.id, now.id, foreign.id, go.id].sort());
      expect(plain.filter((hit) => 'x-copies' in hit)).toEqual([]);
      const distinct = await find({ distinct: 'true' });
      expect(distinct.map(({ score }) => score)).toEqual(distinct.map(({ score }) => score).toSorted((a, b) => b - a));
      const named = distinct.map(({ memory, 'x-copies': copies = [] }) => [memory.id, ...copies].sort());
      expect(named.sort()).toEqual([[old.id, now.id].sort(), [foreign.id], [go.id]].sort());
      // The copies count before the limit.
      const [first, second] = await client.search({ user_id: owner, q: 'Jonas likes', limit: 2, distinct: 'true' });
      expect([first?.memory.content, second?.memory.content].map((text) => text?.replace('.', '')).sort()).toEqual([
        'Jonas likes chess',
        'Jonas likes go',
      ]);
      if (!capabilities.features.explain) return;
      const [explained] = await find({ distinct: 'true', explain: 'true', limit: 1 });
      expect(explained?.explanation).toBeDefined();
    });

    test('[Decision 12] leaves out what is not valid now when asked for current ones, also from a list', async (need) => {
      need('search', 'list', 'valid_from', 'valid_to', 'supersession');
      const owner = freshUser();
      const { client } = subject();
      const add = (content: string, fields: object) => client.add({ user_id: owner, content, ...fields });
      const now = await add('lives in Porto', { valid_to: '2999-01-01', valid_from: '2001-01-01' });
      await add('lives in Bergen', { valid_to: '2001-01-01' });
      await add('lives in Oslo', { valid_from: '2999-01-01', supersedes: [now.id] });
      const old = await add('lives in Lisbon', {});
      await client.update(now.id, { supersedes: [old.id] });
      const query = { user_id: owner, current: 'true' };
      expect(ids(await client.search({ ...query, q: 'lives in' }))).toEqual([now.id]);
      expect((await client.list(query)).items.map(({ id }) => id)).toEqual([now.id]);
      expect((await client.list({ user_id: owner })).items).toHaveLength(4);
    });

    test('[Decision 12] a list leaves out what another memory of its page supersedes, and goes on after it', async (need) => {
      need('list', 'temporal', 'supersession');
      const owner = freshUser();
      const { client } = subject();
      const old = await client.add({ user_id: owner, content: 'lives in Lisbon' });
      const other = await client.add({ user_id: owner, content: 'lives in Faro', supersedes: [old.id] });
      const now = await client.add({ user_id: owner, content: 'lives in Porto', supersedes: [other.id] });
      const page = async (limit: number, cursor?: string | null) => {
        const { items, next_cursor } = await client.list({
          user_id: owner,
          current: 'true',
          limit,
          cursor: cursor ?? undefined,
        });
        return { ids: items.map(({ id }) => id), next_cursor };
      };
      expect((await page(3)).ids).toEqual([now.id]);
      const first = await page(2);
      expect(first.ids).toEqual([now.id]);
      expect((await page(2, first.next_cursor)).ids).toEqual([old.id]);
    });

    test('[Decision 12] [Decision 14] only what the caller may read supersedes', async (need) => {
      need('search', 'scopes', 'supersession');
      const owner = freshUser();
      const { client } = subject();
      const old = await client.add({ user_id: owner, content: 'lives in Lisbon', scope: 'open' });
      await client.add({ user_id: owner, content: 'lives in Porto', scope: 'secret', supersedes: [old.id] });
      const reader = admit({ users: [owner], grants: ['read:open'] });
      for (const query of [{}, { current: 'true' }]) {
        const found = await reader.search({ user_id: owner, q: 'lives in', ...query });
        expect(found.map((hit) => [hit.memory.id, hit['x-superseded-by']])).toEqual([[old.id, undefined]]);
      }
    });

    it('[Decision 29] words find a memory by its first 16,384 distinct ones', async ({ skip }) => {
      needs(skip, subject(), 'search', 'keyword_search', 'explain');
      const { max_content_length } = subject().capabilities.features;
      skip(max_content_length !== null, 'declares a shorter content');
      const owner = freshUser();
      const { client } = subject();
      const words = Array.from({ length: 16_385 }, (_, i) => `w${i}w`);
      await client.add({ user_id: owner, content: words.join(' ') });
      const other = await client.add({ user_id: owner, content: 'w16383w w16384w' });
      const bestOf = async (q: string) => (await client.search({ user_id: owner, q })).map(({ score }) => score);
      const [last, beyond] = [await bestOf('w16383w'), await bestOf('w16384w')];
      expect((await client.search({ user_id: owner, q: 'w16384w' }))[0]?.memory.id).toBe(other.id);
      expect(last[1]).toBeGreaterThan((beyond[1] ?? 0) + 0.25);
    });
  });
