import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { connectRaw, exchange, jsonRequest, type RawConnection, request } from '../support/raw-http.ts';
import { type RunningServer, type ServerOptions, startServer } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

/** Short, so that the test is; what is asserted is that things end, and in which order, never how fast. */
const LIMITS = { header_timeout_ms: 300, request_timeout_ms: 300 } as const;
const JSON_TYPE = 'Content-Type: application/json';

/** Longer than any test: what ends is ended by the other limit. */
const LONG_MS = 3_600_000;

/** Sends the text byte by byte, over and over, until the server has had enough. */
function dribble(connection: RawConnection, text: string): void {
  let sent = 0;
  const timer = setInterval(() => connection.write(text[sent++ % text.length] as string), 10);
  connection.socket.once('close', () => clearInterval(timer));
}

describe('slow clients', () => {
  let server: RunningServer | undefined;
  afterEach(() => server?.close());
  const start = async (options: ServerOptions = LIMITS): Promise<RunningServer> => {
    server = await startServer(options);
    return server;
  };
  /** Tried again: on a busy machine anybody may be slow. */
  const add = ({ port }: RunningServer) =>
    eventually(async () => {
      const body = JSON.stringify({ content: 'x', user_id: freshUser() });
      expect((await exchange(port, jsonRequest('POST', '/memories', body))).status).toBe(201);
    });

  it('[Decision 16] whoever dribbles headers is told and cut, while others are served', async () => {
    const running = await start({ ...LIMITS, request_timeout_ms: LONG_MS });
    const slow = Array.from({ length: 50 }, () => connectRaw(running.port));
    for (const connection of slow) {
      connection.write('GET /healthz HTTP/1.1\r\nHost: gateway\r\nX-Slow: ');
      dribble(connection, 'a');
    }
    let cut = 0;
    const ends = slow.map(async (connection) => {
      expectError(await connection.next(), 'invalid_request');
      await connection.closed();
      cut++;
    });
    let served = 0;
    while (cut < slow.length) {
      await add(running);
      served++;
    }
    await Promise.all(ends);
    expect(served).toBeGreaterThan(0);
  });

  it('[Decision 16] so is whoever dribbles a body, read or not', async () => {
    const running = await start();
    const heads = [
      request('POST', '/memories', [JSON_TYPE, 'Content-Length: 100000'], '{'),
      request('POST', '/memories', [JSON_TYPE, 'Transfer-Encoding: chunked'], ''),
      request('DELETE', '/memories/mem_x', ['Content-Length: 100000']),
      request('GET', '/memories/mem_x', ['Content-Length: 100000']),
    ];
    await Promise.all(
      heads.map(async (head) => {
        const connection = connectRaw(running.port);
        connection.write(head);
        dribble(connection, head.includes('chunked') ? '1\r\n \r\n' : ' ');
        expectError(await connection.next(), 'invalid_request');
        await connection.closed();
      }),
    );
    await add(running);
  });

  it('[Decision 16] a body that goes on after the answer is cut too, without a second answer', async () => {
    const running = await start();
    for (const [method, path, status] of [
      ['GET', '/healthz', 200],
      ['POST', '/nowhere', 404],
    ] as const) {
      const connection = await eventually(async () => {
        const tried = connectRaw(running.port);
        tried.write(request(method, path, ['Content-Length: 100000']));
        dribble(tried, ' ');
        expect((await tried.next()).status).toBe(status);
        return tried;
      });
      await connection.closed();
      await expect(connection.next()).rejects.toThrow(/so far it sent ""/);
    }
  });

  it('[Decision 16] whoever connects and says nothing is cut', async () => {
    const running = await start({ ...LIMITS, request_timeout_ms: LONG_MS });
    const silent = connectRaw(running.port);
    expectError(await silent.next(), 'invalid_request');
    await silent.closed();
  });

  it('[Decision 16] whoever goes on after that and hears nothing is cut off', async () => {
    const running = await start();
    const socket = connect({ port: running.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {});
    socket.write('GARBAGE\r\n\r\n');
    const timer = setInterval(() => socket.write('more'), 10);
    await new Promise((resolve) => socket.resume().once('close', resolve));
    clearInterval(timer);
  });

  it('[Decision 16] a kept connection may rest longer than headers may take', async () => {
    const running = await start();
    await eventually(async () => {
      const resting = connectRaw(running.port);
      resting.write(request('GET', '/healthz'));
      // Longer than the 60 s for which proxies keep a connection that they may use again.
      expect((await resting.next()).headers.get('keep-alive')).toBe('timeout=65');
      // One that says nothing at all is cut in the meantime.
      const silent = connectRaw(running.port);
      await silent.closed();
      resting.write(request('GET', '/healthz'));
      expect((await resting.next()).status).toBe(200);
      resting.destroy();
    });
  });

  it('[Decision 16] the log tells of a refusal under the id that was sent', async () => {
    const running = await start();
    const error = expectError(await exchange(running.port, 'GET /secret-path'), 'invalid_request');
    expect(running.lines).toContainEqual({
      level: 'info',
      message: 'malformed request',
      fields: { request_id: error.request_id, reason: 'ERR_HTTP_REQUEST_TIMEOUT' },
    });
    expect(JSON.stringify(running.lines)).not.toContain('secret-path');
  });
});

describe('large heads', () => {
  let server: RunningServer;
  afterEach(() => server.close());
  const sized = (bytes: number) => request('GET', '/healthz', [`X-Large: ${'a'.repeat(bytes)}`]);
  const withPath = (bytes: number) => request('GET', `/memories?user_id=u&x=${'a'.repeat(bytes)}`);

  it('[Decision 16] header size is limited as configured, address included', async () => {
    server = await startServer({ max_header_bytes: 4_096 });
    for (const large of [sized, withPath]) {
      expect((await exchange(server.port, large(3_000))).status).toBe(200);
      expectError(await exchange(server.port, large(5_000)), 'invalid_request');
    }
  });

  it('[Decision 15] of many small headers none is left out', async () => {
    server = await startServer();
    const many = Array.from({ length: 2_500 }, () => 'a:');
    const reply = await exchange(server.port, request('GET', '/healthz', [...many, 'X-Request-Id: the-last']));
    expect(reply.status).toBe(200);
    expect(reply.headers.get('x-request-id')).toBe('the-last');
  });
});
