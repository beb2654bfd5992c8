import { once } from 'node:events';
import { connect } from 'node:net';
import { Hono } from 'hono';
import { afterEach, describe, expect, it } from 'vitest';
import { type Listener, listen } from '../../src/http/listen.ts';
import type { Env } from '../../src/http/request.ts';
import { connectRaw, request } from '../support/raw-http.ts';
import { recordingLog } from '../support/subject.ts';

/** More than the buffers of the system take on the way. */
const LARGE = 'x'.repeat(20_000_000);
/** No test waits for it. */
const LONG_MS = 600_000;

let listener: Listener | undefined;
afterEach(() => listener?.close({ graceMs: 0 }));

/** An app that answers what it was asked at `/held/…` when it is told to, and everything else at once. */
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
  listener = await listen(app, { host: '127.0.0.1', port: 0, log: recordingLog() });
  return {
    ...listener,
    ran,
    /** Lets the answer go. */
    async release(name: string) {
      while (!held.has(name)) {
        await new Promise<void>((resolve) => {
          seen = resolve;
        });
      }
      held.get(name)?.();
    },
    /** Resolves when the app works on this. */
    async reached(name: string) {
      while (!held.has(name)) {
        await new Promise<void>((resolve) => {
          seen = resolve;
        });
      }
    },
  };
}

const ask = (path: string) => request('GET', path);
const endsWith = ({ headers }: { readonly headers: Headers }) => headers.get('connection') === 'close';

describe('draining', () => {
  it('[Decision 31] serves on: new connections are taken, kept ones stay until they are used, and every answer ends its connection', async () => {
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

  it('[Decision 31] says so with an answer that was in work already', async () => {
    const { port, drain, release, reached } = await start();
    const connection = connectRaw(port);
    connection.write(ask('/held/one'));
    await reached('one');
    drain();
    await release('one');
    expect(endsWith(await connection.next())).toBe(true);
    await connection.closed();
  });

  it('[Decision 31] answers all that was pipelined before it, and ends the connection with the last', async () => {
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

  it('[Decision 31] answers what is pipelined while it drains, as long as no answer has ended the connection', async () => {
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

  it('[Decision 31] does nothing that is asked behind an answer that ends the connection: nobody would hear of it', async () => {
    const { port, drain, ran } = await start();
    drain();
    const socket = connect(port, '127.0.0.1');
    // The answer is on its way for as long as nobody reads it.
    socket.pause();
    socket.write(ask('/large'));
    await once(socket, 'readable');
    socket.write(ask('/behind'));
    // An answer on another connection shows that the server has had these bytes.
    const other = connectRaw(port);
    other.write(ask('/other'));
    await other.next();
    let received = 0;
    socket.on('data', (bytes: Buffer) => {
      received += bytes.length;
    });
    socket.resume();
    await once(socket, 'close');
    expect(received).toBeGreaterThan(LARGE.length);
    expect(ran).toEqual(['other']);
  });
});

describe('closing', () => {
  it('[Decision 31] takes no new connections, and ends at once those that are not in use', async () => {
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

  it('[Decision 31] lets a kept connection be used once more, for as long as it is told', async () => {
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

  it('[Decision 31] answers a request that had come in, though nobody had read it', async () => {
    const { port, close, release, reached } = await start();
    const kept = connectRaw(port);
    kept.write(ask('/held/one'));
    await reached('one');
    await release('one');
    await kept.next();
    kept.write(ask('/unread'));
    // Written, and by the loopback delivered, before the server gets its turn.
    const closed = close({ graceMs: LONG_MS });
    expect((await kept.next()).text).toBe('unread');
    await closed;
  });

  it('[Decision 31] waits for an upload that is under way, and for an answer that is read slowly, to the last byte', async () => {
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
    let received = 0;
    slow.on('data', (bytes: Buffer) => {
      received += bytes.length;
    });
    slow.resume();
    await once(slow, 'close');
    expect(received).toBeGreaterThan(LARGE.length);
    // It had begun as one that keeps its connection: nobody has to wait for that to time out.
    await closed;
  });

  it('[Decision 31] waits for what was pipelined behind an answer that has been sent', async () => {
    const { port, close, release, reached } = await start();
    const connection = connectRaw(port);
    connection.write(Buffer.concat([ask('/one'), ask('/held/two')]));
    await reached('two');
    expect((await connection.next()).text).toBe('one');
    const other = connectRaw(port);
    other.write(ask('/other'));
    await other.next();
    const closed = close({ graceMs: LONG_MS });
    // Idle ones are ended by now.
    await other.closed();
    await release('two');
    expect((await connection.next()).text).toBe('two ');
    await closed;
  });

  it('[Decision 31] lets a request that has begun come to its end', async () => {
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

  it('[Decision 31] cuts what does not come to an end', async () => {
    const { port, close, reached } = await start();
    const stuck = connectRaw(port);
    stuck.write(ask('/held/for-ever'));
    await reached('for-ever');
    await close({ graceMs: 1 });
    await stuck.closed();
  });
});
