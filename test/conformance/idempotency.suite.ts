import { describe, expect, onTestFinished, vi } from 'vitest';
import type { Client, Fields } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import type { WireMemory } from '../support/wire.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

export const idempotencySuite = (subject: GetSubject, admit: Admit) =>
  describe('Idempotency-Key', () => {
    const test = testOf(subject);
    /** Adds with a key, each test as a new caller. */
    const posting =
      (client: Client = admit({})) =>
      (key: string, fields: Fields) =>
        client.tell('POST', '/memories', fields, { 'idempotency-key': key });
    const idOf = ({ body }: { body: unknown }): string => (body as WireMemory).id;
    const storedFor = async (user_id: string) => (await subject().client.list({ user_id })).items.map(({ id }) => id);
    /** Every field, so that the repeated response is complete. */
    const full = (user_id: string) => ({
      user_id,
      content: 'prefers tea',
      scope: 'a/b',
      tags: ['t', 'omp:scope:x'],
      source: { app: 'app', type: 'explicit', ref: 'ref' },
      confidence: 0.25,
      valid_from: '2024-01-01T00:00:00.000Z',
      valid_to: '2999-01-01T00:00:00.000Z',
      supersedes: ['mem_old'],
      'x-own': { deep: [1, null, { a: 'b' }] },
    });

    test('[Decision 20] a repeated request gets the same bytes and adds nothing', async (need) => {
      need('idempotency');
      const user_id = freshUser();
      const post = posting();
      const first = await post('k', full(user_id));
      expect(first.status).toBe(201);
      for (let i = 0; i < 3; i++) {
        const { status, text } = await post('k', full(user_id));
        expect({ status, text }).toEqual({ status: 201, text: first.text });
      }
      expect(await subject().client.get(idOf(first))).toEqual(first.body);
      expect(await storedFor(user_id)).toEqual([idOf(first)]);
    });

    test('[Decision 20] also after the memory was changed, and after it was deleted', async (need) => {
      need('idempotency', 'update', 'delete', 'list');
      const user_id = freshUser();
      const post = posting();
      const first = await post('k', full(user_id));
      await subject().client.update(idOf(first), { content: 'prefers coffee', scope: 'c', tags: [], valid_to: null });
      expect((await post('k', full(user_id))).text).toBe(first.text);
      expect((await subject().client.get(idOf(first))).content).toBe('prefers coffee');
      await subject().client.remove(idOf(first));
      expect((await post('k', full(user_id))).text).toBe(first.text);
      expect(await storedFor(user_id)).toEqual([]);
    });

    test('[Decision 20] of twenty concurrent requests one adds, and all get the same response', async (need) => {
      need('idempotency');
      const user_id = freshUser();
      const post = posting();
      const replies = await Promise.all(Array.from({ length: 20 }, () => post('k', full(user_id))));
      expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
      expect(replies[0]?.status).toBe(201);
      expect(await storedFor(user_id)).toEqual([idOf(replies[0] as { body: unknown })]);
    });

    test('[Decision 20] of concurrent requests with one key for different memories, one adds and the others are rejected', async (need) => {
      need('idempotency');
      const user_id = freshUser();
      const post = posting();
      const contents = Array.from({ length: 8 }, (_, i) => `number ${i}`);
      const replies = await Promise.all(contents.map((content) => post('k', { user_id, content })));
      const added = replies.filter(({ status }) => status === 201);
      for (const reply of replies) if (!added.includes(reply)) expectError(reply, 'invalid_request');
      expect(await storedFor(user_id)).toEqual(added.map(idOf));
      expect(added).toHaveLength(1);
    });

    test('[Decision 20] keys differ by every character, and belong to one caller', async (need) => {
      need('idempotency');
      const user_id = freshUser();
      const post = posting();
      const [one, other] = [admit({ app: 'same name' }), admit({ app: 'same name' })];
      const replies = [
        ...(await Promise.all(
          ['k', 'K', 'k k', 'k  k', '%6b', '~', 'x'.repeat(255)].map((key) => post(key, { user_id, content: 'x' })),
        )),
        await posting(one)('k', { user_id, content: 'x' }),
        await posting(other)('k', { user_id, content: 'x' }),
      ];
      expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 201));
      expect((await storedFor(user_id)).sort()).toEqual([...new Set(replies.map(idOf))].sort());
      expect(new Set(replies.map(idOf)).size).toBe(replies.length);
      // Even a body that another caller would be refused for.
      expect((await posting()('k', { user_id, content: 'y' })).status).toBe(201);
    });

    /** Adds while the clock is so many days ahead, and another memory under the same key once it is right. */
    const afterClockAhead = async (days: number) => {
      onTestFinished(() => void vi.useRealTimers());
      const user_id = freshUser();
      const post = posting();
      const now = Date.now();
      vi.useFakeTimers({ toFake: ['Date'], now: now + days * 86_400_000 });
      const first = await post('k', { user_id, content: 'x' });
      vi.setSystemTime(now);
      return {
        first,
        other: await post('k', { user_id, content: 'y' }),
        add: (content: string) => post('k', { user_id, content }),
      };
    };

    test('[Decision 20] a key used while the clock was three days ahead is known', async (need) => {
      need('idempotency');
      const { first, other, add } = await afterClockAhead(3);
      expectError(other, 'invalid_request');
      expect((await add('x')).text).toBe(first.text);
    });

    test('[Decision 20] a key used while the clock was 30 years ahead is unused', async (need) => {
      need('idempotency');
      const { other, add } = await afterClockAhead(30 * 365);
      expect(other.status).toBe(201);
      expect((await add('y')).text).toBe(other.text);
      expectError(await add('x'), 'invalid_request');
    });
  });
