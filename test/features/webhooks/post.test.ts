import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createPost, isGlobal, type Resolve } from '../../../src/features/webhooks/post.ts';
import { eventually } from '../../support/eventually.ts';
import { holdTimers } from '../../support/hold-timers.ts';
import { openReceiver } from './receiver.ts';

const never = new AbortController().signal;
const BODY = JSON.stringify({ type: 'webhook.test', data: {} });
const HEADERS = { 'webhook-id': 'msg_1' };

/** A resolver that answers these, one list for each question. */
const resolving =
  (...answers: string[][]): Resolve =>
  (_, done) => {
    const addresses = answers.length > 1 ? (answers.shift() as string[]) : (answers[0] ?? []);
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };

describe('[Decision 52] addresses', () => {
  const PRIVATE = [
    '0.0.0.0 10.1.2.3 100.64.0.1 168.63.129.16 127.0.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1',
    '192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 none',
    ':: ::1 ::ffff:8.8.8.8 ::ffff:127.0.0.1 ::7f00:1 64:ff9b::7f00:1 64:ff9b:1::1 100::1 2001::1 2001:db8::1',
    '2002:7f00:1:: 3fff::1 fc00::1 fd12::1 fe80::1 fec0::1 ff02::1 5f00::1',
  ];
  it.each(PRIVATE.flatMap((some) => some.split(' ')))('%s is not global', (address) => {
    expect(isGlobal(address)).toBe(false);
  });

  const PUBLIC = [
    '8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 192.0.1.1 223.255.255.255',
    '2606:4700::1111 2001:4860:4860::8888 2a00:1450::1 2003::1',
  ];
  it.each(PUBLIC.flatMap((some) => some.split(' ')))('%s is global', (address) => {
    expect(isGlobal(address)).toBe(true);
  });
});

describe('[Decision 52] the URL of a webhook', () => {
  const { requireUrl } = createPost({ allow_private: false });
  it.each([
    ...'http://example.com/ ftp://example.com/ https://user:pass@example.com/ https://user@example.com/'.split(' '),
    ...'https://example.com/#part https://127.0.0.1/ https://127.1/ https://0x7f000001/ https://2130706433/'.split(' '),
    ...'https://[::1]/ https://[::ffff:127.0.0.1]/ https://[::ffff:8.8.8.8]/ example.com'.split(' '),
    ...['https://169.254.169.254/latest/meta-data', '', `https://example.com/${'x'.repeat(2_048)}`],
  ])('is not %s', (url) => {
    expect(() => requireUrl(url)).toThrow(/^url: /);
  });

  it('is a public one, or with OMP_WEBHOOK_PRIVATE any', () => {
    expect(requireUrl('https://Example.com')).toBe('https://example.com/');
    expect(requireUrl('https://8.8.8.8/x?y=z')).toBe('https://8.8.8.8/x?y=z');
    const open = createPost({ allow_private: true });
    expect(open.requireUrl('http://127.0.0.1:3000/')).toBe('http://127.0.0.1:3000/');
    expect(() => open.requireUrl('http://user@localhost/')).toThrow('credentials');
    expect(() => open.requireUrl('file:///etc/passwd')).toThrow('https://');
  });
});

