import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { Call } from '#contract';
import type { Authenticator } from '../../src/core/grants.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { connectRaw, exchange, jsonRequest, type RawConnection, request } from '../support/raw-http.ts';
import { beforeGet, type RunningServer, serverForTest } from '../support/server.ts';
import { freshUser } from '../support/subject.ts';

/** Node itself enforces these deadlines. Short, to keep the tests short: they assert that things end, never how fast. */
const SHORT_HEADERS = { header_timeout_ms: 300 } as const;
/** A deadline that passes when a test says so. */
const HELD_MS = 3_599_999;
const HELD = { request_timeout_ms: HELD_MS } as const;
const JSON_TYPE = 'Content-Type: application/json';

/** Sends the text byte by byte, over and over, until the connection closes. */
function dribble(connection: RawConnection, text: string): void {
  let sent = 0;
  const timer = setInterval(() => connection.write(text[sent++ % text.length] as string), 10);
  connection.socket.once('close', () => clearInterval(timer));
}

describe('slow clients', () => {
  const add = async ({ port }: RunningServer) => {
    const body = JSON.stringify({ content: 'x', user_id: freshUser() });
    expect((await exchange(port, jsonRequest('POST', '/memories', body))).status).toBe(201);
  };

  it('[Decision 16] that send headers slowly get an error and are disconnected, while others are served', async () => {
    const running = await serverForTest(SHORT_HEADERS);
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
      // Repeated: on a busy machine these headers may be slow too.
      await eventually(() => add(running));
      served++;
    }
    await Promise.all(ends);
    expect(served).toBeGreaterThan(0);
  });

  it('[Decision 16] that send a body slowly too, whether a route reads it or not', async () => {
    const deadlines = holdTimers(HELD_MS);
    const running = await serverForTest(HELD);
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
        expectError(await deadlines.passUntil(connection.next()), 'invalid_request');
        await connection.closed();
      }),
    );
    await add(running);
  });

  it('[Decision 16] that go on sending after the response are disconnected without a second response', async () => {
    const running = await serverForTest({ ...SHORT_HEADERS, request_timeout_ms: 300 });
    for (const [method, path, status] of [
      ['GET', '/healthz', 200],
      ['POST', '/nowhere', 404],
    ] as const) {
      // Repeated: on a busy machine the response may come after the deadline.
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

  it('[Decision 16] that send nothing are disconnected', async () => {
    const running = await serverForTest(SHORT_HEADERS);
    const silent = connectRaw(running.port);
    expectError(await silent.next(), 'invalid_request');
    await silent.closed();
  });

  it('[Decision 16] that go on sending after an error are disconnected', async () => {
    const lingering = holdTimers(2_000);
    const running = await serverForTest();
    const socket = connect({ port: running.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {});
    socket.write('GARBAGE\r\n\r\n');
    const timer = setInterval(() => socket.write('more'), 10);
    await lingering.passUntil(new Promise((resolve) => socket.resume().once('close', resolve)));
    clearInterval(timer);
  });

  it('[Decision 16] may keep an idle connection longer than the deadline of headers', async () => {
    const running = await serverForTest(SHORT_HEADERS);
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
});

describe('headers', () => {
  const sized = (bytes: number) => request('GET', '/healthz', [`X-Large: ${'a'.repeat(bytes)}`]);
  const withPath = (bytes: number) => request('GET', `/memories?user_id=u&x=${'a'.repeat(bytes)}`);

  it('[Decision 16] are limited in size, request line included', async () => {
    const server = await serverForTest({ max_header_bytes: 4_096 });
    for (const large of [sized, withPath]) {
      expect((await exchange(server.port, large(3_000))).status).toBe(200);
      expectError(await exchange(server.port, large(5_000)), 'invalid_request');
    }
  });

  it('[Decision 15] are never dropped, however many', async () => {
    const server = await serverForTest();
    const many = Array.from({ length: 2_500 }, () => 'a:');
    const reply = await exchange(server.port, request('GET', '/healthz', [...many, 'X-Request-Id: the-last']));
    expect(reply.status).toBe(200);
    expect(reply.headers.get('x-request-id')).toBe('the-last');
  });
});

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

const never = () => new Promise<never>(() => {});

describe('aborts and deadlines', () => {
  const healthy = async ({ port }: RunningServer) => {
    expect((await exchange(port, request('GET', '/healthz'))).status).toBe(200);
    const body = JSON.stringify({ content: 'x', user_id: freshUser() });
    expect((await exchange(port, jsonRequest('POST', '/memories', body))).status).toBe(201);
  };

  it('[Decision 16] a disconnecting client aborts the work of the backend', async () => {
    const calls: Call[] = [];
    const begun = gate();
    const running = await serverForTest({
      alter: beforeGet(async (_ref, call) => {
        calls.push(call);
        begun.open();
        await aborted(call.signal);
      }),
    });
    const connection = connectRaw(running.port);
    connection.write(request('GET', '/memories/mem_x', ['X-Request-Id: leaver']));
    await begun.opened;
    const [call] = calls as [Call];
    expect(call.requestId).toBe('leaver');
    expect(call.signal.aborted).toBe(false);
    connection.destroy();
    await aborted(call.signal);
    expect(calls).toHaveLength(1);
    await healthy(running);
  });

  it('[Decision 16] a finished request is never aborted', async () => {
    const seen: Call[] = [];
    const running = await serverForTest({ alter: beforeGet(async (_ref, call) => void seen.push(call)) });
    const connection = connectRaw(running.port);
    for (let i = 0; i < 3; i++) {
      connection.write(request('GET', '/memories/mem_x'));
      expectError(await connection.next(), 'not_found');
    }
    connection.destroy();
    await connection.closed();
    await healthy(running);
    expect(seen.map((call) => call.signal.aborted)).toEqual([false, false, false]);
  });

  it('[Decision 16] a client that disconnects in the middle of its body adds nothing', async () => {
    const running = await serverForTest();
    for (const half of ['', '{', '{"content":"x","user_id":"half']) {
      const connection = connectRaw(running.port);
      connection.write(request('POST', '/memories', ['Content-Type: application/json', 'Content-Length: 5000'], half));
      // An answer on a second connection shows that the server has had the first one's bytes.
      await exchange(running.port, request('GET', '/healthz'));
      connection.destroy();
      await connection.closed();
    }
    await healthy(running);
    const listed = await running.client.list({ user_id: 'half' });
    expect(listed.items).toEqual([]);
  });

  it('[SPEC Errors provider_error] [SPEC Errors provider] [Decision 16] a backend slower than the deadline is a 502 that names it, whether it uses the signal or not', async () => {
    const deadlines = holdTimers(HELD_MS);
    for (const work of [(call: Call) => aborted(call.signal), never]) {
      const begun = gate();
      const alter = beforeGet((_ref, call) => {
        begun.open();
        return work(call);
      });
      const running = await serverForTest({ alter, ...HELD });
      const asked = exchange(running.port, request('GET', '/memories/mem_x'));
      await begun.opened;
      deadlines.pass();
      expect(expectError(await asked, 'provider_error').provider).toBe('memory');
      await healthy(running);
    }
  });

  it('[SPEC Errors provider] [Decision 16] a deadline during the authentication names the backend too', async () => {
    const deadlines = holdTimers(HELD_MS);
    const begun = gate();
    const authenticator: Authenticator = {
      async authenticate(_credential, call) {
        begun.open();
        return (await call.unlessAborted?.(never())) as never;
      },
    };
    const running = await serverForTest({ authenticator, ...HELD });
    const asked = exchange(running.port, request('GET', '/memories/mem_x'));
    await begun.opened;
    deadlines.pass();
    expect(expectError(await asked, 'provider_error').provider).toBe('memory');
  });

  it('[SPEC Errors invalid_request] [Decision 16] a body that does not arrive in time is a 400', async () => {
    const deadlines = holdTimers(HELD_MS);
    const running = await serverForTest(HELD);
    const connection = connectRaw(running.port);
    connection.write(request('POST', '/memories', ['Content-Type: application/json', 'Content-Length: 5000'], '{'));
    const error = expectError(await deadlines.passUntil(connection.next()), 'invalid_request');
    expect(error).not.toHaveProperty('provider');
    connection.destroy();
    await healthy(running);
  });
});
