import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { backgroundCall, type UserUsage } from '#contract';
import type { Client, Fields } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import type { WireMemory } from '../support/wire.ts';
import { type GetSubject, type Need, needs } from './subject.ts';

/** What is asked of the limits, of one or several gateways on one store. */
export type Limited = (limits: Parameters<ReturnType<GetSubject>['limited']>[0], key?: string) => Client;

type Outcome = { readonly size: number; readonly memory?: WireMemory | undefined; readonly code?: string | undefined };

const text = (size: number): string => 'é'.repeat(Math.floor(size / 2)) + 'x'.repeat(size % 2);

/** Adds these contents, each alone or all in one batch. */
async function addAll(client: Client, user_id: string, sizes: readonly number[], batched: boolean): Promise<Outcome[]> {
  const inputs = sizes.map((size) => ({ user_id, content: text(size) }));
  if (!batched) {
    return Promise.all(
      inputs.map(async (input, i) => {
        const { status, body } = await client.tell('POST', '/memories', input);
        const { error } = body as { error?: { code: string } };
        return {
          size: sizes[i] as number,
          memory: status === 201 ? (body as WireMemory) : undefined,
          code: error?.code,
        };
      }),
    );
  }
  return (await client.batch(inputs)).map(({ memory, error }, i) => ({
    size: sizes[i] as number,
    memory,
    code: (error as { code: string } | undefined)?.code,
  }));
}

const times = (count: number, size = 10): number[] => Array.from({ length: count }, () => size);

/** Parallel adds, of `clients` in turns. */
const race = async (clients: readonly Client[], user_id: string, groups: readonly (readonly number[])[]) =>
  (
    await Promise.all(
      groups.map((sizes, i) => addAll(clients[i % clients.length] as Client, user_id, sizes, sizes.length > 1)),
    )
  ).flat();

/** Limits hold against everything that runs at the same time, and reject nothing that certainly fits. */
export async function limitsHold(limited: readonly Limited[], usage: (user_id: string) => Promise<UserUsage>) {
  const stored = (outcomes: readonly Outcome[]) => outcomes.flatMap(({ memory }) => memory ?? []);
  const codes = (outcomes: readonly Outcome[]) => new Set(outcomes.flatMap(({ code }) => code ?? []));
  const [user, other] = [freshUser(), freshUser()];
  const clients = limited.map((one) => one({ memories: 12 }));
  const client = clients[0] as Client;
  const first = await race(clients, user, [times(1), times(5), times(1), times(4), times(1), times(6)]);
  expect([stored(first).length, (await usage(user)).memories]).toEqual([12, 12]);
  expect(codes(first)).toEqual(new Set(['payload_too_large']));
  // Another user has room of its own.
  expect(stored(await race(clients, other, [times(1), times(2)]))).toHaveLength(3);
  // Deletions give room back, and adds that run beside them never take more.
  const kept = stored(first).slice(4);
  const [, beside] = await Promise.all([
    Promise.all(
      stored(first)
        .slice(0, 4)
        .map(({ id }) => client.remove(id)),
    ),
    race(clients, user, [times(1), times(3), times(1), times(3)]),
  ]);
  expect((await usage(user)).memories).toBe(kept.length + stored(beside).length);
  expect((await usage(user)).memories).toBeLessThanOrEqual(12);
  const room = 12 - (await usage(user)).memories;
  expect(stored(await race(clients, user, [times(3), times(1), times(3)]))).toHaveLength(Math.min(7, room));
}

