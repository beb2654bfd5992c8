import { EventEmitter } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Hono } from 'hono';
import { afterEach, describe, expect, it } from 'vitest';
import type { Authenticator } from '../../src/core/grants.ts';
import { ALL_GRANTS } from '../../src/core/grants.ts';
import { limitConcurrency, limitConcurrencyPerCaller } from '../../src/http/admission.ts';
import { listen } from '../../src/http/listen.ts';
import type { Env } from '../../src/http/request.ts';
import { gate } from '../embedding/observed-embedder.ts';
import { until } from '../postgres/store.ts';
import { eventually } from '../support/eventually.ts';
import { expectError } from '../support/expect-error.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { connectRaw, request } from '../support/raw-http.ts';
import { beforeGet, type RunningServer, type ServerOptions, serverForTest } from '../support/server.ts';
import { APP_LIMITS, recordingLog } from '../support/subject.ts';

/** A server whose reads of this caller wait until `goOn`. */
async function slowServer(options: ServerOptions, isSlow = (_caller: string) => true) {
  const { opened, open: goOn } = gate();
  let working = 0;
  const alter = beforeGet((_ref, { caller }) => {
    working++;
    return isSlow(caller.id) && opened;
  });
  const server = await serverForTest({ alter, ...options });
  return { ...server, goOn, reached: (count: number) => until(async () => working === count) };
}

describe('requests over a concurrency limit', () => {
  it('[SPEC Errors rate_limited] [Decision 29] are rejected at once, except probes', async () => {
    const { client, goOn, reached } = await slowServer({ max_requests: 3, max_requests_per_caller: 3 });
    const slow = Array.from({ length: 3 }, () => client.ask('/memories/mem_x'));
    await reached(3);
    for (const path of ['/memories/mem_x', '/memories?user_id=u', '/nowhere', '/capabilities']) {
      const rejected = await client.ask(path);
      expect(expectError(rejected, 'rate_limited')).not.toHaveProperty('provider');
      expect(rejected.headers.get('retry-after')).toBe('1');
    }
    expect((await client.ask('/healthz')).status).toBe(200);
    await reached(3);
    goOn();
    for (const reply of await Promise.all(slow)) expectError(reply, 'not_found');
    // Rejected and answered requests do not count.
    for (let i = 0; i < 5; i++) expectError(await client.ask('/memories/mem_x'), 'not_found');
  });

  it('[SPEC Errors rate_limited] [Decision 29] of one caller are rejected, and others are served', async () => {
    const authenticator: Authenticator = {
      authenticate: async (credential) => ({ id: `key:${credential}`, app: null, users: null, grants: ALL_GRANTS }),
    };
    const { client, goOn, reached } = await slowServer({ authenticator, max_requests: 7 }, (id) => id === 'key:one');
    const ask = (key: string) => client.ask('/memories/mem_x', {}, { 'x-api-key': key });
    // Half of seven, rounded up.
    const slow = Array.from({ length: 4 }, () => ask('one'));
    await reached(4);
    for (let i = 0; i < 5; i++) {
      const rejected = await ask('one');
      expect(expectError(rejected, 'rate_limited')).not.toHaveProperty('provider');
      expect(rejected.headers.get('retry-after')).toBe('1');
      expectError(await ask('other'), 'not_found');
    }
    goOn();
    for (const reply of await Promise.all(slow)) expectError(reply, 'not_found');
    for (let i = 0; i < 10; i++) expectError(await ask('one'), 'not_found');
  });

  it('[Decision 29] stop counting when their clients disconnect', async () => {
    const { client, url, goOn, reached } = await slowServer({ max_requests_per_caller: 2 });
    const going = new AbortController();
    const left = [1, 2].map(() => fetch(`${url}/memories/mem_x`, { signal: going.signal }).catch(() => undefined));
    await reached(2);
    expectError(await client.ask('/memories/mem_x'), 'rate_limited');
    going.abort();
    await Promise.all(left);
    goOn();
    await until(async () => (await client.ask('/memories/mem_x')).status === 404);
    for (let i = 0; i < 5; i++) expectError(await client.ask('/memories/mem_x'), 'not_found');
  });
});

/** Sends these requests on one connection and never reads the responses. */
function sendUnread(port: number, ...requests: readonly Buffer[]): Socket {
  const socket = connect(port, '127.0.0.1').pause();
  socket.on('error', () => {});
  socket.write(Buffer.concat(requests));
  return socket;
}

