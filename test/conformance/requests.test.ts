import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Query } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';
import type { WireError } from '../support/wire.ts';

/*
 * Rules that schemas and core decide, the same for every provider: tested once, on the memory provider. How requests
 * arrive over a socket is in test/http.
 */

let subject: Subject;
beforeAll(async () => {
  subject = await openSubject({ provider: 'memory', options: { scopes: 'native' } });
});
afterAll(() => subject?.close());

const UNKNOWN = '/memories/mem_01HZZZZZZZZZZZZZZZZZZZZZZZ';
const SURROGATES = ['\ud800', 'a\udc00b', '\udc00\ud800', 'x\udbff'];
const deep = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
const many = (count: number, make: (i: number) => string = (i) => `${i}`) =>
  Array.from({ length: count }, (_, i) => make(i));
const described = (value: unknown): string => (JSON.stringify(value) ?? '').slice(0, 60);
const post = (body: unknown) => subject.client.tell('POST', '/memories', body);
const raw = (path: string, init?: RequestInit) => subject.client.raw(path, init);

/** For each field values that are rejected wherever the field may be given. */
const BAD_TIMES: readonly unknown[] = [
  ...['', 'soon', '1704190830000', 'Tue, 02 Jan 2024 10:20:30 GMT', '02/01/2024', '2024-13-01', '2024-02-30'],
  ...['2023-02-29', '2024-01-02T25:00:00Z', '2024-01-02T10:61:00Z', '2024-01-02T10:20:30+99:00', '10:20:30', 'T10:20'],
  ...['2024-01-02T10:20:30Z extra', '+012024-01-02T00:00:00Z', '9999-12-31T23:59:59-01:00', '2024-01-02\u0000'],
];
const BAD: Readonly<Record<string, readonly unknown[]>> = {
  content: [5, true, {}, ['a'], '', ' ', '\t\r\n', '\u00a0\u3000', 'a\u0000b', ...SURROGATES],
  user_id: [5, true, {}, ['a'], '', ' ', '\n', 'a\u0000b', 'x'.repeat(257), ...SURROGATES],
  scope: [
    ...[5, true, {}, ['a'], '', '/', '/a', 'a/', 'a//b', '//', 'a*', '*', 'a?b', 'a/*', 'a\u0000b', 'a\nb', 'a\u007fb'],
    ...['\u0085', 'x'.repeat(513), many(33).join('/'), ...SURROGATES],
  ],
  tags: [
    ...['a', 5, {}, [5], [null], [['a']], [{}], ['ok', true], ['a\u0000'], ['x'.repeat(129)], many(65)],
    ...SURROGATES.map((bad) => [bad]),
  ],
  source: [
    ...['editor', 5, true, [], ['a'], { app: 5 }, { app: {} }, { type: 'guessed' }, { type: 'Explicit' }, { type: 5 }],
    ...[{ ref: 7 }, { app: 'a\u0000' }, { ref: '\ud800' }],
  ],
  confidence: ['0.5', '', true, {}, [0.5], -0.000001, 1.000001, -1, 2, 1e300],
  valid_from: [5, true, {}, [], ...BAD_TIMES],
  valid_to: [5, true, {}, [], ...BAD_TIMES],
  supersedes: ['mem_a', 5, {}, [5], [null], [['mem_a']], ['mem_\u0000'], ['\ud800'], many(65, (i) => `mem_${i}`)],
  'x-note': [
    ...['a\u0000', { nested: ['a\u0000'] }, { 'key\u0000': 1 }, '\ud800', { a: { '\udc00': 1 } }, deep(33), deep(60)],
  ],
};
const PATCHABLE = ['content', 'scope', 'tags', 'confidence', 'valid_to', 'supersedes', 'x-note'];

