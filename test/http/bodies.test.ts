import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { VERB_TABLE } from '../../src/verbs/index.ts';
import type { Verb } from '../../src/verbs/verb.ts';
import type { Reply } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { connectRaw, exchange, jsonRequest, request } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';
import { MAX_BODY_BYTES, type WireErrorCode } from '../support/wire.ts';

const bytes = (...parts: readonly (string | number)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : Buffer.from(part))));

let server: RunningServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

let everything: RunningServer;
beforeAll(async () => {
  everything = await startServer({ mcp: { enabled: 'on' }, compat: { interface: 'mem0', infer: 'reject' } });
});
afterAll(() => everything.close());

const valid = () => JSON.stringify({ content: 'x', user_id: freshUser() });
const JSON_TYPE = 'Content-Type: application/json';

/** Sends the bytes; expects success with this status, or this error. */
async function expectAnswer(sent: Buffer, expected: number | WireErrorCode): Promise<void> {
  const reply = await exchange(server.port, sent);
  if (typeof expected === 'string') expectError(reply, expected);
  else expect(reply.status, reply.text).toBe(expected);
}

/** Of mem0's interface too, whose errors have more than the envelope. */
async function expectRejected(sent: Buffer, message: string): Promise<void> {
  const { status, body } = await exchange(everything.port, sent);
  expect([status, body]).toMatchObject([
    400,
    { error: { code: 'invalid_request', message: expect.stringContaining(message) } },
  ]);
}

