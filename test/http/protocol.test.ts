import type { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listen } from '../../src/http/listen.ts';
import type { Env } from '../../src/http/request.ts';
import { gate } from '../embedding/observed-embedder.ts';
import type { Reply } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { connectRaw, exchange, jsonRequest, request } from '../support/raw-http.ts';
import { beforeGet, type RunningServer, serverForTest, startServer } from '../support/server.ts';
import { APP_LIMITS, freshUser, recordingLog } from '../support/subject.ts';

let server: RunningServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

describe('HTTP connections', () => {
  const healthy = async () => expect((await exchange(server.port, request('GET', '/healthz'))).status).toBe(200);

  it('[SPEC DELETE /memories/{id}] 204 has no body', async () => {
    const { id } = await server.client.add({ content: 'x', user_id: freshUser() });
    const connection = connectRaw(server.port);
    connection.write(Buffer.concat([request('DELETE', `/memories/${id}`), request('GET', '/healthz')]));
    expect(await connection.next()).toMatchObject({ status: 204, text: '' });
    expect((await connection.next()).status).toBe(200);
    connection.destroy();
  });

  it('[SPEC Service one envelope] [SPEC Errors not_found] [Decision 16] unknown paths and methods are 404', async () => {
    const paths = '/ /favicon.ico /memory /memories/ /memories/a/b /Memories /v1/memories //memories /context';
    const methods = [
      ...['PUT /memories/a', 'POST /memories/a', 'DELETE /memories', 'PATCH /memories', 'OPTIONS /memories'],
      ...['TRACE /memories', 'POST /memories/search', 'POST /capabilities', 'DELETE /healthz'],
      'GET /memories/../memories/x/y',
    ];
    for (const asked of [...paths.split(' ').map((path) => `GET ${path}`), ...methods]) {
      const [method = '', path = ''] = asked.split(' ');
      const reply = await exchange(server.port, request(method, path));
      expect(reply.status, asked).toBe(404);
      expectError(reply, 'not_found');
    }
    expectError(await exchange(server.port, jsonRequest('POST', '/nowhere', '{}')), 'not_found');
  });

  it('[SPEC GET /memories/{id}] HEAD is like GET without the body', async () => {
    const { id } = await server.client.add({ content: 'x', user_id: freshUser() });
    const connection = connectRaw(server.port);
    for (const [path, status] of [
      ['/healthz', 200],
      ['/capabilities', 200],
      [`/memories/${id}`, 200],
      ['/memories/mem_x', 404],
      ['/nowhere', 404],
    ] as const) {
      connection.write(request('HEAD', path));
      const reply = await connection.next({ head: true });
      expect(reply.status, path).toBe(status);
      expect(reply.headers.get('content-type')).toMatch(/^application\/json/);
    }
    // A body after HEAD would be read as the start of this response.
    connection.write(request('GET', '/healthz'));
    expect((await connection.next()).status).toBe(200);
    connection.destroy();
  });

  it('[SPEC Service json] pipelined requests are answered in order', async () => {
    const user_id = freshUser();
    const connection = connectRaw(server.port);
    const add = (content: string) =>
      jsonRequest('POST', '/memories', JSON.stringify({ content, user_id }), [`X-Request-Id: ${content}`]);
    connection.write(
      Buffer.concat([add('one'), request('GET', '/nowhere'), add('two'), request('GET', '/healthz'), add('three')]),
    );
    const replies = [];
    for (let i = 0; i < 5; i++) replies.push(await connection.next());
    expect(replies.map((reply) => reply.status)).toEqual([201, 404, 201, 200, 201]);
    expect([replies[0], replies[2], replies[4]].map((reply) => reply?.headers.get('x-request-id'))).toEqual([
      'one',
      'two',
      'three',
    ]);
    expect(replies[4]?.body).toMatchObject({ content: 'three' });
    connection.destroy();
  });

  it('[SPEC Service one envelope] a connection stays usable after errors', async () => {
    const connection = connectRaw(server.port);
    const asked: readonly (readonly [Buffer, number])[] = [
      [jsonRequest('POST', '/memories', '{'), 400],
      [request('GET', '/nowhere'), 404],
      [jsonRequest('POST', '/memories', '{}'), 400],
      [request('POST', '/nowhere', ['Content-Length: 5'], 'hello'), 404],
      [request('GET', '/memories?user_id=%'), 400],
      [jsonRequest('POST', '/memories', JSON.stringify({ content: 'x', user_id: freshUser() })), 201],
    ];
    for (const [bytes, status] of asked) {
      connection.write(bytes);
      expect((await connection.next()).status).toBe(status);
    }
    connection.destroy();
  });

  it.for([
    ['no HTTP at all', 'GARBAGE\r\n\r\n'],
    ['TLS on a plain port', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
    ['an unknown method', 'BREW /memories HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a space in the target', 'GET /memories x HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an HTTP version there is not', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['a header line without a colon', 'GET /healthz HTTP/1.1\r\nHost: x\r\nbroken\r\n\r\n'],
    ['a Content-Length that is no number', 'POST /memories HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n'],
    ['two lengths', 'POST /memories HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}'],
    [
      'a length and chunks',
      'POST /memories HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}',
    ],
    [
      'a chunk size that is no number',
      'POST /memories HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n',
    ],
    ['no Host', 'GET /healthz HTTP/1.1\r\n\r\n'],
    ['a Host that is none', 'GET /healthz HTTP/1.1\r\nHost: a b/c\r\n\r\n'],
    ['headers of 64 KiB', `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Large: ${'a'.repeat(65_536)}\r\n\r\n`],
    ['a target of 64 KiB', `GET /memories?user_id=${'a'.repeat(65_536)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  ] as const)(
    '[SPEC Service one envelope] [Decision 15] [Decision 16] malformed HTTP gets the envelope: %s',
    async ([, bytes]) => {
      const reply = await exchange(server.port, Buffer.from(bytes, 'latin1'));
      expectError(reply, 'invalid_request');
      await healthy();
    },
  );

  it('[Decision 15] [SPEC Errors request_id] every request is logged, without contents and users', async () => {
    const user_id = freshUser();
    const secret = 'something private';
    const asked = [
      jsonRequest('POST', '/memories', JSON.stringify({ content: secret, user_id }), ['X-Request-Id: logged-add']),
      request('GET', `/memories?user_id=${user_id}`, ['X-Request-Id: logged-list']),
      request('GET', `/memories/search?user_id=${user_id}&q=private`, ['X-Request-Id: logged-search']),
      request('GET', '/memories/mem_x', ['X-Request-Id: logged-missing']),
      jsonRequest('POST', '/memories', '{', ['X-Request-Id: logged-malformed']),
    ];
    for (const bytes of asked) await exchange(server.port, bytes);
    const logged = () => JSON.stringify(server.lines);
    await expect
      .poll(() =>
        logged()
          .match(/"logged-\w+"/g)
          ?.sort(),
      )
      .toEqual(['add', 'list', 'malformed', 'missing', 'search'].map((name) => `"logged-${name}"`));
    expect(logged()).not.toMatch(new RegExp(`private|${user_id}`));
  });
});

const GARBAGE = Buffer.from('GARBAGE\r\n\r\n');

describe('malformed requests', () => {
  it('[SPEC Service one envelope] [Decision 16] are rejected after the responses to earlier requests', async () => {
    const [begun, released] = [gate(), gate()];
    const slow = beforeGet(() => {
      begun.open();
      return released.opened;
    });
    const running = await serverForTest({ alter: slow });
    const connection = connectRaw(running.port);
    const get = (id: string) => request('GET', '/memories/mem_x', [`X-Request-Id: ${id}`]);
    connection.write(Buffer.concat([get('one'), get('two'), GARBAGE, get('three')]));
    await begun.opened;
    released.open();
    expect(expectError(await connection.next(), 'not_found').request_id).toBe('one');
    expect(expectError(await connection.next(), 'not_found').request_id).toBe('two');
    expectError(await connection.next(), 'invalid_request');
    await expect(connection.next()).rejects.toThrow(/so far it sent ""/);
  });

  it('[SPEC Errors invalid_request] [Decision 16] in the body of a request with a response get no second response', async () => {
    const running = await serverForTest();
    const connection = connectRaw(running.port);
    connection.write(request('GET', '/healthz', ['Transfer-Encoding: chunked']));
    expect((await connection.next()).status).toBe(200);
    connection.write('no chunk\r\n');
    await expect(connection.next()).rejects.toThrow(/so far it sent ""/);
  });

  it('[Decision 16] like CONNECT or an unknown Expect get the envelope', async () => {
    const running = await serverForTest();
    expectError(await exchange(running.port, request('CONNECT', 'gateway:80')), 'not_found');
    expectError(await exchange(running.port, request('GET', '/nowhere', ['Expect: wonders'])), 'not_found');
    const body = JSON.stringify({ content: 'x', user_id: freshUser() });
    const expecting = jsonRequest('POST', '/memories', body, ['Expect: 200-ok']);
    expect((await exchange(running.port, expecting)).status).toBe(201);
    const upgrading = request('GET', '/healthz', ['Connection: Upgrade', 'Upgrade: h2c']);
    expect((await exchange(running.port, upgrading)).status).toBe(200);
  });

  it('[SPEC Errors request_id] are logged without their contents', async () => {
    const running = await serverForTest();
    for (const bytes of [GARBAGE, Buffer.from('GET /garbage HTTP/1.1\r\n\r\n')]) {
      const { request_id } = expectError(await exchange(running.port, bytes), 'invalid_request');
      expect(running.lines).toContainEqual({
        level: 'info',
        message: 'malformed request',
        fields: { request_id, reason: expect.any(String) },
      });
    }
    expect(JSON.stringify(running.lines)).not.toMatch(/garbage/i);
  });
});

it('[SPEC Errors provider_error] [Decision 16] an error of the app itself is a 502, logged in full', async () => {
  const cause = new Error('secret detail');
  const failures: readonly (() => Promise<never>)[] = [
    () => Promise.reject(cause),
    () => {
      throw cause;
    },
  ];
  for (const fetch of failures) {
    const log = recordingLog();
    // The real app catches every error of its handlers.
    const listener = await listen({ fetch } as unknown as Hono<Env>, {
      host: '127.0.0.1',
      port: 0,
      log,
      ...APP_LIMITS,
    });
    const reply = await exchange(listener.port, request('GET', '/memories'));
    const { request_id } = expectError(reply, 'provider_error');
    expect(reply.text).not.toContain('secret');
    expect(log.lines).toEqual([{ level: 'error', message: 'request failed', fields: { request_id, err: cause } }]);
    await listener.close();
  }
});

describe('response headers', () => {
  const everyKind = async (): Promise<Reply[]> => {
    const { client } = server;
    const user_id = freshUser();
    const { id } = await client.add({ content: 'x', user_id });
    return [
      await client.ask(client.byId(id)),
      await client.ask('/memories', { user_id }),
      await client.ask('/memories/search', { user_id, q: 'x' }),
      await client.tell('POST', '/context', { user_id, query: 'x' }),
      await client.tell('DELETE', client.byId(id)),
      await client.ask(client.byId(id)),
      await client.tell('POST', '/memories', {}),
      await client.ask('/capabilities'),
      await client.ask('/healthz'),
      await client.ask('/nowhere'),
      await exchange(server.port, 'GARBAGE\r\n\r\n'),
      await exchange(server.port, 'GET / HTTP/1.1\r\n\r\n'),
    ];
  };

  it('[Decision 22] forbid caches to store responses', async () => {
    for (const { headers, text } of await everyKind()) expect(headers.get('cache-control'), text).toBe('no-store');
  });

  it('[Decision 16] reveal no implementation', async () => {
    for (const { headers, text } of [...(await everyKind()), await server.client.ask('/docs')]) {
      const names = [...headers.keys()];
      expect(
        names.filter((name) => /^(server|x-powered-by|via)$/.test(name)),
        text,
      ).toEqual([]);
      expect(JSON.stringify([...headers.values()])).not.toMatch(/hono|node|express/i);
    }
  });

  it('[Decision 22] of pages forbid inline scripts, frames and other origins', async () => {
    for (const path of ['/docs', '/docs/start.js', '/docs/swagger-ui.css', '/docs/nothing']) {
      const { headers } = await server.client.ask(path);
      const policy = new Map(
        (headers.get('content-security-policy') ?? '').split('; ').map((directive) => {
          const [name = '', ...values] = directive.split(' ');
          return [name, values.join(' ')];
        }),
      );
      expect(policy.get('default-src'), path).toBe("'none'");
      expect(policy.get('script-src')).toBe("'self'");
      expect(policy.get('frame-ancestors')).toBe("'none'");
      expect(policy.get('base-uri')).toBe("'none'");
      expect(policy.get('form-action')).toBe("'none'");
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('permissions-policy')).toContain('geolocation=()');
      // Left to the proxy that terminates TLS.
      expect(headers.get('strict-transport-security')).toBeNull();
    }
  });
});
