import { describe, expect } from 'vitest';
import type { Client, Query } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import type { WireChange } from '../support/wire.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

/** Page after page, up to the end. A transaction of another test may hold the feed back: look until all are there. */
async function follow(client: Client, query: Query): Promise<WireChange[]> {
  const changes: WireChange[] = [];
  for (let after = query.after; ; ) {
    const page = await client.changes({ limit: 2, ...query, after });
    changes.push(...page.changes);
    if (page.changes.length === 0 && !page.more) return changes;
    after = page.next_cursor;
  }
}

const brief = ({ action, id, scope }: WireChange) => [action, id, scope];
/** A cursor on Citus also says how far the other nodes are. */
const withoutCursors = (changes: readonly WireChange[]) => changes.map(({ cursor: _, ...change }) => change);

export const changesSuite = (subject: GetSubject, admit: Admit) =>
  describe('changes', () => {
    const test = testOf(subject);
    const now = async () => (await subject().client.changes({ after: 'now' })).next_cursor;

    test('[Decision 51] names every change once, oldest first, with its caller, and nothing else', async (need) => {
      need('changes', 'idempotency', 'import', 'erase');
      const after = await now();
      const [user_id, other] = [freshUser(), freshUser()];
      const client = admit({ app: 'writer' });
      const { ask, tell, byId } = client;
      const once = { 'idempotency-key': 'k' };
      const { body } = await tell('POST', '/memories', { user_id, content: 'one', scope: 'a' }, once);
      const { id } = body as { id: string };
      await tell('POST', '/memories', { user_id, content: 'one', scope: 'a' }, once);
      await tell('POST', '/memories', { user_id, content: '' });
      await ask(byId(id));
      await ask('/memories', { user_id });
      await ask('/memories/search', { user_id, q: 'one' });
      const batch = await client.batch([
        { user_id, content: 'two' },
        { user_id: other, content: 'three', scope: 'b' },
      ]);
      const [two, three] = batch.map(({ memory }) => memory?.id);
      await client.update(id, { content: 'four' });
      await client.update(id, { content: 'four' });
      expectError(await tell('PATCH', byId('mem_unknown'), { content: 'x' }), 'not_found');
      await client.remove(two as string);
      expectError(await tell('DELETE', byId(two as string)), 'not_found');
      const exported = (await ask('/export', { user_id: other })).body as { memories: object[] };
      await tell('POST', '/import', { memories: exported.memories });
      const memories = exported.memories.map((memory) => ({ ...memory, content: 'five' }));
      await tell('POST', '/import', { memories, on_conflict: 'replace' });
      await client.erase(user_id);

      const of = (user: string) => follow(subject().client, { after, user_id: user });
      const mine = await eventually(async () => {
        const changes = await of(user_id);
        expect(changes).toHaveLength(5);
        return changes;
      });
      expect(mine.map(brief)).toEqual([
        ['add', id, 'a'],
        ['add', two, null],
        ['update', id, 'a'],
        ['delete', two, null],
        ['erase', null, null],
      ]);
      await eventually(async () =>
        expect((await of(other)).map(brief)).toEqual([
          ['add', three, 'b'],
          ['import', three, 'b'],
        ]),
      );
      for (const change of mine) {
        expect(change).toEqual({
          cursor: expect.stringMatching(/^[\w.-]+$/),
          action: change.action,
          id: change.id,
          user_id,
          scope: change.scope,
          at: expect.stringMatching(/^\d{4}-.*Z$/),
          caller: 'writer',
        });
      }
    });

    test('[Decision 51] every cursor leads to what comes after it, in pages of any size, and after is exclusive', async (need) => {
      need('changes');
      const after = await now();
      const user_id = freshUser();
      for (let i = 0; i < 5; i++) await subject().client.add({ user_id, content: `note ${i}` });
      const all = await eventually(async () => {
        const changes = await follow(subject().client, { after, user_id, limit: 1000 });
        expect(changes).toHaveLength(5);
        return changes;
      });
      const expected = withoutCursors(all);
      const read = async (query: Query) => withoutCursors(await follow(subject().client, { user_id, ...query }));
      for (const limit of [1, 2, 3]) expect(await read({ after, limit })).toEqual(expected);
      for (const [place, { cursor }] of all.entries()) {
        expect(await read({ after: cursor })).toEqual(expected.slice(place + 1));
        const { body } = await subject().client.ask('/changes', { user_id }, { 'last-event-id': cursor });
        expect(body).toMatchObject({ changes: expected.slice(place + 1) });
      }
      expect(await read({ limit: 1000 })).toEqual(expected);
    });

    test('[Decision 51] [Decision 14] a caller gets the changes of its users and scopes, and learns of no other', async (need) => {
      need('changes', 'scopes', 'erase');
      const after = await now();
      const [mine, theirs] = [freshUser(), freshUser()];
      const { client } = subject();
      const add = async (user_id: string, scope: string | null) =>
        (await client.add({ user_id, content: 'x', scope })).id;
      const inside = await add(mine, 'a/b');
      const outside = await add(mine, 'c');
      const foreign = await add(theirs, 'a/b');
      const without = await add(mine, null);
      const reader = admit({ users: [mine], grants: ['read:a/*'] });
      const seen: unknown[] = [];
      /** The reader sees this beside what it has seen. */
      const sees = async (...more: readonly unknown[][]) => {
        seen.push(...more);
        await eventually(async () => expect((await follow(reader, { after })).map(brief)).toEqual(seen));
      };
      await sees(['add', inside, 'a/b']);
      await client.update(inside, { scope: 'c/hidden' });
      // The scope that it has now is not the reader's to know.
      await sees(['update', inside, 'a/b']);
      await client.update(inside, { content: 'y' });
      await client.update(outside, { scope: 'a/moved' });
      await client.remove(without);
      await sees(['update', outside, 'a/moved']);
      expect((await follow(reader, { after, user_id: mine, scope: 'a/m*' })).map(brief)).toEqual([
        ['update', outside, 'a/moved'],
      ]);
      expect((await follow(client, { after, user_id: mine, scope: 'c' })).map(brief)).toEqual([
        ['add', outside, 'c'],
        ['update', outside, 'a/moved'],
      ]);
      await client.erase(mine);
      await client.erase(theirs);
      await sees(['erase', null, null]);
      const other = admit({ users: null, grants: ['read:z/*'] });
      expect(await follow(other, { after })).toEqual([]);
      const their = admit({ users: [theirs], grants: ['read:*'] });
      await eventually(async () =>
        expect(await follow(their, { after })).toMatchObject([
          { action: 'add', id: foreign },
          { action: 'erase', user_id: theirs },
        ]),
      );

      expectError(await reader.ask('/changes', { user_id: theirs }), 'scope_denied');
      expectError(await reader.ask('/changes', { user_id: mine, scope: 'c' }), 'scope_denied');
      expectError(await admit({ grants: ['write:*'] }).ask('/changes'), 'scope_denied');
    });

    test('[Decision 51] include=memory adds the memory as it is now, if it is there and can be read', async (need) => {
      need('changes', 'scopes');
      const after = await now();
      const user_id = freshUser();
      const { client } = subject();
      const [kept, gone, moved] = await Promise.all(
        ['kept', 'gone', 'moved'].map((content) => client.add({ user_id, content, scope: 'a' })),
      );
      await client.remove(gone?.id ?? '');
      await client.update(moved?.id ?? '', { scope: 'b' });
      const current = await client.update(kept?.id ?? '', { content: 'changed' });
      await eventually(async () => expect(await follow(client, { after, user_id })).toHaveLength(6));
      const shown = async (reader: Client) => {
        const { changes } = await reader.changes({ after, user_id, include: 'memory' });
        return new Map(changes.map(({ id, memory }) => [id, memory?.content]));
      };
      expect(await shown(admit({ grants: ['read:a'] }))).toEqual(
        new Map([
          [kept?.id, 'changed'],
          [gone?.id, undefined],
          [moved?.id, undefined],
        ]),
      );
      expect(await shown(client)).toEqual(
        new Map([
          [kept?.id, 'changed'],
          [gone?.id, undefined],
          [moved?.id, 'moved'],
        ]),
      );
      const { changes } = await client.changes({ after, user_id, include: 'memory' });
      expect(changes.find(({ id }) => id === kept?.id)?.memory).toEqual(current);
    });

    test('[Decision 51] rejects a cursor that it did not make', async (need) => {
      need('changes');
      for (const after of [
        'x',
        '',
        '0',
        'aaaaaaaa-1-1-1',
        'AAAAAAAA-1-1',
        `aaaaaaaa-${'9'.repeat(25)}-1`,
        'a'.repeat(5_000),
      ]) {
        expectError(await subject().client.ask('/changes', { after }), 'invalid_request');
      }
      const cursor = await now();
      const foreign = cursor.replace(/^[0-9a-f]{8}/, (origin) => (origin === '0badc0de' ? '0badc0d1' : '0badc0de'));
      const reply = await subject().client.ask('/changes', { after: foreign });
      expect(reply).toMatchObject({ status: 410, body: { error: { code: 'invalid_request' } } });
      const ahead = cursor.replace(/-(\d+)/, (_, position) => `-${BigInt(position) + 1_000_000n}`);
      expect(await subject().client.ask('/changes', { after: ahead })).toMatchObject({ status: 410 });
    });

    test('[Decision 51] wait ends with the first change of the caller, and with no other', async (need) => {
      need('changes', 'scopes');
      const after = await now();
      const user_id = freshUser();
      const reader = admit({ users: [user_id], grants: ['read:a'] });
      let ended = false;
      const waiting = reader.changes({ after, wait: 60 }).finally(() => {
        ended = true;
      });
      await subject().client.add({ user_id, content: 'x', scope: 'b' });
      await subject().client.add({ user_id: freshUser(), content: 'x', scope: 'a' });
      expect(ended).toBe(false);
      const { id } = await subject().client.add({ user_id, content: 'x', scope: 'a' });
      expect((await waiting).changes.map(brief)).toEqual([['add', id, 'a']]);
    });

    test('[Decision 51] is unsupported where the store has no log of changes', async () => {
      const { features, verbs } = subject().capabilities;
      expect(features.changes).toBe(verbs.includes('audit'));
      if (!features.changes) expectError(await subject().client.ask('/changes'), 'unsupported_capability');
    });
  });
