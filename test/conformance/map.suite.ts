import { describe, expect } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

export const mapSuite = (subject: GetSubject, admit: Admit) =>
  describe('map', () => {
    const test = testOf(subject);

    test('[Decision 42] places every memory on the plane, newest first, and each time in the same place', async (need) => {
      need('map');
      const { client } = subject();
      const user_id = freshUser();
      for (const content of ['green tea', 'black coffee', 'a bicycle', `long ${'and longer '.repeat(40)}`])
        await client.add({ user_id, content });
      const map = await client.map({ user_id });
      const { items } = await client.list({ user_id });
      expect(map).toEqual({
        items: items.map(({ id, scope, created_at, content }) => ({
          ...{ id, scope, created_at, text: content.slice(0, 200) },
          ...{ x: expect.any(Number), y: expect.any(Number) },
        })),
        ...{ more: false, without_vector: 0, among_10: 1, among_50: 1 },
      });
      for (const { x, y } of map.items) expect(Math.min(x, y, 1 - x, 1 - y)).toBeGreaterThanOrEqual(0);
      expect(new Set(map.items.map(({ x, y }) => `${x} ${y}`)).size).toBe(4);
      expect(await client.map({ user_id })).toEqual(map);
    });

    test('[Decision 42] takes the vector of the present content', async (need) => {
      need('map');
      const { client } = subject();
      const user_id = freshUser();
      const far = await client.add({ user_id, content: 'engine oil for the lorry' });
      for (const content of ['green tea', 'black tea', 'herbal tea', 'tea with milk', 'white tea'])
        await client.add({ user_id, content });
      const before = await client.map({ user_id });
      await client.update(far.id, { content: 'green tea' });
      expect(await client.map({ user_id })).not.toEqual(before);
    });

    test('[Decision 42] filters by scope and tag, as a list does', async (need) => {
      need('map', 'scope', 'tags');
      const { client } = subject();
      const user_id = freshUser();
      const add = async (scope: string, tags: string[]) =>
        (await client.add({ user_id, content: 'x', scope, tags })).id;
      const both = await add('a/b', ['t']);
      const scoped = await add('a/b', []);
      const tagged = await add('c', ['t']);
      const idsOf = async (query: { scope?: string; tag?: string }) =>
        (await client.map({ user_id, ...query })).items.map(({ id }) => id);
      expect(await idsOf({ scope: 'a/*' })).toEqual([scoped, both]);
      expect(await idsOf({ tag: 't' })).toEqual([tagged, both]);
      expect(await idsOf({ scope: 'a/*', tag: 't' })).toEqual([both]);
      expect(await idsOf({ tag: 'none' })).toEqual([]);
    });

    test('[Decision 42] shows only what the caller may read', async (need) => {
      need('map', 'scopes');
      const user_id = freshUser();
      const seen = await subject().client.add({ user_id, content: 'x', scope: 'a/b' });
      await subject().client.add({ user_id, content: 'y', scope: 'c' });
      const narrow = admit({ users: [user_id], grants: ['read:a/*'] });
      expect((await narrow.map({ user_id })).items.map(({ id }) => id)).toEqual([seen.id]);
      expectError(await narrow.ask('/map', { user_id, scope: 'c' }), 'scope_denied');
      expectError(await narrow.ask('/map', { user_id: freshUser() }), 'scope_denied');
    });

    test('[Decision 42] [Decision 11] the audit log records it with the scope', async (need) => {
      need('map', 'audit', 'scope');
      const { client } = subject();
      const user_id = freshUser();
      await client.map({ user_id, scope: 'a/*' });
      expect(await client.audit({ user_id })).toMatchObject([{ action: 'map', scope: 'a/*', outcome: 'ok' }]);
    });

    test('[Decision 42] [SPEC Errors unsupported_capability] without stored vectors it is refused, with the reason', async () => {
      const { client, capabilities } = subject();
      const reply = await client.ask('/map', { user_id: freshUser() });
      if (capabilities.features.map) expect(reply.status).toBe(200);
      else expect(expectError(reply, 'unsupported_capability').message).toMatch(/needs stored vectors/);
    });
  });
