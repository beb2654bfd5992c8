import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  ConnectionError,
  InvalidRequestError,
  InvalidResponseError,
  MemoryClient,
  NotFoundError,
  ProviderError,
  RateLimitedError,
  ScopeDeniedError,
  TimeoutError,
  UnauthorizedError,
} from '../../clients/typescript/src/index.ts';
import { eventually } from '../support/eventually.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { knownCallers } from '../support/known-callers.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { serverForTest } from '../support/server.ts';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';

const callers = knownCallers();
const { authenticator } = callers;
const PROVIDERS: readonly [string, () => Promise<Subject>][] = [
  ['memory', () => openSubject({ provider: 'memory', options: { scopes: 'native' }, authenticator })],
  ['postgres', () => openSubject({ provider: 'postgres', options: {}, authenticator })],
  ['pinecone', () => openPineconeSubject({}, {}, { authenticator })],
];

describe.each(PROVIDERS)('the client on %s', (_name, open) => {
  let subject: Subject;
  let client: MemoryClient;
  const through = (key?: string) =>
    new MemoryClient({
      url: 'http://gateway/',
      key,
      fetch: async (url, init) => subject.app.request(new URL(`${url}`).href, init, {}),
    });
  beforeAll(async () => {
    subject = await open();
    client = through();
  });
  afterAll(() => subject.close());

  it('adds, reads, changes, finds and deletes', async () => {
    const user_id = freshUser();
    const added = await client.memories.add({ user_id, content: 'prefers tea', tags: ['drinks'], 'x-mood': 'calm' });
    expect(added).toMatchObject({ user_id, content: 'prefers tea', 'x-mood': 'calm' });
    expect(await client.memories.get(added.id)).toEqual(added);
    expect(await client.memories.update(added.id, { content: 'prefers coffee' })).toMatchObject({ tags: ['drinks'] });
    const { results } = await client.memories.search({ user_id, q: 'coffee', limit: 1 });
    expect(results.map(({ memory }) => memory.id)).toEqual([added.id]);
    expect((await client.context({ user_id, query: 'coffee', min_score: 0 })).citations).toHaveLength(1);
    expect(await client.memories.delete(added.id)).toBeUndefined();
    await expect(client.memories.get(added.id)).rejects.toBeInstanceOf(NotFoundError);
  });

  it('reads all pages, or one', async () => {
    const user_id = freshUser();
    for (const content of ['a', 'b', 'c']) await client.memories.add({ user_id, content });
    const contents: string[] = [];
    for await (const { content } of client.memories.list({ user_id, limit: 2 })) contents.push(content);
    expect(contents).toEqual(['c', 'b', 'a']);
    const page = await client.memories.list({ user_id, limit: 2 }).page();
    expect([page.items.length, typeof page.next_cursor]).toEqual([2, 'string']);
  });

  it('adds many, each with its result', async () => {
    const user_id = freshUser();
    const memories = Array.from({ length: 103 }, (_, n) => ({ user_id, content: n === 7 ? ' ' : `fact ${n}` }));
    const results = await client.memories.addMany(memories);
    expect(results).toHaveLength(103);
    expect(results.flatMap(({ error }, n) => (error ? [[n, error.code]] : []))).toEqual([[7, 'invalid_request']]);
    expect(results[102]?.memory?.content).toBe('fact 102');
  });

  it('names the user of an id, in any script', async () => {
    const user_id = `${freshUser()}-Łukasz`;
    const { id } = await client.memories.add({ user_id, content: 'x' });
    expect(await client.memories.get(id, { userId: user_id })).toMatchObject({ user_id });
    await expect(client.memories.get(id, { userId: 'other' })).rejects.toBeInstanceOf(NotFoundError);
  });

  it('has one error class for each code', async () => {
    const user_id = freshUser();
    const { authorization } = callers.admit({ users: [user_id], grants: ['read:*'] }) as { authorization: string };
    const narrow = through(authorization.slice('Bearer '.length));
    await expect(narrow.memories.add({ user_id, content: 'x' })).rejects.toBeInstanceOf(ScopeDeniedError);
    const error = await client.memories.add({ user_id, content: '' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ code: 'invalid_request', type: 'invalid', status: 400, name: 'InvalidRequestError' });
    expect((error as InvalidRequestError).requestId).toMatch(/^[\w-]{36}$/);
  });
});

