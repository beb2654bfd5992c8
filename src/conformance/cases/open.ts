import { type Case, check, isRecord } from '../kit.ts';

/** The specification names the verbs audit and context, and leaves their payloads open: what follows is how they are known. */
export const AUDIT: readonly Case[] = [
  {
    id: 'audit.reachable',
    clauses: ['Capabilities features.supports_audit'],
    title: 'GET /audit answers 200 with JSON',
    needs: ['audit'],
    readOnly: true,
    run: ({ ask, json, user }) => json(ask('/audit', { user_id: user() }), 200),
  },
  {
    id: 'audit.recorded',
    clauses: ['Capabilities features.supports_audit'],
    title: 'GET /audit names a memory that was added',
    needs: ['audit'],
    should: true,
    async run({ add, ask, user }) {
      const user_id = user();
      const { id } = await add({ user_id });
      check((await ask('/audit', { user_id })).text.includes(id), 'the audit log should name the memory');
    },
  },
];

export const CONTEXT: readonly Case[] = [
  {
    id: 'context.answers',
    clauses: ['Service verbs', 'Capabilities verbs'],
    title: 'POST /context with query and user_id answers 200 with a text',
    needs: ['context'],
    should: true,
    async run({ add, tell, json, user }) {
      const user_id = user();
      await add({ user_id, content: 'drinks green tea' });
      const { text } = await json<{ text: unknown }>(tell('POST', '/context', { user_id, query: 'green tea' }), 200);
      check(typeof text === 'string' && text.includes('drinks green tea'), 'text should hold the memory');
    },
  },
  {
    id: 'context.budget',
    clauses: ['Service verbs'],
    title: 'the text of POST /context keeps to its token_budget',
    needs: ['context'],
    should: true,
    async run({ add, tell, json, user }) {
      const user_id = user();
      // A context may show copies once.
      for (let n = 0; n < 10; n++) await add({ user_id, content: `drinks green tea every day in garden ${n}` });
      const query = { user_id, query: 'green tea', token_budget: 60 };
      const context = await json<{ text: unknown; token_count?: unknown }>(tell('POST', '/context', query), 200);
      check(isRecord(context) && typeof context.text === 'string', 'text should be a text');
      // Hardly a token of English is longer.
      check(context.text.length <= 60 * 8, 'text should keep to 60 tokens');
      check(context.token_count === undefined || Number(context.token_count) <= 60, 'token_count should be at most 60');
    },
  },
];
