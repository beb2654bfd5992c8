import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { OmpError } from '#contract';
import type { Service } from '../../providers/pinecone/client/client.ts';
import { connect } from '../../providers/pinecone/client/client.ts';
import { Failure, type FailureKind, failureOf, PROVIDER, toOmpError } from '../../providers/pinecone/client/errors.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { call } from '../support/requests.ts';

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
    ['timeout', {}, 'Pinecone took too long'],
    ['malformed', {}, 'Pinecone sent an answer that cannot be read'],
  ])('[SPEC Errors provider_error] of %s %j', (kind, facts, message) => {
    const cause = new Failure(kind, 'inner text', facts);
    const error = toOmpError(cause);
    expect(error).toMatchObject({ code: 'provider_error', provider: PROVIDER, message, cause, retryAfter: undefined });
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

  it.each([401, 402, 403, 404, 429, 500, 503])('quotes Pinecone where its text is about the account: %i', (status) => {
    expect(failureOf(answer(status), body('quota used up')).message).toBe(
      `/vectors/fetch: status ${status}: quota used up`,
    );
    expect(failureOf(answer(status), body('x'.repeat(9_999))).message.length).toBeLessThan(300);
  });

  it.each([400, 409, 413, 422])('leaves out text that may quote the request: %i', (status) => {
    expect(failureOf(answer(status), body("got 'secret'")).message).toBe(`/vectors/fetch: status ${status}`);
  });

  it.each(['Forbidden: secret', '<html>secret', '{"message":{"secret":1}}', 'null', '[]', ''])(
    'has the status alone if the body is not in the API: %s',
    (text) => {
      expect(failureOf(answer(403), text).message).toBe('/vectors/fetch: status 403');
    },
  );

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
  afterEach(() => server.clearFaults());
  afterAll(() => server.close());

  const errorOf = (request: Promise<unknown>): Promise<OmpError> =>
    request.then(
      () => expect.unreachable('the request succeeded'),
      (error) => error,
    );
  const upsert = (id: string, metadata: object) =>
    service.upsert(namespace, { id, values: Float32Array.of(1), metadata: metadata as never }, call);

  it.each<[string, () => Promise<unknown>]>([
    ['a refused id', () => upsert('schlüssel-of-hunter2', {})],
    ['refused metadata', () => upsert('a', { content: 'text of hunter2', user_id: { hunter2: 1 } })],
    [
      'a refused filter',
      () =>
        service.query(
          namespace,
          { vector: [1], topK: 1, filter: { user_id: { $gt: 'hunter2' } }, includeMetadata: false },
          call,
        ),
    ],
    [
      'a refused change',
      () => service.update(namespace, { id: 'a', metadata: { 'x-a': ['hunter2', 1] as never } }, call),
    ],
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

  it.each(['429', '500', '503', '400', '401', '403-text', '404', 'reset', 'garbage', 'empty'] as const)(
    'carry neither the key nor the host after %s',
    async (kind) => {
      await server.fail({ kind, times: 0 });
      const error = await errorOf(service.fetch(namespace, ['hunter2'], call));
      expect(error).toBeInstanceOf(OmpError);
      expect(JSON.stringify(pino.stdSerializers.err(error))).not.toMatch(/hunter2|127\.0\.0\.1/);
    },
  );
});
