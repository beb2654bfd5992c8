import { describe, expect } from 'vitest';
import { backgroundCall } from '#contract';
import type { Client } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import { withoutOrigin } from '../support/origin.ts';
import type { WireMemory } from '../support/wire.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

type Moved = WireMemory & { readonly vector?: string };

/** All pages of a user's memories. */
async function exported(client: Client, user_id: string, query: object = {}): Promise<Moved[]> {
  const memories: Moved[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const { body, status, text } = await client.ask('/export', {
      user_id,
      limit: 2,
      ...query,
      ...(cursor && { cursor }),
    });
    expect(status, text).toBe(200);
    const page = body as { memories: Moved[]; next_cursor: string | null };
    memories.push(...page.memories);
    cursor = page.next_cursor;
  }
  return memories;
}

async function imported(client: Client, memories: readonly object[], on_conflict?: string) {
  const { body, status, text } = await client.tell('POST', '/import', { memories, on_conflict });
  expect(status, text).toBe(200);
  return (body as { results: { outcome?: string; error?: { code: string } }[] }).results.map(
    ({ outcome, error }) => outcome ?? error?.code,
  );
}

/** A time that is yet to come. */
const soon = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();

const byId = (memories: readonly WireMemory[]) => [...memories].sort((a, b) => (a.id < b.id ? -1 : 1));
const without = ({ embedding_model: _, status: __, vector: ___, ...memory }: Moved) => withoutOrigin(memory);

