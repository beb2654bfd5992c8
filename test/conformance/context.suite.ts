import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect } from 'vitest';
import { contextText } from '../support/context.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import { type GetSubject, testOf } from './subject.ts';

/** What a context leaves out is decided in core: see test/context/context.test.ts. Here: it gets what it needs from search. */
export const contextSuite = (subject: GetSubject) =>
  describe('context', () => {
    const test = testOf(subject);
    const query = 'coffee';

    test('[Decision 10] answers the best memories as numbered lines, citing them in order', async (need) => {
      need('context');
      const { client, capabilities } = subject();
      const user_id = freshUser();
      for (const content of [
        'coffee in the morning',
        'coffee ☕ 👩‍👩‍👧‍👦 𝒳',
        'コーヒーは朝だけ',
        'has a dog',
        'plays the violin',
      ]) {
        await client.add({ user_id, content });
      }
      const hits = await client.search({ user_id, q: query, limit: 100 });
      const least = capabilities.features.vector_search ? 0.1 : 0;
      for (const [min_score, floor] of [
        [undefined, least],
        [0, 0],
        [0.3, 0.3],
        [1, 1],
      ] as const) {
        const { text, citations, token_count } = await client.context({ user_id, query, min_score });
        const expected = hits.filter(({ score }) => score > 0 && score >= floor);
        expect(citations).toEqual(expected.map(({ memory, score }) => ({ memory_id: memory.id, score })));
        expect(text).toBe(expected.length === 0 ? '' : contextText(expected.map(({ memory }) => memory)));
        expect(token_count).toBe(countTokens(text));
      }
    });

    test('[Decision 10] leaves out memories that are expired or not yet valid', async (need) => {
      need('context', 'valid_from', 'valid_to');
      const { client } = subject();
      const user_id = freshUser();
      const add = (content: string, fields: object) => client.add({ user_id, content, ...fields });
      await add('coffee until 2001', { valid_to: '2001-01-01T00:00:00Z' });
      await add('coffee from 2999', { valid_from: '2999-01-01T00:00:00Z' });
      const valid = [
        await add('coffee at any time', {}),
        await add('coffee until 2999', { valid_to: '2999-01-01T00:00:00Z' }),
        await add('coffee since 2001', { valid_from: '2001-01-01T00:00:00Z' }),
      ];
      const { citations } = await client.context({ user_id, query });
      expect(citations.map(({ memory_id }) => memory_id).sort()).toEqual(valid.map(({ id }) => id).sort());
    });

    test('[Decision 10] is made for the time that now states', async (need) => {
      need('context', 'valid_to');
      const { client } = subject();
      const user_id = freshUser();
      await client.add({ user_id, content: 'coffee until 2001', valid_to: '2001-01-01T00:00:00Z' });
      const linesAt = async (now: string | null) => (await client.context({ user_id, query, now })).citations.length;
      expect([await linesAt('2000-12-31'), await linesAt('2001-01-02'), await linesAt(null)]).toEqual([1, 0, 0]);
      const reply = await client.tell('POST', '/context', { user_id, query, now: 'soon' });
      expect(expectError(reply, 'invalid_request').message).toMatch(/^now: /);
    });

    test('[Decision 10] weighs by age where the store knows it', async (need) => {
      need('context');
      const { client, capabilities } = subject();
      const user_id = freshUser();
      await client.add({ user_id, content: 'coffee' });
      const ask = (half_life_days: number) => client.tell('POST', '/context', { user_id, query, half_life_days });
      for (const days of [0, 0.09, 36_501]) {
        expect(expectError(await ask(days), 'invalid_request').message).toMatch(
          /^half_life_days: must be from 0.1 to 36500/,
        );
      }
      if (!capabilities.features.temporal) return expectError(await ask(1), 'unsupported_capability');
      const later = new Date(Date.now() + 86_400_000).toISOString();
      const scoreOf = async (fields: object) =>
        (await client.context({ user_id, query, ...fields })).citations.map(({ score }) => score);
      const [plain] = await scoreOf({});
      const [old] = await scoreOf({ now: later, half_life_days: 1 });
      expect(old).toBeCloseTo(0.75 * (plain as number), 2);
      expect(await scoreOf({ now: later, half_life_days: null })).toEqual([plain]);
    });

    test('[Decision 10] prefers what was said at the time that the query names', async (need) => {
      need('context', 'temporal', 'valid_from');
      const { client } = subject();
      const user_id = freshUser();
      const add = (month: string, content: string) =>
        client.add({ user_id, content, valid_from: `2023-${month}-07T09:00:00Z` });
      // Texts that score alike, and are no copies.
      const memories = {
        March: await add('03', 'coffee'),
        May: await add('05', 'coffee?'),
        July: await add('07', 'coffee ?'),
      };
      for (const [month, { id }] of Object.entries(memories)) {
        const { citations } = await client.context({ user_id, query: `coffee in ${month} 2023` });
        expect(citations[0]?.memory_id).toBe(id);
        expect(citations).toHaveLength(3);
      }
      const { citations } = await client.context({ user_id, query: 'coffee last month', now: '2023-06-30' });
      expect(citations[0]?.memory_id).toBe(memories.May.id);
    });

    test('[Decision 10] leaves out memories that another hit supersedes', async (need) => {
      need('context', 'supersession');
      const { client } = subject();
      const user_id = freshUser();
      const first = await client.add({ user_id, content: 'takes coffee with milk' });
      const second = await client.add({ user_id, content: 'takes coffee with oat milk', supersedes: [first.id] });
      const third = await client.add({ user_id, content: 'takes coffee black', supersedes: [second.id] });
      expect((await client.context({ user_id, query })).citations.map(({ memory_id }) => memory_id)).toEqual([
        third.id,
      ]);
    });

    test('[Decision 58] gives the memories of one text one line, which cites all', async (need) => {
      need('context');
      const { client } = subject();
      const user_id = freshUser();
      const texts = ['', '.', '!', ' '].map((end) => `Jonas has a birthday on 12 March${end}`);
      const copies = [];
      for (const content of texts) copies.push(await client.add({ user_id, content }));
      const chess = await client.add({ user_id, content: 'Jonas likes chess' });
      const asked = { user_id, query: 'a present for Jonas', token_budget: 90 };
      const { text, citations } = await client.context(asked);
      expect(text.split('\n')).toHaveLength(4);
      expect(text.match(/12 March/g)).toHaveLength(1);
      expect(citations).toHaveLength(2);
      const cited = citations.map(({ memory_id, 'x-copies': others = [] }) => [memory_id, ...others].sort());
      expect(cited).toContainEqual([chess.id]);
      expect(cited).toContainEqual(copies.map(({ id }) => id).sort());
    });

    test('[Decision 10] cites only its scope, and does not let a memory outside supersede one inside', async (need) => {
      need('context', 'scopes', 'supersedes');
      const { client } = subject();
      const user_id = freshUser();
      const inside = await client.add({ user_id, content: 'coffee at work', scope: 'work/kitchen' });
      await client.add({ user_id, content: 'coffee at home', scope: 'home/kitchen', supersedes: [inside.id] });
      await client.add({ user_id, content: 'coffee anywhere' });
      expect((await client.context({ user_id, query, scope: 'work/kitchen' })).text).toBe(contextText([inside]));
    });

    test('[Decision 57] has the memories next to a hit in its conversation, within the scopes of the caller', async (need) => {
      need('context', 'neighbours', 'scopes', 'batch');
      const { client } = subject();
      const user_id = freshUser();
      const items: object[] = [
        ...['one', 'two', 'three'].map((ref) => ({ content: 'coffee', source: { app: 'chat', ref } })),
        { content: 'what would you like?', source: { app: 'chat', ref: 'order' } },
        { content: 'coffee and coffee', source: { app: 'chat', ref: 'order' } },
        { content: 'paid with a card', source: { app: 'chat', ref: 'order' } },
        { content: 'said goodbye', source: { app: 'chat', ref: 'order' } },
        ...Array.from({ length: 90 }, (_, i) => ({ content: `coffee ${i}` })),
      ];
      for (let at = 0; at < items.length; at += 50)
        await client.batch(items.slice(at, at + 50).map((item) => ({ user_id, scope: 'shop/floor', ...item })));
      const contentOf = new Map<string, string>();
      const { items: stored } = await client.list({ user_id, limit: 200 });
      for (const { id, content } of stored) contentOf.set(id, content);
      const { citations } = await client.context({
        user_id,
        query,
        token_budget: 20_000,
        min_score: 0.001,
        explain: true,
      });
      const contents = citations.map(({ memory_id }) => contentOf.get(memory_id));
      expect(contents).toContain('what would you like?');
      expect(contents).toContain('paid with a card');
      expect(citations.every(({ explanation }) => explanation?.neighbours === true)).toBe(true);
      const before = citations[contents.indexOf('what would you like?')]?.explanation;
      expect(before?.neighbour, 'the score of the hit after it').toBeGreaterThan(0);
    });

    test('[Decision 10] [SPEC Service users] is empty without a match', async (need) => {
      need('context');
      const empty = { text: '', citations: [], token_count: 0 };
      expect(await subject().client.context({ user_id: freshUser(), query })).toEqual(empty);
    });
  });
