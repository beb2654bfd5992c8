import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createSocketServer } from 'node:net';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { OmpError } from '#contract';
import { connect, type Service } from '../../providers/pinecone/client/client.ts';
import {
  Failure,
  type FailureKind,
  failureOf,
  PROVIDER,
  toOmpError,
} from '../../providers/pinecone/client/pinecone-errors.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { holdTimers } from '../support/hold-timers.ts';
import { call } from '../support/requests.ts';

describe('errors', () => {
  const KEY = 'pcsk_hunter2_key';
  const NOT_MADE = 'the request to Pinecone could not be made';

  describe('the error for a client', () => {
    it.each<[FailureKind, ConstructorParameters<typeof Failure>[2] & {}, string]>([
      ['rejected', { status: 400 }, 'Pinecone rejected a request of the gateway'],
      ['rejected', { status: 401 }, 'Pinecone rejected the API key of the gateway'],
      ['rejected', { status: 402 }, 'Pinecone requires a payment from the account of the gateway'],
      ['rejected', { status: 403 }, 'Pinecone does not allow this request, or a quota of the account is used up'],
      ['rejected', { status: 404 }, 'Pinecone does not have what the gateway requested'],
      ['rejected', { status: 302 }, 'Pinecone rejected a request of the gateway'],
      ['server-error', { status: 408 }, 'Pinecone took too long'],
      ['server-error', { status: 500 }, 'Pinecone failed'],
      ['server-error', { status: 503, retryAfter: 9 }, 'Pinecone is not available at the moment'],
      ['unreachable', {}, 'Pinecone cannot be reached'],
      ['insecure', {}, 'no secure connection to Pinecone could be made'],
      ['connection-lost', {}, 'the connection to Pinecone was lost'],
      ['deadline', {}, 'Pinecone took too long'],
      ['malformed', {}, 'Pinecone sent an answer that cannot be read'],
    ])('[SPEC Errors provider_error] [Decision 28] of %s %j', (kind, facts, message) => {
      const cause = new Failure(kind, 'inner text', facts);
      const error = toOmpError(cause);
      expect(error).toMatchObject({
        code: 'provider_error',
        provider: PROVIDER,
        message,
        cause,
        retryAfter: undefined,
        // A rejection is an answer, and a deadline may be due to what was asked.
        down: kind === 'deadline' ? 'suspected' : kind !== 'rejected',
      });
    });

    it.each([0, 7, undefined])('[SPEC Errors rate_limited] of 429 that asks to wait %s seconds', (retryAfter) => {
      const cause = new Failure('rate-limited', 'x', { status: 429, ...(retryAfter !== undefined && { retryAfter }) });
      expect(toOmpError(cause)).toMatchObject({ code: 'rate_limited', provider: PROVIDER, cause, retryAfter });
    });

    it.each(['text', new TypeError('x')])('[SPEC Errors provider_error] of a bug in the gateway: %s', (cause) => {
      expect(toOmpError(cause)).toMatchObject({ code: 'provider_error', provider: PROVIDER, message: NOT_MADE, cause });
    });

    it('stays an OmpError', () => {
      const said = new OmpError('not_found', 'x');
      expect(toOmpError(said)).toBe(said);
    });
  });

  describe('the log of a failed request', () => {
    const answer = (status: number) =>
      Object.defineProperty(new Response(null, { status }), 'url', { value: 'http://h/vectors/fetch?ids=secret' });
    const body = (message: string, code = 3) => JSON.stringify({ code, message, details: [] });

    it.each<readonly [status: number, text: string, quoted: boolean]>([
      ...[401, 402, 403, 404, 429, 500, 503].map((status) => [status, body('quota used up'), true] as const),
      ...[400, 409, 413, 422].map((status) => [status, body("got 'secret'"), false] as const),
      ...['Forbidden: secret', '<html>secret', '{"message":{"secret":1}}', 'null', '[]', ''].map(
        (text) => [403, text, false] as const,
      ),
    ])('quotes Pinecone where its text is about the account, and nothing else: %i %s, %s', (status, text, quoted) => {
      const { message } = failureOf(answer(status), text);
      expect(message).toBe(`/vectors/fetch: status ${status}${quoted ? ': quota used up' : ''}`);
      if (quoted) expect(failureOf(answer(status), body('x'.repeat(9_999))).message.length).toBeLessThan(300);
    });

    it('names a missing namespace only if Pinecone says so', () => {
      const missing = (status: number, text: string) => failureOf(answer(status), text).namespaceMissing;
      expect(missing(404, body('Namespace not found', 5))).toBe(true);
      expect(missing(404, body('Not found', 5))).toBe(false);
      expect(missing(404, body('Namespace not found', 3))).toBe(false);
      expect(missing(404, 'Namespace not found')).toBe(false);
      expect(missing(400, body('Namespace not found', 5))).toBe(false);
    });
  });

  describe('errors of requests', () => {
    const namespace = 'n';
    let server: Pinecone;
    let service: Service;
    beforeAll(async () => {
      server = await startPinecone({ dimension: 1 });
      service = connect({ api_key: KEY, index_host: server.url, timeout_ms: 5_000 });
    });
    afterAll(() => server.close());

    const errorOf = (request: Promise<unknown>): Promise<OmpError> =>
      request.then(
        () => expect.unreachable('the request succeeded'),
        (error) => error,
      );
    const upsert = (id: string, metadata: object) =>
      service.upsert(namespace, [{ id, values: Float32Array.of(1), metadata: metadata as never }], call);

    const query = (filter: object) =>
      service.query(namespace, { vector: [1], topK: 1, filter: { ...filter }, includeMetadata: false }, call);

    it.each<[string, () => Promise<unknown>]>([
      ['a refused id', () => upsert('schlüssel-of-hunter2', {})],
      ['refused metadata', () => upsert('a', { content: 'text of hunter2', user_id: { hunter2: 1 } })],
      ['a refused filter', () => query({ user_id: { $gt: 'hunter2' } })],
    ])('carry nothing of %s, the key or the host, neither public nor into the log', async (_, request) => {
      const error = await errorOf(request());
      expect(error).toMatchObject({
        code: 'provider_error',
        message: 'Pinecone rejected a request of the gateway',
      });
      const logged = JSON.stringify(pino.stdSerializers.err(error));
      expect(logged).toContain('status 400');
      expect(logged).not.toMatch(/hunter2|127\.0\.0\.1/);
    });
  });
});

