import { describe, expect } from 'vitest';
import type { Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import type { WireMemory } from '../support/wire.ts';
import { type GetSubject, testOf } from './subject.ts';

/** Tokens that are malformed or of another backend. */
const FOREIGN = ['', ' ', 'abc', 'AQ', '-1', '9'.repeat(300), 'x'.repeat(5_000), '../..', 'AQ'.repeat(60), 'null'];

const tokenOf = ({ headers }: Reply): string | null => headers.get('x-consistency-token');
const told = ({ headers }: Reply) => [tokenOf({ headers } as Reply), headers.get('x-consistency')];

export const consistencySuite = (subject: GetSubject) =>
  describe('consistency tokens', () => {
    const test = testOf(subject);
    /** Every verb there is on a memory of its own, each request with the token of the answer before. */
    const life = async (token?: string): Promise<Reply[]> => {
      const { tell, ask, byId } = subject().client;
      const user_id = freshUser();
      const replies: Reply[] = [];
      const carried = (): Record<string, string> => {
        const latest = replies.map(tokenOf).findLast((one) => one !== null) ?? token;
        return latest === undefined ? {} : { 'x-consistency-token': latest };
      };
      const step = async (send: (headers: Record<string, string>) => Promise<Reply>) => {
        const reply = await send(carried());
        replies.push(reply);
        return reply;
      };
      const { body } = await step((headers) => tell('POST', '/memories', { user_id, content: 'tea' }, headers));
      const { id } = body as WireMemory;
      await step((headers) => ask(byId(id), {}, headers));
      await step((headers) => tell('PATCH', byId(id), { content: 'coffee' }, headers));
      const listed = await step((headers) => ask('/memories', { user_id }, headers));
      expect(listed.body).toMatchObject({ items: [{ id, content: 'coffee' }] });
      const found = await step((headers) => ask('/memories/search', { user_id, q: 'coffee' }, headers));
      expect(found.body).toMatchObject({ results: [{ memory: { id, content: 'coffee' } }] });
      await step((headers) => tell('DELETE', byId(id), undefined, headers));
      const { body: left } = await step((headers) => ask('/memories', { user_id }, headers));
      expect(left).toMatchObject({ items: [] });
      return replies;
    };

    test('[Decision 23] are short and fit a header; a client that sends them back reads its own writes', async (need) => {
      need('update', 'delete', 'list', 'search');
      const replies = await life();
      expect(replies.map(({ status }) => status)).toEqual([201, 200, 200, 200, 200, 204, 200]);
      for (const token of replies.map(tokenOf)) if (token !== null) expect(token).toMatch(/^[\w-]{1,512}$/);
    });

    test('[Decision 23] [Decision 18] are given only where features.consistency_tokens is true', async (need) => {
      need('update', 'delete', 'list', 'search');
      if (subject().capabilities.features.consistency_tokens) return;
      for (const token of [undefined, 'AQ']) expect((await life(token)).flatMap(told)).toEqual(Array(14).fill(null));
    });

    test('[Decision 23] a token that is malformed or of another backend is ignored', async (need) => {
      need('list', 'delete');
      const { add, ask, tell, byId } = subject().client;
      const user_id = freshUser();
      const { id } = await add({ user_id, content: 'x' });
      for (const token of FOREIGN) {
        const headers = { 'x-consistency-token': token };
        const reply = await ask('/memories', { user_id }, headers);
        expect(reply.body).toMatchObject({ items: [{ id }] });
        expect(told(reply)).toEqual([null, null]);
        expect((await ask(byId(id), {}, headers)).status).toBe(200);
        expectError(await ask(byId('mem_unknown'), {}, headers), 'not_found');
      }
      expect((await tell('DELETE', byId(id), undefined, { 'x-consistency-token': 'AQ' })).status).toBe(204);
    });
  });
