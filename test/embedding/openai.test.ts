import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Embedder, Log, OmpError } from '#contract';
import { toUnitHalf } from '#ranking';
import { explainError } from '../../src/cli/terminal.ts';
import { openEmbedder } from '../../src/embedding/open.ts';
import type { OpenAiOptions } from '../../src/embedding/openai.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, embeddings, embeddingsServer, failing, sendJson, vectorOf } from './embeddings-server.ts';
import { callOf } from './observed-embedder.ts';

const log: Log = { info() {}, warn() {}, error() {} };
const unit = (text: string, dimensions = 8) => toUnitHalf(vectorOf(text, dimensions));

let service: Awaited<ReturnType<typeof embeddingsServer>>;
let embedder: Embedder | undefined;
beforeEach(async () => {
  service = await embeddingsServer();
});
afterEach(async () => {
  await embedder?.close();
  embedder = undefined;
  await service.close();
});

async function open(options: Partial<OpenAiOptions> = {}): Promise<Embedder> {
  embedder = await openEmbedder(
    {
      kind: 'openai',
      model: 'test-model',
      dimensions: undefined,
      base_url: service.base_url,
      api_key: 'sk-secret',
      timeout_ms: 5_000,
      batch_size: 16,
      cache_size: 0,
      ...options,
    },
    log,
  );
  service.received.length = 0;
  return embedder;
}

const data = (vectors: unknown[]) => ({ object: 'list', data: vectors });
const entry = (text: string, index?: unknown) => ({ object: 'embedding', index, embedding: vectorOf(text, 8) });

const HOLES = Array.from({ length: 7 }, () => null);
const ZEROS = Buffer.from(new Float32Array(8).buffer).toString('base64');
const NOT_NUMBERS = Buffer.from(new Float32Array(8).fill(Number.NaN).buffer).toString('base64');

describe('opening', () => {
  it('takes the length of the vectors from the service', async () => {
    expect(await open()).toMatchObject({ model: 'test-model', dimensions: 8 });
  });

  it('does not send a configured length that is the natural one', async () => {
    const { dimensions, embed } = await open({ dimensions: 8 });
    await embed(['tea'], 'document', callOf());
    expect(dimensions).toBe(8);
    expect(service.received[0]).not.toHaveProperty('dimensions');
  });

  it('asks the service to shorten to the configured length', async () => {
    const { dimensions, embed } = await open({ dimensions: 4 });
    expect(dimensions).toBe(4);
    expect(await embed(['te'], 'document', callOf())).toEqual([unit('te', 4)]);
    expect(service.received[0]).toMatchObject({ dimensions: 4 });
  });

  it.each<[string, Answer]>([
    ['ignores', embeddings(8, { fixed: true })],
    ['refuses', (request, response) => (request.dimensions ? failing(400) : embeddings(8))(request, response)],
  ])('names both lengths when the service %s the configured one', async (_, answer) => {
    service.answer = answer;
    const failure = open({ dimensions: 4 });
    await expect(failure).rejects.toThrow(/OMP_EMBEDDING_DIMENSIONS is 4.*vectors of 8 numbers/);
  });

  it.each<[string, RegExp, Answer]>([
    ['a refused key', /401.*OPENAI_API_KEY/, failing(401)],
    ['an unknown model', /404.*OMP_EMBEDDING_MODEL/, failing(404)],
    ['a rate limit', /429/, failing(429, { 'retry-after': '3600' })],
    ['a broken service', /500.*OPENAI_BASE_URL/, failing(500)],
    ['something else than this API', /no list of embeddings.*OPENAI_BASE_URL/, (_, r) => r.end('<html>')],
  ])('tells the operator about %s', async (_, message, answer) => {
    service.answer = answer;
    const failure: Error = await open().then(
      () => expect.unreachable('opened'),
      (error) => error,
    );
    expect(failure.message).toMatch(message);
    expect(explainError(failure)).not.toMatch(/sk-secret|127\.0\.0\.1/);
    expect(failure.cause).toBeInstanceOf(Error);
  });

  it.each<[string, unknown]>([
    ['OpenAI', { error: { message: 'no model gte of sk-secret' } }],
    ['text-embeddings-inference', { error: 'no model gte of sk-secret', error_type: 'validation' }],
    ['FastAPI', { detail: 'no model gte of sk-secret' }],
    ['FastAPI that checks the body', { detail: [{ msg: 'no model gte of sk-secret' }] }],
    ['Cohere', { message: 'no model gte of sk-secret' }],
    ['a proxy', 'no model\n gte of sk-secret'],
  ])('tells the operator the reason that a service like %s gives, without the key', async (_, body) => {
    service.answer = (_, response) =>
      typeof body === 'string' ? response.writeHead(404).end(body) : sendJson(response, 404, body);
    await expect(open()).rejects.toThrow(/HTTP 404: ".*no model gte of \[key\].*"\. Check OPENAI_BASE_URL/);
  });

  it.each([400, 422])('does without encoding_format where a service answers it with HTTP %i', async (status) => {
    service.answer = (request, response) =>
      (request.encoding_format ? failing(status) : embeddings(8))(request, response);
    const { dimensions, embed } = await open({ dimensions: 4 });
    expect(dimensions).toBe(4);
    expect(await embed(['te', 'tea'], 'document', callOf())).toEqual([unit('te', 4), unit('tea', 4)]);
    expect(service.received.map(({ encoding_format }) => encoding_format)).toEqual([undefined]);
  });

  it('waits for a service that is loading, as long as it says', async () => {
    service.answer = (request, response) =>
      (service.received.length < 6 ? failing(503, { 'retry-after-ms': '1' }) : embeddings(8))(request, response);
    expect(await open()).toMatchObject({ dimensions: 8 });
  });

  it.each<Record<string, string>>([{}, { 'retry-after': '301' }, { 'retry-after': 'soon' }])(
    'does not wait for one that says %j',
    async (headers) => {
      service.answer = failing(503, headers);
      await expect(open()).rejects.toThrow(/HTTP 503/);
    },
  );

  it('tells the operator that no answer comes', async () => {
    service.answer = () => {};
    await expect(open({ timeout_ms: 100 })).rejects.toThrow(/no answer in time/);
  });

  it('tells the operator that nothing listens there', async () => {
    const { base_url } = service;
    await service.close();
    await expect(open({ base_url })).rejects.toThrow(/cannot be reached. Check OPENAI_BASE_URL/);
  });
});