describe('bodies', () => {
  it.for(Object.keys(BAD))(
    '[SPEC Errors invalid_request] [Decision 8] [Decision 9] POST rejects a wrong %s',
    async (field) => {
      const user_id = freshUser();
      for (const value of BAD[field] ?? []) {
        const reply = await post({ content: 'x', user_id, [field]: value });
        expect(reply.status, described(value)).toBe(400);
        expect(expectError(reply, 'invalid_request').message, described(value)).toContain(field);
      }
      expect((await subject.client.list({ user_id })).items).toEqual([]);
    },
  );

  it.for(PATCHABLE)(
    '[SPEC Errors invalid_request] [Decision 8] PATCH rejects a wrong %s and changes nothing',
    async (field) => {
      const { client } = subject;
      const before = await client.add({ content: 'x', user_id: freshUser() });
      for (const value of BAD[field] ?? []) {
        const reply = await client.tell('PATCH', client.byId(before.id), { confidence: 0.9, [field]: value });
        expect(reply.status, described(value)).toBe(400);
        expectError(reply, 'invalid_request');
      }
      expect(await client.get(before.id)).toEqual(before);
    },
  );

  it('[SPEC Memory optional fields] [Decision 7] POST takes null as omitted', async () => {
    const optional = [
      'scope',
      'tags',
      'source',
      'confidence',
      'valid_from',
      'valid_to',
      'supersedes',
      'x-none',
    ] as const;
    const nulls = Object.fromEntries(optional.map((field) => [field, null]));
    const add = (fields: object) => subject.client.add({ content: 'x', user_id: freshUser(), ...fields });
    const [given, omitted] = [await add(nulls), await add({})];
    for (const field of optional) expect(given[field], field).toEqual(omitted[field]);
    expect((await add({ source: { app: 'editor', ref: null } })).source).toEqual({ app: 'editor' });
  });

  it('[Decision 7] PATCH rejects null, except for valid_to and extensions', async () => {
    const { client } = subject;
    const before = await client.add({ content: 'x', user_id: freshUser() });
    for (const field of ['content', 'scope', 'tags', 'confidence', 'supersedes']) {
      const reply = await client.tell('PATCH', client.byId(before.id), { 'x-a': 1, [field]: null });
      expectError(reply, 'invalid_request');
    }
    expect(await client.get(before.id)).toEqual(before);
  });

  it('[Decision 6] [Decision 7] [SPEC Versioning 3] POST and PATCH ignore unknown fields and fields that never change', async () => {
    const { client } = subject;
    const fixed = { id: 'mem_mine', created_at: '2001-01-01', status: 'failed', future: 1, extensions: {} };
    const added = await client.add({ content: 'x', user_id: freshUser(), ...fixed });
    expect(added).toMatchObject({ id: expect.not.stringMatching('mem_mine'), status: 'done' });
    expect(added.created_at).not.toMatch(/^2001/);
    for (const field of ['future', 'extensions']) expect(added).not.toHaveProperty(field);
    const patch = { ...fixed, user_id: 'other', valid_from: '2001-01-01', source: { app: 'x' } };
    expect(await client.update(added.id, patch)).toEqual(added);
  });

  it('[SPEC Service json] [SPEC Errors envelope] [SPEC Errors code] [SPEC Errors message] [SPEC Errors type] [SPEC Errors request_id] are JSON', async () => {
    const { headers } = await post({ content: 'x', user_id: freshUser() });
    expect(headers.get('content-type')).toMatch(/^application\/json(;|$)/);
    const reply = await raw(UNKNOWN);
    const { code, message, type, request_id } = expectError(reply, 'not_found');
    expect(reply.body).toEqual({ error: { code, message, type, request_id } });
  });

  it('[Decision 10] [Decision 8] [Decision 40] POST /context rejects what is missing or malformed', async () => {
    const rejects = async (fields: object) =>
      expectError(await subject.client.tell('POST', '/context', fields), 'invalid_request');
    const [user_id, query] = [freshUser(), 'coffee'];
    await rejects({ user_id });
    await rejects({ query });
    for (const bad of ['', ' \n', 5, 'a\u0000b', '\ud800', ['coffee']]) {
      await rejects({ user_id, query: bad });
      if (!Array.isArray(bad)) await rejects({ user_id: bad, query });
    }
    const notUsers = [[], [''], [5], [null], [['u']], ['u', 'u'], ['u', ' '], many(17), ['x'.repeat(257)], SURROGATES];
    for (const bad of notUsers) await rejects({ user_id: bad, query });
    expect((await subject.client.context({ user_id: many(16), query })).citations).toEqual([]);
    for (const token_budget of [-1, 1.5, '500', true, [500]]) await rejects({ user_id, query, token_budget });
    for (const scope of [5, ['a'], 'a\u0000']) await rejects({ user_id, query, scope });
    for (const min_score of [-0.1, 1.1, '0.5', true]) await rejects({ user_id, query, min_score });
  });

  it('[Decision 10] [Decision 6] in a context null counts as omitted, and unknown fields are ignored', async () => {
    const user_id = freshUser();
    await subject.client.add({ user_id, content: 'drinks coffee' });
    const plain = { user_id, query: 'coffee' };
    const context = await subject.client.context({ ...plain, scope: null, token_budget: null, future: 1 });
    expect(context).toEqual(await subject.client.context(plain));
    expect(context).toEqual(await subject.client.context({ ...plain, token_budget: 500 }));
  });

  it('[Decision 6] a response names what was ignored: fields of every body, and parameters', async () => {
    const { client } = subject;
    const user_id = freshUser();
    const known = { content: 'x', user_id, 'x-own': { deep: 1 } };
    const { id } = await client.add(known);
    const ignoredBy = async (method: string, path: string, body?: object) => {
      const { headers, status, text } = await client.tell(method, path, body);
      expect(status, text).toBeLessThan(300);
      return headers.get('x-ignored-fields');
    };
    const added = { ...known, metadata: { a: 1 }, source: { app: 'a', url: 'b', 'x-c': 1 } };
    expect(await ignoredBy('POST', '/memories', known)).toBeNull();
    expect(await ignoredBy('POST', '/memories', added)).toBe('metadata, source.url, source.x-c');
    const batch = { memories: [added, { ...known, metadata: 1, id: 'mine' }], atomic: true };
    expect(await ignoredBy('POST', '/memories/batch', batch)).toBe('atomic, metadata, source.url, source.x-c, id');
    expect(await ignoredBy('PATCH', client.byId(id), { 'x-own': 2 })).toBeNull();
    expect(await ignoredBy('PATCH', client.byId(id), { user_id, valid_from: null })).toBe('user_id, valid_from');
    expect(await ignoredBy('POST', '/context', { user_id, query: 'x', limit: 3 })).toBe('limit');
    const query = `user_id=${user_id}&top_k=1&filter=%7B%7D&top_k=2`;
    for (const path of ['/memories', '/audit', '/users', '/stats', '/export']) {
      const parameters = path === '/users' ? 'top_k=1&filter=' : query;
      expect(await ignoredBy('GET', `${path}?${parameters}`), path).toBe('top_k, filter');
    }
    expect(await ignoredBy('GET', `/memories/search?q=x&${query}`)).toBe('top_k, filter');
  });

  it('[Decision 6] names of ignored fields are few, short and safe in a header, and never values', async () => {
    const { client } = subject;
    const ignored = async (fields: object) => {
      const reply = await client.tell('POST', '/memories', { content: 'x', user_id: freshUser(), ...fields });
      expect(reply.status).toBe(201);
      return reply.headers.get('x-ignored-fields');
    };
    const unsafe = ['a b', 'a,b', 'a\r\nset-cookie: c=1', 'Łódź', '\u0000', '\u202e', '', '<script>', 'x'.repeat(65)];
    expect(await ignored(Object.fromEntries(unsafe.map((name) => [name, 'secret'])))).toBeNull();
    expect(await ignored(JSON.parse('{"__proto__": 1, "constructor": 2, "ok": "secret"}'))).toBe(
      '__proto__, constructor, ok',
    );
    const names = many(10_000, (i) => `field-${i}`);
    const told = await ignored(Object.fromEntries(names.map((name) => [name, 1])));
    expect(told).toBe(names.slice(0, 16).join(', '));
  });

  const JSON_POST = { method: 'POST', headers: { 'content-type': 'application/json' } };

  it('[SPEC POST /memories confidence] [Decision 8] a number JSON cannot hold is rejected', async () => {
    const body = `{"content":"x","user_id":"${freshUser()}","confidence":1e999}`;
    expectError(await raw('/memories', { ...JSON_POST, body }), 'invalid_request');
  });

  it('[Decision 5] a scope has at most 512 characters and 32 segments', async () => {
    const add = async (scope: string) => (await post({ content: 'x', user_id: freshUser(), scope })).status;
    const longest = many(32, (i) => `${i}`.padEnd(15, 's'))
      .join('/')
      .padEnd(512, 's');
    expect([await add(longest), await add(`${longest}s`)]).toEqual([201, 400]);
    expect([await add(many(32).join('/')), await add(many(33).join('/'))]).toEqual([201, 400]);
  });
});