/** Answers the n-th request with the n-th of these, the last one from then on; keeps what it was asked. */
async function serverOf(...answers: ((response: ServerResponse) => void)[]) {
  const asked: { method: string; path: string; headers: Record<string, unknown> }[] = [];
  const server = createServer((request, response) => {
    request.resume();
    if (request.url === '/capabilities') return void response.end(JSON.stringify(CAPABILITIES));
    asked.push({ method: request.method ?? '', path: request.url ?? '', headers: request.headers });
    (answers[asked.length - 1] ?? answers.at(-1))?.(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { asked, client: new MemoryClient({ url: `http://127.0.0.1:${port}` }), port };
}

const CAPABILITIES = { verbs: ['add'], features: { idempotency: true } };
const MEMORY = { id: 'mem_1', content: 'tea', user_id: 'u' };
const fine = (response: ServerResponse) => void response.end(JSON.stringify(MEMORY));
const answer =
  (status: number, code: string, headers: Record<string, string> = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(status, headers).end(JSON.stringify({ error: { code, message: code, type: 'any' } }));
const busy = answer(429, 'rate_limited', { 'retry-after': '0' });
const broken = answer(502, 'provider_error');
const reset = (response: ServerResponse) => void response.socket?.destroy();
const cut = (response: ServerResponse) => {
  response.writeHead(200, { 'content-length': '100' });
  response.write('{"id"');
  setImmediate(() => response.socket?.destroy());
};
const silent = () => {};
const garbage = (response: ServerResponse) => void response.end('<html>it works</html>');
const notOurs = (response: ServerResponse) => void response.writeHead(500).end('{"detail":"no"}');

describe('the client against a server of faults', () => {
  it.each([
    ['429', busy],
    ['502', broken],
    ['reset', reset],
    ['cut in the middle', cut],
    ['5xx of a proxy', notOurs],
  ])('a read is repeated after: %s', async (_name, fault) => {
    const { client, asked } = await serverOf(fault, fault, fine);
    expect(await client.memories.get('mem_1')).toEqual(MEMORY);
    expect(asked).toHaveLength(3);
  });

  it.each([
    ['429', busy, 3],
    ['502', broken, 1],
    ['reset', reset, 1],
  ])('a change is repeated only if it had no effect: %s', async (_name, fault, requests) => {
    for (const change of ['update', 'delete'] as const) {
      const { client, asked } = await serverOf(fault);
      await expect(client.memories[change]('mem_1', {})).rejects.toThrow();
      expect(asked).toHaveLength(requests);
    }
  });

  it('an add is repeated with the same key', async () => {
    const { client, asked } = await serverOf(reset, broken, fine);
    expect(await client.memories.add({ user_id: 'u', content: 'tea' })).toEqual(MEMORY);
    const keys = asked.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual([expect.stringMatching(/^[0-9a-f.]{31,47}$/), keys[0], keys[0]]);
    await client.memories.add({ user_id: 'u', content: 'tea' });
    expect(asked.at(-1)?.headers['idempotency-key']).not.toBe(keys[0]);
  });

  it.each([
    ['nothing is retried', { retries: 0 }, broken, { kind: ProviderError, requests: 1 }],
    ['the retries end', { retries: 1 }, broken, { kind: ProviderError, requests: 2 }],
    [
      'the pause would outlast the call',
      { totalTimeout: 500_000 },
      answer(429, 'rate_limited', { 'retry-after': '600' }),
      { kind: RateLimitedError, requests: 1 },
    ],
    ['a connection reset', { retries: 0 }, reset, { kind: ConnectionError, requests: 1 }],
    ['an answer that is not JSON', {}, garbage, { kind: InvalidResponseError, requests: 1 }],
    ['an error that is not the envelope', { retries: 0 }, notOurs, { kind: InvalidResponseError, requests: 1 }],
    ['401', {}, answer(401, 'unauthorized'), { kind: UnauthorizedError, requests: 1 }],
  ])('%s', async (_name, options, fault, { kind, requests }) => {
    const { client, asked } = await serverOf(fault);
    await expect(client.memories.get('mem_1', options)).rejects.toBeInstanceOf(kind);
    expect(asked).toHaveLength(requests);
  });

  it('tells how long to wait', async () => {
    const { client } = await serverOf(answer(429, 'rate_limited', { 'retry-after': '600' }));
    await expect(client.memories.get('mem_1')).rejects.toMatchObject({ retryAfter: 600, status: 429 });
  });

  it.each([
    ['each attempt', { timeout: 77_777, totalTimeout: 1e9, retries: 1 }, 2],
    ['all attempts', { timeout: 1e9, totalTimeout: 77_777, retries: 1 }, 1],
  ])('times out: %s', async (_name, options, attempts) => {
    const timers = holdTimers(77_777);
    const { client, asked } = await serverOf(silent);
    const call = client.memories.get('mem_1', options);
    call.catch(() => {});
    for (let attempt = 1; attempt <= attempts; attempt++) {
      await eventually(() => expect(asked).toHaveLength(attempt));
      timers.pass();
    }
    await expect(call).rejects.toBeInstanceOf(TimeoutError);
    expect(asked).toHaveLength(attempts);
  });

  it.each([
    ['while it waits for an answer', silent],
    ['between two attempts', answer(429, 'rate_limited', { 'retry-after': '50' })],
  ])("rejects with the reason of the caller's signal: %s", async (_name, fault) => {
    const { client, asked } = await serverOf(fault);
    const controller = new AbortController();
    const call = client.memories.get('mem_1', { signal: controller.signal });
    const reason = new Error('changed my mind');
    void eventually(() => expect(asked).toHaveLength(1)).then(() => controller.abort(reason));
    await expect(call).rejects.toBe(reason);
    expect(asked).toHaveLength(1);
  });

  it('a signal that has fired sends nothing', async () => {
    const { client, asked } = await serverOf(fine);
    await expect(client.memories.get('m', { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    });
    expect(asked).toHaveLength(0);
  });
});

describe('the client over HTTP', () => {
  it('carries the consistency token, the key and headers, and shows the answer', async () => {
    const { port, asked } = await serverOf((response) => {
      response.setHeader('x-consistency-token', `t${asked.length}`);
      response.setHeader('x-request-id', 'r1');
      fine(response);
    });
    let keys = 0;
    const url = `http://127.0.0.1:${port}/prefix/`;
    const client = new MemoryClient({ url, key: async () => `k${++keys}`, headers: { 'x-a': '1' } });
    await client.memories.get('a/b');
    const { response, requestId, data } = await client.memories.get('b', { headers: { 'x-a': '2' } }).withResponse();
    expect([response.status, requestId, data]).toEqual([200, 'r1', MEMORY]);
    expect(asked.map(({ path }) => path)).toEqual(['/prefix/memories/a%2Fb', '/prefix/memories/b']);
    expect(asked.map(({ headers }) => [headers.authorization, headers['x-a'], headers['x-consistency-token']])).toEqual(
      [
        ['Bearer k1', '1', undefined],
        ['Bearer k2', '2', 't1'],
      ],
    );
  });

  it('speaks to a real gateway', async () => {
    const { url } = await serverForTest();
    const client = new MemoryClient({ url });
    expect(await client.health()).toEqual({ status: 'ok', provider: 'memory' });
    await client.memories.add({ user_id: 'u', content: 'prefers tea' });
    const actions: string[] = [];
    for await (const { action } of client.audit({ user_id: 'u' })) actions.push(action);
    expect(actions).toContain('add');
  });
});
