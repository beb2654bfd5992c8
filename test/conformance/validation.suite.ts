import { describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { freshUser } from '../support/subject.ts';
import { type GetSubject, needFields, needScopes, needVerbs } from './subject.ts';

const SURROGATES = ['\ud800', 'a\udc00b', '\udc00\ud800', 'x\udbff'];
const deep = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const placeOf = (field: string): string => (field.startsWith('x-') ? 'extensions' : field);
const many = (count: number, make: (i: number) => string = (i) => `${i}`) =>
  Array.from({ length: count }, (_, i) => make(i));

/** For each field the values that are refused, wherever the field may be given. */
const BAD: Readonly<Record<string, readonly unknown[]>> = {
  content: [5, true, {}, ['a'], '', ' ', '\t\r\n', '\u00a0\u3000', 'a\u0000b', ...SURROGATES],
  user_id: [5, true, {}, ['a'], '', ' ', '\n', 'a\u0000b', 'x'.repeat(257), ...SURROGATES],
  scope: [
    ...[
      5,
      true,
      {},
      ['a'],
      '',
      '/',
      '/a',
      'a/',
      'a//b',
      '//',
      'a*',
      '*',
      'a?b',
      'a/*',
      'a\u0000b',
      'a\nb',
      'a\u007fb',
      '\u0085',
    ],
    ...['x'.repeat(513), many(33).join('/'), ...SURROGATES],
  ],
  tags: [
    ...['a', 5, {}, [5], [null], [['a']], [{}], ['ok', true], ['a\u0000'], ['x'.repeat(129)], many(65)],
    ...SURROGATES.map((bad) => [bad]),
  ],
  source: [
    ...[
      'editor',
      5,
      true,
      [],
      ['a'],
      { app: 5 },
      { app: {} },
      { type: 'guessed' },
      { type: 'Explicit' },
      { type: 5 },
      { ref: 7 },
    ],
    ...[{ app: 'a\u0000' }, { ref: '\ud800' }],
  ],
  confidence: ['0.5', '', true, {}, [0.5], -0.000001, 1.000001, -1, 2, 1e300],
  valid_from: [5, true, {}, [], 'soon', '2024-13-01', '', '2024-01-01\u0000'],
  valid_to: [5, true, {}, [], 'soon', '2024-02-30', ''],
  supersedes: ['mem_a', 5, {}, [5], [null], [['mem_a']], ['mem_\u0000'], ['\ud800'], many(65, (i) => `mem_${i}`)],
  'x-note': [
    'a\u0000',
    { nested: ['a\u0000'] },
    { 'key\u0000': 1 },
    '\ud800',
    { a: { '\udc00': 1 } },
    deep(64),
    deep(500),
  ],
};
const PATCHABLE = ['content', 'scope', 'tags', 'confidence', 'valid_to', 'supersedes', 'x-note'];

/** The largest and oddest values that are still fine. */
const GOOD: Readonly<Record<string, readonly unknown[]>> = {
  content: ['x', '\u0001', ' x ', 'x'.repeat(8_000), '\ud83d\ude00', '\uffff\ufffe'],
  user_id: ['x'.repeat(200), '😀'.repeat(200), ' x '],
  scope: ['x', 'x'.repeat(512), '😀'.repeat(512), many(32).join('/'), 'a b', 'a\\b', '%', 'ü', '.', '..', '[a]', 'a:b'],
  tags: [[], ['x'.repeat(128)], ['😀'.repeat(128)], many(64), ['*', '?', '/']],
  source: [{ app: 'editor' }, { type: 'imported' }, { app: null, type: null, ref: null }, { app: 'a', future: 1 }],
  confidence: [0, 1, 0.5],
  valid_from: ['2024-01-01'],
  valid_to: ['2024-01-01', '1999-01-01'],
  supersedes: [[], ['mem_a'], many(64, (i) => `mem_${i}`)],
  'x-note': [0, '', [], {}, 'a\\u0000 written out', deep(28)],
};

export const validationSuite = (subject: GetSubject) =>
  describe('validation', () => {
    const post = (body: unknown) => subject().client.tell('POST', '/memories', body);
    const described = (value: unknown): string => (JSON.stringify(value) ?? '').slice(0, 60);

    it.for(Object.keys(BAD))('[SPEC Errors invalid_request] [Decision 8] POST refuses a wrong %s', async (field) => {
      for (const value of BAD[field] ?? []) {
        const reply = await post({ content: 'x', user_id: freshUser(), [field]: value });
        expect(reply.status, described(value)).toBe(400);
        expect(expectError(reply, 'invalid_request').message, described(value)).toContain(field);
      }
    });

    it.for(PATCHABLE)(
      '[SPEC Errors invalid_request] [Decision 8] PATCH refuses a wrong %s and changes nothing',
      async (field, { skip }) => {
        needVerbs(skip, subject(), 'update');
        const { client } = subject();
        const before = await client.add({ content: 'x', user_id: freshUser() });
        for (const value of BAD[field] ?? []) {
          const reply = await client.tell('PATCH', client.byId(before.id), { confidence: 0.9, [field]: value });
          expect(reply.status, described(value)).toBe(400);
          expectError(reply, 'invalid_request');
        }
        expect(await client.get(before.id)).toEqual(before);
      },
    );

    it.for(Object.keys(GOOD))('[Decision 8] POST takes every allowed %s', async (field, { skip }) => {
      needFields(skip, subject(), placeOf(field));
      if (field === 'scope') needScopes(skip, subject());
      for (const value of GOOD[field] ?? []) {
        const given = field === 'user_id' ? `${value}${freshUser()}` : value;
        const reply = await post({ content: 'x', user_id: freshUser(), [field]: given });
        expect(reply.status, `${described(value)} ${reply.text}`).toBe(201);
      }
    });

    it.for(PATCHABLE)('[Decision 8] PATCH takes every allowed %s', async (field, { skip }) => {
      needFields(skip, subject(), placeOf(field));
      needVerbs(skip, subject(), 'update');
      if (field === 'scope') needScopes(skip, subject());
      const { client } = subject();
      const { id } = await client.add({ content: 'x', user_id: freshUser() });
      for (const value of GOOD[field] ?? []) {
        const reply = await client.tell('PATCH', client.byId(id), { [field]: value });
        expect(reply.status, `${described(value)} ${reply.text}`).toBe(200);
      }
    });

    it('[SPEC POST /memories content] [SPEC POST /memories user_id] are required', async () => {
      for (const body of [
        {},
        { content: 'x' },
        { user_id: 'u' },
        { content: null, user_id: 'u' },
        { content: 'x', user_id: null },
      ]) {
        expectError(await post(body), 'invalid_request');
      }
    });

    it('[SPEC POST /memories confidence] [Decision 8] a number JSON cannot hold is refused', async () => {
      const body = `{"content":"x","user_id":"${freshUser()}","confidence":1e999}`;
      const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
      expectError(await subject().client.raw('/memories', init), 'invalid_request');
    });

    it('[Decision 5] a scope has at most 512 characters and 32 segments, none of them empty', async ({ skip }) => {
      needScopes(skip, subject());
      const add = async (scope: string) => (await post({ content: 'x', user_id: freshUser(), scope })).status;
      const longest = many(32, (i) => `${i}`.padEnd(15, 's'))
        .join('/')
        .padEnd(512, 's');
      expect(await add(longest)).toBe(201);
      expect(await add(`${longest}s`)).toBe(400);
      expect(await add(many(32, () => 's').join('/'))).toBe(201);
      expect(await add(many(33, () => 's').join('/'))).toBe(400);
      for (const bad of ['', '/', '/s', 's/', 's//s', 's*', 's?', 's\t', 's\u007f'])
        expect(await add(bad), bad).toBe(400);
    });

    it('[Decision 8] exactly 256 characters of user_id are allowed, in a query too', async ({ skip }) => {
      const user_id = freshUser().padEnd(256, 'x');
      expect((await subject().client.add({ content: 'x', user_id })).user_id).toBe(user_id);
      needVerbs(skip, subject(), 'list');
      expect((await subject().client.list({ user_id })).items).toHaveLength(1);
      expectError(await subject().client.ask('/memories', { user_id: `${user_id}x` }), 'invalid_request');
    });

    it('[Decision 8] a refused record leaves no trace', async ({ skip }) => {
      needVerbs(skip, subject(), 'list');
      const user_id = freshUser();
      for (const confidence of BAD.confidence ?? []) await post({ content: 'x', user_id, confidence });
      expect((await subject().client.list({ user_id })).items).toEqual([]);
    });

    it('[Decision 6] a key that would touch the prototype is only a key', async ({ skip }) => {
      needFields(skip, subject(), 'extensions');
      const user_id = freshUser();
      const body = `{"content":"x","user_id":"${user_id}","__proto__":{"scope":"polluted"},"x-p":{"constructor":{"prototype":{"polluted":true}}}}`;
      const init = { method: 'POST', body, headers: { 'content-type': 'application/json' } };
      const reply = await subject().client.raw('/memories', init);
      expect(reply.status).toBe(201);
      expect((reply.body as { scope?: unknown }).scope ?? null).toBeNull();
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    });
  });