describe('batches', () => {
  const batch = (body: unknown) => subject.client.tell('POST', '/memories/batch', body);
  const memory = { content: 'x', user_id: 'batches' };

  it('[Decision 35] hold 1 to 100 memories', async () => {
    const wrong = [[], 5, [memory], {}, { memories: null }, { memories: {} }, { memories: 'x' }, { memories: [] }];
    for (const body of [...wrong, { memories: Array(101).fill(memory) }]) {
      expectError(await batch(body), 'invalid_request');
    }
    expect((await subject.client.list({ user_id: memory.user_id })).items).toEqual([]);
  });

  it('[Decision 35] each memory has the error of a single add', async () => {
    const bad = Object.entries(BAD).flatMap(([field, values]) =>
      values.map((value) => ({ ...memory, [field]: value })),
    );
    for (let start = 0; start < bad.length; start += 50) {
      const part = bad.slice(start, start + 50);
      const singles = await Promise.all(part.map(post));
      const errors = singles.map(({ body }) => {
        const { request_id: _, ...error } = (body as WireError).error;
        return { error };
      });
      expect(await subject.client.batch(part)).toEqual(errors);
    }
    expect((await subject.client.list({ user_id: memory.user_id })).items).toEqual([]);
  });

  it('[Decision 35] [Decision 29] [SPEC Errors payload_too_large] together take at most as much as two requests', async () => {
    const user_id = freshUser();
    const memories = many(40, () => '').map(() => ({ user_id, content: 'x', 'x-a': Array(2_000).fill(1) }));
    expectError(await batch({ memories }), 'payload_too_large');
    expect((await subject.client.list({ user_id })).items).toEqual([]);
    expect((await subject.client.batch(memories.slice(0, 25))).every((result) => result.memory)).toBe(true);
  });
});

