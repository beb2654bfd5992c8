import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Hono } from 'hono';
import { afterEach, describe, expect, it } from 'vitest';
import { type Listener, listen } from '../../src/http/listen.ts';
import type { Env } from '../../src/http/request.ts';
import { connectRaw, request } from '../support/raw-http.ts';
import { APP_LIMITS, recordingLog } from '../support/subject.ts';

/** Larger than the buffers of the system. */
const LARGE = 'x'.repeat(20_000_000);
/** Longer than any test. */
const LONG_MS = 600_000;

let listener: Listener | undefined;
afterEach(() => listener?.close({ graceMs: 0 }));

/** An app that answers `/held/…` when the test releases it, and everything else at once. */
async function start() {
  const ran: string[] = [];
  const held = new Map<string, () => void>();
  let seen = () => {};
  const app = new Hono<Env>();
  app.all('/held/:name', async (c) => {
    const { name } = c.req.param();
    ran.push(name);
    await new Promise<void>((resolve) => {
      held.set(name, resolve);
      seen();
    });
    return c.text(`${name} ${await c.req.text()}`);
  });
  app.get('/large', (c) => c.text(LARGE));
  app.get('/:name', (c) => {
    ran.push(c.req.param('name'));
    return c.text(c.req.param('name'));
  });
  listener = await listen(app, { host: '127.0.0.1', port: 0, log: recordingLog(), ...APP_LIMITS });
  /** Resolves when the app has the request. */
  const reached = async (name: string) => {
    while (!held.has(name)) {
      await new Promise<void>((resolve) => {
        seen = resolve;
      });
    }
  };
  /** Sends the response. */
  const release = async (name: string) => {
    await reached(name);
    held.get(name)?.();
  };
  return { ...listener, ran, reached, release };
}

/** Reads a response to its end; returns its length. */
async function drained(socket: Socket): Promise<number> {
  let received = 0;
  socket.on('data', (bytes: Buffer) => {
    received += bytes.length;
  });
  socket.resume();
  await once(socket, 'close');
  return received;
}

const ask = (path: string) => request('GET', path);
const endsWith = ({ headers }: { readonly headers: Headers }) => headers.get('connection') === 'close';

describe('draining', () => {
  it('[Decision 31] still accepts connections, and every response closes its connection', async () => {
    const { port, drain } = await start();
    const kept = connectRaw(port);
    kept.write(ask('/before'));
    expect(endsWith(await kept.next())).toBe(false);
    drain();
    const late = connectRaw(port);
    late.write(ask('/late'));
    const answer = await late.next();
    expect(answer.text).toBe('late');
    expect(endsWith(answer)).toBe(true);
    await late.closed();
    kept.write(ask('/kept'));
    const last = await kept.next();
    expect(last.text).toBe('kept');
    expect(endsWith(last)).toBe(true);
    await kept.closed();
  });

  it('[Decision 31] also closes the connection of a running request', async () => {
    const { port, drain, release, reached } = await start();
    const connection = connectRaw(port);
    connection.write(ask('/held/one'));
    await reached('one');
    drain();
    await release('one');
    expect(endsWith(await connection.next())).toBe(true);
    await connection.closed();
  });

  it('[Decision 31] answers all pipelined requests, and closes the connection with the last', async () => {
    const { port, drain, release, reached } = await start();
    const connection = connectRaw(port);
    connection.write(Buffer.concat([ask('/held/one'), ask('/held/two'), ask('/held/three')]));
    await reached('three');
    drain();
    for (const name of ['three', 'one', 'two']) await release(name);
    const answers = [await connection.next(), await connection.next(), await connection.next()];
    expect(answers.map(({ text }) => text)).toEqual(['one ', 'two ', 'three ']);
    expect(answers.map(endsWith)).toEqual([false, false, true]);
    await connection.closed();
  });

  it('[Decision 31] answers requests pipelined while it drains, until a response closes the connection', async () => {
    const { port, drain, release, reached } = await start();
    drain();
    const connection = connectRaw(port);
    connection.write(ask('/held/one'));
    await reached('one');
    connection.write(ask('/held/two'));
    await reached('two');
    for (const name of ['one', 'two']) await release(name);
    const answers = [await connection.next(), await connection.next()];
    expect(answers.map(({ text }) => text)).toEqual(['one ', 'two ']);
    expect(answers.map(endsWith)).toEqual([false, true]);
  });

  it('[Decision 31] does not process requests after a response that closes the connection', async () => {
    const { port, drain, ran } = await start();
    drain();
    const socket = connect(port, '127.0.0.1');
    // The response is being sent as long as it is not read.
    socket.pause();
    socket.write(ask('/large'));
    await once(socket, 'readable');
    socket.write(ask('/behind'));
    // A response on another connection shows that the server has received these bytes.
    const other = connectRaw(port);
    other.write(ask('/other'));
    await other.next();
    expect(await drained(socket)).toBeGreaterThan(LARGE.length);
    expect(ran).toEqual(['other']);
  });
});

