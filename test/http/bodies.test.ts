import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { exchange, jsonRequest, request } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

const bytes = (...parts: readonly (string | number)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : Buffer.from(part))));

describe('bodies over a socket', () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server.close());
  const post = (body: string | Uint8Array) => exchange(server.port, jsonRequest('POST', '/memories', body));
  const valid = () => JSON.stringify({ content: 'x', user_id: freshUser() });

  it('[SPEC Errors invalid_request] a body that is no JSON object', async () => {
    for (const body of [
      '',
      '{',
      'null',
      '[]',
      '"x"',
      '{"content":"a","user_id":"u"',
      '{"content":NaN}',
      "{'content':1}",
    ]) {
      expectError(await post(body), 'invalid_request');
    }
  });

  it('[SPEC Errors invalid_request] bytes that are not UTF-8', async () => {
    for (const bad of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
      expectError(await post(bytes('{"user_id":"u","content":"a', ...bad, '"}')), 'invalid_request');
    }
    expectError(await post(Buffer.from(valid(), 'utf16le')), 'invalid_request');
  });

  it('[Decision 8] a byte order mark in front of the JSON is no part of it', async () => {
    const reply = await post(bytes(0xef, 0xbb, 0xbf, valid()));
    expect(reply.status, reply.text).toBe(201);
  });

  it('[SPEC Memory content] UTF-8 arrives whole when its bytes come one at a time', async () => {
    const content = 'é € 😀 \uFEFF';
    const body = Buffer.from(JSON.stringify({ content, user_id: freshUser() }));
    const head = request('POST', '/memories', ['Content-Type: application/json', `Content-Length: ${body.length}`]);
    const reply = await exchange(server.port, head, ...[...body].map((byte) => Buffer.of(byte)));
    expect(reply.status, reply.text).toBe(201);
    expect(reply.body).toMatchObject({ content });
  });

  it('[SPEC Service json] a body that is not declared as JSON is refused', async () => {
    const body = valid();
    const length = `Content-Length: ${Buffer.byteLength(body)}`;
    for (const type of [
      '',
      'Content-Type: text/plain',
      'Content-Type: application/x-www-form-urlencoded',
      'Content-Type:',
    ]) {
      const reply = await exchange(
        server.port,
        request('POST', '/memories', type === '' ? [length] : [length, type], body),
      );
      expectError(reply, 'invalid_request');
    }
    const withCharset = ['Content-Type: application/json; charset=utf-8', length];
    expect((await exchange(server.port, request('POST', '/memories', withCharset, body))).status).toBe(201);
  });

  it('[Decision 6] JSON nested deeper than 32 levels is refused in an extension, ignored elsewhere', async () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    const withKey = (key: string, levels: number) => `{"content":"x","user_id":"u","${key}":${nested(levels)}}`;
    expect((await post(withKey('x-deep', 28))).status).toBe(201);
    for (const levels of [40, 1000, 100_000]) {
      expectError(await post(withKey('x-deep', levels)), 'invalid_request');
      const ignored = await post(withKey('deep', levels));
      expect(ignored.status, ignored.text).toBe(201);
    }
    expectError(await post(nested(200_000)), 'invalid_request');
    expectError(await post('{"content":'.repeat(50_000)), 'invalid_request');
  });

  it('[SPEC Errors invalid_request] a body is needed where one is asked for', async () => {
    const empty = ['Content-Type: application/json', 'Content-Length: 0'];
    for (const [method, path] of [
      ['POST', '/memories'],
      ['POST', '/context'],
      ['PATCH', '/memories/mem_x'],
    ] as const) {
      expectError(await exchange(server.port, request(method, path, empty)), 'invalid_request');
      expectError(
        await exchange(server.port, request(method, path, ['Content-Type: application/json'])),
        'invalid_request',
      );
    }
  });

  it('[SPEC GET /memories/{id}] a body that nobody asked for is passed over', async () => {
    expectError(await exchange(server.port, jsonRequest('GET', '/memories/mem_x', valid())), 'not_found');
    expectError(await exchange(server.port, jsonRequest('DELETE', '/memories/mem_x', '{')), 'not_found');
    expect((await exchange(server.port, jsonRequest('GET', '/healthz', 'no json at all'))).status).toBe(200);
  });

  it('[SPEC Errors invalid_request] percent-encoding that means no text', async () => {
    for (const bad of ['%', '%zz', '%ff', '%ED%A0%80', '%00']) {
      expectError(await exchange(server.port, request('GET', `/memories?user_id=${bad}`)), 'invalid_request');
      expectError(
        await exchange(server.port, request('GET', `/memories/search?user_id=u&q=${bad}`)),
        'invalid_request',
      );
    }
  });

  it('[SPEC Errors not_found] ids with odd characters are simply absent', async () => {
    for (const id of [
      '%00',
      '%2F',
      '..%2f..%2fetc',
      '%25',
      '%E8%A8%98',
      'a%20b',
      "'--",
      '%22%3Cscript%3E',
      'mem_%0d%0aX:1',
      '%ff',
      '%',
      'a;b=c',
    ]) {
      for (const method of ['GET', 'DELETE']) {
        const reply = await exchange(server.port, request(method, `/memories/${id}`));
        expect(reply.status, `${method} ${id}`).toBe(404);
        expectError(reply, 'not_found');
      }
      expectError(await exchange(server.port, jsonRequest('PATCH', `/memories/${id}`, '{}')), 'not_found');
    }
  });
});