describe('[Decision 52] an attempt', () => {
  it.each([
    ['a private address', [['127.0.0.1']]],
    ['a mapped one', [['::ffff:127.0.0.1']]],
    ['a private one beside a public one', [['8.8.8.8', '10.0.0.1']]],
  ])('connects to no name that leads to %s', async (_, answers) => {
    const { send } = createPost({ allow_private: false, resolve: resolving(...answers) });
    expect(await send('https://rebinding.example/', HEADERS, BODY, never)).toEqual({
      outcome: 'address_denied',
      status: null,
    });
  });

  it('asks for the addresses each time, and connects to what it has checked', async () => {
    const receiver = await openReceiver();
    const { port } = new URL(receiver.url);
    const asked: string[] = [];
    const resolve: Resolve = (name, done) => {
      asked.push(name);
      resolving(['127.0.0.1'])(name, done);
    };
    const { send } = createPost({ allow_private: true, resolve });
    const url = `http://receiver.example:${port}/hook`;
    for (let n = 0; n < 2; n++) expect(await send(url, HEADERS, BODY, never)).toMatchObject({ outcome: 'delivered' });
    expect(asked).toEqual(['receiver.example', 'receiver.example']);
    expect(receiver.received[0]?.headers).toMatchObject({
      ...{ host: `receiver.example:${port}`, 'content-type': 'application/json', 'webhook-id': 'msg_1' },
      'content-length': String(BODY.length),
    });
  });

  it('checks literal addresses and schemes too, whatever was allowed when the webhook was made', async () => {
    const { received, url } = await openReceiver();
    const { send } = createPost({ allow_private: false });
    const { port } = new URL(url);
    for (const address of [url, `https://127.0.0.1:${port}/`, `https://[::1]:${port}/`, 'http://8.8.8.8/']) {
      expect((await send(address, HEADERS, BODY, never)).outcome).toBe('address_denied');
    }
    expect(received).toEqual([]);
  });

  it.each([
    [204, 'delivered'],
    [200, 'delivered'],
    [299, 'delivered'],
    [304, 'rejected'],
    [400, 'rejected'],
    [410, 'gone'],
    [429, 'rejected'],
    [500, 'rejected'],
  ] as const)('that is answered with %d is %s', async (status, outcome) => {
    const receiver = await openReceiver();
    receiver.react(() => status);
    const { send } = createPost({ allow_private: true });
    expect(await send(receiver.url, HEADERS, BODY, never)).toMatchObject({ outcome, status });
  });

  it('follows no redirect', async () => {
    const [target, receiver] = [await openReceiver(), await openReceiver()];
    receiver.react(() => (response) => response.writeHead(307, { location: target.url }).end());
    const { send } = createPost({ allow_private: true });
    expect(await send(receiver.url, HEADERS, BODY, never)).toMatchObject({ outcome: 'rejected', status: 307 });
    expect(target.received).toEqual([]);
  });

  it('tells how long the receiver asks to wait', async () => {
    const receiver = await openReceiver();
    const { send } = createPost({ allow_private: true });
    const waits = async (header: string) => {
      receiver.react(() => (response) => response.writeHead(503, { 'retry-after': header }).end());
      return (await send(receiver.url, HEADERS, BODY, never)).retryAfter;
    };
    expect(await waits('120')).toBe(120);
    expect(await waits(new Date(Date.now() + 3_600_000).toUTCString())).toBeGreaterThan(0);
    for (const nonsense of ['soon', '-1', new Date(0).toUTCString(), '9'.repeat(99)]) {
      expect(await waits(nonsense)).toBeUndefined();
    }
  });

  /** A server that does this with each connection. */
  const serve = async (work: (socket: Socket) => void): Promise<string> => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket.on('error', () => {}));
      work(socket);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  };

  it.each<[string, (socket: Socket) => void]>([
    ['closes the connection', (socket) => socket.once('data', () => socket.destroy())],
    ['ends it without an answer', (socket) => socket.once('data', () => socket.end())],
    ['answers nonsense', (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n\r\n')],
    ['answers with endless headers', (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}`)],
    ['switches protocols', (socket) => socket.once('data', () => socket.write(UPGRADE))],
  ])('is unreachable if the receiver %s', async (_, work) => {
    const { send } = createPost({ allow_private: true });
    const answer = await send(await serve(work), HEADERS, BODY, never);
    expect(answer.outcome).toBe('unreachable');
  });

  it('is over when nothing listens, or the name does not exist', async () => {
    const url = await serve(() => {});
    const failing: Resolve = (_, done) => done(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []);
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    await once(closed, 'close');
    expect(
      (await createPost({ allow_private: true }).send(`http://127.0.0.1:${port}/`, HEADERS, BODY, never)).outcome,
    ).toBe('unreachable');
    const post = createPost({ allow_private: true, resolve: failing });
    expect((await post.send(url.replace('127.0.0.1', 'nowhere.example'), HEADERS, BODY, never)).outcome).toBe(
      'unreachable',
    );
  });

  it('is over when the name has no addresses', async () => {
    const { send } = createPost({ allow_private: false, resolve: resolving([]) });
    expect(await send('https://nowhere.example/', HEADERS, BODY, never)).toEqual({
      outcome: 'unreachable',
      status: null,
    });
  });

  it('keeps no connection after it has answered, however slowly the body of the answer comes', async () => {
    const timers = holdTimers(15_000);
    let open = 0;
    const slow = await serve((socket) => {
      open++;
      socket.on('close', () => open--);
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nx'));
    });
    let isOver = false;
    const sent = createPost({ allow_private: true })
      .send(slow, HEADERS, BODY, never)
      .finally(() => {
        isOver = true;
      });
    await eventually(() => expect(open).toBe(1));
    expect(isOver).toBe(false);
    timers.pass();
    expect(await sent).toMatchObject({ outcome: 'delivered', status: 200 });
    await eventually(() => expect(open).toBe(0));
  });

  it('ends at its deadline, and reads no endless answer', async () => {
    const timers = holdTimers(15_000);
    let open = 0;
    const silent = await serve((socket) => {
      open++;
      socket.on('close', () => open--);
      socket.resume();
    });
    const { send } = createPost({ allow_private: true });
    const sent = send(silent, HEADERS, BODY, never);
    await eventually(() => expect(open).toBe(1));
    timers.pass();
    expect(await sent).toEqual({ outcome: 'timeout', status: null });
    await eventually(() => expect(open).toBe(0));

    let ended = false;
    const endless = await serve((socket) => {
      socket.on('close', () => {
        ended = true;
      });
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const more = () => {
        while (!socket.destroyed && socket.write('x'.repeat(1_000)));
        if (!socket.destroyed) socket.once('drain', more);
      };
      more();
    });
    expect(await send(endless, HEADERS, BODY, never)).toMatchObject({ outcome: 'delivered', status: 200 });
    await eventually(() => expect(ended).toBe(true));
  });

  it('ends when the gateway stops', async () => {
    const stop = new AbortController();
    let open = 0;
    const silent = await serve(() => open++);
    const sent = createPost({ allow_private: true }).send(silent, HEADERS, BODY, stop.signal);
    await eventually(() => expect(open).toBe(1));
    stop.abort(new Error('closing'));
    await expect(sent).rejects.toThrow('closing');
  });
});

const UPGRADE = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n';