describe('closing', () => {
  it('[Decision 31] rejects new connections and closes idle ones at once', async () => {
    const { port, close } = await start();
    const idle = connectRaw(port);
    idle.write(ask('/before'));
    await idle.next();
    const silent = connectRaw(port);
    await once(silent.socket, 'connect');
    await close({ graceMs: LONG_MS });
    await Promise.all([idle.closed(), silent.closed()]);
    const refused = connect(port, '127.0.0.1');
    expect(await once(refused, 'error')).toMatchObject([{ code: 'ECONNREFUSED' }]);
  });

  it('[Decision 31] keeps idle connections for the given time', async () => {
    const { port, close } = await start();
    const kept = connectRaw(port);
    kept.write(ask('/before'));
    await kept.next();
    const closed = close({ graceMs: LONG_MS, idleMs: LONG_MS });
    kept.write(ask('/after'));
    const last = await kept.next();
    expect(last.text).toBe('after');
    expect(endsWith(last)).toBe(true);
    await closed;
  });

  it('[Decision 31] answers a request that has arrived but was not read yet', async () => {
    const { port, close, release, reached } = await start();
    const kept = connectRaw(port);
    kept.write(ask('/held/one'));
    await reached('one');
    await release('one');
    await kept.next();
    kept.write(ask('/unread'));
    // Delivered before the server's next turn of the event loop.
    const closed = close({ graceMs: LONG_MS });
    expect((await kept.next()).text).toBe('unread');
    await closed;
  });

  it('[Decision 31] waits for a running upload and for a slowly read response', async () => {
    const { port, close, release, reached } = await start();
    const upload = connectRaw(port);
    upload.write(request('POST', '/held/upload', ['Content-Length: 8'], 'half'));
    await reached('upload');
    const slow = connect(port, '127.0.0.1');
    slow.pause();
    slow.write(ask('/large'));
    await once(slow, 'readable');
    const closed = close({ graceMs: LONG_MS });
    await release('upload');
    upload.write('full');
    const answer = await upload.next();
    expect(answer.text).toBe('upload halffull');
    expect(endsWith(answer)).toBe(true);
    expect(await drained(slow)).toBeGreaterThan(LARGE.length);
    // That response had no `connection: close`; closing does not wait for the keep-alive timeout.
    await closed;
  });

  it('[Decision 31] waits for requests pipelined behind a finished one', async () => {
    const { port, close, release, reached } = await start();
    const connection = connectRaw(port);
    connection.write(Buffer.concat([ask('/one'), ask('/held/two')]));
    await reached('two');
    expect((await connection.next()).text).toBe('one');
    const other = connectRaw(port);
    other.write(ask('/other'));
    await other.next();
    const closed = close({ graceMs: LONG_MS });
    // Idle connections are closed by now.
    await other.closed();
    await release('two');
    expect((await connection.next()).text).toBe('two ');
    await closed;
  });

  it('[Decision 31] waits for a request whose headers are incomplete', async () => {
    const { port, close } = await start();
    const half = connectRaw(port);
    half.write(ask('/before'));
    await half.next();
    half.write('GET /half HTTP/1.1\r\nHost: gat');
    const other = connectRaw(port);
    other.write(ask('/other'));
    await other.next();
    const closed = close({ graceMs: LONG_MS });
    await other.closed();
    half.write('eway\r\n\r\n');
    const answer = await half.next();
    expect(answer.text).toBe('half');
    expect(endsWith(answer)).toBe(true);
    await closed;
  });

  it('[Decision 31] disconnects the rest after the deadline', async () => {
    const { port, close, reached } = await start();
    const stuck = connectRaw(port);
    stuck.write(ask('/held/for-ever'));
    await reached('for-ever');
    await close({ graceMs: 1 });
    await stuck.closed();
  });
});