describe('faults of the network', () => {
  /** What the test server, being well-behaved HTTP, cannot do. */
  const servers: Server[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    }
  });

  async function listen(answer: RequestListener): Promise<{ url: string; requests: IncomingMessage[] }> {
    const requests: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      requests.push(request.resume());
      answer(request, response);
    });
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
  }
  /** Of a service whose deadlines pass when a test says so. */
  const HELD_MS = 3_599_999;
  const to = (index_host: string, timeout_ms = 10_000): Service =>
    connect({ api_key: 'pcsk_hunter2', index_host, timeout_ms });
  const update = (service: Service) => service.update('n', { id: 'a', metadata: { content: 'x' } }, call);
  const failed = (message: string) => ({ code: 'provider_error', message });
  const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

  async function freePort(): Promise<number> {
    const server = createSocketServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    return port;
  }

  describe('[SPEC Errors provider_error] a connection', () => {
    it.each<[string, () => Promise<string>]>([
      ['that is refused', async () => `http://127.0.0.1:${await freePort()}`],
      // Too long a name for any: nobody is asked for it.
      ['to a host that has no address', async () => `http://${'hunter2'.repeat(10)}.example`],
      ['to where no way leads', async () => 'http://255.255.255.255'],
    ])('%s', async (_, host) => {
      await expect(update(to(await host()))).rejects.toMatchObject({
        ...failed('Pinecone cannot be reached'),
        cause: { kind: 'unreachable', message: expect.not.stringContaining('hunter2') },
      });
    });

    it('that is not secure, is not tried again', async () => {
      const { url, requests } = await listen((_, response) => json(response, 200, {}));
      let connections = 0;
      servers[0]?.on('connection', () => connections++);
      await expect(to(url.replace('http:', 'https:')).stats(call)).rejects.toMatchObject({
        ...failed('no secure connection to Pinecone could be made'),
        cause: { kind: 'insecure' },
      });
      expect([connections, requests.length]).toEqual([1, 0]);
    });
  });

  describe('[SPEC Errors provider_error] an answer', () => {
    it('that is cut off is asked for again, but not that of a change', async () => {
      const { url, requests } = await listen((request, response) => {
        request.on('end', () => {
          response.writeHead(200, { 'content-length': '100' }).write('{"vectors":');
          setImmediate(() => response.destroy());
        });
      });
      await expect(to(url).fetch('n', ['a'], call)).rejects.toMatchObject(
        failed('the connection to Pinecone was lost'),
      );
      expect(requests).toHaveLength(3);
      await expect(update(to(url))).rejects.toMatchObject(failed('the connection to Pinecone was lost'));
      expect(requests).toHaveLength(4);
    });

    it('that begins and does not end is waited for until the deadline, twice at most', async () => {
      const deadlines = holdTimers(HELD_MS);
      const headersRead = () => setImmediate(deadlines.pass);
      subscribe('undici:request:headers', headersRead);
      onTestFinished(() => void unsubscribe('undici:request:headers', headersRead));
      const { url, requests } = await listen((_, response) => {
        response.writeHead(200, { 'content-length': '100' }).write('{"vectors":');
      });
      await expect(to(url, HELD_MS).fetch('n', ['a'], call)).rejects.toMatchObject({
        ...failed('Pinecone took too long'),
        cause: { kind: 'deadline' },
      });
      expect(requests).toHaveLength(2);
    });

    it.each(['null', '[]', '"text"', '7', '{"matches":7}', '{"matches":[null]}'])(
      '%s is not understood',
      async (body) => {
        const { url } = await listen((_, response) => response.end(body));
        const query = { vector: [1], topK: 1, filter: { user_id: 'u' }, includeMetadata: false };
        await expect(to(url).query('n', query, call)).rejects.toMatchObject(
          failed('Pinecone sent an answer that cannot be read'),
        );
      },
    );

    it.each([301, 302, 307, 308])('%i does not take the API key to another host', async (status) => {
      const other = await listen((_, response) => json(response, 200, { dimension: 1 }));
      const { url } = await listen((_, response) => json(response, status, {}, { location: `${other.url}/stolen` }));
      await expect(to(url).stats(call)).rejects.toMatchObject(failed('Pinecone rejected a request of the gateway'));
      expect(other.requests).toEqual([]);
    });

    it.each(['', 'x', '-1', '1.5', '9007199254740993'])('with the sequence number "%s" has none', async (lsn) => {
      const { url } = await listen((_, response) => json(response, 200, {}, { 'x-pinecone-request-lsn': lsn }));
      expect(await update(to(url))).toBeUndefined();
    });

    it('without its optional parts is empty', async () => {
      const { url } = await listen((_, response) => json(response, 200, {}));
      const service = to(url);
      expect(await service.fetch('n', ['a'], call)).toEqual(new Map());
      expect(await service.list('n', { prefix: '', limit: 1 }, call)).toEqual({ ids: [], next: undefined });
      expect(await service.stats(call)).toEqual({ dimension: undefined, metric: undefined, namespaces: [] });
    });

    it('that names a next page but nothing on this one is the last', async () => {
      const { url } = await listen((_, response) => json(response, 200, { vectors: [], pagination: { next: 't' } }));
      expect(await to(url).list('n', { prefix: '', limit: 1 }, call)).toEqual({ ids: [], next: undefined });
    });

    it('that names its own page as the next one is an error', async () => {
      const body = { vectors: [{ id: 'a' }], pagination: { next: 't' } };
      const { url } = await listen((_, response) => json(response, 200, body));
      const service = to(url);
      for (const read of [
        (token?: string) => service.list('n', { prefix: '', limit: 1, token }, call),
        (token?: string) => service.fetchByMetadata('n', { filter: { a: 'b' }, limit: 1, token }, call),
      ]) {
        expect(await read()).toMatchObject({ next: 't' });
        await expect(read('t')).rejects.toMatchObject(failed('Pinecone sent an answer that cannot be read'));
      }
    });

    it('that the namespace is missing means that it has no ids', async () => {
      const { url } = await listen((_, response) => json(response, 404, { code: 5, message: 'Namespace not found' }));
      expect(await to(url).list('n', { prefix: '', limit: 1 }, call)).toEqual({ ids: [], next: undefined });
    });

    it.each(['404', '405', '501'])(
      '%s to a fetch by metadata means that the index does not know it',
      async (status) => {
        const { url } = await listen((_, response) => response.writeHead(Number(status)).end('no such path'));
        expect(await to(url).fetchByMetadata('n', { filter: { a: 'b' }, limit: 1 }, call)).toBeUndefined();
      },
    );
  });
});