describe('clients that never read their responses', () => {
  const sockets: Socket[] = [];
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  /** Responses larger than the buffers of the system. */
  const LISTS = Array.from({ length: 4 }, () => request('GET', '/memories?user_id=u'));
  const HELD_MS = 3_599_999;
  const startFull = async (options: object): Promise<RunningServer> => {
    const server = await serverForTest(options);
    const { client } = server;
    const memory = { user_id: 'u', content: 'a'.repeat(1_000_000) };
    for (let i = 0; i < 4; i++) await client.add(memory);
    return server;
  };
  const probe = async ({ client }: RunningServer) => (await client.ask('/memories/mem_x')).status;

  it('[Decision 29] keep counting as requests', async () => {
    // Larger than the buffers of the system.
    const answer = 'a'.repeat(64_000_000);
    const app = new Hono<Env>().use(limitConcurrency(2, 1e9)).get('/', (c) => c.text(answer));
    app.onError((_, c) => c.body(null, 429)).get('/small', (c) => c.text('small'));
    const listener = await listen(app, { host: '127.0.0.1', port: 0, log: recordingLog(), ...APP_LIMITS });
    const small = async () => (await fetch(`http://127.0.0.1:${listener.port}/small`)).status;
    for (let i = 0; i < 2; i++) {
      const socket = sendUnread(listener.port, request('GET', '/'));
      sockets.push(socket);
      await new Promise((resolve) => socket.once('readable', resolve).read(0));
    }
    for (let i = 0; i < 20; i++) expect(await small()).toBe(429);
    for (const socket of sockets) socket.destroy();
    await until(async () => (await small()) === 200);
    await listener.close({ graceMs: 0 });
  });

  it.each([
    ['lists', 3, LISTS, '/memories'],
    [
      'the documentation page',
      2,
      Array.from({ length: 16 }, () => request('GET', '/docs/swagger-ui-bundle.js')),
      '/docs/:asset',
    ],
  ])('[Decision 29] are disconnected in the end, and make room for others: %s', async (_, clients, requests, route) => {
    const deadlines = holdTimers(HELD_MS);
    const running = await startFull({ max_requests: 4, max_requests_per_caller: 4, request_timeout_ms: HELD_MS });
    for (let i = 0; i < clients; i++) sockets.push(sendUnread(running.port, ...requests));
    const given = expect.objectContaining({ fields: expect.objectContaining({ status: 499, route }) });
    await deadlines.passUntil(
      eventually(async () => {
        expect(running.lines).toContainEqual(given);
        expect(await probe(running)).toBe(404);
      }),
    );
  });

  it('[Decision 29] take pipelined requests along when they disconnect', async () => {
    const { opened, open: goOn } = gate();
    const alter = beforeGet(({ id }) => id === 'mem_slow' && opened);
    const running = await serverForTest({ alter, max_requests: 4, max_requests_per_caller: 4 });
    const connection = connectRaw(running.port);
    for (const id of ['mem_slow', 'mem_x', 'mem_x', 'mem_x']) connection.write(request('GET', `/memories/${id}`));
    await until(async () => (await probe(running)) === 429);
    connection.destroy();
    await until(async () => (await probe(running)) === 404);
    goOn();
    const three = Array.from({ length: 3 }, () => probe(running));
    expect(await Promise.all(three)).toEqual([404, 404, 404]);
  });

  it('[Decision 29] are disconnected, the oldest first, when all responses together are too large', async () => {
    const answer = 'a'.repeat(16_000_000);
    const app = new Hono<Env>().use(limitConcurrency(100, 3.5 * answer.length)).get('/', (c) => c.text(answer));
    const listener = await listen(app, { host: '127.0.0.1', port: 0, log: recordingLog(), ...APP_LIMITS });
    for (let i = 0; i < 6; i++) {
      const socket = sendUnread(listener.port, request('GET', '/'));
      sockets.push(socket);
      // Its answer has begun to come.
      await new Promise((resolve) => socket.once('readable', resolve).read(0));
    }
    const received = (socket: Socket) =>
      new Promise<number>((resolve) => {
        socket.on('data', () => socket.bytesRead >= answer.length && resolve(socket.bytesRead));
        socket.once('close', () => resolve(socket.bytesRead)).resume();
      });
    const bytes = await Promise.all(sockets.map(received));
    const whole = bytes.map((count) => count >= answer.length);
    expect(whole[0]).toBe(false);
    expect(whole.slice(-3)).toEqual([true, true, true]);
    for (const socket of sockets) socket.destroy();
    await listener.close({ graceMs: 0 });
  });

  it('[Decision 29] are disconnected at the concurrency limit too, before any deadline', async () => {
    const answer = 'a'.repeat(16_000_000);
    const app = new Hono<Env>().use(limitConcurrency(3, 1.5 * answer.length)).get('/', (c) => c.text(answer));
    app.onError((_, c) => c.body(null, 429));
    const listener = await listen(app, { host: '127.0.0.1', port: 0, log: recordingLog(), ...APP_LIMITS });
    for (let i = 0; i < 3; i++) sockets.push(sendUnread(listener.port, request('GET', '/')));
    await until(async () => (await fetch(`http://127.0.0.1:${listener.port}/`)).status === 200);
    for (const socket of sockets) socket.destroy();
    await listener.close({ graceMs: 0 });
  });

  it('[Decision 29] and have disconnected before do not count', async () => {
    const share = limitConcurrencyPerCaller(1, () => 'caller');
    const gone = { env: { incoming: { socket: { destroyed: true } }, outgoing: new EventEmitter() } };
    for (let i = 0; i < 3; i++) await share(gone as never, async () => {});
    await expect(share({ env: {} } as never, async () => {})).resolves.toBeUndefined();
  });
});
