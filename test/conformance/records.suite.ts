import { describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import { STATUSES, type WireMemory } from '../support/wire.ts';
import { type GetSubject, type Need, testOf } from './subject.ts';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Values that come back from the store exactly as they were given. */
const KEPT: readonly (readonly [string, keyof WireMemory, readonly Need[], readonly unknown[]])[] = [
  [
    '[SPEC Memory content] [SPEC POST /memories content] content byte for byte',
    'content',
    [],
    [
      '  spaces around\t\n',
      'line\r\nbreak\u2028and\u2029more',
      'é is not e\u0301',
      '👩‍👩‍👧‍👦 𝒳 \u{10FFFF} \uFEFF \uFFFD',
      '"quotes" \\ back\\u0000slash \'; drop table memories; -- $1 %s {}',
      '\u0001\u001f\u007f\u0085',
      'ا ل ع ر ب ي ة 記録 हिन्दी',
    ],
  ],
  [
    '[SPEC Memory user_id] [SPEC POST /memories user_id] the owner',
    'user_id',
    [],
    ['Ünïcode ✓', ' padded ', "o'brien%_", 'a/b?c#d&e=f+g'].map((prefix) => prefix + freshUser()),
  ],
  [
    '[SPEC Memory scope] [SPEC POST /memories scope] the scope',
    'scope',
    ['scopes'],
    ['coding', 'coding/preferences', 'a b/ü/%41', Array(32).fill('s').join('/')],
  ],
  [
    '[SPEC Memory tags] [SPEC POST /memories tags] tags and their order',
    'tags',
    ['tags'],
    [['zebra', 'Apfel', 'apfel', 'a,b', '{"x":1}', "it's", ' padded ', '記録', '😀']],
  ],
  [
    '[SPEC Memory confidence] [SPEC POST /memories confidence] the confidence to the last bit',
    'confidence',
    ['confidence'],
    [0, 1, 0.5, 0.1 + 0.2, 1e-9],
  ],
  [
    '[SPEC Memory valid_from] [SPEC POST /memories valid_from] valid_from',
    'valid_from',
    ['valid_from'],
    ['2024-03-01T01:00:00.125Z', '0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z'],
  ],
  [
    '[SPEC Memory valid_to] [SPEC POST /memories valid_to] valid_to',
    'valid_to',
    ['valid_to'],
    ['2030-01-01T00:00:00.000Z'],
  ],
  [
    '[SPEC Memory supersedes] [SPEC POST /memories supersedes] ids of superseded memories, stored or not',
    'supersedes',
    ['supersession'],
    [['mem_2', 'mem_of_another_store']],
  ],
  [
    '[Decision 6] extensions of any JSON shape',
    'x-kept',
    ['extensions'],
    [
      ...['ü "quoted" \\', 0.1, 1e300, false, [null], [1, [2, { '': 'empty key', é: [] }]]],
      { a: { b: { c: {} } }, __proto: 1 },
    ],
  ],
];

export const recordsSuite = (subject: GetSubject) =>
  describe('records', () => {
    const test = testOf(subject);
    const add = (fields: object = {}) =>
      subject().client.add({ content: 'likes tea', user_id: freshUser(), ...fields });
    const get = (id: string) => subject().client.get(id);

    it('[SPEC POST /memories] [SPEC Service no wrapper] answers 201 with the record itself', async () => {
      const user_id = freshUser();
      const reply = await subject().client.tell('POST', '/memories', { content: 'likes tea', user_id });
      expect(reply.status).toBe(201);
      expect(reply.body).toMatchObject({ content: 'likes tea', user_id });
    });

    it('[SPEC Memory id] gives every record its own id', async () => {
      const ids = [];
      for (let i = 0; i < 20; i++) ids.push((await add()).id);
      expect(new Set(ids).size).toBe(20);
      for (const id of ids) expect(id).toMatch(subject().ids ?? /^mem_[\w-]+$/);
    });

    for (const [title, field, needs, values] of KEPT) {
      test(title, async (need) => {
        need(...needs);
        for (const value of values) {
          const added = await add({ [field]: value });
          expect(added[field]).toEqual(value);
          expect((await get(added.id))[field]).toEqual(value);
        }
      });
    }

    test('[SPEC Memory created_at] [Decision 1] stamps creation in UTC with milliseconds', async (need) => {
      need('created_at');
      const { created_at, id } = await add();
      expect(created_at).toMatch(TIME);
      // A database server has its own clock: a day is enough to tell a stamp from a constant.
      expect(Math.abs(Date.parse(created_at) - Date.now())).toBeLessThan(24 * 3600 * 1000);
      expect((await get(id)).created_at).toBe(created_at);
    });

    it('[SPEC Memory updated_at] is not before creation', async () => {
      const { updated_at, created_at } = await add();
      if (updated_at == null) return;
      expect(updated_at).toMatch(TIME);
      expect(updated_at >= created_at).toBe(true);
    });

    test('[SPEC Memory source] [SPEC POST /memories source] [SPEC Memory source.app] [SPEC Memory source.type] [SPEC Memory source.ref] [Decision 7] keeps the source, in part too', async (need) => {
      need('source');
      const none = { app: null, type: null, ref: null };
      const sources = [
        { app: 'editor', type: 'explicit', ref: 'session-7' },
        { app: 'editor' },
        { app: 'editor', ref: null },
        ...['extracted', 'explicit', 'imported'].map((type) => ({ type })),
      ];
      for (const source of sources) {
        const { id } = await add({ source });
        expect({ ...none, ...(await get(id)).source }).toEqual({ ...none, ...source });
      }
    });

    it('[SPEC Memory embedding_model] names a model exactly when vectors are stored', async () => {
      const { embedding_model } = await add();
      if (subject().capabilities.features.vector_search) expect(embedding_model).toMatch(/\S/);
      else expect(embedding_model ?? null).toBeNull();
    });

    it('[SPEC Memory status] [SPEC States queued] [SPEC States indexing] [SPEC States failed] [SPEC States done] [SPEC States absent] a stored record is done, or has no status', async () => {
      const { id, status } = await add();
      expect([undefined, null, ...STATUSES]).toContain(status);
      expect([undefined, null, 'done']).toContain((await get(id)).status);
    });

    it('[SPEC Memory optional fields] are absent when omitted', async () => {
      const stored = await get((await add()).id);
      for (const field of ['scope', 'tags', 'source', 'confidence', 'valid_from', 'valid_to', 'supersedes'] as const) {
        expect([undefined, null, []], field).toContainEqual(stored[field]);
      }
    });

    test('[SPEC GET /memories/{id}] answers 200 with the record as it was created', async (need) => {
      need('tags', 'confidence', 'extensions');
      const added = await add({ tags: ['a'], confidence: 0.25, 'x-note': { deep: [1, null, 'ü'] } });
      const { status, body } = await subject().client.ask(subject().client.byId(added.id));
      expect({ status, body }).toEqual({ status: 200, body: added });
    });

    it('[SPEC Service users] [Decision 19] needs no X-User-Id; with another user the record does not exist', async () => {
      const { ask, byId } = subject().client;
      const { id, user_id } = await add();
      expect((await ask(byId(id), {}, { 'x-user-id': user_id })).status).toBe(200);
      expectError(await ask(byId(id), {}, { 'x-user-id': `${user_id}-other` }), 'not_found');
    });

    it('[SPEC GET /memories/{id} unknown] [SPEC PATCH /memories/{id} unknown] [SPEC DELETE /memories/{id} unknown] [SPEC Errors not_found] [Decision 16] an id that is not stored answers 404', async () => {
      const ids = [
        ...['mem_01HZZZZZZZZZZZZZZZZZZZZZZZ', 'mem_', 'x', 'search%20', '%00', 'a%00b', '%2F', '..%2F..', '%E8%A8%98'],
        ...['%F0%9F%98%80', "'%20or%201=1", 'a%20b', 'mem_x?', '%25', 'A'.repeat(2000), '%', '%ff', 'mem_%0d%0aX:1'],
      ];
      const { raw } = subject().client;
      for (const id of ids) {
        expectError(await raw(`/memories/${id}`), 'not_found');
        expectError(await raw(`/memories/${id}`, { method: 'DELETE' }), 'not_found');
        const patch = { method: 'PATCH', body: '{"content":"x"}', headers: { 'content-type': 'application/json' } };
        expectError(await raw(`/memories/${id}`, patch), 'not_found');
      }
    });
  });
