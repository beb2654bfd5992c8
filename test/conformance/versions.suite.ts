import { describe, expect } from 'vitest';
import { backgroundCall } from '#contract';
import type { Client } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import type { WireVersion } from '../support/wire.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

const summary = ({ items }: { readonly items: readonly WireVersion[] }) =>
  items.map(({ version, memory, changed, current }) => [version, memory.content, changed, current]);

export const versionsSuite = (subject: GetSubject, admit: Admit) =>
  describe('versions', () => {
    const test = testOf(subject);
    /** A memory with three versions. */
    const changedTwice = async (client: Client = subject().client) => {
      const user_id = freshUser();
      const first = await client.add({ user_id, content: 'likes tea', 'x-mood': { calm: true } });
      const second = await client.update(first.id, { content: 'likes mint' });
      const third = await client.update(first.id, { confidence: 0.5, 'x-mood': null, 'x-new': 1 });
      return { user_id, id: first.id, first, second, third };
    };
    /** A memory as it is in a version. */
    const asVersion = (memory: object) => ({ ...memory, embedding_model: null, status: null });

    test('[Decision 55] every change keeps the version before it, newest first, with what it changed', async (need) => {
      need('versions', 'update', 'confidence', 'extensions');
      const { versions } = subject().client;
      const { id, first, second, third } = await changedTwice();
      const { items, next_cursor } = await versions(id);
      expect(items.map(({ memory }) => memory)).toEqual([third, asVersion(second), asVersion(first)]);
      expect(summary({ items })).toEqual([
        [3, 'likes mint', ['confidence', 'x-mood', 'x-new'], true],
        [2, 'likes mint', ['content'], false],
        [1, 'likes tea', null, false],
      ]);
      expect(next_cursor).toBe(null);
    });

    test('[Decision 55] a memory that was never changed has one version, and one that is unknown is not found', async (need) => {
      need('versions');
      const { client } = subject();
      const memory = await client.add({ user_id: freshUser(), content: 'likes tea' });
      expect(await client.versions(memory.id)).toEqual({
        items: [{ version: 1, memory, changed: null, current: true }],
        next_cursor: null,
      });
      for (const reply of [
        await client.ask('/memories/mem_unknown/versions'),
        await client.ask('/memories/mem_unknown/versions/1'),
        await client.tell('POST', '/memories/mem_unknown/restore', { version: 1 }),
        await client.tell('DELETE', '/memories/mem_unknown/versions'),
      ])
        expectError(reply, 'not_found');
    });

    test('[Decision 55] [Decision 7] a change that changes nothing keeps no version', async (need) => {
      need('versions', 'update', 'tags');
      const { client } = subject();
      const { id } = await client.add({ user_id: freshUser(), content: 'likes tea', tags: ['a'] });
      await client.update(id, { content: 'likes tea', tags: ['a'] });
      await client.update(id, {});
      expect((await client.versions(id)).items).toHaveLength(1);
    });

    test('[Decision 55] pages go on where the one before ended, and a cursor belongs to its memory', async (need) => {
      need('versions', 'update');
      const { client } = subject();
      const { id } = await client.add({ user_id: freshUser(), content: 'number 1' });
      for (let n = 2; n <= 5; n++) await client.update(id, { content: `number ${n}` });
      const all = (await client.versions(id)).items;
      const found: WireVersion[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await client.versions(id, { limit: 2, ...(cursor && { cursor }) });
        expect(page.items.length).toBeLessThanOrEqual(2);
        found.push(...page.items);
        cursor = page.next_cursor;
      }
      expect(found).toEqual(all);
      expect(all.map(({ version }) => version)).toEqual([5, 4, 3, 2, 1]);
      const other = await client.add({ user_id: freshUser(), content: 'x' });
      const { next_cursor } = await client.versions(id, { limit: 1 });
      expectError(
        await client.ask(`${client.byId(other.id)}/versions`, { cursor: next_cursor ?? '' }),
        'invalid_request',
      );
    });

    test('[Decision 55] one version by its number', async (need) => {
      need('versions', 'update', 'confidence', 'extensions');
      const { client } = subject();
      const { id, first, second, third } = await changedTwice();
      const read = async (version: number | string) => client.ask(`${client.byId(id)}/versions/${version}`);
      expect((await read(1)).body).toEqual({ version: 1, memory: asVersion(first), changed: null, current: false });
      expect((await read(2)).body).toMatchObject({ memory: asVersion(second), changed: ['content'] });
      expect((await read(3)).body).toMatchObject({ memory: third, current: true });
      expectError(await read(4), 'not_found');
      for (const wrong of ['0', '-1', 'x', '1.5', '9999999999']) expectError(await read(wrong), 'invalid_request');
    });

    test('[Decision 55] a restore makes a new version of what PATCH may change, and search finds it', async (need) => {
      need('versions', 'update', 'search', 'confidence', 'extensions', 'tags', 'valid_to', 'supersedes', 'scopes');
      const { client } = subject();
      const user_id = freshUser();
      const rich = {
        ...{
          scope: 'a/b',
          tags: ['x'],
          confidence: 0.25,
          valid_to: '2036-01-01T00:00:00.000Z',
          supersedes: ['mem_old'],
        },
        ...{ 'x-kept': { deep: [1] } },
      };
      const bare = await client.add({ user_id, content: 'walks in the morning' });
      const full = await client.update(bare.id, { content: 'drinks green tea', ...rich });
      const back = await client.restore(bare.id, 1);
      expect(back).toMatchObject({
        ...bare,
        updated_at: expect.any(String),
        status: expect.anything(),
        'x-omp-origin': { via: 'restore', version: 1 },
      });
      expect(Object.hasOwn(back, 'x-kept')).toBe(false);
      expect(Date.parse(`${back.updated_at}`)).toBeGreaterThan(Date.parse(`${full.updated_at}`));
      expect(await client.get(bare.id)).toMatchObject({ content: bare.content, scope: null, confidence: null });
      expect(await client.restore(bare.id, 2)).toMatchObject({ content: full.content, ...rich });
      expect(summary(await client.versions(bare.id)).map(([version, content]) => [version, content])).toEqual([
        [4, 'drinks green tea'],
        [3, 'walks in the morning'],
        [2, 'drinks green tea'],
        [1, 'walks in the morning'],
      ]);
      const [hit] = await client.search({ user_id, q: 'drinks green tea' });
      expect(hit?.memory).toMatchObject({ id: bare.id, content: 'drinks green tea' });
    });

    test('[Decision 55] a restore of the current version changes nothing, and one of an unknown version is not found', async (need) => {
      need('versions', 'update', 'confidence', 'extensions');
      const { client } = subject();
      const { id, third } = await changedTwice();
      expect(await client.restore(id, 3)).toEqual(third);
      expect((await client.versions(id)).items).toHaveLength(3);
      expectError(await client.tell('POST', `${client.byId(id)}/restore`, { version: 4 }), 'not_found');
      for (const body of [{}, { version: 0 }, { version: '1' }, { version: 1.5 }])
        expectError(await client.tell('POST', `${client.byId(id)}/restore`, body), 'invalid_request');
    });

    test('[Decision 55] [Decision 36] a restore takes If-Match', async (need) => {
      need('versions', 'update', 'etags', 'confidence', 'extensions');
      const { client } = subject();
      const { id, second, third } = await changedTwice();
      const restore = (etag: string) =>
        client.tell('POST', `${client.byId(id)}/restore`, { version: 1 }, { 'if-match': etag });
      expect((await restore(`"${second.updated_at}"`)).status).toBe(412);
      const done = await restore(`"${third.updated_at}"`);
      expect(done).toMatchObject({ status: 200, body: { content: 'likes tea' } });
      expect(done.headers.get('etag')).toBe(`"${(done.body as { updated_at: string }).updated_at}"`);
    });

    test('[Decision 55] a purge leaves the current version alone, and numbers go on', async (need) => {
      need('versions', 'update', 'confidence', 'extensions');
      const { client } = subject();
      const { id, third } = await changedTwice();
      expect((await client.tell('DELETE', `${client.byId(id)}/versions`)).body).toEqual({ purged: 2 });
      expect(await client.get(id)).toEqual(third);
      expect((await client.tell('DELETE', `${client.byId(id)}/versions`)).body).toEqual({ purged: 0 });
      expect(await client.versions(id)).toMatchObject({ items: [{ version: 3, changed: null, current: true }] });
      expectError(await client.tell('POST', `${client.byId(id)}/restore`, { version: 1 }), 'not_found');
      await client.update(id, { content: 'likes coffee' });
      expect(summary(await client.versions(id))).toEqual([
        [4, 'likes coffee', ['content'], true],
        [3, 'likes mint', null, false],
      ]);
    });

    test('[Decision 55] versions go with their memory', async (need) => {
      need('versions', 'update', 'delete', 'erase', 'confidence', 'extensions');
      const { client } = subject();
      const one = await changedTwice();
      await client.remove(one.id);
      expectError(await client.ask(`${client.byId(one.id)}/versions`), 'not_found');
      const other = await changedTwice();
      expect(await client.erase(other.user_id)).toBe(1);
      expectError(await client.ask(`${client.byId(other.id)}/versions/1`), 'not_found');
    });

    test('[Decision 55] [Decision 14] a caller sees versions of memories that it may read now, and only scopes that it may read', async (need) => {
      need('versions', 'update', 'scopes');
      const { client } = subject();
      const user_id = freshUser();
      const { id } = await client.add({ user_id, content: 'secret one', scope: 'b/c' });
      await client.update(id, { content: 'open two', scope: 'a/c' });
      await client.update(id, { content: 'secret three', scope: 'b/d' });
      await client.update(id, { content: 'open four', scope: 'a/d' });
      const reader = admit({ users: [user_id], grants: ['read:a/*'] });
      expect(summary(await reader.versions(id))).toEqual([
        [4, 'open four', null, true],
        [2, 'open two', null, false],
      ]);
      expect(summary(await reader.versions(id, { limit: 1 }))).toEqual([[4, 'open four', null, true]]);
      expectError(await reader.ask(`${client.byId(id)}/versions/3`), 'not_found');
      expect((await reader.ask(`${client.byId(id)}/versions/2`)).body).toMatchObject({ version: 2, changed: null });
      expectError(
        await admit({ users: [user_id], grants: ['read:b/*'] }).ask(`${client.byId(id)}/versions`),
        'scope_denied',
      );
      expectError(await admit({ users: [freshUser()] }).ask(`${client.byId(id)}/versions`), 'not_found');
    });

    test('[Decision 55] [Decision 14] a restore needs to read the memory and the version, and to write both scopes', async (need) => {
      need('versions', 'update', 'scopes');
      const { client } = subject();
      const user_id = freshUser();
      const { id } = await client.add({ user_id, content: 'one', scope: 'b/c' });
      const now = await client.update(id, { content: 'two', scope: 'a/c' });
      const restore = (...grants: string[]) =>
        admit({ users: [user_id], grants }).tell('POST', `${client.byId(id)}/restore`, { version: 1 });
      expectError(await restore('write:*'), 'scope_denied');
      expectError(await restore('read:*'), 'scope_denied');
      expectError(await restore('read:*', 'write:a/*'), 'scope_denied');
      expectError(await restore('read:*', 'write:b/*'), 'scope_denied');
      expectError(await restore('read:a/*', 'write:*'), 'not_found');
      expect(await client.get(id)).toEqual(now);
      expect((await restore('read:*', 'write:a/*', 'write:b/*')).body).toMatchObject({ content: 'one', scope: 'b/c' });
    });

    test('[Decision 55] [Decision 14] a purge needs the grant to delete the memory', async (need) => {
      need('versions', 'update', 'scopes');
      const { client } = subject();
      const user_id = freshUser();
      const { id } = await client.add({ user_id, content: 'one', scope: 'a/c' });
      await client.update(id, { content: 'two' });
      const purge = (grants: string[], users = [user_id]) =>
        admit({ users, grants }).tell('DELETE', `${client.byId(id)}/versions`);
      expectError(await purge(['read:*', 'write:*', 'delete:b/*']), 'scope_denied');
      expectError(await purge(['*:*'], [freshUser()]), 'not_found');
      expect((await purge(['delete:a/*'])).body).toEqual({ purged: 1 });
    });

    test('[Decision 55] [Decision 53] a frozen store takes no restore and no purge', async (need) => {
      need('versions', 'update', 'freeze', 'confidence', 'extensions');
      const { client } = subject();
      const { id } = await changedTwice();
      const before = await client.versions(id);
      await client.tell('POST', '/freeze');
      try {
        for (const reply of [
          await client.tell('POST', `${client.byId(id)}/restore`, { version: 1 }),
          await client.tell('DELETE', `${client.byId(id)}/versions`),
        ])
          expect(reply.status, reply.text).toBe(503);
        expect(await client.versions(id)).toEqual(before);
      } finally {
        await client.tell('DELETE', '/freeze');
      }
    });

    test('[Decision 55] concurrent changes keep every version once', async (need) => {
      need('versions', 'update');
      const { client } = subject();
      const { id } = await client.add({ user_id: freshUser(), content: 'number 0' });
      const contents = Array.from({ length: 12 }, (_, i) => `number ${i + 1}`);
      await Promise.all(contents.map((content) => client.update(id, { content })));
      const { items } = await client.versions(id);
      expect(items.map(({ version }) => version)).toEqual(Array.from({ length: 13 }, (_, i) => 13 - i));
      expect(items.map(({ memory }) => memory.content).sort()).toEqual(['number 0', ...contents].sort());
    });

    test('[Decision 55] the audit log records who read, restored and purged versions', async (need) => {
      need('versions', 'update', 'audit', 'confidence', 'extensions');
      const { client } = subject();
      const { id, user_id } = await changedTwice();
      await client.versions(id);
      await client.ask(`${client.byId(id)}/versions/1`);
      await client.restore(id, 1);
      await client.tell('DELETE', `${client.byId(id)}/versions`);
      const entries = await client.audit({ user_id });
      expect(entries.map(({ action, memory_id }) => [action, memory_id]).sort()).toEqual(
        ['add', 'purge', 'restore', 'update', 'update', 'update', 'versions', 'versions'].map((action) => [action, id]),
      );
    });

    test('[Decision 55] an export has versions if it asks for them, and an import keeps what it replaces', async (need) => {
      need('versions', 'update', 'export', 'import', 'confidence', 'extensions');
      const { client } = subject();
      const { id, user_id, first } = await changedTwice();
      const exported = async (query: Record<string, string>) =>
        (await client.ask('/export', { id, ...query })).body as { memories: readonly Record<string, unknown>[] };
      expect(Object.keys((await exported({})).memories[0] ?? {})).not.toContain('versions');
      const [line] = (await exported({ versions: 'true' })).memories;
      expect(line).toMatchObject({
        id,
        version: 3,
        versions: [{ version: 2 }, { version: 1, memory: asVersion(first) }],
      });
      const all = await client.versions(id);
      await client.remove(id);
      const store = async (memory: object, on_conflict = 'replace') =>
        (await client.tell('POST', '/import', { memories: [memory], on_conflict })).body;
      expect(await store(line as object)).toEqual({ results: [{ outcome: 'stored' }] });
      const shown = ({ items }: { items: readonly WireVersion[] }) =>
        items.map(({ memory: { embedding_model: _, status: __, 'x-omp-origin': ___, ...memory }, ...rest }) => ({
          ...rest,
          memory,
        }));
      expect(shown(await client.versions(id))).toEqual(shown(all));
      // The version that it replaces has a number that the file has too.
      await client.remove(id);
      await store({ ...first, content: 'likes mint' });
      expect(await store(line as object)).toEqual({ results: [{ outcome: 'stored' }] });
      expect(summary(await client.versions(id)).map(([version]) => version)).toEqual([3, 2, 1]);
      await client.remove(id);
      await store(line as object);
      // Repeating it changes nothing more.
      await store(line as object);
      expect((await client.versions(id)).items).toHaveLength(3);
      const { versions: _, version: __, ...bare } = line as Record<string, unknown>;
      await store({ ...bare, content: 'likes coffee' });
      expect(summary(await client.versions(id))[0]).toEqual([4, 'likes coffee', ['content'], true]);
      expect((await client.versions(id)).items).toHaveLength(4);
      for (const wrong of [
        { version: 0 },
        { versions: [{ version: 3, memory: first }] },
        {
          versions: [
            { version: 1, memory: first },
            { version: 1, memory: first },
          ],
        },
        { versions: [{ version: 1, memory: { ...first, user_id: freshUser() } }] },
        { versions: [{ version: 1, memory: { ...first, id: 'mem_other' } }] },
      ])
        expect(await store({ ...line, ...wrong }), JSON.stringify(wrong)).toMatchObject({
          results: [{ error: { code: 'invalid_request' } }],
        });
      expect(user_id).toBe(first.user_id);
    });

    test('[Decision 55] versions are kept while their numbers are near enough, imported ones too', async (need) => {
      need('versions', 'update', 'import');
      const { client } = subject();
      const user_id = freshUser();
      const at = '2026-11-20T10:00:00.000Z';
      const memory = { id: `mem_${user_id}`, user_id, content: 'number 1000', created_at: at };
      const store = async (fields: object) =>
        (await client.tell('POST', '/import', { memories: [{ ...memory, ...fields }], on_conflict: 'replace' })).body;
      const numbers = async () => (await client.versions(memory.id)).items.map(({ version }) => version);
      const versions = [999, 950, 901, 900, 899, 1].map((version) => ({ version, memory }));
      await store({ version: 1_000, versions });
      expect(await numbers()).toEqual([1_000, 999, 950, 901, 900]);
      await client.update(memory.id, { content: 'number 1001' });
      expect(await numbers()).toEqual([1_001, 1_000, 999, 950, 901]);
      await store({ content: 'number 1050', version: 1_050 });
      expect(await numbers()).toEqual([1_050, 1_001, 1_000, 999, 950]);
      await store({ content: 'number 1051' });
      expect(await numbers()).toEqual([1_051, 1_050, 1_001, 1_000, 999]);
    });

    test('[Decision 55] of the largest number that an import takes, and of those after it, each version is read', async (need) => {
      need('versions', 'update', 'import');
      const { client } = subject();
      const user_id = freshUser();
      const largest = 1_000_000_000;
      const memory = { id: `mem_${user_id}`, user_id, content: 'a', created_at: '2026-11-20T10:00:00.000Z' };
      const store = async (version: number) =>
        (await client.tell('POST', '/import', { memories: [{ ...memory, version }] })).body;
      expect(await store(largest + 1)).toMatchObject({ results: [{ error: { code: 'invalid_request' } }] });
      expect(await store(largest)).toEqual({ results: [{ outcome: 'stored' }] });
      for (const content of ['b', 'c']) await client.update(memory.id, { content });
      const { items, next_cursor } = await client.versions(memory.id, { limit: 1 });
      expect(items).toMatchObject([{ version: largest + 2 }]);
      expect((await client.versions(memory.id, { limit: 1, cursor: next_cursor ?? '' })).items).toMatchObject([
        { version: largest + 1, memory: { content: 'b' } },
      ]);
      expect((await client.ask(`${client.byId(memory.id)}/versions/${largest}`)).body).toMatchObject({
        current: false,
      });
    });

    test('[Decision 55] an export says how many versions it leaves out', async (need) => {
      need('versions', 'update', 'export', 'confidence', 'extensions');
      const { provider } = subject();
      const { id } = await changedTwice();
      const read = async (max_bytes: number) => {
        const query = { ids: [id], vectors: false, versions: true, limit: 10, max_bytes };
        return (await provider.export?.(query, backgroundCall('test')))?.items.map(
          ({ versions = [], versions_left_out }) => [versions.map(({ version }) => version), versions_left_out],
        );
      };
      expect(await read(1e6)).toEqual([[[2, 1], 0]]);
      // Both are at hand: one that is too large by itself may come with another.
      const [[kept, left] = []] = (await read(1)) ?? [];
      expect((kept as number[])[0]).toBe(2);
      expect((kept as number[]).length + (left as number)).toBe(2);
    });

    test('[Decision 55] [SPEC Errors unsupported_capability] without versions, every request about them says so', async (need) => {
      need('update');
      if (subject().capabilities.features.versions) return;
      const { client } = subject();
      const { id } = await client.add({ user_id: freshUser(), content: 'tea' });
      for (const reply of [
        await client.ask(`${client.byId(id)}/versions`),
        await client.ask(`${client.byId(id)}/versions/1`),
        await client.tell('POST', `${client.byId(id)}/restore`, { version: 1 }),
        await client.tell('DELETE', `${client.byId(id)}/versions`),
      ])
        expectError(reply, 'unsupported_capability');
    });
  });
