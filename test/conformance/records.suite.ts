import { describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import { STATUSES, type WireMemory } from '../support/wire.ts';
import { type GetSubject, needFields, needScopes, needSupersession } from './subject.ts';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

export const recordsSuite = (subject: GetSubject) =>
  describe('records', () => {
    const { add, get, tell, ask, byId, raw } = {
      add: (fields: object) => subject().client.add({ content: 'likes tea', ...fields }),
      get: (id: string) => subject().client.get(id),
      tell: (body: unknown) => subject().client.tell('POST', '/memories', body),
      ask: (path: string, headers?: Record<string, string>) => subject().client.ask(path, {}, headers),
      byId: (id: string) => subject().client.byId(id),
      raw: (path: string, init?: RequestInit) => subject().client.raw(path, init),
    };

    it('[SPEC POST /memories] [SPEC Service no wrapper] answers 201 with the record itself', async () => {
      const user_id = freshUser();
      const reply = await tell({ content: 'likes tea', user_id });
      expect(reply.status).toBe(201);
      expect(reply.body).toMatchObject({ content: 'likes tea', user_id });
      expect((reply.body as WireMemory).id).toMatch(subject().ids ?? /^mem_.+/);
    });

    it('[SPEC Service json] answers application/json', async () => {
      const reply = await tell({ content: 'likes tea', user_id: freshUser() });
      expect(reply.headers.get('content-type')).toMatch(/^application\/json(;|$)/);
    });

    it('[SPEC Memory id] gives every record an id of its own', async () => {
      const user_id = freshUser();
      const ids = [];
      for (let i = 0; i < 20; i++) ids.push((await add({ user_id })).id);
      expect(new Set(ids).size).toBe(20);
      for (const id of ids) expect(id).toMatch(subject().ids ?? /^mem_[\w-]+$/);
    });

    it('[SPEC Memory content] [SPEC POST /memories content] returns the content byte for byte', async () => {
      const contents = [
        '  spaces around\t\n',
        'line\r\nbreak\u2028and\u2029more',
        'é is not e\u0301',
        '👩‍👩‍👧‍👦 𝒳 \u{10FFFF} \uFEFF \uFFFD',
        '"quotes" \\ back\\u0000slash \'; drop table memories; -- $1 %s {}',
        '\u0001\u001f\u007f\u0085',
        'ا ل ع ر ب ي ة 記録 हिन्दी',
      ];
      const user_id = freshUser();
      for (const content of contents) {
        const added = await add({ user_id, content });
        expect(added.content).toBe(content);
        expect((await get(added.id)).content).toBe(content);
      }
    });

    it('[SPEC Memory user_id] [SPEC POST /memories user_id] keeps the owner exactly', async () => {
      for (const prefix of ['Ünïcode ✓', ' padded ', "o'brien%_", 'a/b?c#d&e=f+g']) {
        const user_id = prefix + freshUser();
        expect((await get((await add({ user_id })).id)).user_id).toBe(user_id);
      }
    });

    it('[SPEC Memory created_at] [Decision 1] stamps creation in UTC with milliseconds', async ({ skip }) => {
      needFields(skip, subject(), 'created_at');
      const { created_at, id } = await add({ user_id: freshUser() });
      expect(created_at).toMatch(TIME);
      // A database server has a clock of its own: the year is enough to tell a stamp from a constant.
      expect(Math.abs(Date.parse(created_at) - Date.now())).toBeLessThan(24 * 3600 * 1000);
      expect((await get(id)).created_at).toBe(created_at);
    });

    it('[SPEC Memory updated_at] is not before creation', async () => {
      const { updated_at, created_at } = await add({ user_id: freshUser() });
      if (updated_at == null) return;
      expect(updated_at).toMatch(TIME);
      expect(updated_at >= created_at).toBe(true);
    });

    it('[SPEC Memory scope] [SPEC POST /memories scope] keeps the scope', async ({ skip }) => {
      needScopes(skip, subject());
      for (const scope of ['coding', 'coding/preferences', 'a b/ü/%41', Array(32).fill('s').join('/')]) {
        const added = await add({ user_id: freshUser(), scope });
        expect(added.scope).toBe(scope);
        expect((await get(added.id)).scope).toBe(scope);
      }
    });

    it('[SPEC Memory tags] [SPEC POST /memories tags] keeps tags and their order', async ({ skip }) => {
      needFields(skip, subject(), 'tags');
      const tags = ['zebra', 'Apfel', 'apfel', 'a,b', '{"x":1}', "it's", ' padded ', '記録', '😀'];
      const added = await add({ user_id: freshUser(), tags });
      expect(added.tags).toEqual(tags);
      expect((await get(added.id)).tags).toEqual(tags);
    });

    it('[SPEC Memory source] [SPEC POST /memories source] keeps the source', async ({ skip }) => {
      needFields(skip, subject(), 'source');
      const source = { app: 'editor', type: 'explicit', ref: 'session-7' };
      const added = await add({ user_id: freshUser(), source });
      expect(added.source).toMatchObject(source);
      expect((await get(added.id)).source).toMatchObject(source);
    });

    it('[SPEC Memory source.app] keeps a source with only an app', async ({ skip }) => {
      needFields(skip, subject(), 'source');
      const { id } = await add({ user_id: freshUser(), source: { app: 'editor' } });
      const { source } = await get(id);
      expect(source?.app).toBe('editor');
      expect(source?.type ?? null).toBeNull();
    });

    it('[SPEC Memory source.type] keeps each of the allowed types', async ({ skip }) => {
      needFields(skip, subject(), 'source');
      for (const type of ['extracted', 'explicit', 'imported']) {
        const { id } = await add({ user_id: freshUser(), source: { type } });
        expect((await get(id)).source?.type).toBe(type);
      }
    });

    it('[SPEC Memory source.ref] [Decision 7] may be null', async ({ skip }) => {
      needFields(skip, subject(), 'source');
      const { id } = await add({ user_id: freshUser(), source: { app: 'editor', ref: null } });
      const { source } = await get(id);
      expect(source?.app).toBe('editor');
      expect(source?.ref ?? null).toBeNull();
    });

    it('[SPEC Memory confidence] [SPEC POST /memories confidence] keeps 0, 1 and what lies between', async ({
      skip,
    }) => {
      needFields(skip, subject(), 'confidence');
      for (const confidence of [0, 1, 0.5, 0.1 + 0.2, 1e-9]) {
        const { id } = await add({ user_id: freshUser(), confidence });
        expect((await get(id)).confidence).toBe(confidence);
      }
    });

    it('[SPEC Memory confidence] is null when it was omitted', async () => {
      const { id } = await add({ user_id: freshUser() });
      expect((await get(id)).confidence ?? null).toBeNull();
    });

    it('[SPEC Memory valid_from] [SPEC POST /memories valid_from] is kept', async ({ skip }) => {
      needFields(skip, subject(), 'valid_from');
      const moments = ['2024-03-01T01:00:00.125Z', '0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'];
      for (const valid_from of moments) {
        const { id } = await add({ user_id: freshUser(), valid_from });
        expect((await get(id)).valid_from).toBe(valid_from);
      }
    });

    it('[SPEC Memory valid_to] [SPEC POST /memories valid_to] is kept; null means no expiry', async ({ skip }) => {
      needFields(skip, subject(), 'valid_to');
      const user_id = freshUser();
      expect((await get((await add({ user_id, valid_to: '2030-01-01' })).id)).valid_to).toBe(
        '2030-01-01T00:00:00.000Z',
      );
      expect((await get((await add({ user_id, valid_to: null })).id)).valid_to ?? null).toBeNull();
    });

    it('[SPEC Memory supersedes] [SPEC POST /memories supersedes] keeps the ids of replaced records', async ({
      skip,
    }) => {
      needSupersession(skip, subject());
      const user_id = freshUser();
      const old = await add({ user_id });
      const { id } = await add({ user_id, supersedes: [old.id, 'mem_of_another_store'] });
      expect((await get(id)).supersedes).toEqual([old.id, 'mem_of_another_store']);
      expect((await get(old.id)).id).toBe(old.id);
    });

    it('[SPEC Memory embedding_model] names a model exactly when vectors are kept', async () => {
      const { embedding_model } = await add({ user_id: freshUser() });
      if (subject().capabilities.features.vector_search) expect(embedding_model).toMatch(/\S/);
      else expect(embedding_model ?? null).toBeNull();
    });

    it('[SPEC Memory status] [SPEC States done] [SPEC States absent] a finished add is done, or not tracked', async () => {
      const { status, id } = await add({ user_id: freshUser() });
      if (status == null) expect((await get(id)).status ?? null).toBeNull();
      else expect(STATUSES).toContain(status);
    });

    it('[SPEC States queued] [SPEC States indexing] [SPEC States failed] only a record still on its way has another state', async () => {
      const user_id = freshUser();
      const { id, status } = await add({ user_id });
      expect([undefined, null, ...STATUSES]).toContain(status);
      // Every provider of this gateway resolves `add` once the record is stored: nothing stays on its way.
      expect([undefined, null, 'done']).toContain((await get(id)).status);
    });

    it('[SPEC Memory optional fields] [Decision 7] null on creation counts as omitted', async () => {
      const optional = ['scope', 'tags', 'source', 'confidence', 'valid_from', 'valid_to', 'supersedes'] as const;
      const nulls = Object.fromEntries(optional.map((field) => [field, null]));
      const [given, omitted] = [await add({ user_id: freshUser(), ...nulls }), await add({ user_id: freshUser() })];
      for (const field of optional) {
        expect(given[field], field).toEqual(omitted[field]);
        expect([undefined, null, []], field).toContainEqual(given[field]);
      }
    });

    it('[SPEC GET /memories/{id}] answers 200 with the record as it was created', async ({ skip }) => {
      needFields(skip, subject(), 'tags', 'confidence', 'extensions');
      const added = await add({
        user_id: freshUser(),
        tags: ['a'],
        confidence: 0.25,
        'x-note': { deep: [1, null, 'ü'] },
      });
      const reply = await ask(byId(added.id));
      expect(reply.status).toBe(200);
      expect(reply.body).toEqual(added);
    });

    it('[SPEC GET /memories/{id} unknown] answers 404', async () => {
      expectError(await ask('/memories/mem_01HZZZZZZZZZZZZZZZZZZZZZZZ'), 'not_found');
    });

    it('[SPEC Service users] [Decision 19] needs no X-User-Id; with another user the record does not exist', async () => {
      const { id, user_id } = await add({ user_id: freshUser() });
      expect((await ask(byId(id), { 'x-user-id': user_id })).status).toBe(200);
      expectError(await ask(byId(id), { 'x-user-id': `${user_id}-other` }), 'not_found');
    });

    it('[Decision 6] keeps extensions of any JSON shape', async ({ skip }) => {
      needFields(skip, subject(), 'extensions');
      const extensions = {
        'x-text': 'ü "quoted" \\',
        'x-number': 0.1,
        'x-large': 1e300,
        'x-false': false,
        'x-list': [1, [2, { '': 'empty key', é: [] }]],
        'x-object': { a: { b: { c: {} } }, __proto: 1 },
      };
      const added = await add({ user_id: freshUser(), ...extensions });
      const stored: WireMemory = await get(added.id);
      expect(added).toMatchObject(extensions);
      expect(stored).toMatchObject(extensions);
    });

    it('[Decision 7] an extension given as null counts as omitted', async ({ skip }) => {
      needFields(skip, subject(), 'extensions');
      const { id } = await add({ user_id: freshUser(), 'x-none': null, 'x-some': [null] });
      const stored = await get(id);
      expect(stored['x-none'] ?? null).toBeNull();
      expect(stored['x-some']).toEqual([null]);
    });

    it('[Decision 6] [SPEC Versioning 3] ignores fields it does not know', async () => {
      const user_id = freshUser();
      const added = await add({
        user_id,
        id: 'mem_mine',
        created_at: '2001-01-01',
        status: 'failed',
        future: 1,
        extensions: {},
      });
      expect(added.id).not.toBe('mem_mine');
      expect(added.created_at).not.toMatch(/^2001/);
      expect(added.status).not.toBe('failed');
      expect(added).not.toHaveProperty('future');
      expect(added).not.toHaveProperty('extensions');
    });

    it('[SPEC Errors envelope] [SPEC Errors code] [SPEC Errors message] [SPEC Errors type] [SPEC Errors request_id] is one object with the single key error', async () => {
      const reply = await raw('/memories/mem_01HZZZZZZZZZZZZZZZZZZZZZZZ');
      const { code, message, type, request_id } = expectError(reply, 'not_found');
      expect(reply.body).toEqual({ error: { code, message, type, request_id } });
    });
    it('[SPEC Errors not_found] [Decision 16] any id that is not stored is simply absent', async () => {
      const ids = [
        'mem_',
        'x',
        'search%20',
        '%00',
        'a%00b',
        '%2F',
        '..%2F..',
        '%E8%A8%98',
        '%F0%9F%98%80',
        "'%20or%201=1",
        'a%20b',
        'mem_x?',
        '%25',
        'A'.repeat(2000),
      ];
      for (const id of ids) {
        expectError(await raw(`/memories/${id}`), 'not_found');
        expectError(await raw(`/memories/${id}`, { method: 'DELETE' }), 'not_found');
        const patch = { method: 'PATCH', body: '{"content":"x"}', headers: { 'content-type': 'application/json' } };
        expectError(await raw(`/memories/${id}`, patch), 'not_found');
      }
    });
  });