export const transferSuite = (subject: GetSubject, admit: Admit) =>
  describe('export and import', () => {
    const test = testOf(subject);

    test('[Decision 43] [Decision 14] a caller who may not read a memory does not learn by an import whether a guess is exact', async (need) => {
      need('export', 'import', 'scopes');
      const { client } = subject();
      const user_id = freshUser();
      await client.add({ user_id, content: 'the code is 1234' });
      const [exact] = (await exported(client, user_id)).map(without) as [Moved];
      const guess = { ...exact, content: 'the code is 1235' };
      const writer = admit({ grants: ['write:*'] });
      for (const on_conflict of ['skip', 'replace']) {
        const outcomes = [await imported(writer, [exact], on_conflict), await imported(writer, [guess], on_conflict)];
        expect(outcomes[0], on_conflict).toEqual(outcomes[1]);
      }
      expect(await imported(admit({ grants: ['write:*', 'read:*'] }), [guess])).toEqual(['unchanged']);
    });

    test('[Decision 43] every field, id and time survives the way out and in', async (need) => {
      need('export', 'import', 'scopes', 'tags', 'list', 'search', 'update', 'delete');
      const { client } = subject();
      const user_id = freshUser();
      const first = await client.add({ user_id, content: 'likes tea' });
      await client.add({
        ...{ user_id, content: 'likes café ☕\n"quoted"', scope: 'home/kitchen', tags: ['b', 'a', 'omp:x'] },
        ...{ source: { app: 'editor', type: 'explicit', ref: 'r' }, confidence: 0.25, supersedes: [first.id] },
        ...{
          valid_from: '2025-01-01T00:00:00.000Z',
          valid_to: '2025-02-01T00:00:00.000Z',
          'x-a': { b: [1, null, 'c'] },
        },
      });
      await client.update(first.id, { content: 'likes green tea' });
      const before = await exported(client, user_id);
      expect(byId(await exported(client, user_id, { id: first.id })).map(({ id }) => id)).toEqual([first.id]);
      expect(byId(before)).toEqual(byId((await client.list({ user_id })).items));
      expect(await imported(client, before)).toEqual(['unchanged', 'unchanged']);
      for (const { id } of before) await client.remove(id);
      const moved = before.map(without);
      expect(await imported(client, moved)).toEqual(['stored', 'stored']);
      expect((await exported(client, user_id)).map(without)).toEqual(moved);
      expect(byId((await client.list({ user_id })).items).map(without)).toEqual(byId(moved as Moved[]));
      for (const memory of moved) expect(without(await client.get(memory.id))).toEqual(memory);
      expect((await client.search({ user_id, q: 'green tea' }))[0]?.memory.id).toBe(first.id);
      const changed = await client.update(first.id, { content: 'likes mint tea' });
      expect(changed.created_at).toBe(first.created_at);
      await client.remove(first.id);
      expect((await client.ask(client.byId(first.id))).status).toBe(404);
      expect((await client.list({ user_id })).items).toHaveLength(1);
    });

    test('[Decision 53] memories are exported by their ids, page by page, without those that do not exist', async (need) => {
      need('export', 'import');
      const { client } = subject();
      const [user_id, other] = [freshUser(), freshUser()];
      const own = { user_id: other, id: `own ${other}`, content: 'x', created_at: '2025-01-01T00:00:00.000Z' };
      await imported(client, [own]);
      const ids = [own.id, 'mem_unknown'];
      for (const content of ['a', 'b', 'c']) ids.push((await client.add({ user_id, content })).id);
      await client.add({ user_id, content: 'not asked for' });
      const query = ids.map((id) => `id=${encodeURIComponent(id)}`).join('&');
      const found: string[] = [];
      for (let cursor = ''; ; ) {
        const { body } = await client.ask(`/export?${query}&limit=2${cursor && `&cursor=${cursor}`}`);
        const page = body as { memories: Moved[]; next_cursor: string | null };
        found.push(...page.memories.map(({ id }) => id));
        if (page.next_cursor === null) break;
        cursor = page.next_cursor;
      }
      expect(found.sort()).toEqual(ids.filter((id) => id !== 'mem_unknown').sort());
    });

    test('[Decision 43] an id that is stored already is skipped or replaced, and never taken from another user', async (need) => {
      need('export', 'import', 'list', 'search');
      const { client } = subject();
      const user_id = freshUser();
      const { id } = await client.add({ user_id, content: 'tea' });
      const [memory] = (await exported(client, user_id)) as [Moved];
      const newer = { ...memory, content: 'coffee', updated_at: soon(1) };
      // Every later change would be later still, and hidden from a rollback.
      expect(await imported(client, [{ ...newer, updated_at: soon(25) }])).toEqual(['invalid_request']);
      expect(await imported(client, [newer])).toEqual(['exists']);
      expect((await client.get(id)).content).toBe('tea');
      expect(await imported(client, [newer], 'replace')).toEqual(['stored']);
      expect(await client.get(id)).toMatchObject({ content: 'coffee', updated_at: newer.updated_at });
      const [hit] = await client.search({ user_id, q: 'coffee' });
      expect(hit?.memory.id).toBe(id);
      expect((await client.list({ user_id })).items).toHaveLength(1);
      const foreign = { ...newer, user_id: freshUser() };
      expect(await imported(client, [foreign], 'replace')).toEqual(['exists']);
      expect(await client.get(id)).toMatchObject({ user_id });
      const since = await exported(client, user_id, { since: soon(0.5) });
      expect(since.map((one) => one.id)).toEqual([id]);
      expect(await exported(client, user_id, { since: soon(1.5) })).toEqual([]);
    });

    test('[Decision 43] memories keep the ids and times of another store', async (need) => {
      need('export', 'import', 'list', 'update', 'delete', 'search', 'tags', 'temporal');
      const { client } = subject();
      const user_id = freshUser();
      const old = [
        { id: `note é/${user_id}`, content: 'oldest tea', created_at: '2019-05-01T10:00:00.000Z' },
        { id: `${user_id}-b`, content: 'tea of 2024', created_at: '2024-05-01T10:00:00.000Z' },
        { id: `${user_id}-c`, content: 'more of 2024', created_at: '2024-05-01T10:00:00.000Z' },
        { id: `${user_id}-d`, content: 'tea of 2026', created_at: '2026-01-01T10:00:00.000Z', tags: ['t'] },
      ].map((memory) => ({ ...memory, user_id, updated_at: '2026-02-01T00:00:00.000Z' }));
      expect(await imported(client, old)).toEqual(old.map(() => 'stored'));
      expect(await imported(client, old)).toEqual(old.map(() => 'unchanged'));
      const added = await client.add({ user_id, content: 'new', supersedes: [old[0]?.id] });
      const order = [added, old[3], old[2], old[1], old[0]].map((memory) => memory?.id);
      const paged: string[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await client.list({ user_id, limit: 1, ...(cursor && { cursor }) });
        paged.push(...page.items.map(({ id }) => id));
        cursor = page.next_cursor;
      }
      expect(paged.toSorted()).toEqual(order.toSorted());
      // Within one millisecond the order is the store's.
      expect([paged[0], paged[1], paged[4]]).toEqual([order[0], order[1], order[4]]);
      const in2024 = await client.list({ user_id, since: '2024-01-01', until: '2024-12-31' });
      expect(in2024.items.map(({ id }) => id).toSorted()).toEqual([`${user_id}-b`, `${user_id}-c`]);
      for (const { id, content, created_at, updated_at } of old) {
        expect(await client.get(id)).toMatchObject({ id, content, created_at, updated_at });
      }
      const [first] = old as [(typeof old)[number]];
      expect(await client.update(first.id, { content: 'oldest coffee' })).toMatchObject({ id: first.id });
      expect((await client.search({ user_id, q: 'oldest coffee' })).map(({ memory }) => memory.id)).toContain(first.id);
      expect((await exported(client, user_id)).map(({ id }) => id).toSorted()).toEqual(order.toSorted());
      const elsewhere = admit({ users: [freshUser()], grants: ['*:*'] });
      expect((await elsewhere.ask(client.byId(first.id))).status).toBe(404);
      await client.remove(first.id);
      expect((await client.ask(client.byId(first.id))).status).toBe(404);
      expect((await client.list({ user_id })).items).toHaveLength(4);
      // Gone, so another user may have the id.
      expect(await imported(client, [{ ...first, user_id: freshUser() }])).toEqual(['stored']);
    });

    test('[Decision 43] vectors of the same model are taken over, others are computed', async (need) => {
      need('export', 'import', 'vector_search');
      const { client } = subject();
      const user_id = freshUser();
      for (const content of ['likes tea', 'lives in Oslo']) await client.add({ user_id, content });
      const [tea, oslo] = (await exported(client, user_id, { vectors: 'true' })).sort((a, b) =>
        a.content > b.content ? -1 : 1,
      ) as [Moved, Moved];
      // With the vector of the other one, which only its own model makes right.
      const swapped = [
        { ...oslo, vector: tea.vector },
        { ...tea, vector: oslo.vector, embedding_model: 'another' },
      ].map((memory) => ({ ...memory, updated_at: soon(1) }));
      expect(await imported(client, swapped, 'replace')).toEqual(['stored', 'stored']);
      const found = byId(await exported(client, user_id, { vectors: 'true' })) as Moved[];
      expect(found.map(({ vector }) => vector)).toEqual(byId([oslo, tea]).map(() => tea.vector));
      const broken = { ...tea, vector: 'AAA' };
      expect(await imported(client, [broken, { ...tea, id: '' }])).toEqual(['invalid_request', 'invalid_request']);
      expectError(await client.tell('POST', '/import', { memories: [tea, tea] }), 'invalid_request');
    });

    test('[Decision 43] an id that no path can name is rejected, and every other one can be read', async (need) => {
      need('export', 'import', 'delete');
      const { client } = subject();
      const user_id = freshUser();
      const memory = { user_id, content: 'tea', created_at: '2026-01-01T00:00:00.000Z' };
      const ids = ['batch', 'searching', '...', '%2e', '/', '?', `#${user_id}`];
      const unreachable = ['.', '..', 'search'];
      const outcomes = await imported(
        client,
        [...unreachable, ...ids].map((id) => ({ ...memory, id })),
      );
      expect(outcomes).toEqual([...unreachable.map(() => 'invalid_request'), ...ids.map(() => 'stored')]);
      for (const id of ids) {
        expect((await client.get(id)).id).toBe(id);
        await client.remove(id);
      }
    });

    test('[Decision 43] a vector that the store cannot keep rejects its own memory, with the reason', async (need) => {
      need('export', 'import', 'vector_search', 'list');
      const { client } = subject();
      const user_id = freshUser();
      await client.add({ user_id, content: 'likes tea' });
      const [tea] = (await exported(client, user_id, { vectors: 'true' })) as [Moved];
      const dimensions = Buffer.from(tea.vector ?? '', 'base64').length / 4;
      const vectorOf = (component: number) =>
        Buffer.from(new Float32Array(dimensions).fill(component).buffer).toString('base64');
      const moved = [1, 65_504, 65_505, -65_600, 3e38].map((component) => ({
        ...{ ...tea, id: `${user_id}-${component}`, content: `of ${component}`, vector: vectorOf(component) },
      }));
      const { body, status } = await client.tell('POST', '/import', { memories: moved });
      expect(status).toBe(200);
      const { results } = body as { results: { outcome?: string; error?: { code: string; message: string } }[] };
      expect(results.slice(0, 2)).toEqual([{ outcome: 'stored' }, { outcome: 'stored' }]);
      for (const { outcome, error } of results.slice(2)) {
        // A store of single precision may keep it.
        if (outcome === undefined)
          expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringMatching(/^vector: /) });
      }
      const stored = moved.filter((_, i) => results[i]?.outcome === 'stored').map(({ content }) => content);
      expect((await client.list({ user_id })).items.map(({ content }) => content).sort()).toEqual(
        [...stored, 'likes tea'].sort(),
      );
    });

    test('[Decision 11] [Decision 43] each memory that an import changes, and the export of a user, are in the audit log of that user', async (need) => {
      need('export', 'import', 'audit');
      const [user_id, other] = [freshUser(), freshUser()];
      const mover = admit({ app: 'mover' });
      const memoryOf = (n: number, content: string, of = user_id) => ({
        ...{ id: `${user_id}-${n}`, user_id: of, content, created_at: '2025-01-01T00:00:00.000Z', scope: 'a/b' },
      });
      const entriesOf = async (of: string) =>
        (await subject().client.audit({ user_id: of }))
          .filter(({ app }) => app === 'mover')
          .map(({ action, memory_id, scope, outcome }) => [action, memory_id, scope, outcome]);
      const entry = (n: number) => ['import', `${user_id}-${n}`, 'a/b', 'ok'];
      expect(await imported(mover, [memoryOf(1, 'tea'), memoryOf(2, 'oslo'), memoryOf(3, 'cat', other)])).toEqual(
        Array(3).fill('stored'),
      );
      expect((await entriesOf(user_id)).sort()).toEqual([entry(1), entry(2)]);
      expect(await entriesOf(other)).toEqual([entry(3)]);
      // What stays as it is has no entry.
      expect(await imported(mover, [memoryOf(1, 'tea'), memoryOf(2, 'rome')])).toEqual(['unchanged', 'exists']);
      expect(await imported(mover, [memoryOf(2, 'rome')], 'replace')).toEqual(['stored']);
      expect((await entriesOf(user_id)).sort()).toEqual([entry(1), entry(2), entry(2)]);
      await exported(mover, user_id);
      expect((await entriesOf(user_id))[0]).toEqual(['export', null, null, 'ok']);
      expect(await entriesOf(other)).toEqual([entry(3)]);
    });

    test('[Decision 43] vectors are read only if they are asked for', async (need) => {
      need('export', 'vector_search');
      const { client, provider } = subject();
      const user_id = freshUser();
      await client.add({ user_id, content: 'likes tea' });
      expect(await exported(client, user_id)).toEqual([expect.not.objectContaining({ vector: expect.anything() })]);
      const vectorOf = async (vectors: boolean) =>
        (await provider.export?.({ user_id, vectors, limit: 10, max_bytes: 1e6 }, backgroundCall('test')))?.items.map(
          ({ vector }) => vector,
        );
      expect(await vectorOf(true)).toEqual([expect.any(Float32Array)]);
      expect(await vectorOf(false)).toEqual([null]);
    });

    test('[Decision 43] only who may read, or write, everything may', async (need) => {
      need('export', 'import', 'list', 'tags');
      const { client } = subject();
      const user_id = freshUser();
      await client.add({ user_id, content: 'tea' });
      const memories = await exported(client, user_id);
      const owner = admit({ users: [user_id], grants: ['*:*'] });
      expect(await exported(owner, user_id)).toEqual(memories);
      expectError(await owner.ask('/export'), 'scope_denied');
      expectError(await owner.ask('/export', { user_id: freshUser() }), 'scope_denied');
      expectError(await owner.tell('POST', '/import', { memories }), 'scope_denied');
      for (const grants of [['read:work/*', 'write:*'], ['write:work/*', 'read:*'], ['delete:*']]) {
        const narrow = admit({ grants });
        const [reads, writes] = [grants.includes('read:*'), grants.includes('write:*')];
        const statuses = [
          (await narrow.ask('/export', { user_id })).status,
          (await narrow.tell('POST', '/import', { memories })).status,
        ];
        expect(statuses, grants.join()).toEqual([reads ? 200 : 403, writes ? 200 : 403]);
      }
    });
  });
