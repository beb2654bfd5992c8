import { describe, expect } from 'vitest';
import type { Client } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, laterMoment } from '../support/gateway.ts';
import type { WireMemory, WireRollback } from '../support/wire.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

type Item = WireRollback['items'][number];

/** All pages. */
async function rolledBack(client: Client, user_id: string, body: object): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const reply = await client.tell('POST', pathOf(user_id), { ...body, ...(cursor && { cursor }) });
    expect(reply.status, reply.text).toBe(200);
    const page = reply.body as WireRollback;
    items.push(...page.items);
    cursor = page.next_cursor;
  }
  return items;
}

const pathOf = (user_id: string) => `/users/${encodeURIComponent(user_id)}/rollback`;

/** What is done with each memory, by its content. */
const actions = (items: readonly Item[]): Record<string, string> =>
  Object.fromEntries(
    items
      .filter(({ action }) => action !== 'deleted')
      .map(({ action, reason, memory }) => [memory?.content, reason ?? action]),
  );

/** A moment that no write shares. */
async function moment(): Promise<string> {
  await laterMoment();
  const now = new Date().toISOString();
  await laterMoment();
  return now;
}

const without = ({ updated_at: _, embedding_model: __, status: ___, 'x-omp-origin': ____, ...memory }: WireMemory) =>
  memory;