describe('request bodies', () => {
  const post = (body: string | Uint8Array) => jsonRequest('POST', '/memories', body);

  it.each([
    ...['', '{', 'null', '[]', '"x"', '{"content":"a","user_id":"u"', '{"content":NaN}', "{'content':1}"].map(post),
    // Bytes that are not UTF-8.
    ...[[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]].map((bad) =>
      post(bytes('{"user_id":"u","content":"a', ...bad, '"}')),
    ),
    post(Buffer.from(valid(), 'utf16le')),
  ])('[SPEC Errors invalid_request] reject everything but a JSON object in UTF-8 (%#)', (sent) =>
    expectAnswer(sent, 'invalid_request'),
  );

  it('[Decision 8] may begin with a byte order mark', () => expectAnswer(post(bytes(0xef, 0xbb, 0xbf, valid())), 201));

  it('[SPEC Memory content] may arrive byte by byte', async () => {
    const content = 'é € 😀 \uFEFF';
    const body = Buffer.from(JSON.stringify({ content, user_id: freshUser() }));
    const head = request('POST', '/memories', ['Content-Type: application/json', `Content-Length: ${body.length}`]);
    const reply = await exchange(server.port, head, ...[...body].map((byte) => Buffer.of(byte)));
    expect(reply.status, reply.text).toBe(201);
    expect(reply.body).toMatchObject({ content });
  });

  it.each([
    ['', 'invalid_request'],
    ['Content-Type: text/plain', 'invalid_request'],
    ['Content-Type: application/x-www-form-urlencoded', 'invalid_request'],
    ['Content-Type:', 'invalid_request'],
    ['Content-Type: application/json; charset=utf-8', 201],
  ] as const)('[SPEC Service json] need a JSON content type: "%s"', async (type, expected) => {
    const body = valid();
    const headers = [`Content-Length: ${Buffer.byteLength(body)}`, ...(type === '' ? [] : [type])];
    await expectAnswer(request('POST', '/memories', headers, body), expected);
  });

  it('[Decision 6] [Decision 29] limit the nesting of extensions to 32 levels, and of a whole body to 64', async () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    const withKey = (key: string, levels: number) => post(`{"content":"x","user_id":"u","${key}":${nested(levels)}}`);
    await expectAnswer(withKey('x-deep', 28), 201);
    await expectAnswer(withKey('x-deep', 40), 'invalid_request');
    await expectAnswer(withKey('deep', 63), 201);
    for (const levels of [64, 1000, 100_000]) await expectAnswer(withKey('deep', levels), 'invalid_request');
    await expectAnswer(post(nested(200_000)), 'invalid_request');
    await expectAnswer(post('{"content":'.repeat(50_000)), 'invalid_request');
  });

  it.each([
    ['POST', '/memories'],
    ['POST', '/context'],
    ['PATCH', '/memories/mem_x'],
  ])('[SPEC Errors invalid_request] are required by %s %s', async (method, path) => {
    await expectAnswer(request(method, path, [JSON_TYPE, 'Content-Length: 0']), 'invalid_request');
    await expectAnswer(request(method, path, [JSON_TYPE]), 'invalid_request');
  });

  it('[SPEC GET /memories/{id}] are ignored by other methods', async () => {
    await expectAnswer(jsonRequest('GET', '/memories/mem_x', valid()), 'not_found');
    await expectAnswer(jsonRequest('DELETE', '/memories/mem_x', '{'), 'not_found');
    await expectAnswer(jsonRequest('GET', '/healthz', 'no json at all'), 200);
  });

  it.each(['gzip', 'br', 'zstd', 'aws-chunked', 'gzip, identity'])(
    '[Decision 16] with Content-Encoding %s are rejected with an error that names the header',
    async (encoding) => {
      const reply = await exchange(
        server.port,
        jsonRequest('POST', '/memories', gzipSync(valid()), [`Content-Encoding: ${encoding}`]),
      );
      expect(expectError(reply, 'invalid_request').message).toMatch(/^Content-Encoding: .* without compression$/);
    },
  );

  it('[Decision 16] with Content-Encoding identity are read', () =>
    expectAnswer(jsonRequest('POST', '/memories', valid(), ['Content-Encoding: Identity']), 201));

  const mem0 = (method: string, path: string) => ({ method, path: `/compat/mem0${path}`, body: {} });
  /** The verbs, and what has routes of its own. */
  const ROUTES = [
    ...Object.values<Verb>(VERB_TABLE),
    { method: 'POST', path: '/mcp/{user_id}', body: {} },
    ...['/memories', '/v3/memories/', '/v3/memories/add/', '/search', '/v3/memories/search/'].map((path) =>
      mem0('POST', path),
    ),
    ...['/memories/{id}', '/v1/memories/{id}/'].map((path) => mem0('PUT', path)),
  ];
  const routes = ROUTES.map(({ method, path, body }) => [method, path, body] as const);

  it.each(routes.filter(([, , body]) => body))(
    '[Decision 9] %s %s keeps a whole number as it is, or rejects it',
    async (method, path) => {
      const at = path.replaceAll(/\{\w+\}/g, 'x');
      for (const number of ['9007199254740993', '12345678901234567890', '-12345678901234567891', '9'.repeat(400)]) {
        const body = `{"content":"x","user_id":"u","x-ref":[{"a":${number}}]}`;
        await expectRejected(jsonRequest(method, at, body), 'the JSON holds a whole number that would be changed');
      }
    },
  );

  it('[Decision 9] hold other numbers and digits', async () => {
    const kept = '[9007199254740991,9007199254740992,-9007199254740994,12345678901234567000,1e+22,0.1]';
    const texts = '"12345678901234567890 \\" 12345678901234567890"';
    const body = `{"content":"x","user_id":"${freshUser()}","x-a":${kept},"x-b":${texts},"x-c":12345678901234567890e0}`;
    const { text } = await exchange(server.port, jsonRequest('POST', '/memories', body));
    expect(text).toContain(`"x-a":${kept},"x-b":${texts},`);
  });

  it.each(routes.filter(([, path]) => path.includes('{')))(
    '[SPEC Errors invalid_request] %s %s rejects a path that is no UTF-8',
    async (method, path) => {
      for (const bad of ['caf%E9', '%C3', 'é%ff', '%ED%A0%80', '%zz', '100%']) {
        const at = encodeURI(path.replaceAll(/\{\w+\}/g, 'user')).replaceAll('user', bad.replace('é', '%C3%A9'));
        await expectRejected(jsonRequest(method, at, '{}'), 'path: malformed percent-encoding');
      }
    },
  );

  it('[SPEC Errors invalid_request] percent-encoding must be UTF-8 text', async () => {
    for (const bad of ['%', '%zz', '%ff', '%ED%A0%80', '%00']) {
      await expectAnswer(request('GET', `/memories?user_id=${bad}`), 'invalid_request');
      await expectAnswer(request('GET', `/memories/search?user_id=u&q=${bad}`), 'invalid_request');
    }
  });
});

