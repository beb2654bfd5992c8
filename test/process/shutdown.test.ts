import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openParts } from '../../src/shutdown.ts';
import { FULL } from '../support/full.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { freshUser, recordingLog } from '../support/subject.ts';
import { dataFolder, type RunningGateway, startGateway, startProgram, temporaryFolder } from './gateway.ts';
import { freePort } from './postgres-cluster.ts';

test('parts are closed in reverse order, one after the other', async () => {
  const closing = openParts(recordingLog());
  const events: string[] = [];
  for (const part of ['provider', 'listener']) {
    closing.add(part, async () => {
      events.push(`${part} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`${part} is closed`);
    });
  }
  await closing.close();
  expect(events).toEqual(['listener begins', 'listener is closed', 'provider begins', 'provider is closed']);
  await closing.close();
  expect(events).toHaveLength(4);
});

test('parts that fail or hang are reported, and the others are closed', async () => {
  const log = recordingLog();
  const closing = openParts(log);
  let closed = false;
  closing.add('provider', async () => {
    closed = true;
  });
  closing.add('trail', () => new Promise(() => {}), 1);
  closing.add('limits', () => Promise.reject(new Error('gone')));
  await expect(closing.close()).rejects.toThrow('not closed: limits, trail');
  expect(closed).toBe(true);
  expect(log.lines).toMatchObject([
    { level: 'error', fields: { part: 'limits', err: { message: 'gone' } } },
    { level: 'error', fields: { part: 'trail', err: { message: 'not closed within 1 ms' } } },
  ]);
});

test('after the deadline for all parts, the remaining ones are closed without waiting', async () => {
  const log = recordingLog();
  const closing = openParts(log);
  const told: string[] = [];
  const hanging = (part: string) =>
    closing.add(part, () => {
      told.push(part);
      return new Promise(() => {});
    });
  for (const part of ['provider', 'limits', 'trail']) hanging(part);
  await expect(closing.close(1)).rejects.toThrow('not closed: trail, limits, provider');
  expect(told).toEqual(['trail', 'limits', 'provider']);
  expect(log.lines.map(({ fields }) => fields)).toMatchObject([
    { part: 'trail' },
    { part: 'limits' },
    { part: 'provider' },
  ]);
});

test('an opened part is closed with the others, and one that failed to open is not', async () => {
  const log = recordingLog();
  const closing = openParts(log, new AbortController().signal);
  const events: string[] = [];
  const part = { name: 'embedder', close: async () => void events.push('embedder is closed') };
  expect(await closing.open('embedder', Promise.resolve(part))).toBe(part);
  await expect(closing.open('provider', Promise.reject<typeof part>(new Error('refused')))).rejects.toThrow('refused');
  await closing.close();
  expect(events).toEqual(['embedder is closed']);
  expect(log.lines).toEqual([]);
});

test('a stopped start does not wait for a part, which is closed when it opens', async () => {
  const stop = new AbortController();
  const closing = openParts(recordingLog(), stop.signal);
  const events: string[] = [];
  const part = { close: async () => void events.push('closed') };
  let open = (_: typeof part) => {};
  const opening = closing.open(
    'provider',
    new Promise<typeof part>((resolve) => {
      open = resolve;
    }),
  );
  stop.abort();
  await expect(opening).rejects.toBe(stop.signal.reason);
  const closed = closing.close();
  open(part);
  await closed;
  expect(events).toEqual(['closed']);
  await expect(closing.open('limits', Promise.resolve(part))).rejects.toBe(stop.signal.reason);
  await closing.close();
  expect(events).toEqual(['closed', 'closed']);
});

test('a part that never opens does not delay the end, and is no failure', async () => {
  const deadline = holdTimers(2_000);
  const stop = new AbortController();
  const log = recordingLog();
  const closing = openParts(log, stop.signal);
  const opening = closing.open('provider', new Promise<{ close(): Promise<void> }>(() => {}));
  stop.abort();
  await expect(opening).rejects.toBe(stop.signal.reason);
  await deadline.passUntil(closing.close());
  expect(log.lines).toEqual([]);
});

const STOPPING = /"msg":"stopping"/;

/** A POST that the gateway has begun to read; it waits for the rest of the body. */
async function openRequest({ url }: RunningGateway, body: string): Promise<ClientRequest> {
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    expect: '100-continue',
  };
  const post = request(`${url}/memories`, { method: 'POST', headers });
  post.flushHeaders();
  await once(post, 'continue');
  return post;
}

async function answerTo(post: ClientRequest): Promise<{ response: IncomingMessage; body: unknown }> {
  const [response] = (await once(post, 'response')) as [IncomingMessage];
  const text = (await response.setEncoding('utf8').toArray()).join('');
  return { response, body: JSON.parse(text) };
}

test('SIGTERM finishes the running request, keeps what it added, and ends with status 0', async () => {
  const env = { OMP_DATA_DIR: await dataFolder() };
  const gateway = await startGateway({ env });
  const body = JSON.stringify({ user_id: freshUser(), content: 'added while stopping' });
  const post = await openRequest(gateway, body);
  gateway.child.kill('SIGTERM');
  await gateway.output(STOPPING);
  post.end(body);
  const { response, body: memory } = await answerTo(post);
  expect(response.statusCode).toBe(201);
  expect(response.headers.connection).toBe('close');
  expect(await gateway.ended).toMatchObject({ status: 0, signal: null, stderr: '' });
  await expect(fetch(`${gateway.url}/healthz`)).rejects.toThrow(TypeError);

  const { client } = await startGateway({ env });
  expect(await client.get((memory as { id: string }).id)).toMatchObject({ content: 'added while stopping' });
});

test.for(['SIGTERM', 'SIGINT'] as const)('a second %s ends the process at once', async (signal) => {
  // Only the second signal can end it.
  const gateway = await startGateway({ env: { OMP_PROVIDER: 'memory', OMP_SHUTDOWN_TIMEOUT_MS: '600000' } });
  const post = await openRequest(gateway, '{}');
  const cut = once(post, 'error');
  gateway.child.kill(signal);
  await gateway.output(STOPPING);
  gateway.child.kill(signal);
  expect(await gateway.ended).toMatchObject({ status: null, signal });
  expect(await cut).toMatchObject([{ code: 'ECONNRESET' }]);
});

test('a request that never ends is disconnected at the deadline', async () => {
  const gateway = await startGateway({ env: { OMP_PROVIDER: 'memory', OMP_SHUTDOWN_TIMEOUT_MS: '1' } });
  const post = await openRequest(gateway, '{}');
  const cut = once(post, 'error');
  expect(await gateway.stop()).toMatchObject({ status: 0, signal: null });
  expect(await cut).toMatchObject([{ code: 'ECONNRESET' }]);
});

test.for(['SIGTERM', 'SIGINT'] as const)('%s before the start ends the process', async (signal) => {
  const { child, ended } = startProgram({ env: { OMP_SEARCH_MODE: 'keyword' } });
  await once(child, 'spawn');
  child.kill(signal);
  const { stdout, ...ending } = await ended;
  // By the signal itself, or in order if the handler was installed.
  const orderly = { status: 0, signal: null, stderr: '' };
  expect([orderly, { ...orderly, status: null, signal }]).toContainEqual(ending);
  expect(stdout).not.toMatch(/listens on/);
});

/** A start that waits for its database, which accepts connections and never answers, like a proxy before a server in recovery. */
async function startWaiting(env: Readonly<Record<string, string>> = {}) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket.on('error', () => {})));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const DATABASE_URL = `postgres://omp@127.0.0.1:${port}/omp`;
  const program = startProgram({ env: { OMP_SEARCH_MODE: 'keyword', DATABASE_URL, ...env } });
  await once(server, 'connection');
  return program;
}

test('SIGTERM ends a start that waits for the database, in order', async () => {
  const { child, ended, output } = await startWaiting();
  child.kill('SIGTERM');
  await output(STOPPING);
  expect(await ended).toMatchObject({ status: 0, signal: null, stderr: '' });
});

test('[Decision 31] while a start waits for the database, the metrics port answers, and the main port refuses connections', async () => {
  const main = await freePort();
  const env = { OMP_PORT: `${main}`, OMP_METRICS_PORT: '0', OMP_POSTGRES_CONNECT_TIMEOUT_MS: '600000' };
  const { output } = await startWaiting(env);
  const [, metrics = ''] = await output(/"port":(\d+),"msg":"the port for metrics is open"/);
  const ask = (port: number | string, path: string) => fetch(`http://127.0.0.1:${port}${path}`);
  expect((await ask(metrics, '/livez')).status).toBe(200);
  const ready = await ask(metrics, '/readyz');
  expect({ status: ready.status, body: await ready.json() }).toEqual({ status: 503, body: { status: 'starting' } });
  await expect(ask(main, '/livez')).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
});

test.runIf(FULL)('SIGTERM while the embedded database starts leaves a folder that the next start can use', async () => {
  const folder = temporaryFolder();
  const env = { OMP_DATA_DIR: folder, OMP_SEARCH_MODE: 'keyword' };
  const { child, ended } = startProgram({ env });
  while (!existsSync(join(folder, 'lock'))) await new Promise((resolve) => setTimeout(resolve, 5));
  child.kill('SIGTERM');
  expect(await ended).toMatchObject({ status: 0, signal: null, stderr: '' });
  const gateway = await startGateway({ env });
  expect(await gateway.stop()).toMatchObject({ status: 0, signal: null });
});

test('while it stops, /readyz is 503, and requests are served for the configured delay', async () => {
  // Only the second signal can end it.
  const env = { OMP_PROVIDER: 'memory', OMP_SHUTDOWN_DELAY_MS: '600000' };
  const gateway = await startGateway({ env });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const ask = (path: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request(gateway.url + path, { agent }, (response) => resolve(response.resume()));
      asked.on('error', reject).end();
    });
  expect((await ask('/readyz')).statusCode).toBe(200);
  gateway.child.kill('SIGTERM');
  await gateway.output(STOPPING);
  for (const [path, status] of [
    ['/readyz', 503],
    ['/livez', 200],
    ['/healthz', 200],
    ['/memories?user_id=ana', 200],
  ] as const) {
    const { statusCode, headers } = await ask(path);
    expect({ statusCode, connection: headers.connection }, path).toEqual({ statusCode: status, connection: 'close' });
  }
  gateway.child.kill('SIGTERM');
  expect(await gateway.ended).toMatchObject({ status: null, signal: 'SIGTERM' });
});