export const limitsSuite = (subject: GetSubject) =>
  describe('limits of users', () => {
    const test = (title: string, work: (need: (...all: readonly Need[]) => void) => Promise<unknown>) =>
      it(title, ({ skip }) => {
        skip(subject().provider.userUsage === undefined, 'has no userUsage');
        return work((...all) => needs(skip, subject(), ...all));
      });
    const usage = (user_id: string) => {
      const { provider } = subject();
      return provider.userUsage?.({ user_id }, backgroundCall('test')) as Promise<UserUsage>;
    };
    const limited: Limited = (limits, key) => subject().limited(limits, key);
    const add = (client: Client, fields: Fields, headers = {}) => client.tell('POST', '/memories', fields, headers);
    const stopAt = (now: number) => void vi.useFakeTimers({ toFake: ['Date'], now });
    const noon = (day: string) => stopAt(Date.parse(`${day}T12:00:00Z`));
    // No day ends within a test.
    beforeEach(() => stopAt(Date.now()));
    afterEach(() => {
      vi.useRealTimers();
    });

    test('[Decision 59] parallel adds and deletions never exceed memories, and nothing that fits is rejected', async (need) => {
      need('delete');
      await limitsHold([limited, limited], usage);
    });

    test('[Decision 59] parallel adds and changes of contents never exceed bytes, and nothing that fits is rejected', async (need) => {
      need('update');
      const user_id = freshUser();
      const client = limited({ bytes: 1_000 });
      const added = await race([client], user_id, [[100], [90, 200, 10], [70], [60, 50]]);
      const ids = added.map(({ memory }) => memory?.id as string);
      expect((await usage(user_id)).bytes).toBe(580);
      // They only grow, so what was rejected does not fit in the end either.
      const grow = async (id: string, size: number, before: number) => {
        const { status } = await client.tell('PATCH', client.byId(id), { content: text(size) });
        return { growth: size - before, rejected: status !== 200 };
      };
      const changes = added.slice(0, 5).map(({ size }, i) => grow(ids[i] as string, 2 * size, size));
      const [outcomes, more] = await Promise.all([
        Promise.all(changes),
        race([client], user_id, [[150], [40, 120, 30], [7]]),
      ]);
      const { bytes } = await usage(user_id);
      const growth = outcomes.reduce((sum, { growth, rejected }) => sum + (rejected ? 0 : growth), 0);
      const sizes = more.reduce((sum, { size, memory }) => sum + (memory ? size : 0), 0);
      expect(bytes).toBe(580 + growth + sizes);
      expect(bytes).toBeLessThanOrEqual(1_000);
      const rejected = [
        ...outcomes.filter((one) => one.rejected).map((one) => one.growth),
        ...more.filter(({ memory }) => !memory).map(({ size }) => size),
      ];
      expect(rejected.filter((size) => bytes + size <= 1_000)).toEqual([]);
      expect(rejected).not.toEqual([]);
      // A content may become shorter, and change its other fields, whatever the user has.
      const full = limited({ bytes: 1 });
      expect((await full.update(ids[0] as string, { content: 'x' })).content).toBe('x');
      expectError(await full.tell('PATCH', full.byId(ids[0] as string), { content: 'xy' }), 'payload_too_large');
    });

    test('[Decision 59] parallel adds never exceed those of a day; deletions give none back, the next day does', async (need) => {
      need('delete');
      noon('2031-05-04');
      const user_id = freshUser();
      const client = limited({ adds_per_day: 6 });
      const outcomes = await race([client], user_id, [times(1), times(3), times(1), times(4), times(1)]);
      const stored = outcomes.flatMap(({ memory }) => memory ?? []);
      expect(stored).toHaveLength(6);
      await client.remove(stored[0]?.id as string);
      const late = await add(client, { user_id, content: 'late' });
      expectError(late, 'rate_limited');
      expect(late.headers.get('retry-after')).toBe(String(12 * 60 * 60));
      expect(late.text).toMatch(/added today; wait until 00:00 UTC/);
      noon('2031-05-05');
      expect(
        (await race([client], user_id, [times(4), times(1), times(3)])).filter(({ memory }) => memory),
      ).toHaveLength(6);
      expect(await usage(user_id)).toMatchObject({ memories: 11, adds_per_day: 6 });
    });

    test('[Decision 59] a batch adds what fits, in order', async () => {
      const [user_id, other] = [freshUser(), freshUser()];
      const client = limited({ bytes: 100, memories: 4 });
      const inputs = [50, 60, 40, 20, 10].map((size) => ({ user_id, content: text(size) }));
      const results = await client.batch([...inputs, { user_id: other, content: 'x' }]);
      expect(results.map(({ memory }) => memory?.content.length)).toEqual([25, undefined, 20, undefined, 5, 1]);
      expect(results[1]).toMatchObject({ error: { code: 'payload_too_large' } });
      const none = await client.batch([{ user_id, content: text(1) }]);
      expect(none).toMatchObject([
        { error: { code: 'payload_too_large', message: expect.stringMatching(/^\D*bytes\D*user_limits\D*$/) } },
      ]);
    });

    test('[Decision 59] a retry with its key has the first answer, however full the user is', async (need) => {
      need('idempotency');
      const user_id = freshUser();
      const client = limited({ memories: 2, adds_per_day: 2 });
      const key = { 'idempotency-key': `k-${user_id}` };
      const send = () => add(client, { user_id, content: 'once' }, key);
      const answers = await Promise.all([send(), send(), send()]);
      expect(new Set(answers.map(({ body }) => (body as WireMemory).id)).size).toBe(1);
      const memories = [
        { user_id, content: 'a' },
        { user_id, content: 'b' },
      ];
      const batch = await client.batch(memories, `b-${user_id}`);
      expect(batch).toMatchObject([{ memory: { content: 'a' } }, { error: { code: 'payload_too_large' } }]);
      expect((await client.batch(memories, `b-${user_id}`))[0]).toEqual(batch[0]);
      expect((await send()).body).toEqual(answers[0]?.body);
      const another = await add(client, { user_id, content: 'once' }, { 'idempotency-key': `o-${user_id}` });
      // No number: the caller may not be allowed to read all that the user has.
      expect(expectError(another, 'payload_too_large').message).toMatch(/^\D+$/);
      expect(await usage(user_id)).toMatchObject({ memories: 2, adds_per_day: 2 });
    });

    test('[Decision 59] the first override for the user or the key decides each limit; all adds count', async () => {
      const user_id = freshUser();
      const limits = {
        memories: 1,
        overrides: [
          { keys: 'import*', memories: null },
          { users: `${user_id.slice(0, 12)}*`, adds_per_day: 4 },
          { users: user_id, memories: 3, adds_per_day: 1 },
        ],
      };
      const [client, importer] = [limited(limits), limited(limits, 'importer')];
      expect((await addAll(importer, user_id, times(2), true)).filter(({ memory }) => memory)).toHaveLength(2);
      await client.add({ user_id, content: 'third' });
      expectError(await add(client, { user_id, content: 'fourth' }), 'payload_too_large');
      await importer.add({ user_id, content: 'fourth' });
      expectError(await add(importer, { user_id, content: 'fifth' }), 'rate_limited');
      await limited(limits).add({ user_id: freshUser(), content: 'another' });
    });

    test('[Decision 59] GET /stats says what the user has of what it may have', async (need) => {
      need('stats');
      const user_id = freshUser();
      const client = limited({ memories: 5, bytes: 100 });
      await client.add({ user_id, content: 'ééé' });
      expect(await client.stats(user_id)).toMatchObject({
        limits: {
          memories: { used: 1, limit: 5 },
          bytes: { used: 6, limit: 100 },
          adds_per_day: { used: 1, limit: null },
        },
      });
      expect(await subject().client.stats(user_id)).not.toHaveProperty('limits');
    });

    test('[Decision 59] an import and an erase count', async (need) => {
      need('import', 'list', 'erase');
      const [user_id, source] = [freshUser(), freshUser()];
      const client = limited({ memories: 3 });
      await client.add({ user_id, content: 'mine' });
      await subject().client.batch(times(3).map(() => ({ user_id: source, content: 'x' })));
      const { items } = await subject().client.list({ user_id: source });
      await subject().client.erase(source);
      const memories = items.map((memory) => ({ ...memory, user_id }));
      const { status, text: answer } = await client.tell('POST', '/import', { memories });
      expect(status, answer).toBe(200);
      expect((await usage(user_id)).memories).toBe(4);
      expectError(await add(client, { user_id, content: 'more' }), 'payload_too_large');
      await client.erase(user_id);
      expect(await usage(user_id)).toEqual({ memories: 0, bytes: 0, adds_per_day: 0 });
      await client.add({ user_id, content: 'anew' });
    });
  });
