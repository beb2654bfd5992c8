import { describe, expect, vi } from 'vitest';
import type { Client } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, laterMoment } from '../support/gateway.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

/** All pages of the users whose ids begin with this. */
async function usersOf(client: Client, prefix: string, limit = 2) {
  const items = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await client.users({ prefix, limit, ...(cursor && { cursor }) });
    expect(page.items.length).toBeLessThanOrEqual(limit);
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return items;
}

export const usersSuite = (subject: GetSubject, admit: Admit) =>
  describe('users, stats and erasure', () => {
    const test = testOf(subject);

    test('[Decision 37] lists every user once, with count and last write', async (need) => {
      need('users');
      const { client } = subject();
      const run = freshUser();
      const names = ['a', 'b', 'é', 'b-c', 'B'].map((name) => `${run}/${name}`);
      for (const user_id of names) await client.add({ user_id, content: 'one' });
      const { id } = await client.add({ user_id: names[0], content: 'two' });
      await laterMoment();
      const { updated_at } = await client.update(id, { content: 'three' });
      const listed = await usersOf(client, `${run}/`);
      expect(listed.map(({ user_id }) => user_id).sort()).toEqual([...names].sort());
      expect(listed.find(({ user_id }) => user_id === names[0])).toEqual({
        user_id: names[0],
        count: 2,
        last_write: updated_at,
      });
      expect((await usersOf(client, `${run}/b`)).map(({ user_id }) => user_id).sort()).toEqual([
        `${run}/b`,
        `${run}/b-c`,
      ]);
      expect(await usersOf(client, `${run}x`)).toEqual([]);
    });

    test('[Decision 37] lists only users and counts only memories that the caller may read', async (need) => {
      need('users', 'scopes');
      const run = freshUser();
      const [mine, hidden, foreign] = ['mine', 'hidden', 'foreign'].map((name) => `${run}/${name}`);
      for (const [user_id, scope] of [
        [mine, 'a/b'],
        [mine, 'c'],
        [hidden, 'c'],
        [foreign, 'a/b'],
      ] as const) {
        await subject().client.add({ user_id, content: 'x', scope });
      }
      const client = admit({ users: [mine as string, hidden as string], grants: ['read:a/*'] });
      expect(await usersOf(client, run)).toEqual([{ user_id: mine, count: 1, last_write: expect.any(String) }]);
      expectError(await admit({ users: null, grants: ['write:*'] }).ask('/users'), 'scope_denied');
    });

    test('[Decision 37] the cursor belongs to the prefix', async (need) => {
      need('users');
      const run = freshUser();
      for (const n of [1, 2]) await subject().client.add({ user_id: `${run}/${n}`, content: 'x' });
      const { next_cursor } = await subject().client.users({ prefix: run, limit: 1 });
      expectError(
        await subject().client.ask('/users', { prefix: 'other', cursor: next_cursor ?? '' }),
        'invalid_request',
      );
      expectError(await subject().client.ask('/users', { limit: 0 }), 'invalid_request');
    });

    test('[Decision 37] counts by scope and tag, largest first', async (need) => {
      need('stats', 'scope', 'tags');
      const { client } = subject();
      const user_id = freshUser();
      const [first] = await Promise.all([client.add({ user_id, content: '1', scope: 'a/b', tags: ['t'] })]);
      await laterMoment();
      await client.add({ user_id, content: '2', scope: 'a/b', tags: ['t', 'u'] });
      await laterMoment();
      const last = await client.add({ user_id, content: '3' });
      expect(await client.stats(user_id)).toEqual({
        user_id,
        count: 3,
        oldest: first?.created_at,
        newest: last.created_at,
        last_write: last.updated_at,
        scopes: [
          { scope: 'a/b', count: 2 },
          { scope: null, count: 1 },
        ],
        tags: [
          { tag: 't', count: 2 },
          { tag: 'u', count: 1 },
        ],
        created: { per: 'day', counts: expect.any(Array) },
      });
      const narrow = admit({ users: [user_id], grants: ['read:a/*'] });
      expect(await narrow.stats(user_id)).toMatchObject({ count: 2, scopes: [{ scope: 'a/b', count: 2 }] });
      expectError(await narrow.ask('/stats', { user_id: freshUser() }), 'scope_denied');
    });

    const MONTHS = Array.from({ length: 121 }, (_, n) => new Date(Date.UTC(2010, n)).toISOString());
    for (const { title, times, created } of [
      {
        title: 'by day, in UTC',
        times: ['2020-02-28T23:59:59.999Z', '2020-02-29T00:00:00.000Z', '2020-02-29T23:59:59.999Z'],
        created: { per: 'day', counts: { '2020-02-28': 1, '2020-02-29': 2 } },
      },
      {
        title: 'of 92 days by day',
        times: ['2020-01-01T00:00:00.000Z', '2020-04-02T00:00:00.000Z'],
        created: { per: 'day', counts: { '2020-01-01': 1, '2020-04-02': 1 } },
      },
      {
        title: 'of a millisecond more by month',
        times: ['2020-01-01T00:00:00.000Z', '2020-04-01T00:00:00.000Z', '2020-04-02T00:00:00.001Z'],
        created: { per: 'month', counts: { '2020-01-01': 1, '2020-04-01': 2 } },
      },
      {
        title: 'of the newest 120 months',
        times: MONTHS,
        created: { per: 'month', counts: Object.fromEntries(MONTHS.slice(1).map((time) => [time.slice(0, 10), 1])) },
      },
    ])
      test(`[Decision 37] counts memories ${title}`, async (need) => {
        need('stats');
        const user_id = freshUser();
        try {
          for (const now of times) {
            vi.useFakeTimers({ toFake: ['Date'], now: new Date(now) });
            await subject().client.add({ user_id, content: 'x' });
          }
        } finally {
          vi.useRealTimers();
        }
        const counts = Object.entries(created.counts).map(([from, count]) => ({ from, count }));
        expect((await subject().client.stats(user_id)).created).toEqual({ ...created, counts });
      });

    test('[Decision 37] of a user without memories, counts nothing', async (need) => {
      need('stats');
      const user_id = freshUser();
      const none = { count: 0, oldest: null, newest: null, last_write: null, scopes: [], tags: [] };
      const created = { per: 'day', counts: [] };
      expect(await subject().client.stats(user_id)).toEqual({ user_id, ...none, created });
    });

    test('[Decision 37] names the 100 largest scopes and tags', async (need) => {
      need('stats', 'scope', 'tags');
      const user_id = freshUser();
      const memories = Array.from({ length: 99 }, (_, n) => ({
        user_id,
        content: 'x',
        scope: `s/${n}`,
        tags: [`t${n}`],
      }));
      await subject().client.batch(memories);
      const twice = { user_id, content: 'x', scope: 's/z', tags: ['z'] };
      await subject().client.batch([twice, twice, { ...twice, scope: 's/y', tags: ['y'] }]);
      const { scopes, tags } = await subject().client.stats(user_id);
      expect([scopes.length, scopes[0], tags.length, tags[0]]).toEqual([
        100,
        { scope: 's/z', count: 2 },
        100,
        { tag: 'z', count: 2 },
      ]);
    });

    test('[Decision 38] erases all memories of one user, and of nobody else', async (need) => {
      need('erase', 'list');
      const { client, without } = subject();
      const [gone, kept] = [freshUser(), freshUser()];
      const expired = without?.includes('valid_to') ? {} : { valid_to: '2001-01-01' };
      const { id } = await client.add({ user_id: gone, content: 'one', ...expired });
      await client.add({ user_id: gone, content: 'two' });
      await client.add({ user_id: kept, content: 'three' });
      expect(await client.erase(gone)).toBe(2);
      expect((await client.list({ user_id: gone })).items).toEqual([]);
      expectError(await client.ask(client.byId(id)), 'not_found');
      if (subject().capabilities.verbs.includes('search'))
        expect(await client.search({ user_id: gone, q: 'two' })).toEqual([]);
      expect((await client.list({ user_id: kept })).items).toHaveLength(1);
      expect(await client.erase(gone)).toBe(0);
      const again = await client.add({ user_id: gone, content: 'two' });
      expect((await client.list({ user_id: gone })).items).toEqual([again]);
    });

    test('[Decision 62] answers what was removed, reads back that nothing is left, and names what is kept', async (need) => {
      need('erase', 'list');
      const { client } = subject();
      const user_id = freshUser();
      for (const content of ['one', 'two']) await client.add({ user_id, content });
      const receipt = await client.receipt(user_id);
      expect(receipt).toMatchObject({ user_id, complete: true });
      const sum = (of: 'removed' | 'left') =>
        receipt.stores.reduce((total, store) => total + (store[of].memories ?? 0), 0);
      expect([sum('removed'), sum('left')]).toEqual([2, 0]);
      for (const { read_back } of receipt.stores) expect(['counted', 'listed']).toContain(read_back);
      expect(receipt.kept.find(({ what }) => what === 'backups')?.why).toMatch(/docs/);
    });

    test('[Decision 38] needs a grant to delete in every scope', async (need) => {
      need('erase', 'list');
      const user_id = freshUser();
      await subject().client.add({ user_id, content: 'x' });
      for (const rights of [
        { users: [user_id], grants: ['delete:a/*', 'read:*', 'write:*'] },
        { users: [freshUser()], grants: ['*:*'] },
      ]) {
        expectError(await admit(rights).tell('DELETE', `/users/${user_id}/memories`), 'scope_denied');
      }
      expectError(await subject().client.tell('DELETE', '/users/%20/memories'), 'invalid_request');
      expect(await admit({ users: [user_id], grants: ['delete:*'] }).erase(user_id)).toBe(1);
    });

    test('[Decision 38] [Decision 11] the audit log keeps its entries, and gets one', async (need) => {
      need('erase', 'audit');
      const { client } = subject();
      const user_id = freshUser();
      await client.add({ user_id, content: 'x' });
      await client.erase(user_id);
      const entries = await client.audit({ user_id });
      expect(entries.filter(({ action }) => action !== 'audit')).toMatchObject([
        { action: 'erase', memory_id: null, scope: null, outcome: 'ok' },
        { action: 'add', outcome: 'ok' },
      ]);
      expect(entries.filter(({ action }) => action === 'delete')).toEqual([]);
    });

    test('[Decision 37] [Decision 38] [SPEC Errors unsupported_capability] what the backend cannot do is refused', async () => {
      const { users, stats, erase } = subject().capabilities.features;
      const { ask, tell } = subject().client;
      const user_id = freshUser();
      if (!users) expectError(await ask('/users'), 'unsupported_capability');
      if (!stats) expectError(await ask('/stats', { user_id }), 'unsupported_capability');
      if (!erase) expectError(await tell('DELETE', `/users/${user_id}/memories`), 'unsupported_capability');
    });
  });