describe('requests', () => {
  it('carry model, texts and key to the path of the API', async () => {
    const { embed } = await open();
    await embed(['tea', 'coffee'], 'document', callOf());
    expect(service.received[0]).toMatchObject({
      path: '/v1/embeddings',
      authorization: 'Bearer sk-secret',
      model: 'test-model',
      input: ['tea', 'coffee'],
      encoding_format: 'base64',
    });
  });

  it('work without a key', async () => {
    const { embed } = await open({ api_key: '' });
    expect(await embed(['tea'], 'document', callOf())).toEqual([unit('tea')]);
  });

  it('are shared by concurrent calls, and hold no more texts than allowed', async () => {
    const { embed } = await open({ batch_size: 3 });
    const texts = ['a', 'bb', 'ccc', 'dddd'];
    const answers = await Promise.all(texts.map((text) => embed([text], 'document', callOf())));
    expect(answers).toEqual(texts.map((text) => [unit(text)]));
    expect(service.received.map(({ input }) => input)).toEqual([['a', 'bb', 'ccc'], ['dddd']]);
  });

  it('are saved for a query asked before', async () => {
    const { embed } = await open({ cache_size: 4 });
    const first = await embed(['tea'], 'query', callOf());
    expect(await embed(['tea'], 'query', callOf())).toEqual(first);
    expect(service.received).toHaveLength(1);
  });

  it('are given up when the caller has gone', async () => {
    const { embed } = await open({ timeout_ms: 600_000 });
    const abort = new AbortController();
    const reason = new Error('client went away');
    const arrived = new Promise<void>((resolve) => {
      service.answer = () => resolve();
    });
    const call = embed(['tea'], 'document', callOf(abort.signal));
    const outcome = expect(call).rejects.toBe(reason);
    await arrived;
    abort.abort(reason);
    await outcome;
    await service.received[0]?.closed;
    expect(service.received).toHaveLength(1);
  });
});

