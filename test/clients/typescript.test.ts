import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  ConnectionError,
  CursorGoneError,
  groupResults,
  InvalidRequestError,
  InvalidResponseError,
  MemoryClient,
  NotFoundError,
  PayloadTooLargeError,
  PreconditionFailedError,
  ProviderError,
  RateLimitedError,
  ScopeDeniedError,
  TimeoutError,
  UnauthorizedError,
  UnsupportedCapabilityError,
  version,
} from '../../clients/typescript/src/index.ts';
import { eventually } from '../support/eventually.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { knownCallers } from '../support/known-callers.ts';
import { openPineconeSubject } from '../support/pinecone-server.ts';
import { openServerSubject, SERVER_URL } from '../support/postgres-server.ts';
import { serverForTest } from '../support/server.ts';
import { freshUser, openSubject, type Subject } from '../support/subject.ts';

const callers = knownCallers();
const { authenticator } = callers;
const PROVIDERS: readonly (readonly [string, () => Promise<Subject>])[] = [
  ['memory', () => openSubject({ provider: 'memory', options: { scopes: 'native' }, authenticator })],
  ['postgres', () => openSubject({ provider: 'postgres', options: {}, authenticator })],
  ...(SERVER_URL === ''
    ? []
    : [['postgres, on a server', () => openServerSubject({}, undefined, { authenticator })] as const]),
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

  it('[Decision 61] reads all that is stored of a user, line by line', async () => {
    const user_id = `${freshUser()}/é`;
    const { id } = await client.memories.add({ user_id, content: 'prefers tea ☕' });
    const lines = [];
    for await (const line of client.users.file(user_id)) lines.push(line);
    expect(lines[0]).toMatchObject({ type: 'person', user_id });
    expect(lines[1]).toMatchObject({ type: 'memory', id, content: 'prefers tea ☕' });
    expect(lines.at(-1)).toMatchObject({ type: 'end', memories: 1, complete: true });
  });

  it('lists, reads, restores and purges versions, and rolls back', async ({ skip }) => {
    skip(!subject.capabilities.features.versions, 'it keeps no versions');
    const { memories, users } = client;
    const user_id = freshUser();
    const { id } = await memories.add({ user_id, content: 'prefers tea' });
    await memories.update(id, { content: 'prefers mint' });
    const found = [];
    for await (const { version, current } of memories.versions(id, { limit: 1 })) found.push([version, current]);
    expect(found).toEqual([
      [2, true],
      [1, false],
    ]);
    expect(await memories.getVersion(id, 1)).toMatchObject({ version: 1, memory: { content: 'prefers tea' } });
    expect(await memories.restore(id, 1, { userId: user_id })).toMatchObject({
      content: 'prefers tea',
      'x-omp-origin': { via: 'restore', version: 1 },
    });
    expect(await memories.purgeVersions(id)).toEqual({ purged: 2 });
    const other = await memories.add({ user_id: freshUser(), content: 'prefers tea' });
    const undone = [];
    for await (const { action } of users.rollback(other.user_id, { since: other.created_at })) undone.push(action);
    expect(undone).toEqual(['delete']);
  });

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

  it('finds only what is current when asked, and warns once about a field that the gateway ignores', async () => {
    const user_id = freshUser();
    const warnings: string[] = [];
    const warned = new MemoryClient({
      url: 'http://gateway/',
      fetch: async (url, init) => subject.app.request(new URL(`${url}`).href, init, {}),
      onWarning: (message) => warnings.push(message),
    });
    const old = { user_id, content: 'lives in Lisbon', metadata: { own: 1 }, valid_to: '2001-01-01' };
    for (let count = 0; count < 2; count++) await warned.memories.add({ ...old });
    const { id } = await warned.memories.add({ user_id, content: 'lives in Porto' });
    expect(warnings).toEqual([expect.stringMatching(/"metadata".* x-/)]);
    const { results } = await client.memories.search({ user_id, q: 'lives in', current: true });
    expect(results.map(({ memory }) => memory.id)).toEqual([id]);
    const listed = client.memories.list({ user_id, current: true });
    expect((await listed.page()).items.map((memory) => memory.id)).toEqual([id]);
  });

  it('warns once for each store that answers lack, and hands on what the answer says', async () => {
    const warnings: string[] = [];
    const answer = { items: [], next_cursor: null, 'x-partial': ['crm'] };
    const warned = new MemoryClient({
      url: 'http://gateway/',
      fetch: async () => Response.json(answer, { headers: { 'x-partial': 'crm', 'x-without': 'old, handbook' } }),
      onWarning: (message) => warnings.push(message),
    });
    for (let count = 0; count < 2; count++)
      expect((await warned.memories.list({ user_id: 'u' }).page())['x-partial']).toEqual(['crm']);
    expect(warnings.map((text) => /store "(\w+)"/.exec(text)?.[1])).toEqual(['crm', 'old', 'handbook']);
  });

  it('changes and deletes one version only, where the gateway compares versions', async () => {
    const { id, ...added } = await client.memories.add({ user_id: freshUser(), content: 'one' });
    const ifMatch = version(added);
    const changed = await client.memories.update(id, { content: 'two' });
    const { features } = await client.capabilities();
    const error = features.etags ? PreconditionFailedError : UnsupportedCapabilityError;
    await expect(client.memories.update(id, { content: 'three' }, { ifMatch })).rejects.toBeInstanceOf(error);
    await expect(client.memories.delete(id, { ifMatch })).rejects.toBeInstanceOf(error);
    expect(await client.memories.get(id)).toEqual(changed);
    if (features.etags) await client.memories.delete(id, { ifMatch: version(changed) });
  });

  it('follows the changes, and the next ones as they happen, where there is a log', async () => {
    const { features } = await client.capabilities();
    if (!features.changes) return expect(client.changes()).rejects.toBeInstanceOf(UnsupportedCapabilityError);
    const user_id = freshUser();
    const { next_cursor: after } = await client.changes({ after: 'now' });
    const first = await client.memories.add({ user_id, content: 'one' });
    await client.memories.add({ user_id, content: 'two' });
    await client.memories.delete(first.id);
    const followed: (string | undefined)[] = [];
    for await (const { action, memory } of client.follow({ after, user_id, limit: 2, include: 'memory' })) {
      followed.push(action, memory?.content);
      if (followed.length === 6) void client.memories.add({ user_id, content: 'three' });
      if (followed.length === 8) break;
    }
    expect(followed).toEqual(['add', undefined, 'add', 'two', 'delete', undefined, 'add', 'three']);
    const foreign = after.replace(/^[0-9a-f]{8}/, '0badc0de');
    await expect(client.changes({ after: foreign })).rejects.toBeInstanceOf(CursorGoneError);
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

  it('adds many in batches that fit, and says which memory is too large on its own', async () => {
    const user_id = freshUser();
    const sizes = [400_000, 400_000, 400_000, 2_000_000, 1];
    const results = await client.memories.addMany(
      sizes.map((size) => ({ user_id, content: 'a '.repeat(size / 2 + 1) })),
    );
    const { max_content_length } = subject.capabilities.features;
    const large = max_content_length === null ? undefined : 'invalid_request';
    expect(results.map(({ error }) => error?.code)).toEqual([large, large, large, 'payload_too_large', undefined]);
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
    void response
      .writeHead(status, headers)
      .end(JSON.stringify({ error: { code, message: code, type: 'any', provider: 'p' } }));
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
const redirected = (response: ServerResponse) => void response.writeHead(307, { location: '/elsewhere' }).end();
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

  const PERSON = '{"type":"person"}\n';
  it.each([
    ['without its last line', (response: ServerResponse) => void response.end(PERSON)],
    ['in the middle of a line', (response: ServerResponse) => void response.end(`${PERSON}{"type":"e`)],
    ['in the middle', (response: ServerResponse) => void response.write(PERSON, () => response.destroy())],
  ])('[Decision 61] a file that was cut off is no whole one: %s', async (_name, fault) => {
    const { client } = await serverOf(fault);
    const file = client.users.file('u');
    expect((await file.next()).value).toEqual({ type: 'person' });
    await expect(file.next()).rejects.toBeInstanceOf(ConnectionError);
  });

  it.each([
    ['429', busy, 3],
    ['502', broken, 1],
    ['reset', reset, 1],
  ])('a change is repeated only if it had no effect: %s', async (_name, fault, requests) => {
    for (const change of [
      (client: MemoryClient) => client.memories.update('mem_1', {}),
      (client: MemoryClient) => client.memories.delete('mem_1'),
      (client: MemoryClient) => client.users.erase('u'),
      (client: MemoryClient) => client.keys.create({ name: 'editor', grants: ['read:*'] }),
    ]) {
      const { client, asked } = await serverOf(fault);
      await expect(change(client)).rejects.toThrow();
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
    ['a redirect', {}, redirected, { kind: InvalidResponseError, requests: 1 }],
    ['401', {}, answer(401, 'unauthorized'), { kind: UnauthorizedError, requests: 1 }],
    ['403', {}, answer(403, 'scope_denied'), { kind: ScopeDeniedError, requests: 1 }],
    ['404', {}, answer(404, 'not_found'), { kind: NotFoundError, requests: 1 }],
    ['400', {}, answer(400, 'invalid_request'), { kind: InvalidRequestError, requests: 1 }],
    ['410', {}, answer(410, 'invalid_request'), { kind: CursorGoneError, requests: 1 }],
    ['412', {}, answer(412, 'invalid_request'), { kind: PreconditionFailedError, requests: 1 }],
    ['400 of a verb', {}, answer(400, 'unsupported_capability'), { kind: UnsupportedCapabilityError, requests: 1 }],
    ['413', {}, answer(413, 'payload_too_large'), { kind: PayloadTooLargeError, requests: 1 }],
  ])('%s', async (_name, options, fault, { kind, requests }) => {
    const { client, asked } = await serverOf(fault);
    await expect(client.memories.get('mem_1', options)).rejects.toBeInstanceOf(kind);
    expect(asked).toHaveLength(requests);
  });

  it.each([
    ['as long as the gateway asks for', answer(429, 'rate_limited', { 'retry-after': '7' }), 7_000],
    [
      'as long as a proxy asks for',
      (response: ServerResponse) => void response.writeHead(503, { 'retry-after': '7' }).end('<html>'),
      7_000,
    ],
    ['a part of the first pause', broken, 0],
  ])('waits before a retry: %s', async (_name, fault, least) => {
    vi.spyOn(Math, 'random').mockReturnValue(0.1);
    onTestFinished(() => void vi.restoreAllMocks());
    const timers = holdTimers(least + 25);
    const { client, asked } = await serverOf(fault, fine);
    const call = client.memories.get('mem_1');
    await eventually(() => expect(timers.waiting()).toBe(1));
    expect(asked).toHaveLength(1);
    timers.pass();
    expect(await call).toEqual(MEMORY);
  });

  it('tells how long to wait', async () => {
    const { client } = await serverOf(answer(429, 'rate_limited', { 'retry-after': '600' }));
    await expect(client.memories.get('mem_1')).rejects.toMatchObject({ retryAfter: 600, status: 429, provider: 'p' });
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

  const never = () => new Promise<never>(() => {});
  it.each([
    ['a fetch', { fetch: never }],
    ['a function for the key', { key: never }],
  ])('times out and is aborted although nothing else ends it: %s', async (_name, options) => {
    const timers = holdTimers(77_777);
    const client = new MemoryClient({ url: 'http://gateway', totalTimeout: 77_777, timeout: 1e9, ...options });
    const add = () => client.memories.add({ user_id: 'u', content: 'x' });
    const calls = [client.memories.get('m'), add()];
    for (const call of calls) call.catch(() => {});
    await eventually(() => expect(timers.waiting()).toBeGreaterThanOrEqual(2));
    timers.pass();
    for (const call of calls) await expect(call).rejects.toBeInstanceOf(TimeoutError);
    const controller = new AbortController();
    const aborted = client.memories.add({ user_id: 'u', content: 'x' }, { signal: controller.signal });
    const many = client.memories.addMany([{ user_id: 'u', content: 'x' }], { signal: controller.signal });
    controller.abort(new Error('changed my mind'));
    for (const call of [aborted, many]) await expect(call).rejects.toThrow('changed my mind');
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
    const client = new MemoryClient({ url, key: async () => `k${++keys}`, headers: { 'X-A': '1' } });
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

  it('shows no secrets, and sends nothing, if key or address are wrong', async () => {
    expect(() => new MemoryClient({ url: 'http://me:s3cret@host' })).toThrow(
      'url: must not contain credentials; use key',
    );
    const { port, asked } = await serverOf(fine);
    const url = `http://127.0.0.1:${port}`;
    const error = await new MemoryClient({ url, key: 's3\ncret' }).memories.get('m').catch((thrown: unknown) => thrown);
    expect(error).toEqual(new TypeError('key: must be visible ASCII characters'));
    const failing = new MemoryClient({ url, key: () => Promise.reject(new Error('no token')) });
    await expect(failing.memories.get('m')).rejects.toThrow('no token');
    expect(asked).toHaveLength(0);
    // As a file with the key often ends.
    await new MemoryClient({ url, key: 'k\n' }).memories.get('m');
    expect(asked[0]?.headers.authorization).toBe('Bearer k');
  });

  it('addresses nothing else, whatever an id is', async () => {
    const { client, asked } = await serverOf(fine);
    for (const id of ['', '.', '..']) {
      await expect(client.memories.delete(id)).rejects.toThrow(TypeError);
      await expect(client.users.erase(id)).rejects.toThrow(TypeError);
      await expect(client.keys.revoke(id)).rejects.toThrow(TypeError);
    }
    for (const userId of [' ana', 'ana\t', 'a\r\nx-a: 1']) {
      await expect(client.memories.get('m', { userId })).rejects.toThrow(TypeError);
    }
    expect(asked).toHaveLength(0);
    await client.memories.get('../users?x=1#y');
    expect(asked[0]?.path).toBe('/memories/..%2Fusers%3Fx%3D1%23y');
  });
});

describe('what the client sends', () => {
  /** Answers each request in turn with a status and a body; keeps what it was asked. */
  const answering = (...answers: readonly (readonly [status: number, body: object])[]) => {
    const asked: { path: string; headers: Headers; body: Record<string, unknown[]> }[] = [];
    const client = new MemoryClient({
      url: 'http://gateway',
      retries: 0,
      fetch: async (url, init) => {
        const [status, body] = answers[asked.length] ?? [500, {}];
        asked.push({
          path: `${url}`.slice('http://gateway'.length),
          headers: new Headers(init?.headers),
          body: JSON.parse(`${init?.body ?? '{}'}`),
        });
        return new Response(JSON.stringify(body), { status });
      },
    });
    return { client, asked };
  };
  const capabilities = (features: object, limits = {}) => [200, { features, limits }] as const;
  const memories = ['a', 'b', 'c'].map((content) => ({ user_id: 'u', content }));
  const failed = (code: string) => ({ error: { code, message: code, type: 'any' } });

  it('repeats filters and options for every page, and a parameter for every user', async () => {
    const { client, asked } = answering([200, { items: [MEMORY], next_cursor: 'c 1' }], [200, { items: [MEMORY] }]);
    const found: unknown[] = [];
    const query = { user_id: 'u', tag: 't', limit: 1 };
    for await (const memory of client.memories.list(query, { headers: { 'x-a': '1' } })) found.push(memory);
    await client.memories.search({ user_id: ['u', 'v'], q: 'x' }).catch(() => {});
    expect(found).toEqual([MEMORY, MEMORY]);
    expect(asked.map(({ path, headers }) => [path, headers.get('x-a')])).toEqual([
      ['/memories?user_id=u&tag=t&limit=1', '1'],
      ['/memories?user_id=u&tag=t&limit=1&cursor=c+1', '1'],
      ['/memories/search?user_id=u&user_id=v&q=x', null],
    ]);
  });

  it("gives each batch a key of its own, made of the caller's", async () => {
    const results = [{ memory: MEMORY }, { memory: MEMORY }];
    const known = capabilities({ batch: true, idempotency: true }, { max_batch_size: 2 });
    const { client, asked } = answering(known, [200, { results }], [200, { results }]);
    const added = await client.memories.addMany([...memories, ...memories].slice(0, 4), { idempotencyKey: 'k' });
    expect(added).toHaveLength(4);
    expect(asked.slice(1).map(({ headers, body }) => [headers.get('idempotency-key'), body.memories?.length])).toEqual([
      ['k-0', 2],
      ['k-1', 2],
    ]);
  });

  it('adds one by one without batches: an invalid memory is a result, any other error ends the call', async () => {
    const { client, asked } = answering(
      capabilities({ idempotency: false }),
      [201, MEMORY],
      [400, failed('invalid_request')],
      [502, failed('provider_error')],
    );
    await expect(client.memories.addMany(memories)).rejects.toBeInstanceOf(ProviderError);
    expect(asked).toHaveLength(4);
    expect(asked[1]?.headers.has('idempotency-key')).toBe(false);
  });

  it('asks again for capabilities that it did not get', async () => {
    const { client, asked } = answering([502, {}], [201, MEMORY], capabilities({ idempotency: true }), [201, MEMORY]);
    for (const _ of [1, 2]) await client.memories.add({ user_id: 'u', content: 'x' });
    expect(asked.map(({ path, headers }) => [path, headers.has('idempotency-key')])).toEqual([
      ['/capabilities', false],
      ['/memories', false],
      ['/capabilities', false],
      ['/memories', true],
    ]);
  });
});

describe('the results of a search', () => {
  it('[Decision 58] are far below the best with less than half of its score', () => {
    const [first, half, less] = [{ score: 0.8 }, { score: 0.4 }, { score: 0.39 }] as const;
    expect(groupResults([first, half, less])).toEqual({ best: [first, half], lessLikely: [less] });
    expect(groupResults([])).toEqual({ best: [], lessLikely: [] });
  });
});

describe('an add', () => {
  it('[Decision 58] says what is similar if it is asked to', async () => {
    const { url } = await serverForTest();
    const client = new MemoryClient({ url });
    const memory = { user_id: freshUser(), content: 'likes tea' };
    const { id, ...first } = await client.memories.add(memory);
    expect(first).not.toHaveProperty('x-omp-similar');
    const { 'x-omp-similar': similar } = await client.memories.add(memory, { similar: true });
    expect(similar).toEqual([{ id, content: 'likes tea', score: 1 }]);
  });
});
