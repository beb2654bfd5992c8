import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { OmpError } from '#contract';
import { connect } from '../../providers/pinecone/connect.ts';
import { PROVIDER, toOmpError } from '../../providers/pinecone/errors.ts';
import { Failure, type FailureFacts, type FailureKind } from '../../providers/pinecone/failure.ts';
import { refusal } from '../../providers/pinecone/refusal.ts';
import type { Service } from '../../providers/pinecone/service.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { call } from '../support/requests.ts';

const KEY = 'pcsk_hunter2_key';
const OF_OURS = 'the request to Pinecone could not be made';

describe('what a client is told', () => {
  it.each<[FailureKind, FailureFacts, string]>([
    ['refused', { status: 400 }, 'Pinecone did not accept a request of the gateway'],
    ['refused', { status: 401 }, 'Pinecone refused the API key of the gateway'],
    ['refused', { status: 402 }, 'Pinecone asks for a payment before it serves the gateway again'],
    ['refused', { status: 403 }, 'Pinecone does not allow this to the gateway, or a quota of its account is used up'],
    ['refused', { status: 404 }, 'Pinecone does not know what the gateway asked for'],
    ['refused', { status: 302 }, 'Pinecone did not accept a request of the gateway'],
    ['failed', { status: 408 }, 'Pinecone took too long'],
    ['failed', { status: 500 }, 'Pinecone failed'],
    ['failed', { status: 503, retryAfter: 9 }, 'Pinecone is not available at the moment'],
    ['unreachable', {}, 'Pinecone cannot be reached'],
    ['insecure', {}, 'no secure connection to Pinecone could be made'],
    ['lost', {}, 'the connection to Pinecone was lost'],
    ['late', {}, 'Pinecone took too long'],
    ['unreadable', {}, 'Pinecone sent an answer that cannot be understood'],
  ])('[SPEC Errors provider_error] of %s %j', (kind, facts, message) => {
    const cause = new Failure(kind, 'inner text', facts);
    const error = toOmpError(cause);
    expect(error).toMatchObject({ code: 'provider_error', provider: PROVIDER, message, cause, retryAfter: undefined });
  });

  it.each([0, 7, undefined])('[SPEC Errors rate_limited] of 429 that asks to wait %s seconds', (retryAfter) => {
    const cause = new Failure('busy', 'x', { status: 429, ...(retryAfter !== undefined && { retryAfter }) });
    expect(toOmpError(cause)).toMatchObject({ code: 'rate_limited', provider: PROVIDER, cause, retryAfter });
  });

  it.each(['text', new TypeError('x')])('[SPEC Errors provider_error] of a mistake of ours: %s', (cause) => {
    expect(toOmpError(cause)).toMatchObject({ code: 'provider_error', provider: PROVIDER, message: OF_OURS, cause });
  });

  it('is what was said already', () => {
    const said = new OmpError('not_found', 'x');
    expect(toOmpError(said)).toBe(said);
  });
});

describe('what the log is told of an answer', () => {
  const answer = (status: number) =>
    Object.defineProperty(new Response(null, { status }), 'url', { value: 'http://h/vectors/fetch?ids=secret' });
  const body = (message: string, code = 3) => JSON.stringify({ code, message, details: [] });

  it.each([401, 402, 403, 404, 429, 500, 503])(
    'is what the service said where it is about the account: %i',
    (status) => {
      expect(refusal(answer(status), body('quota used up')).message).toBe(
        `/vectors/fetch: status ${status}: quota used up`,
      );
      expect(refusal(answer(status), body('x'.repeat(9_999))).message.length).toBeLessThan(300);
    },
  );

  it.each([400, 409, 413, 422])('is nothing of what may quote the request: %i', (status) => {
    expect(refusal(answer(status), body("got 'secret'")).message).toBe(`/vectors/fetch: status ${status}`);
  });

  it.each(['Forbidden: secret', '<html>secret', '{"message":{"secret":1}}', 'null', '[]', ''])(
    'is the status alone where it is not in the form of the interface: %s',
    (text) => {
      expect(refusal(answer(403), text).message).toBe('/vectors/fetch: status 403');
    },
  );

  it('is of a missing namespace only where the service says so', () => {
    const missing = (status: number, text: string) => refusal(answer(status), text).namespaceMissing;
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

  const failureOf = (request: Promise<unknown>): Promise<OmpError> =>
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
    const error = await failureOf(request());
    expect(error).toMatchObject({
      code: 'provider_error',
      message: 'Pinecone did not accept a request of the gateway',
    });
    const logged = JSON.stringify(pino.stdSerializers.err(error));
    expect(logged).toContain('status 400');
    expect(logged).not.toMatch(/hunter2|127\.0\.0\.1/);
  });

  it.each(['429', '500', '503', '400', '401', '403-text', '404', 'reset', 'garbage', 'empty'] as const)(
    'carry neither the key nor the host after %s',
    async (kind) => {
      await server.fail({ kind, times: 0 });
      const error = await failureOf(service.fetch(namespace, ['hunter2'], call));
      expect(error).toBeInstanceOf(OmpError);
      expect(JSON.stringify(pino.stdSerializers.err(error))).not.toMatch(/hunter2|127\.0\.0\.1/);
    },
  );
});
