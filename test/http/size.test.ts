import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { connectRaw, exchange, jsonRequest, request } from '../support/raw-http.ts';
import { type RunningServer, startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';
import { MAX_BODY_BYTES } from '../support/wire.ts';

const JSON_TYPE = 'Content-Type: application/json';
const CHUNKED = 'Transfer-Encoding: chunked';
const chunk = (data: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]);

describe('body size over a socket', () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server.close());

  /** Valid JSON of exactly this many bytes: spaces after the object. */
  const padded = (length: number): Buffer =>
    Buffer.from(JSON.stringify({ content: 'x', user_id: freshUser() }).padEnd(length));
  const healthy = async () => expect((await exchange(server.port, request('GET', '/healthz'))).status).toBe(200);
  const chunkedPost = (body: Buffer, size: number): Buffer => {
    const chunks = Array.from({ length: Math.ceil(body.length / size) }, (_, i) =>
      chunk(body.subarray(i * size, (i + 1) * size)),
    );
    return Buffer.concat([request('POST', '/memories', [JSON_TYPE, CHUNKED]), ...chunks, Buffer.from('0\r\n\r\n')]);
  };

  it('[SPEC Limits body] 1048576 bytes are taken, one more is not', async () => {
    expect((await exchange(server.port, jsonRequest('POST', '/memories', padded(MAX_BODY_BYTES)))).status).toBe(201);
    expectError(
      await exchange(server.port, jsonRequest('POST', '/memories', padded(MAX_BODY_BYTES + 1))),
      'payload_too_large',
    );
  });

  it('[Decision 29] a memory that takes far more bytes than its request is not added', async () => {
    const body = JSON.stringify({ content: 'x', user_id: freshUser(), 'x-a': Array(100_000).fill(1e300) });
    expectError(await exchange(server.port, jsonRequest('POST', '/memories', Buffer.from(body))), 'payload_too_large');
  });

  it('[Decision 6] a memory holds 256 x- keys, also after a patch', async () => {
    const keys = (count: number, name: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-${name}${i}`, 1]));
    const { client } = server;
    const memory = { content: 'x', user_id: freshUser() };
    expectError(await client.tell('POST', '/memories', { ...memory, ...keys(257, 'a') }), 'invalid_request');
    const { id } = await client.add({ ...memory, ...keys(255, 'a') });
    expect((await client.tell('PATCH', `/memories/${id}`, keys(1, 'b'))).status).toBe(200);
    expectError(await client.tell('PATCH', `/memories/${id}`, keys(1, 'c')), 'invalid_request');
  });

  it('[Decision 3] a glob holds 32 wildcards', async () => {
    const ask = (scope: string) => server.client.ask('/memories', { user_id: 'u', scope });
    expect((await ask('a*?'.repeat(16))).status).toBe(200);
    expectError(await ask('a?*'.repeat(16).concat('*')), 'invalid_request');
  });

  it('[SPEC Limits body] chunks without a Content-Length are counted as they come', async () => {
    expect((await exchange(server.port, chunkedPost(padded(MAX_BODY_BYTES), 65_536))).status).toBe(201);
    expect((await exchange(server.port, chunkedPost(padded(200), 1))).status).toBe(201);
    expectError(await exchange(server.port, chunkedPost(padded(MAX_BODY_BYTES + 1), 65_536)), 'payload_too_large');
  });

  it('[SPEC Errors payload_too_large] comes before the body is read as JSON, and before its type is looked at', async () => {
    const bad = Buffer.alloc(2 * MAX_BODY_BYTES, '{');
    expectError(await exchange(server.port, jsonRequest('POST', '/memories', bad)), 'payload_too_large');
    expectError(await exchange(server.port, jsonRequest('PATCH', '/memories/mem_x', bad)), 'payload_too_large');
    expectError(await exchange(server.port, jsonRequest('POST', '/context', bad)), 'payload_too_large');
    const untyped = request('POST', '/memories', [`Content-Length: ${bad.length}`], bad);
    expectError(await exchange(server.port, untyped), 'payload_too_large');
  });

  it('[SPEC Limits body] applies to every request with a body', async () => {
    const big = padded(MAX_BODY_BYTES + 1);
    expectError(await exchange(server.port, jsonRequest('DELETE', '/memories/mem_x', big)), 'payload_too_large');
    expectError(await exchange(server.port, jsonRequest('GET', '/memories/mem_x', big)), 'payload_too_large');
  });

  it('[SPEC Errors payload_too_large] an upload without end is answered while it is still being sent', async () => {
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

  it('[SPEC Errors payload_too_large] a declared length beyond the limit is answered before the body is sent', async () => {
    const announced = request('POST', '/memories', [JSON_TYPE, `Content-Length: ${10 * MAX_BODY_BYTES}`]);
    expectError(await exchange(server.port, announced), 'payload_too_large');
    await healthy();
  });

  it('[SPEC Errors payload_too_large] Expect: 100-continue gets an answer either way', async () => {
    const expecting = (body: Buffer) => jsonRequest('POST', '/memories', body, ['Expect: 100-continue']);
    expect((await exchange(server.port, expecting(padded(100)))).status).toBe(201);
    expectError(await exchange(server.port, expecting(padded(2 * MAX_BODY_BYTES))), 'payload_too_large');
  });

  it('[SPEC Errors invalid_request] a body shorter than its Content-Length harms nobody', async () => {
    const connection = connectRaw(server.port);
    connection.write(request('POST', '/memories', [JSON_TYPE, 'Content-Length: 1000'], '{"content":"x"'));
    connection.socket.end();
    await connection.closed();
    await healthy();
  });

  it('[SPEC Errors invalid_request] a body longer than its Content-Length is cut there', async () => {
    const body = JSON.stringify({ content: 'x', user_id: freshUser() });
    const connection = connectRaw(server.port);
    connection.write(request('POST', '/memories', [JSON_TYPE, `Content-Length: ${body.length - 5}`], body));
    expectError(await connection.next(), 'invalid_request');
    await connection.closed();
    await healthy();
  });

  it('[SPEC Errors payload_too_large] the connection either goes on cleanly or is closed', async () => {
    const connection = connectRaw(server.port);
    connection.write(jsonRequest('POST', '/memories', padded(MAX_BODY_BYTES + 1)));
    const reply = await connection.next();
    expectError(reply, 'payload_too_large');
    if (reply.headers.get('connection') === 'close') return connection.closed();
    connection.write(request('GET', '/healthz'));
    expect((await connection.next()).status).toBe(200);
    connection.destroy();
  });
});