const CHUNKED = 'Transfer-Encoding: chunked';
const chunk = (data: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]);

describe('sizes', () => {
  /** Valid JSON of exactly this many bytes: spaces after the object. */
  const padded = (length: number): Buffer => Buffer.from(valid().padEnd(length));
  const post = (length: number, headers: readonly string[] = []) =>
    jsonRequest('POST', '/memories', padded(length), headers);
  const healthy = () => expectAnswer(request('GET', '/healthz'), 200);
  const inChunks = (length: number, size: number): Buffer => {
    const body = padded(length);
    const chunks = Array.from({ length: Math.ceil(length / size) }, (_, i) =>
      chunk(body.subarray(i * size, (i + 1) * size)),
    );
    return Buffer.concat([request('POST', '/memories', [JSON_TYPE, CHUNKED]), ...chunks, Buffer.from('0\r\n\r\n')]);
  };
  const bad = Buffer.alloc(2 * MAX_BODY_BYTES, '{');
  const CONTINUE = ['Expect: 100-continue'];
  const announced = `Content-Length: ${10 * MAX_BODY_BYTES}`;

  it.each<[number | WireErrorCode, string, () => Buffer]>([
    [201, '1048576 bytes', () => post(MAX_BODY_BYTES)],
    ['payload_too_large', 'one byte more', () => post(MAX_BODY_BYTES + 1)],
    [201, '1048576 bytes in chunks', () => inChunks(MAX_BODY_BYTES, 65_536)],
    ['payload_too_large', 'one byte more in chunks', () => inChunks(MAX_BODY_BYTES + 1, 65_536)],
    [201, 'chunks of one byte', () => inChunks(200, 1)],
    [201, 'Expect: 100-continue', () => post(100, CONTINUE)],
    ['payload_too_large', 'Expect: 100-continue and too large', () => post(2 * MAX_BODY_BYTES, CONTINUE)],
    ['payload_too_large', 'a DELETE', () => jsonRequest('DELETE', '/memories/mem_x', padded(MAX_BODY_BYTES + 1))],
    ['payload_too_large', 'a GET', () => jsonRequest('GET', '/memories/mem_x', padded(MAX_BODY_BYTES + 1))],
    ['payload_too_large', 'bad JSON for POST', () => jsonRequest('POST', '/memories', bad)],
    ['payload_too_large', 'bad JSON for PATCH', () => jsonRequest('PATCH', '/memories/mem_x', bad)],
    ['payload_too_large', 'bad JSON for /context', () => jsonRequest('POST', '/context', bad)],
    [
      'payload_too_large',
      'no content type',
      () => request('POST', '/memories', [`Content-Length: ${bad.length}`], bad),
    ],
    ['payload_too_large', 'a body that is never sent', () => request('POST', '/memories', [JSON_TYPE, announced])],
  ])('[SPEC Limits body] [SPEC Errors payload_too_large] %s: %s', async (expected, _, sent) => {
    await expectAnswer(sent(), expected);
    await healthy();
  });

  it('[Decision 29] a memory much larger than its request is rejected', async () => {
    const memory = { content: 'x', user_id: freshUser(), 'x-a': Array(60_000).fill(1e300) };
    const moved = { ...memory, id: 'mem_x', created_at: '2026-01-01' };
    for (const [path, body] of [
      ['/memories', memory],
      ['/memories/batch', { memories: [memory] }],
      ['/import', { memories: [moved] }],
    ] as const) {
      await expectAnswer(jsonRequest('POST', path, JSON.stringify(body)), 'payload_too_large');
    }
  });

  it('[Decision 29] a body holds at most 100,000 values', async () => {
    // The body, its three fields, and the elements of one.
    const holding = (values: number) => ({ content: 'x', user_id: 'u', ignored: Array(values - 4).fill(0) });
    await expectAnswer(jsonRequest('POST', '/memories', JSON.stringify(holding(100_000))), 201);
    await expectAnswer(jsonRequest('POST', '/memories', JSON.stringify(holding(100_001))), 'payload_too_large');
  });

  it('[Decision 16] the message of an error names ten fields, and has at most 1,000 characters', async () => {
    const ask = async (body: object) =>
      expectError(
        await server.client.tell('POST', '/memories', { content: 'x', user_id: 'u', ...body }),
        'invalid_request',
      ).message;
    const tags = await ask({ tags: Array(64).fill(0) });
    expect(tags).toMatch(/^tags\.0: must be of type string; .*tags\.9: [^;]*; and 54 more$/);
    // And an ellipsis.
    expect(await ask({ [`x-${'😀'.repeat(2_000)}`]: '\0' })).toHaveLength(1_001);
  });

  it('[Decision 6] a memory has at most 256 x- keys, also after a patch', async () => {
    const keys = (count: number, name: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${name}${i}`, 1]));
    const { client } = server;
    const memory = { content: 'x', user_id: freshUser() };
    expectError(await client.tell('POST', '/memories', { ...memory, ...keys(257, 'a') }), 'invalid_request');
    const { id } = await client.add({ ...memory, ...keys(255, 'a') });
    expect((await client.tell('PATCH', `/memories/${id}`, keys(1, 'b'))).status).toBe(200);
    expectError(await client.tell('PATCH', `/memories/${id}`, keys(1, 'c')), 'invalid_request');
  });

  it('[Decision 3] a glob has at most 32 wildcards', async () => {
    const ask = (scope: string) => server.client.ask('/memories', { user_id: 'u', scope });
    expect((await ask('a*?'.repeat(16))).status).toBe(200);
    expectError(await ask('a?*'.repeat(16).concat('*')), 'invalid_request');
  });

  it('[Decision 29] bodies that are still arriving take at most 256 MiB together', async () => {
    const unfinished = padded(MAX_BODY_BYTES).subarray(1);
    const connections = Array.from({ length: 257 }, () => connectRaw(server.port));
    for (const connection of connections) {
      connection.write(request('POST', '/memories', [JSON_TYPE, `Content-Length: ${MAX_BODY_BYTES}`]));
      connection.write(unfinished);
    }
    expectError(await Promise.race(connections.map((connection) => connection.next())), 'rate_limited');
    for (const connection of connections) connection.destroy();
    await eventually(() => expectAnswer(post(100), 201));
  });

  it('[SPEC Errors payload_too_large] an endless upload is answered while it is being sent', async () => {
    const connection = connectRaw(server.port);
    connection.write(request('POST', '/memories', [JSON_TYPE, CHUNKED]));
    let answered = false;
    const reply = connection.next().finally(() => {
      answered = true;
    });
    const block = chunk(Buffer.alloc(65_536, 'a'));
    let sent = 0;
    while (!answered && sent < 64 * MAX_BODY_BYTES) {
      connection.write(block);
      sent += block.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expectError(await reply, 'payload_too_large');
    connection.destroy();
    await healthy();
  });

  it('[SPEC Errors invalid_request] a body longer than its Content-Length ends there', async () => {
    const body = valid();
    const connection = connectRaw(server.port);
    connection.write(request('POST', '/memories', [JSON_TYPE, `Content-Length: ${body.length - 5}`], body));
    expectError(await connection.next(), 'invalid_request');
    await connection.closed();
    await healthy();
  });

  it('[SPEC Errors payload_too_large] the connection stays usable or is closed', async () => {
    const connection = connectRaw(server.port);
    connection.write(post(MAX_BODY_BYTES + 1));
    const reply = await connection.next();
    expectError(reply, 'payload_too_large');
    if (reply.headers.get('connection') === 'close') return connection.closed();
    connection.write(request('GET', '/healthz'));
    expect((await connection.next()).status).toBe(200);
    connection.destroy();
  });
});

describe('bodies in process', () => {
  let subject: Subject;
  beforeAll(async () => {
    subject = await openSubject({ provider: 'memory', options: { scopes: 'native' }, mode: 'keyword' });
  });
  afterAll(() => subject.close());

  /** Posts these texts under one key. */
  const post = async (...bodies: readonly string[]) => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': freshUser() };
    const replies: Reply[] = [];
    for (const body of bodies) replies.push(await subject.client.raw('/memories', { method: 'POST', headers, body }));
    return replies;
  };

  it('[Decision 20] memories are equal whatever their order, spaces, escapes, and forms of numbers and times', async () => {
    const replies = await post(
      `{"content":"tea","user_id":"u","source":{"app":"a","ref":"r"},"confidence":0.5,
        "valid_to":"2030-01-01T00:00:00Z","tags":["t"],"x-a":{"b":[1,{"c":2,"d":3}],"10":0},"x-b":-0}`,
      `{"x-b":0.0,"x-a":{"10":0,"b":[1.0,{"d":3e0,"c":2}]},"tags":["t","t"],"valid_to":"2030-01-01T01:00+01:00",
        "confidence":5e-1,"source":{"ref":"r","type":null,"app":"a"},"user_id":"u","content":"\\u0074ea","scope":null}`,
    );
    expect(replies.map(({ status }) => status)).toEqual([201, 201]);
    expect(replies[1]?.text).toBe(replies[0]?.text);
  });

  it('[Decision 20] memories with different extensions are different, __proto__ and constructor included', async () => {
    const memory = (own: string) => `{"content":"tea","user_id":"u","x-a":${own}}`;
    const values = ['{}', '{"__proto__":1}', '{"__proto__":{"a":1}}', '{"constructor":1}', '[]', '[[]]', '"{}"', '0'];
    for (const value of values) {
      const [first, again, ...others] = await post(...[value, value, ...values.filter((v) => v !== value)].map(memory));
      expect(first?.text, value).toContain(`"x-a":${value}`);
      expect(again?.text, value).toBe(first?.text);
      for (const other of others) expectError(other, 'invalid_request');
    }
  });

  it('[Decision 6] [Decision 7] __proto__ and constructor in an extension are data in every response', async () => {
    const user_id = freshUser();
    const polluting = '"x-p":{"constructor":{"prototype":{"polluted":true}}}';
    const body = `{"content":"tea","user_id":"${user_id}","x-a":{"__proto__":{"a":1}},"__proto__":{"scope":"s"},${polluting}}`;
    const [added] = (await post(body)) as [Reply];
    const { id } = added.body as { id: string };
    const own = '"x-a":{"__proto__":{"a":1}}';
    expect(added.text).toContain(own);
    expect(added.text).toContain(polluting);
    expect(added.body).toMatchObject({ scope: null });
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    const path = subject.client.byId(id);
    expect((await subject.client.ask(path)).text).toContain(own);
    expect((await subject.client.ask('/memories', { user_id })).text).toContain(own);
    const headers = { 'content-type': 'application/json' };
    const patch = (text: string) => subject.client.raw(path, { method: 'PATCH', headers, body: text });
    const same = await patch(`{"x-a":{"__proto__":{"a":1}}}`);
    expect(same.text, 'a patch that changes nothing').toBe(added.text);
    const changed = await patch(`{"x-a":{"__proto__":{"a":2}}}`);
    expect(changed.text).toContain('"x-a":{"__proto__":{"a":2}}');
  });

  it('[SPEC GET /healthz] [SPEC POST /memories] requests without a server environment are served', async () => {
    const { app } = subject;
    expect((await app.request('/healthz')).status).toBe(200);
    const init = { method: 'POST', body: valid(), headers: { 'content-type': 'application/json' } };
    expect((await app.request('/memories', init)).status).toBe(201);
  });
});