export const rollbackSuite = (subject: GetSubject, admit: Admit) =>
  describe('rollback', () => {
    const test = testOf(subject);
    const callers = () => ({
      good: admit({ app: 'editor', grants: ['*:*'] }),
      bad: admit({ app: 'crawler', grants: ['*:*'] }),
      operator: admit({ app: 'operator', grants: ['*:*'] }),
    });

    test('[Decision 56] undoes what a caller has written in a time, where nobody else has changed it since', async (need) => {
      need('rollback', 'extensions', 'update', 'list', 'delete');
      const { good, bad, operator } = callers();
      const { versions } = subject().capabilities.features;
      const user_id = freshUser();
      const add = (client: Client, content: string) => client.add({ user_id, content });
      const kept = await add(good, 'kept');
      const old = await add(bad, 'added before');
      const changed = await add(good, 'changed');
      const twice = await add(good, 'changed twice');
      const since = await moment();
      const added = await add(bad, 'added');
      const edited = await add(bad, 'added and edited');
      await bad.update(edited.id, { content: 'edited' });
      const repaired = await add(bad, 'added and repaired');
      await good.update(repaired.id, { content: 'repaired' });
      await bad.update(changed.id, { content: 'poison' });
      await bad.update(twice.id, { content: 'poison 1' });
      await bad.update(twice.id, { content: 'poison 2' });
      const until = await moment();
      const later = await add(bad, 'added later');

      const query = { since, until, key: 'crawler' };
      const all = (await operator.list({ user_id })).items;
      const dry = await rolledBack(operator, user_id, { ...query, dry_run: true });
      const [delete_, restore] = versions ? ['delete', 'restore'] : ['no_version', 'no_version'];
      expect(actions(dry)).toEqual({
        ...{ added: 'delete', edited: delete_, poison: restore, 'poison 2': restore },
        ...(versions && { repaired: 'changed_since' }),
      });
      expect((await operator.list({ user_id })).items).toEqual(all);
      expect(await rolledBack(operator, user_id, query)).toEqual(dry);

      const after = new Map((await operator.list({ user_id })).items.map((memory) => [memory.id, memory]));
      const gone = versions ? [added.id, edited.id] : [added.id];
      expect(all.flatMap(({ id }) => (after.has(id) ? [] : [id])).sort()).toEqual(gone.sort());
      for (const untouched of [kept, old, later]) expect(after.get(untouched.id)).toEqual(untouched);
      expect(after.get(repaired.id)?.content).toBe('repaired');
      if (!versions) return;
      for (const before of [changed, twice]) {
        const now = after.get(before.id) as WireMemory;
        expect(without(now)).toEqual(without(before));
        expect(now['x-omp-origin']).toEqual({ key: 'operator', via: 'rollback', version: 1 });
      }
      const again = await rolledBack(operator, user_id, query);
      const rest = { changed: 'rolled_back', 'changed twice': 'rolled_back', repaired: 'changed_since' };
      expect(actions(again)).toEqual(rest);
      expect(new Map((await operator.list({ user_id })).items.map((memory) => [memory.id, memory]))).toEqual(after);
    });

    test('[Decision 56] gives every field back, and asks for it as it was', async (need) => {
      need('rollback', 'versions', 'extensions', 'update', 'scope', 'tags', 'supersedes', 'confidence', 'valid_to');
      const { good, bad, operator } = callers();
      const user_id = freshUser();
      const full = {
        ...{ content: 'café', scope: 'a/b', tags: ['t', 'u'], confidence: 0.5, valid_to: '2036-01-01T00:00:00.000Z' },
        ...{ supersedes: ['mem_x'], 'x-a': { b: [1, null] } },
      };
      const first = await good.add({ user_id, ...full });
      const bare = await good.add({ user_id, content: 'bare' });
      const since = await moment();
      await bad.update(first.id, {
        ...{ content: 'p', scope: 'z', tags: [], confidence: 1, valid_to: null, supersedes: [], 'x-a': null, 'x-b': 1 },
      });
      await bad.update(bare.id, { ...full, content: 'p' });
      await rolledBack(operator, user_id, { since });
      for (const before of [first, bare]) expect(without(await operator.get(before.id))).toEqual(without(before));
      if (subject().capabilities.verbs.includes('search'))
        expect((await operator.search({ user_id, q: 'café' }))[0]?.memory.id).toBe(first.id);
    });

    test('[Decision 56] of everybody, also what another rollback of somebody else has brought back', async (need) => {
      need('rollback', 'versions', 'extensions', 'update');
      const { good, bad, operator } = callers();
      const other = admit({ app: 'tool', grants: ['*:*'] });
      const user_id = freshUser();
      const { id } = await good.add({ user_id, content: 'true' });
      const since = await moment();
      await bad.update(id, { content: 'poison' });
      await other.update(id, { content: 'worse' });
      await rolledBack(operator, user_id, { since, key: 'tool' });
      expect((await operator.get(id)).content).toBe('poison');
      const [item] = await rolledBack(operator, user_id, { since, key: 'crawler' });
      expect(item).toMatchObject({ id, action: 'restore', version: 1 });
      expect((await operator.get(id)).content).toBe('true');
      await bad.update(id, { content: 'again' });
      expect(actions(await rolledBack(operator, user_id, { since }))).toEqual({ again: 'restore' });
      expect((await operator.get(id)).content).toBe('true');
    });

    test('[Decision 56] what says what it said before is kept as it is', async (need) => {
      need('rollback', 'versions', 'extensions', 'update');
      const { good, bad, operator } = callers();
      const user_id = freshUser();
      const { id } = await good.add({ user_id, content: 'true' });
      const since = await moment();
      await bad.update(id, { content: 'false' });
      const last = await bad.update(id, { content: 'true' });
      for (const dry_run of [true, false]) {
        expect(actions(await rolledBack(operator, user_id, { since, dry_run }))).toEqual({ true: 'unchanged' });
      }
      expect(await operator.get(id)).toEqual(last);
    });

    test('[Decision 56] an import is undone by when it happened and who ran it, whatever its file says', async (need) => {
      need('rollback', 'import', 'extensions');
      const { good, bad, operator } = callers();
      const user_id = freshUser();
      const { id } = await good.add({ user_id, content: 'true' });
      const since = await moment();
      const forged = {
        ...{ user_id, created_at: '2001-01-01T00:00:00.000Z', updated_at: '2001-01-02T00:00:00.000Z' },
        'x-omp-origin': { key: 'editor', via: 'http', at: '2001-01-02T00:00:00.000Z' },
      };
      const memories = [
        { ...forged, id: `forged ${user_id}`, content: 'poison' },
        { ...forged, id, content: 'replaced by poison' },
      ];
      const reply = await bad.tell('POST', '/import', { memories, on_conflict: 'replace' });
      expect(reply.body).toEqual({ results: [{ outcome: 'stored' }, { outcome: 'stored' }] });
      expect(actions(await rolledBack(operator, user_id, { since, key: 'editor' }))).toEqual({});
      const { versions } = subject().capabilities.features;
      expect(actions(await rolledBack(operator, user_id, { since, key: 'crawler' }))).toEqual({
        poison: 'delete',
        'replaced by poison': versions ? 'restore' : 'no_version',
      });
      const { items } = await operator.list({ user_id });
      expect(items.map(({ content }) => content)).toEqual([versions ? 'true' : 'replaced by poison']);
    });

    test("[Decision 56] [Decision 43] an import of what is there already, as it is, is nobody's write", async (need) => {
      need('rollback', 'import', 'export', 'extensions');
      const { good, bad, operator } = callers();
      const user_id = freshUser();
      const memory = await good.add({ user_id, content: 'true' });
      const since = await moment();
      const body = { memories: [memory], on_conflict: 'replace' };
      expect((await bad.tell('POST', '/import', body)).body).toEqual({ results: [{ outcome: 'unchanged' }] });
      expect(await rolledBack(operator, user_id, { since, key: 'crawler' })).toEqual([]);
      expect(await good.get(memory.id)).toEqual(memory);
    });

    test('[Decision 56] an import that replaced a memory is not deleted once the version before is gone', async (need) => {
      need('rollback', 'import', 'versions', 'extensions');
      const { good, bad, operator } = callers();
      const user_id = freshUser();
      const memory = await good.add({ user_id, content: 'true' });
      const since = await moment();
      const memories = [{ ...memory, content: 'poison' }];
      await bad.tell('POST', '/import', { memories, on_conflict: 'replace' });
      await good.tell('DELETE', `${good.byId(memory.id)}/versions`);
      expect(actions(await rolledBack(operator, user_id, { since, key: 'crawler' }))).toEqual({ poison: 'no_version' });
      expect((await good.get(memory.id)).content).toBe('poison');
    });

    test('[Decision 56] names what was deleted, which it cannot undo', async (need) => {
      need('rollback', 'audit', 'extensions');
      const { good, bad, operator } = callers();
      const user_id = freshUser();
      const [first, second] = [await good.add({ user_id, content: '1' }), await good.add({ user_id, content: '2' })];
      const since = await moment();
      await bad.remove(first.id);
      await good.remove(second.id);
      await laterMoment();
      const deleted = { id: first.id, action: 'deleted' };
      expect(await rolledBack(operator, user_id, { since, key: 'crawler' })).toEqual([deleted]);
      expect(await rolledBack(operator, user_id, { since: await moment(), key: 'crawler' })).toEqual([]);
      expect(await rolledBack(operator, user_id, { since, key: '' })).toEqual([]);
      expect(await rolledBack(operator, user_id, { since })).toHaveLength(2);
    });

    test('[Decision 56] goes on page by page, also after a page was lost', async (need) => {
      need('rollback', 'extensions', 'list');
      const { good, bad, operator } = callers();
      const user_id = freshUser();
      const kept = await good.add({ user_id, content: 'kept' });
      const since = await moment();
      for (let n = 0; n < 5; n++) await bad.add({ user_id, content: `poison ${n}` });
      const query = { since, key: 'crawler', limit: 2 };
      const dry = await rolledBack(operator, user_id, { ...query, dry_run: true });
      expect(actions(dry)).toEqual(Object.fromEntries([0, 1, 2, 3, 4].map((n) => [`poison ${n}`, 'delete'])));
      await operator.tell('POST', pathOf(user_id), query);
      const rest = await rolledBack(operator, user_id, query);
      expect(rest.length).toBeLessThan(5);
      expect((await operator.list({ user_id })).items).toEqual([kept]);
      const { body } = await operator.tell('POST', pathOf(user_id), { ...query, limit: 1, since: '2001-01-01' });
      const { next_cursor } = body as { next_cursor: string };
      for (const other of [{ ...query, key: 'editor' }, { ...query, dry_run: true }, query]) {
        const reply = await operator.tell('POST', pathOf(user_id), { ...other, cursor: next_cursor });
        expectError(reply, 'invalid_request');
      }
    });

    test('[Decision 56] [Decision 14] needs to write and to delete in every scope of the user', async (need) => {
      need('rollback', 'list');
      const user_id = freshUser();
      const memory = await subject().client.add({ user_id, content: 'x' });
      const body = { since: '2001-01-01' };
      for (const rights of [
        { users: [user_id], grants: ['read:*', 'write:*'] },
        { users: [user_id], grants: ['read:*', 'delete:*'] },
        { users: [user_id], grants: ['read:*', 'write:*', 'delete:a/*'] },
        { users: [user_id], grants: ['read:*', 'write:a/*', 'delete:*'] },
        { users: [freshUser()], grants: ['*:*'] },
      ]) {
        expectError(await admit(rights).tell('POST', pathOf(user_id), body), 'scope_denied');
      }
      expect((await subject().client.list({ user_id })).items).toEqual([memory]);
      const blind = admit({ users: [user_id], grants: ['write:*', 'delete:*'] });
      expect(await rolledBack(blind, user_id, { ...body, dry_run: true })).toEqual([
        { id: memory.id, action: 'delete' },
      ]);
      for (const wrong of [
        {},
        { since: 'x' },
        { since: '2001-01-01', limit: 0 },
        { since: '2001-01-01', dry_run: 'no' },
      ])
        expectError(await subject().client.tell('POST', pathOf(user_id), wrong), 'invalid_request');
    });

    test('[Decision 56] [Decision 11] the request and each change have their entries', async (need) => {
      need('rollback', 'versions', 'audit', 'extensions', 'update');
      const { good, bad, operator } = callers();
      const user_id = freshUser();
      const { id } = await good.add({ user_id, content: 'true' });
      const since = await moment();
      await bad.update(id, { content: 'poison' });
      const added = await bad.add({ user_id, content: 'poison' });
      await rolledBack(operator, user_id, { since, key: 'crawler' });
      const entries = await good.audit({ user_id, app: 'operator' });
      expect(new Set(entries.map(({ action, memory_id, outcome }) => `${action} ${memory_id} ${outcome}`))).toEqual(
        new Set([`rollback null ok`, `update ${id} ok`, `delete ${added.id} ok`]),
      );
    });
  });