describe('times', () => {
  /** Every form of ISO 8601 that client libraries write, and the moment it names. */
  const FORMS: readonly (readonly [string, string])[] = [
    ['2024-01-02', '2024-01-02T00:00:00.000Z'],
    ['2024-01-02T10:20', '2024-01-02T10:20:00.000Z'],
    ['2024-01-02T10:20Z', '2024-01-02T10:20:00.000Z'],
    ['2024-01-02T10:20:30', '2024-01-02T10:20:30.000Z'],
    ['2024-01-02T10:20:30Z', '2024-01-02T10:20:30.000Z'],
    ['2024-01-02T10:20:30.5Z', '2024-01-02T10:20:30.500Z'],
    ['2024-01-02T10:20:30,5Z', '2024-01-02T10:20:30.500Z'],
    ['2024-01-02T10:20:30.123456+00:00', '2024-01-02T10:20:30.123Z'],
    ['2024-01-02T10:20:30.123456789Z', '2024-01-02T10:20:30.123Z'],
    ['2024-01-02T10:20:30+02:00', '2024-01-02T08:20:30.000Z'],
    ['2024-01-02T10:20:30-0530', '2024-01-02T15:50:30.000Z'],
    ['2024-01-02T10:20:30+02', '2024-01-02T08:20:30.000Z'],
    ['20240102T102030Z', '2024-01-02T10:20:30.000Z'],
    ['2024-W01-2', '2024-01-02T00:00:00.000Z'],
    ['2024-002', '2024-01-02T00:00:00.000Z'],
    ['2024-02-29T23:59:59.999-23:59', '2024-03-01T23:58:59.999Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ];

  it.for(FORMS)(
    '[Decision 9] [SPEC Memory valid_from] [SPEC GET /memories since] %s is %s',
    async ([given, moment]) => {
      const user_id = freshUser();
      const added = await subject.client.add({ user_id, content: 'x', valid_from: given, valid_to: given });
      expect([added.valid_from, added.valid_to]).toEqual([moment, moment]);
      const found = async (query: Query) => (await subject.client.list({ user_id, ...query })).items.length;
      expect(await found({ since: given })).toBe(moment <= added.created_at ? 1 : 0);
      expect(await found({ until: given })).toBe(moment >= added.created_at ? 1 : 0);
    },
  );

  it('[SPEC GET /memories since] [Decision 9] an unescaped + that arrived as a space is understood', async () => {
    const user_id = freshUser();
    const { created_at, id } = await subject.client.add({ user_id, content: 'x' });
    const local = new Date(Date.parse(created_at) + 2 * 3600_000).toISOString().replace('Z', '+02:00');
    for (const written of [local, local.replace('+', '%20'), local.replace('+', '%2B')]) {
      for (const bound of ['since', 'until']) {
        const reply = await raw(`/memories?user_id=${user_id}&${bound}=${written}`);
        expect(reply.body, `${bound}=${written}`).toMatchObject({ items: [{ id }] });
      }
    }
  });
});

describe('queries', () => {
  const LIST = { user_id: 'u' };
  const SEARCH = { user_id: 'u', q: 'tea' };
  const NUMBERS = ['-1', '1.5', 'abc', '', 'NaN', 'Infinity', '10abc', '9007199254740993'];
  const CURSORS = [
    ...['abc', 'null', 'bm90IGEgY3Vyc29y', 'eyJwYWdlIjoyfQ', 'MjAyNC0wMS0wMVQwMDowMDowMC4wMDBafG1lbV94'],
    ...['../../etc/passwd', "' or 1=1 --", '\u0000', '😀', 'A'.repeat(256), 'A'.repeat(257), 'A'.repeat(5000)],
  ];

  it.for<readonly [string, string, Query, readonly unknown[]]>([
    [
      '[SPEC GET /memories limit] [Decision 9]',
      '/memories',
      LIST,
      ['0', '501', ...NUMBERS].map((limit) => ({ limit })),
    ],
    ['[SPEC GET /memories cursor] [Decision 2]', '/memories', LIST, CURSORS.map((cursor) => ({ cursor }))],
    ['[SPEC GET /memories since] [Decision 9]', '/memories', LIST, BAD_TIMES.map((since) => ({ since }))],
    ['[SPEC GET /memories until] [Decision 9]', '/memories', LIST, BAD_TIMES.map((until) => ({ until }))],
    ['[SPEC GET /memories user_id]', '/memories', {}, [{}, { user_id: '' }, { user_id: ' \t' }]],
    [
      '[SPEC GET /memories/search limit] [Decision 9]',
      '/memories/search',
      SEARCH,
      ['0', '101', ...NUMBERS].map((limit) => ({ limit })),
    ],
    [
      '[SPEC GET /memories/search min_score] [Decision 9]',
      '/memories/search',
      SEARCH,
      ['-0.1', '1.1', 'abc', '', 'NaN', 'Infinity', '0,5'].map((min_score) => ({ min_score })),
    ],
    [
      '[SPEC GET /memories/search q] [Decision 8]',
      '/memories/search',
      LIST,
      [{}, ...['', ' \t\n', 'te\u0000a'].map((q) => ({ q }))],
    ],
    [
      '[SPEC GET /memories/search user_id] [Decision 8] [Decision 40]',
      '/memories/search',
      { q: 'tea' },
      [
        {},
        ...[' ', ['u', ' '], ['u', 'u'], ['u', ''], many(17), ['u', 'x'.repeat(257)]].map((user_id) => ({ user_id })),
      ],
    ],
    ['[Decision 39]', '/memories/search', SEARCH, ['', '1', 'yes', 'TRUE', 'true '].map((explain) => ({ explain }))],
    [
      '[Decision 11]',
      '/audit',
      LIST,
      [
        ...['0', '1001', ...NUMBERS].map((limit) => ({ limit })),
        { since: 'yesterday' },
        { cursor: 'x' },
        { user_id: '' },
      ],
    ],
  ])('%s rejects wrong values', async ([, path, query, wrong]) => {
    for (const values of wrong) {
      expectError(await subject.client.ask(path, { ...query, ...(values as Query) }), 'invalid_request');
    }
  });

  it('[SPEC Errors invalid_request] a known parameter given twice', async () => {
    const list = [
      'limit=1&limit=2',
      'tag=a&tag=b',
      'tag=a&tag=a',
      'scope=a&scope=b',
      'since=2024&since=2024',
      'user_id=u',
    ];
    for (const twice of list) expectError(await raw(`/memories?user_id=u&${twice}`), 'invalid_request');
    for (const twice of ['q=a&q=b', 'q=a&limit=1&limit=2', 'q=a&scope=a&scope=b', 'q=a&explain=true&explain=true']) {
      expectError(await raw(`/memories/search?user_id=u&user_id=v&${twice}`), 'invalid_request');
    }
    expect((await raw(`/memories/search?q=a&${many(16, (i) => `user_id=${i}`).join('&')}`)).status).toBe(200);
  });

  it('[Decision 6] [SPEC Versioning 3] unknown parameters are ignored', async () => {
    expect((await raw(`/memories?user_id=${freshUser()}&future=1&future=2&sort=asc`)).status).toBe(200);
  });
});

describe('cursors', () => {
  it('[Decision 2] [Decision 11] of lists and of the audit log are not interchangeable', async () => {
    const user_id = freshUser();
    for (let i = 0; i < 3; i++) await subject.client.add({ user_id, content: 'x' });
    const cursorOf = async (path: string, query: Query = {}) => {
      const { body } = await subject.client.ask(path, { user_id, limit: 1, ...query });
      return (body as { next_cursor: string }).next_cursor;
    };
    const [list, audit] = [await cursorOf('/memories'), await cursorOf('/audit')];
    const status = async (path: string, query: Query) => (await subject.client.ask(path, { user_id, ...query })).status;
    expect(await status('/memories', { cursor: list })).toBe(200);
    expect(await status('/audit', { cursor: list })).toBe(400);
    expect(await status('/memories', { cursor: audit })).toBe(400);
    expect(await status('/audit', { cursor: await cursorOf('/audit') })).toBe(200);
    expect(await status('/audit', { cursor: await cursorOf('/audit'), app: 'other' })).toBe(400);
  });
});

describe('If-Match', () => {
  it('[Decision 36] is rejected if it is malformed', async () => {
    const { id } = await subject.client.add({ user_id: freshUser(), content: 'x' });
    for (const etag of ['', ' ', 'x', '"', '"a', 'a"', '"a" "b"', '"a", b', 'w/"a"', '*, "a"', '"a" x', ', "a"']) {
      const headers = { 'if-match': etag };
      expectError(await subject.client.tell('PATCH', `/memories/${id}`, { content: 'y' }, headers), 'invalid_request');
      expectError(await subject.client.tell('DELETE', `/memories/${id}`, undefined, headers), 'invalid_request');
    }
    expect((await subject.client.get(id)).content).toBe('x');
  });
});

describe('Idempotency-Key', () => {
  const posting = (key: string, fields: object) =>
    subject.client.tell('POST', '/memories', fields, { 'idempotency-key': key });
  const count = async (user_id: string) => (await subject.client.list({ user_id })).items.length;

  it('[Decision 20] compares what the JSON says, not how it is written', async () => {
    const user_id = freshUser();
    const fields = { user_id, content: 'x', 'x-a': { p: 1, q: [1, 2] } };
    const key = user_id;
    const first = await posting(key, fields);
    const same = [
      { 'x-a': { q: [1, 2], p: 1 }, content: 'x', user_id },
      { ...fields, tags: [], scope: null, future: 'ignored' },
    ];
    for (const each of same) expect((await posting(key, each)).text).toBe(first.text);
    const others = [
      { ...fields, content: 'y' },
      { ...fields, 'x-a': { p: 1, q: [2, 1] } },
      { user_id, content: 'x' },
      { ...fields, scope: 'a' },
      { ...fields, user_id: freshUser() },
    ];
    for (const each of others) expectError(await posting(key, each), 'invalid_request');
    expect(await count(user_id)).toBe(1);
  });

  it('[Decision 20] may be quoted', async () => {
    const user_id = freshUser();
    const fields = { user_id, content: 'x' };
    for (const [quoted, bare] of [
      ['"k 1"', 'k 1'],
      ['"say \\"hi\\" \\\\"', 'say "hi" \\'],
    ] as const) {
      expect((await posting(quoted, fields)).text).toBe((await posting(bare, fields)).text);
    }
    expect(await count(user_id)).toBe(2);
  });

  it('[Decision 20] is rejected if it is malformed, and unused after a rejected add', async () => {
    const user_id = freshUser();
    for (const key of ['', ' ', '""', 'k\u00e9', 'a\tb', 'x'.repeat(256), `"${'x'.repeat(256)}"`]) {
      expectError(await posting(key, { user_id, content: 'x' }), 'invalid_request');
    }
    expectError(await posting(user_id, { user_id, content: '' }), 'invalid_request');
    expect(await count(user_id)).toBe(0);
    expect((await posting(user_id, { user_id, content: 'x' })).status).toBe(201);
  });
});

describe('x-request-id', () => {
  it('[Decision 15] [SPEC Errors request_id] is taken over when it is well formed', async () => {
    for (const given of ['a', 'A.b_c-9', 'x'.repeat(64)]) {
      const headers = { 'x-request-id': given };
      for (const path of ['/healthz', '/memories', UNKNOWN, '/nowhere']) {
        expect((await raw(path, { headers })).headers.get('x-request-id'), path).toBe(given);
      }
      expect(expectError(await raw(UNKNOWN, { headers }), 'not_found').request_id).toBe(given);
    }
  });

  it('[Decision 15] is made anew otherwise', async () => {
    for (const given of ['', ' ', 'a b', 'x'.repeat(65), 'a,b', 'ü', '<script>', 'a/b']) {
      const send = async () =>
        (await raw('/healthz', { headers: { 'x-request-id': given } })).headers.get('x-request-id');
      const [first, second] = [await send(), await send()];
      expect(first, given).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
      expect(first).not.toBe(given);
      expect(first).not.toBe(second);
    }
  });
});
