import { describe, expect } from 'vitest';
import type { Client, Fields } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import type { WireMemory } from '../support/wire.ts';
import { type Admit, type GetSubject, testOf } from './subject.ts';

const ORIGIN = 'x-omp-origin';
const UNTRUSTED = 'x-omp-untrusted';
const FORGED: Fields = {
  [ORIGIN]: { key: 'boss', via: 'mcp' },
  [UNTRUSTED]: true,
  'x-OMP-Origin': 1,
  'x-omp-other': 1,
};
const CLEARED: Fields = { [ORIGIN]: null, [UNTRUSTED]: null };
const CREATED = '2025-01-01T00:00:00.000Z';

/** What the gateway says about a memory: its keys that begin with `x-omp-`. */
const stampOf = (memory: object | undefined): object =>
  Object.fromEntries(Object.entries(memory ?? {}).filter(([key]) => /^x-omp-/i.test(key)));

export const originsSuite = (subject: GetSubject, admit: Admit) =>
  describe('origin and trust', () => {
    const test = testOf(subject);
    const callers = () => ({
      editor: admit({ app: 'editor' }),
      crawler: admit({ app: 'crawler', untrusted: true }),
      user_id: freshUser(),
    });
    const EDITED = { [ORIGIN]: { key: 'editor', via: 'http' } };
    const CRAWLED = { [ORIGIN]: { key: 'crawler', via: 'http' }, [UNTRUSTED]: true };
    const imported = async (client: Client, memory: object, on_conflict = 'skip') => {
      const { body } = await client.tell('POST', '/import', { memories: [memory], on_conflict });
      return body as { results?: { outcome?: string }[]; error?: { code: string } };
    };
    const patch = (client: Client, id: string, fields: Fields) => client.tell('PATCH', client.byId(id), fields);
    const idsOf = (memories: readonly WireMemory[]) => memories.map(({ id }) => id).sort();

    // No client says who it is, whatever it sends.
    test('[Decision 54] an add and each change say their key and way in; what clients send is ignored', async (need) => {
      need('add', 'update', 'extensions');
      const { editor, crawler, user_id } = callers();
      const ways: readonly (readonly [Client, Fields, object])[] = [
        [editor, FORGED, EDITED],
        [editor, CLEARED, EDITED],
        [crawler, FORGED, CRAWLED],
        [crawler, { [UNTRUSTED]: false, 'X-OMP-untrusted': false }, CRAWLED],
      ];
      for (const [client, sent, stamp] of ways) {
        const added = await client.tell('POST', '/memories', { user_id, content: 'tea', ...sent });
        expect(stampOf(added.body as WireMemory)).toEqual(stamp);
        expect(added.headers.get('x-ignored-fields')).toMatch(/x-omp-/i);
        const { id } = added.body as WireMemory;
        expect(stampOf(await client.get(id))).toEqual(stamp);
        expect(stampOf(await client.update(id, { content: 'coffee', ...sent }))).toEqual(stamp);
        expect(stampOf(await client.update(id, { 'x-a': 1, ...sent }))).toEqual(stamp);
        // What the gateway notes is no change.
        const before = await client.get(id);
        expect(await client.update(id, sent)).toEqual(before);
      }
      const { id } = await editor.add({ user_id, content: 'tea' });
      const changer = admit({ app: 'changer' });
      expect(stampOf(await changer.update(id, { 'x-a': 1 }))).toEqual({ [ORIGIN]: { key: 'changer', via: 'http' } });
      expect(stampOf(await subject().client.update(id, { 'x-a': 2 }))).toEqual({ [ORIGIN]: { via: 'http' } });
    });

    test('[Decision 54] [Decision 35] so does each memory of a batch, and its repeat', async (need) => {
      need('batch', 'extensions');
      const { editor, crawler, user_id } = callers();
      for (const [client, stamp] of [
        [editor, EDITED],
        [crawler, CRAWLED],
      ] as const) {
        const results = await client.batch([{ user_id, content: 'tea', ...FORGED }]);
        expect(results.map(({ memory }) => stampOf(memory))).toEqual([stamp]);
      }
    });

    test('[Decision 54] [Decision 20] a repeated add answers the same, and the key of another caller adds anew', async (need) => {
      need('idempotency', 'extensions');
      const { editor, crawler, user_id } = callers();
      const add = async (client: Client) =>
        (await client.tell('POST', '/memories', { user_id, content: 'tea' }, { 'idempotency-key': user_id })).body;
      const first = (await add(editor)) as WireMemory;
      const second = (await add(crawler)) as WireMemory;
      expect([stampOf(first), stampOf(second)]).toEqual([EDITED, CRAWLED]);
      expect(second.id).not.toBe(first.id);
      expect([await add(editor), await add(crawler)]).toEqual([first, second]);
    });

    test('[Decision 54] [Decision 43] of an imported memory, the origin says what its file states, and a mark stays', async (need) => {
      need('import', 'extensions');
      const { editor, crawler, user_id } = callers();
      const file = (name: string, fields: object) => ({
        ...{ id: `${name} ${user_id}`, user_id, content: 'tea', created_at: CREATED },
        ...fields,
      });
      const before = { key: 'old', via: 'mcp', more: 'x'.repeat(9_999) };
      const stated = { key: 'old', via: 'mcp' };
      const at = expect.any(String);
      const byImport = { key: 'editor', via: 'import', at };
      const cases: readonly (readonly [object, object])[] = [
        [{}, { [ORIGIN]: byImport }],
        [{ [ORIGIN]: before }, { [ORIGIN]: { ...byImport, from: stated } }],
        [
          { [ORIGIN]: { via: 'import', from: before }, [UNTRUSTED]: true },
          { [ORIGIN]: { ...byImport, from: stated }, [UNTRUSTED]: true },
        ],
        [{ [ORIGIN]: { via: 'unknown' }, [UNTRUSTED]: 'yes', 'x-omp-other': 1 }, { [ORIGIN]: byImport }],
        [{ [ORIGIN]: { key: 'k'.repeat(257), via: 'http' } }, { [ORIGIN]: byImport }],
        [{ [ORIGIN]: 'editor', [UNTRUSTED]: null }, { [ORIGIN]: byImport }],
      ];
      for (const [i, [fields, stamp]] of cases.entries()) {
        const memory = file(`${i}`, fields);
        expect((await imported(editor, memory)).results).toEqual([{ outcome: 'stored' }]);
        expect(stampOf(await editor.get(memory.id))).toEqual(stamp);
        expect((await imported(editor, memory)).results).toEqual([{ outcome: 'unchanged' }]);
      }
      const unmarked = file('2', {});
      expect((await imported(editor, unmarked)).results).toEqual([{ outcome: 'exists' }]);
      const crawled = file('crawled', {});
      expect((await imported(crawler, crawled)).results).toEqual([{ outcome: 'stored' }]);
      expect((await imported(crawler, crawled)).results).toEqual([{ outcome: 'unchanged' }]);
      expect(stampOf(await editor.get(crawled.id))).toMatchObject({ [UNTRUSTED]: true });
    });

    test('[Decision 54] a trusted change of the content removes the mark, and no other change', async (need) => {
      need('update', 'extensions');
      const { editor, crawler, user_id } = callers();
      const { id } = await crawler.add({ user_id, content: 'tea' });
      expect(await editor.update(id, { 'x-a': 1, content: 'tea' })).toMatchObject({ ...EDITED, [UNTRUSTED]: true });
      expect(stampOf(await editor.update(id, { content: 'coffee' }))).toEqual(EDITED);
      expect(expectError(await patch(crawler, id, { content: 'tea' }), 'scope_denied').message).toContain('untrusted');
    });

    test('[Decision 54] an untrusted key changes and deletes only what is marked', async (need) => {
      need('update', 'delete', 'extensions');
      const { editor, crawler, user_id } = callers();
      const other = admit({ app: 'other', untrusted: true });
      const memory = await editor.add({ user_id, content: 'tea' });
      for (const fields of [{ content: 'poison' }, { 'x-a': 1 }, { valid_to: '2001-01-01' }, FORGED, {}]) {
        expectError(await patch(crawler, memory.id, fields), 'scope_denied');
      }
      expectError(await crawler.tell('DELETE', crawler.byId(memory.id)), 'scope_denied');
      expect(await editor.get(memory.id)).toEqual(memory);
      expectError(await patch(crawler, `${memory.id}x`, { content: 'x' }), 'not_found');
      expectError(await crawler.tell('DELETE', crawler.byId(`${memory.id}x`)), 'not_found');
      const marked = await crawler.add({ user_id, content: 'tea' });
      expect(await other.update(marked.id, { content: 'coffee' })).toMatchObject({ [UNTRUSTED]: true });
      await other.remove(marked.id);
    });

    test('[Decision 54] an untrusted key moves only what is marked', async (need) => {
      need('update', 'scopes', 'extensions');
      const { editor, crawler, user_id } = callers();
      const memory = await editor.add({ user_id, content: 'tea', scope: 'a/b' });
      expectError(await patch(crawler, memory.id, { scope: 'a/c' }), 'scope_denied');
      expect(await editor.get(memory.id)).toEqual(memory);
      const mover = admit({ app: 'mover', untrusted: true, grants: ['write:a/*', 'read:a/b'] });
      expectError(await patch(mover, memory.id, { scope: 'a/b' }), 'scope_denied');
      const marked = await crawler.add({ user_id, content: 'tea', scope: 'a/b' });
      expect(await crawler.update(marked.id, { scope: 'a/c' })).toMatchObject({ scope: 'a/c', [UNTRUSTED]: true });
    });

    test('[Decision 54] [Decision 38] [Decision 43] an untrusted key erases no user, and replaces nothing by an import', async (need) => {
      need('erase', 'import', 'extensions');
      const { editor, crawler, user_id } = callers();
      const id = `own ${user_id}`;
      const memory = { id, user_id, content: 'tea', created_at: CREATED };
      await imported(editor, memory);
      const before = await editor.get(id);
      expect((await imported(crawler, { ...memory, content: 'poison' }, 'replace')).error?.code).toBe('scope_denied');
      expect((await imported(crawler, { ...memory, content: 'poison' })).results).toEqual([{ outcome: 'exists' }]);
      expectError(await crawler.tell('DELETE', `/users/${user_id}/memories`), 'scope_denied');
      expect(await editor.get(id)).toEqual(before);
    });

    test('[Decision 54] what is marked supersedes nothing unless untrusted=true, and is in no answer for untrusted=false', async (need) => {
      need('list', 'supersession', 'extensions');
      const { editor, crawler, user_id } = callers();
      const fact = await editor.add({ user_id, content: 'tea' });
      const poison = await crawler.add({ user_id, content: 'tea poison', supersedes: [fact.id] });
      const list = async (query: object) => idsOf((await editor.list({ user_id, ...query })).items);
      expect(await list({ current: 'true' })).toEqual(idsOf([fact, poison]));
      expect(await list({ current: 'true', untrusted: 'true' })).toEqual([poison.id]);
      for (const current of ['true', 'false']) expect(await list({ current, untrusted: 'false' })).toEqual([fact.id]);
    });

    test('[Decision 54] a trusted change of a marked text ends what it superseded', async (need) => {
      need('update', 'supersession', 'extensions');
      const { editor, crawler, user_id } = callers();
      const { id } = await crawler.add({ user_id, content: 'tea poison', supersedes: ['a fact'] });
      expect((await editor.update(id, { tags: ['read'] })).supersedes).toEqual(['a fact']);
      expect((await editor.update(id, { content: 'tea' })).supersedes).toEqual([]);
      expect((await editor.get(id)).supersedes).toEqual([]);
    });

    test('[Decision 54] a search ranks by the same rule', async (need) => {
      need('search', 'supersession', 'extensions');
      const { editor, crawler, user_id } = callers();
      const fact = await editor.add({ user_id, content: 'tea' });
      const poison = await crawler.add({ user_id, content: 'tea tea', supersedes: [fact.id] });
      const search = async (query: object) => await editor.search({ user_id, q: 'tea', ...query });
      const found = async (query: object) => idsOf((await search(query)).map(({ memory }) => memory));
      expect((await search({})).some((hit) => 'x-superseded-by' in hit)).toBe(false);
      expect((await search({ untrusted: 'true' })).find(({ memory }) => memory.id === fact.id)).toMatchObject({
        'x-superseded-by': [poison.id],
      });
      expect(await found({ current: 'true' })).toEqual(idsOf([fact, poison]));
      expect(await found({ current: 'true', untrusted: 'true' })).toEqual([poison.id]);
      for (const current of ['true', 'false']) expect(await found({ current, untrusted: 'false' })).toEqual([fact.id]);
    });

    test('[Decision 54] [Decision 10] a context has what is marked only if it is asked for, with [untrusted] before the line', async (need) => {
      need('context', 'extensions');
      const { editor, crawler, user_id } = callers();
      const fact = await editor.add({ user_id, content: 'drinks tea' });
      const poison = await crawler.add({ user_id, content: 'drinks tea and [untrusted] poison' });
      const context = (fields: Fields) => editor.context({ user_id, query: 'drinks tea', ...fields });
      const cited = async (fields: Fields) =>
        (await context(fields)).citations.map(({ memory_id }) => memory_id).sort();
      expect(await cited({})).toEqual([fact.id]);
      expect(await cited({ untrusted: null })).toEqual([fact.id]);
      expect(await cited({ untrusted: true })).toEqual(idsOf([fact, poison]));
      const { text } = await context({ untrusted: true });
      expect(text.split('\n').filter((line) => /^\[\d+\] \[untrusted\] /.test(line))).toHaveLength(1);
      expect(text).toMatch(/\[\d+\] \[untrusted\] [^\n]*poison/);
    });

    test('[Decision 54] lists, searches and contexts filter by origin', async (need) => {
      need('origins', 'import', 'context');
      const { editor, crawler, user_id } = callers();
      const memories = {
        'key:editor': await editor.add({ user_id, content: 'tea one' }),
        'key:crawler': await crawler.add({ user_id, content: 'tea two' }),
        'via:import': { id: `own ${user_id}`, user_id, content: 'tea three', created_at: CREATED },
      };
      await imported(admit({ app: 'mover' }), memories['via:import']);
      for (const [origin, { id }] of Object.entries(memories)) {
        expect(idsOf((await editor.list({ user_id, origin })).items)).toEqual([id]);
        expect((await editor.search({ user_id, q: 'tea', origin })).map(({ memory }) => memory.id)).toEqual([id]);
        const { citations } = await editor.context({ user_id, query: 'tea', origin, untrusted: true });
        expect(citations.map(({ memory_id }) => memory_id)).toEqual([id]);
      }
      const count = async (query: object) => (await editor.list({ user_id, ...query })).items.length;
      expect(await count({ origin: 'via:http' })).toBe(2);
      expect(await count({ origin: 'via:http', untrusted: 'false' })).toBe(1);
      for (const origin of ['via:unknown', 'via:mcp', 'key:nobody']) expect(await count({ origin })).toBe(0);
      for (const origin of ['', 'key:', 'via:', 'via:fax', 'editor', 'KEY:editor', `key:${'k'.repeat(257)}`]) {
        expectError(await editor.ask('/memories', { user_id, origin }), 'invalid_request');
      }
      const first = await editor.list({ user_id, origin: 'via:http', limit: 1 });
      const next = await editor.list({ user_id, origin: 'via:http', limit: 1, cursor: first.next_cursor as string });
      expect(idsOf([...first.items, ...next.items])).toHaveLength(2);
      expectError(await editor.ask('/memories', { user_id, cursor: first.next_cursor as string }), 'invalid_request');
    });

    test('[Decision 54] a store without origins says so, and leaves out what is marked all the same', async (need) => {
      need('list', 'search', 'extensions');
      const { editor, crawler, user_id } = callers();
      const fact = await editor.add({ user_id, content: 'tea' });
      for (let i = 0; i < 5; i++) await crawler.add({ user_id, content: 'tea' });
      expect((await editor.search({ user_id, q: 'tea', limit: 1, untrusted: 'false' }))[0]?.memory.id).toBe(fact.id);
      if (subject().capabilities.features.origins) return;
      expectError(await editor.ask('/memories', { user_id, origin: 'key:editor' }), 'unsupported_capability');
    });
  });
