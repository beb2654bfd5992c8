import { describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/gateway.ts';
import type { WireMemory } from '../support/wire.ts';
import { type GetSubject, type Need, supports, testOf } from './subject.ts';

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** What our stores keep exactly, beyond what the kit asks of every implementation. */
const KEPT: readonly (readonly [string, keyof WireMemory, readonly Need[], readonly unknown[]])[] = [
  [
    '[SPEC Memory content] [SPEC POST /memories content] control characters in content',
    'content',
    [],
    ['\u0001\u001f\u007f\u0085'],
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
    ['a b/ü/%41', Array(32).fill('s').join('/')],
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
    [0.1 + 0.2, 1e-9],
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

    it('[SPEC Memory id] has the form of the store', async () => {
      expect((await add()).id).toMatch(subject().ids ?? /^mem_[\w-]+$/);
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
      const { created_at, updated_at } = await add();
      for (const time of [created_at, updated_at ?? created_at]) expect(time).toMatch(TIME);
    });

    it('[SPEC Memory embedding_model] names a model exactly when vectors are stored', async () => {
      const { embedding_model } = await add();
      if (subject().capabilities.features.vector_search) expect(embedding_model).toMatch(/\S/);
      else expect(embedding_model ?? null).toBeNull();
    });

    it('[SPEC Service users] [Decision 19] needs no X-User-Id; with another user the record does not exist', async () => {
      const { ask, byId } = subject().client;
      const { id, user_id } = await add();
      expect((await ask(byId(id), {}, { 'x-user-id': user_id })).status).toBe(200);
      expectError(await ask(byId(id), {}, { 'x-user-id': `${user_id}-other` }), 'not_found');
    });

    it('[Decision 16] [SPEC Errors not_found] whatever it looks like, an id that is not stored answers 404', async () => {
      const ids = [
        ...['mem_01HZZZZZZZZZZZZZZZZZZZZZZZ', 'mem_', 'x', 'search%20', '%00', 'a%00b', '%2F', '..%2F..', '%E8%A8%98'],
        ...['%F0%9F%98%80', "'%20or%201=1", 'a%20b', 'mem_x?', '%25', 'A'.repeat(2000), 'mem_%0d%0aX:1'],
      ];
      const { raw } = subject().client;
      for (const id of ids) {
        expectError(await raw(`/memories/${id}`), 'not_found');
        if (supports(subject(), 'delete')) expectError(await raw(`/memories/${id}`, { method: 'DELETE' }), 'not_found');
        if (!supports(subject(), 'update')) continue;
        const patch = { method: 'PATCH', body: '{"content":"x"}', headers: { 'content-type': 'application/json' } };
        expectError(await raw(`/memories/${id}`, patch), 'not_found');
      }
    });
  });
