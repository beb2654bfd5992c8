import { describe, expect } from 'vitest';
import type { Query } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, laterMoment } from '../support/gateway.ts';
import type { WireMemory } from '../support/wire.ts';
import { addLarge, bytesOf, MAX_ANSWER_BYTES } from './large.ts';
import { type GetSubject, testOf } from './subject.ts';

const ids = (memories: readonly WireMemory[]): string[] => memories.map((memory) => memory.id);
const newestFirst = (a: WireMemory, b: WireMemory): number =>
  a.created_at === b.created_at ? (a.id < b.id ? 1 : -1) : a.created_at < b.created_at ? 1 : -1;

export const listSuite = (subject: GetSubject) =>
  describe('list', () => {
    const test = testOf(subject);
    const list = (query: Query) => subject().client.list(query);
    const refused = async (query: Query) =>
      expectError(await subject().client.ask('/memories', query), 'invalid_request');
    /** Adds numbered memories, oldest first. `apart`: each in a millisecond of its own. */
    const seed = async (user_id: string, count: number, apart = false): Promise<WireMemory[]> => {
      const added: WireMemory[] = [];
      for (let i = 0; i < count; i++) {
        if (apart) await laterMoment();
        added.push(await subject().client.add({ user_id, content: `note ${i}` }));
      }
      return added;
    };
    /** Follows `next_cursor` to the end. */
    const pages = async (query: Query) => {
      const found: WireMemory[][] = [];
      let cursor: string | undefined;
      do {
        const page = await list(cursor === undefined ? query : { ...query, cursor });
        found.push([...page.items]);
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined && found.length < 100);
      return found;
    };

    test('[Decision 6] a page holds whole records, with extensions', async (need) => {
      need('list', 'tags', 'confidence', 'extensions');
      const user_id = freshUser();
      const added = await subject().client.add({ user_id, content: 'a', tags: ['t'], confidence: 0.5, 'x-n': 1 });
      expect((await list({ user_id })).items).toEqual([added]);
    });

    test('[Decision 29] a page of large memories ends before its limit with a cursor; the pages hold all memories', async (need) => {
      need('list');
      const { user_id, count } = await addLarge(subject());
      const found = await pages({ user_id, limit: 500 });
      for (const page of found) expect(bytesOf(page)).toBeLessThanOrEqual(MAX_ANSWER_BYTES);
      expect(found.length).toBeGreaterThan(1);
      expect(new Set(found.flatMap(ids)).size).toBe(count);
      expect(found.flat()).toHaveLength(count);
      const limit = Math.max(2, Math.ceil(count / 50));
      const few = await pages({ user_id, limit });
      for (const page of few.slice(0, -1)) expect(page).toHaveLength(limit);
      expect(few.flatMap(ids)).toEqual(found.flatMap(ids));
    });

    test('[Decision 1] lists by created_at, then id, both descending', async (need) => {
      need('list');
      const user_id = freshUser();
      const added = await Promise.all(
        Array.from({ length: 30 }, () => subject().client.add({ user_id, content: 'at once' })),
      );
      added.push(...(await seed(user_id, 10)));
      expect(ids((await list({ user_id })).items)).toEqual(ids(added.sort(newestFirst)));
    });

    test('[Decision 1] the newest is first', async (need) => {
      need('list', 'created_at');
      const user_id = freshUser();
      const added = await seed(user_id, 5, true);
      expect(ids((await list({ user_id })).items)).toEqual(ids(added).reverse());
    });

    test('[Decision 2] [SPEC GET /memories limit] a page is full: 50 by default', async (need) => {
      need('list');
      const user_id = freshUser();
      const added = await seed(user_id, 52);
      expect((await list({ user_id })).items).toHaveLength(50);
      expect((await list({ user_id, limit: 1 })).items).toHaveLength(1);
      expect((await list({ user_id, limit: 500 })).items).toHaveLength(added.length);
    });

    test('[Decision 1] [Decision 2] pages keep the order and are full', async (need) => {
      need('list');
      const user_id = freshUser();
      const expected = ids((await seed(user_id, 12)).sort(newestFirst));
      for (const limit of [1, 5, 6, 12, 13]) {
        const found = await pages({ user_id, limit });
        expect(found.flatMap(ids), `limit ${limit}`).toEqual(expected);
        expect(found, `pages at limit ${limit}`).toHaveLength(Math.ceil(12 / limit));
      }
    });

    test('[Decision 2] the record a cursor points at may vanish', async (need) => {
      need('list', 'delete');
      const user_id = freshUser();
      const added = (await seed(user_id, 4)).sort(newestFirst);
      const { items, next_cursor } = await list({ user_id, limit: 2 });
      await subject().client.remove(items[1]?.id ?? '');
      expect(ids((await list({ user_id, limit: 2, cursor: next_cursor ?? '' })).items)).toEqual(ids(added.slice(2)));
    });

    test('[SPEC MemoryPage opaque] [Decision 2] a cursor is URL-safe and at most 256 characters, whatever the filters', async (need) => {
      need('list');
      const user_id = `${'ü'.repeat(200)}${freshUser()}`;
      await seed(user_id, 3);
      const { temporal } = subject().capabilities.features;
      const { next_cursor } = await list({ user_id, limit: 1, ...(temporal && { since: '2001-01-01' }) });
      expect(next_cursor).toMatch(/^[A-Za-z0-9._~-]{1,256}$/);
    });

    test('[Decision 2] a cursor goes with the filters it was made with, the limit apart', async (need) => {
      need('list', 'tags', 'scopes', 'temporal');
      const user_id = freshUser();
      for (let i = 0; i < 4; i++) await subject().client.add({ user_id, content: 'x', tags: ['t'], scope: 's/a' });
      const { next_cursor } = await list({ user_id, limit: 1, tag: 't' });
      const cursor = next_cursor ?? '';
      expect((await list({ user_id, limit: 3, tag: 't', cursor })).items).toHaveLength(3);
      await refused({ user_id, cursor });
      await refused({ user_id, cursor, tag: 'T' });
      await refused({ user_id: freshUser(), cursor, tag: 't' });
      await refused({ user_id, cursor, tag: 't', since: '2001-01-01' });
      await refused({ user_id, cursor, tag: 't', until: '2999-01-01' });
      await refused({ user_id, cursor, tag: 't', scope: 's/*' });
    });
  });
