import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { connectRaw, exchange, jsonRequest, request } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

describe('the protocol below the requests', () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server.close());
  const healthy = async () => expect((await exchange(server.port, request('GET', '/healthz'))).status).toBe(200);

  it('[SPEC GET /healthz] [SPEC Health status] answers over a socket', async () => {
    const reply = await exchange(server.port, request('GET', '/healthz'));
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({ status: 'ok', provider: 'memory' });
    expect(reply.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  });

  it('[SPEC DELETE /memories/{id}] 204 has no body at all', async () => {
    const { id } = await server.client.add({ content: 'x', user_id: freshUser() });
    const connection = connectRaw(server.port);
    connection.write(Buffer.concat([request('DELETE', `/memories/${id}`), request('GET', '/healthz')]));
    expect(await connection.next()).toMatchObject({ status: 204, text: '' });
    expect((await connection.next()).status).toBe(200);
    connection.destroy();
  });

  it('[Decision 16] unknown paths and methods are 404 with the envelope', async () => {
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/favicon.ico'],
      ['PUT', '/memories/a'],
      ['OPTIONS', '/memories'],
      ['TRACE', '/memories'],
      ['GET', '//memories'],
      ['GET', '/memories/../memories/x/y'],
    ] as const) {
      const reply = await exchange(server.port, request(method, path));
      expect(reply.status, `${method} ${path}`).toBe(404);
      expectError(reply, 'not_found');
    }
    expectError(await exchange(server.port, jsonRequest('POST', '/nowhere', '{}')), 'not_found');
  });

  it('[SPEC GET /memories/{id}] HEAD answers as GET does, without the body', async () => {
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
    // A stray body would be read as the start of this answer.
    connection.write(request('GET', '/healthz'));
    expect((await connection.next()).status).toBe(200);
    connection.destroy();
  });

  it('[SPEC Service json] pipelined requests are answered in their order', async () => {
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

  it('[SPEC GET /healthz] a probe in HTTP/1.0 is served', async () => {
    const connection = connectRaw(server.port);
    connection.write('GET /healthz HTTP/1.0\r\nHost: probe\r\n\r\n');
    expect((await connection.next()).status).toBe(200);
    await connection.closed();
  });

  it('[Decision 16] a client that connects and leaves, or says nothing, harms nobody', async () => {
    const silent = connectRaw(server.port);
    const leaver = connectRaw(server.port);
    leaver.write('GET /heal');
    leaver.destroy();
    await leaver.closed();
    await healthy();
    silent.destroy();
    await silent.closed();
    await healthy();
  });

  it('[Decision 15] a request id that would split a header is not echoed', async () => {
    const reply = await exchange(
      server.port,
      Buffer.from('GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\u00e9b\r\n\r\n', 'latin1'),
    );
    expect(reply.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  });

  it('[Decision 15] [SPEC Errors request_id] every request has its line in the access log, without contents or users', async () => {
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