describe('answers', () => {
  it.each<[string, Answer]>([
    ['base64', embeddings(8)],
    ['numbers, from a service that knows no base64', embeddings(8, { floats: true })],
    ['another order', (_, r) => sendJson(r, 200, data([entry('coffee', 1), entry('tea', 0)]))],
    ['no index', (_, r) => sendJson(r, 200, data([entry('tea'), entry('coffee')]))],
    ['index 0 alone', (_, r) => sendJson(r, 200, data([entry('tea', 0), entry('coffee', 0)]))],
  ])('in %s give each text its unit vector', async (_, answer) => {
    const { embed } = await open();
    service.answer = answer;
    expect(await embed(['tea', 'coffee'], 'document', callOf())).toEqual([unit('tea'), unit('coffee')]);
  });

  it.each<[string, Answer]>([
    ['HTTP 500', failing(500)],
    ['HTTP 503 that asks for an hour', failing(503, { 'retry-after': '3600' })],
    ['HTTP 401', failing(401)],
    ['HTTP 403', failing(403)],
    ['HTTP 404', failing(404)],
    ['HTTP 308', failing(308, { location: '/elsewhere' })],
    ['a used-up quota', failing(429, {}, 'insufficient_quota')],
    ['a torn connection', (_, r) => r.destroy()],
    ['half an answer', (_, r) => r.writeHead(200, { 'content-length': '100' }).write('{', () => r.destroy())],
    ['no JSON', (_, r) => r.end('<html>hello</html>')],
    ['broken JSON', (_, r) => r.writeHead(200, { 'content-type': 'application/json' }).end('{"data": [')],
    ['an empty body', (_, r) => r.writeHead(200, { 'content-type': 'application/json' }).end()],
    ['no data', (_, r) => sendJson(r, 200, { object: 'list' })],
    ['null', (_, r) => sendJson(r, 200, null)],
    ['too few embeddings', (_, r) => sendJson(r, 200, data([entry('tea', 0)]))],
    ['too many embeddings', (_, r) => sendJson(r, 200, data([entry('a', 0), entry('b', 1), entry('c', 2)]))],
    ['one text twice', (_, r) => sendJson(r, 200, data([entry('tea', 1), entry('tea', 1)]))],
    ['a text never sent', (_, r) => sendJson(r, 200, data([entry('tea', 0), entry('tea', 7)]))],
    ['a strange index', (_, r) => sendJson(r, 200, data([entry('tea', 0), entry('tea', 'one')]))],
    ['another length', embeddings(9, { fixed: true })],
    ['two lengths', (_, r) => sendJson(r, 200, data([entry('tea', 0), { index: 1, embedding: [1, 2] }]))],
    ['missing numbers', (_, r) => sendJson(r, 200, data([0, 1].map((index) => ({ index, embedding: [1, ...HOLES] }))))],
    ['no embedding', (_, r) => sendJson(r, 200, data([entry('tea', 0), { index: 1 }]))],
    ['empty embeddings', (_, r) => sendJson(r, 200, data([0, 1].map((index) => ({ index, embedding: [] }))))],
    ['NaN', (_, r) => sendJson(r, 200, data([0, 1].map((index) => ({ index, embedding: NOT_NUMBERS }))))],
    ['nothing but zeros', (_, r) => sendJson(r, 200, data([0, 1].map((index) => ({ index, embedding: ZEROS }))))],
    ['broken base64', (_, r) => sendJson(r, 200, data([0, 1].map((index) => ({ index, embedding: 'AAA=' }))))],
  ])('of %s are a provider_error that tells nothing inner', async (_, answer) => {
    const { embed } = await open();
    service.answer = answer;
    const error = await embed(['tea', 'coffee'], 'document', callOf()).catch((failure) => failure);
    expect(error).toMatchObject({ name: 'OmpError', code: 'provider_error', provider: 'openai' });
    expect(error.message).not.toMatch(/sk-secret|10\.0\.0\.7|127\.0\.0\.1|tea/);
    expect(error.cause).toBeInstanceOf(Error);
  });

  it('[Decision 28] that do not come in time are a provider_error, and let a probe find out why', async () => {
    const { embed } = await eventually(() => open({ timeout_ms: 1_000 }));
    service.answer = () => {};
    const message = 'The embedding service did not answer in time.';
    const call = embed(['tea'], 'document', callOf());
    await expect(call).rejects.toMatchObject({
      code: 'provider_error',
      provider: 'openai',
      message,
      down: 'suspected',
    });
  });

  it.each<[string, Answer, OmpError['down']]>([
    ['HTTP 401', failing(401), false],
    ['HTTP 408', failing(408), 'suspected'],
    ['HTTP 500', failing(500), 'suspected'],
    ['HTTP 503', failing(503), true],
    ['no embedding', (_, response) => sendJson(response, 200, { data: [{ index: 0 }] }), 'suspected'],
    ['a closed connection', (_, response) => void response.destroy(), true],
  ])('[Decision 28] of $0 count towards the circuit breaker: $2', async (_, answer, down) => {
    const { embed } = await open();
    service.answer = answer;
    await expect(embed(['tea'], 'query', callOf())).rejects.toMatchObject({ code: 'provider_error', down });
  });

  it.each([
    ['seconds', '7', 7],
    ['a fraction', '0.2', 1],
    ['a date', new Date(Date.now() + 86_400_000).toUTCString(), expect.closeTo(86_400, -2)],
    ['nothing', undefined, undefined],
    ['nonsense', 'soon', undefined],
  ])('of HTTP 429 are rate_limited, at once; Retry-After holds %s', async (_, header, retryAfter) => {
    const { embed } = await open();
    service.answer = failing(429, header === undefined ? {} : { 'retry-after': header });
    const call = embed(['tea'], 'query', callOf());
    await expect(call).rejects.toMatchObject({ code: 'rate_limited', provider: 'openai', retryAfter });
    expect(service.received).toHaveLength(1);
  });

  it('of HTTP 429 may say when to ask again in milliseconds', async () => {
    const { embed } = await open();
    service.answer = failing(429, { 'retry-after-ms': '2500', 'retry-after': '60' });
    await expect(embed(['tea'], 'query', callOf())).rejects.toMatchObject({ code: 'rate_limited', retryAfter: 3 });
  });

  it.each([
    [401, true],
    [403, true],
    [404, true],
    [429, true],
    [400, false],
    [413, false],
    [422, false],
    [500, false],
  ])('of HTTP %i tell the log why, if that cannot quote a text: %s', async (status, isTold) => {
    const { embed } = await open();
    service.answer = failing(status, {}, 'some_code');
    const { cause, message } = await embed(['tea'], 'query', callOf()).catch((error) => error);
    const reason = ': "inner detail of http://10.0.0.7 [key]"';
    expect(cause.message).toBe(`the service answered HTTP ${status}, some_code${isTold ? reason : ''}`);
    expect(message).not.toContain('inner');
  });

  it('of HTTP 500 for one long text fail that one alone', async () => {
    const { embed } = await open();
    service.answer = (request, response) =>
      (request.input.some((text) => text.length > 100) ? failing(500) : embeddings(8))(request, response);
    const texts = ['tea', 'x'.repeat(101), 'coffee', 'y'.repeat(102), 'cake'];
    const outcomes = await Promise.allSettled(texts.map((text) => embed([text], 'document', callOf())));
    expect(outcomes).toEqual(
      texts.map((text) =>
        text.length > 100
          ? { status: 'rejected', reason: expect.objectContaining({ code: 'provider_error' }) }
          : { status: 'fulfilled', value: [unit(text)] },
      ),
    );
  });

  it.each([400, 413, 422])('of HTTP %i refuse the text', async (status) => {
    const { embed } = await open();
    service.answer = failing(status);
    const call = embed(['tea'], 'document', callOf());
    await expect(call).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'The embedding service rejected this text.',
    });
  });

  it('of a passing failure are asked for once more', async () => {
    const { embed } = await open();
    service.answer = (request, response) =>
      (service.received.length === 1 ? failing(503) : embeddings(8))(request, response);
    expect(await embed(['tea'], 'document', callOf())).toEqual([unit('tea')]);
    expect(service.received).toHaveLength(2);
  });
});
