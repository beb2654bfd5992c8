import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, it } from 'vitest';
import type { Fields } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import { type GetSubject, needFields, needScopes, needSupersession, needVerbs, supports } from './subject.ts';

const LINES: readonly string[] = [
  'prefers dark roast coffee in the morning',
  'drinks coffee without sugar',
  'buys coffee beans from a small roaster in Antwerp every second Saturday of the month',
  'コーヒーは朝だけ飲みます',
  'coffee ☕☕☕ 👩‍👩‍👧‍👦 𝒳𝒴𝒵',
  'coffee',
];

export const contextSuite = (subject: GetSubject) =>
  describe('context', () => {
    const seeded = async (contents: readonly string[] = LINES): Promise<string> => {
      const user_id = freshUser();
      for (const content of contents) await subject().client.add({ user_id, content });
      return user_id;
    };
    const context = (fields: Fields) => subject().client.context({ query: 'coffee', ...fields });
    const refused = async (fields: Fields) =>
      expectError(await subject().client.tell('POST', '/context', fields), 'invalid_request');

    it('[Decision 10] answers the best memories as numbered lines, citing them in order', async ({ skip }) => {
      needVerbs(skip, subject(), 'context');
      const user_id = await seeded(LINES.slice(0, 3));
      const hits = await subject().client.search({ user_id, q: 'coffee' });
      const { text, citations, token_count } = await context({ user_id });
      expect(text).toBe(hits.map((hit, i) => `[${i + 1}] ${hit.memory.content}`).join('\n'));
      expect(citations).toEqual(hits.map((hit) => ({ memory_id: hit.memory.id, score: hit.score })));
      expect(token_count).toBe(countTokens(text));
    });

    it('[Decision 10] leaves out what is past its valid_to', async ({ skip }) => {
      needFields(skip, subject(), 'valid_to');
      needVerbs(skip, subject(), 'context');
      const user_id = freshUser();
      const { client } = subject();
      await client.add({ user_id, content: 'coffee until 2001', valid_to: '2001-01-01T00:00:00Z' });
      const open = await client.add({ user_id, content: 'coffee for ever' });
      const later = await client.add({ user_id, content: 'coffee until 2999', valid_to: '2999-01-01T00:00:00Z' });
      const { citations, text } = await context({ user_id });
      expect(citations.map((citation) => citation.memory_id).toSorted()).toEqual([open.id, later.id].sort());
      expect(text).not.toContain('2001');
    });

    it('[Decision 10] leaves out what is not yet valid', async ({ skip }) => {
      needFields(skip, subject(), 'valid_from');
      needVerbs(skip, subject(), 'context');
      const user_id = freshUser();
      const { client } = subject();
      await client.add({ user_id, content: 'coffee from 2999', valid_from: '2999-01-01T00:00:00Z' });
      const now = await client.add({ user_id, content: 'coffee since 2001', valid_from: '2001-01-01T00:00:00Z' });
      expect((await context({ user_id })).citations.map(({ memory_id }) => memory_id)).toEqual([now.id]);
    });

    it('[Decision 10] leaves out what scores below min_score, by default 0.1 where vectors are searched', async ({
      skip,
    }) => {
      needVerbs(skip, subject(), 'context');
      const user_id = await seeded([...LINES, 'has a dog', 'works as a nurse', 'lives by the sea', 'plays the violin']);
      const hits = await subject().client.search({ user_id, q: 'coffee', limit: 100 });
      const least = subject().capabilities.features.vector_search ? 0.1 : 0;
      for (const [min_score, floor] of [
        [undefined, least],
        [0, 0],
        [0.3, 0.3],
        [1, 1],
      ] as const) {
        const { citations } = await context({ user_id, token_budget: 10_000, min_score });
        const expected = hits.filter(({ score }) => score > 0 && score >= floor);
        expect(citations).toEqual(expected.map(({ memory, score }) => ({ memory_id: memory.id, score })));
      }
      for (const min_score of [-0.1, 1.1, '0.5', true]) await refused({ user_id, query: 'coffee', min_score });
    });

    it('[Decision 10] leaves out what another hit supersedes', async ({ skip }) => {
      needVerbs(skip, subject(), 'context');
      needSupersession(skip, subject());
      const user_id = freshUser();
      const { client } = subject();
      const first = await client.add({ user_id, content: 'takes coffee with milk' });
      const second = await client.add({ user_id, content: 'takes coffee with oat milk', supersedes: [first.id] });
      const third = await client.add({ user_id, content: 'takes coffee black', supersedes: [second.id] });
      const { citations } = await context({ user_id });
      expect(citations.map((citation) => citation.memory_id)).toEqual([third.id]);
    });

    it('[Decision 10] keeps to the scope; what supersedes from outside is no hit', async ({ skip }) => {
      needVerbs(skip, subject(), 'context');
      needScopes(skip, subject());
      const user_id = freshUser();
      const { client } = subject();
      const inside = await client.add({ user_id, content: 'coffee at work', scope: 'work/kitchen' });
      await client.add({ user_id, content: 'coffee at home', scope: 'home/kitchen', supersedes: [inside.id] });
      await client.add({ user_id, content: 'coffee anywhere' });
      expect((await context({ user_id, scope: 'work/kitchen' })).text).toBe('[1] coffee at work');
    });

    it('[Decision 10] [SPEC Service users] nothing found: empty text, no citations, 0', async ({ skip }) => {
      needVerbs(skip, subject(), 'context');
      await seeded();
      expect(await context({ user_id: freshUser() })).toEqual({ text: '', citations: [], token_count: 0 });
    });

    it('[Decision 10] is refused where search is not declared', async ({ skip }) => {
      skip(supports(subject(), 'context'), 'declares context');
      const reply = await subject().client.tell('POST', '/context', { user_id: freshUser(), query: 'coffee' });
      expectError(reply, 'unsupported_capability');
    });
  });
