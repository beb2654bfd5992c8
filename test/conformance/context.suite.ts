import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect } from 'vitest';
import { contextText } from '../support/context.ts';
import { freshUser } from '../support/gateway.ts';
import { type GetSubject, testOf } from './subject.ts';

/** What a context leaves out is decided in core: see test/core/context.test.ts. Here: it gets what it needs from search. */
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
      need('context', 'scopes');
      const { client } = subject();
      const user_id = freshUser();
      const inside = await client.add({ user_id, content: 'coffee at work', scope: 'work/kitchen' });
      await client.add({ user_id, content: 'coffee at home', scope: 'home/kitchen', supersedes: [inside.id] });
      await client.add({ user_id, content: 'coffee anywhere' });
      expect((await client.context({ user_id, query, scope: 'work/kitchen' })).text).toBe(contextText([inside]));
    });

    test('[Decision 10] [SPEC Service users] is empty without a match', async (need) => {
      need('context');
      const empty = { text: '', citations: [], token_count: 0 };
      expect(await subject().client.context({ user_id: freshUser(), query })).toEqual(empty);
    });
  });
