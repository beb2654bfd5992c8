import { Pinecone as Sdk } from '@pinecone-database/pinecone';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createRecords } from '../pinecone-server/calls.ts';
import { ask, post, refused } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';

const namespace = 'n';
let server: Pinecone;
beforeAll(async () => {
  server = await startPinecone({ dimension: 1 });
});
afterEach(async () => {
  await server.clearFaults();
  await server.resetCalls();
});
afterAll(() => server.close());

const upsert = (id: string) => post(server, '/vectors/upsert', { vectors: [{ id, values: [1] }], namespace });
const query = () => post(server, '/query', { vector: [1], topK: 1, namespace });
const stored = async () => Object.keys(await server.records(namespace));

describe('a fault', () => {
  it.each([
    ['400', 400, refused('Bad request')],
    ['404', 404, refused('Not found', 5)],
    ['429', 429, refused("Request failed. You've reached the request limit", 8)],
    ['500', 500, refused('Internal error', 13)],
    ['503', 503, refused('Service unavailable', 14)],
    ['401', 401, 'Invalid API Key'],
    ['403-text', 403, 'Forbidden'],
    ['garbage', 200, '<html>not JSON</html>'],
    ['empty', 200, ''],
  ] as const)('%s answers %i in place of the service', async (kind, status, body) => {
    await server.fail({ kind });
    const answer = await upsert(kind);
    expect(answer).toMatchObject({ status, body });
    expect(answer.headers.get('content-type')).toBe(typeof body === 'string' ? 'text/plain' : 'application/json');
    expect(await stored()).not.toContain(kind);
    expect(await upsert(kind)).toMatchObject({ status: 200 });
    expect((await server.calls()).map((call) => call.status)).toEqual([status, 200]);
  });

  it('429 may say Retry-After', async () => {
    await server.fail({ kind: '429', retryAfter: '7' });
    expect((await query()).headers.get('retry-after')).toBe('7');
    await server.fail({ kind: '429' });
    expect((await query()).headers.get('retry-after')).toBeNull();
  });

  it('reset closes the connection before anything is done, reset-after when it is done', async () => {
    await server.fail({ kind: 'reset' });
    await expect(upsert('before')).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
    await server.fail({ kind: 'reset-after' });
    await expect(upsert('after')).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
    expect(await stored()).toContain('after');
    expect(await stored()).not.toContain('before');
    expect((await server.calls()).map((call) => call.status)).toEqual([0, 0]);
  });

  it('hang never answers, and others are served meanwhile', async () => {
    await server.fail({ kind: 'hang', operation: 'upsert' });
    const stop = new AbortController();
    const headers = { 'api-key': 'key', 'x-pinecone-api-version': '2026-04', 'content-type': 'application/json' };
    const body = JSON.stringify({ vectors: [{ id: 'hung', values: [1] }], namespace });
    const hung = fetch(`${server.url}/vectors/upsert`, { method: 'POST', headers, body, signal: stop.signal });
    await expect.poll(() => server.calls()).toMatchObject([{ operation: 'upsert', status: 0 }]);
    expect(await query()).toMatchObject({ status: 200 });
    stop.abort();
    await expect(hung).rejects.toThrow('aborted');
    expect(await stored()).not.toContain('hung');
  });

  it('slow acts late', async () => {
    await server.fail({ kind: 'slow' });
    const slow = upsert('slow');
    await expect.poll(() => server.calls()).toHaveLength(1);
    expect(await stored()).not.toContain('slow');
    await server.clearFaults();
    expect(await slow).toMatchObject({ status: 200 });
    expect(await stored()).toContain('slow');
  });

  it('meets as many requests as it says, those of its operation; the first that fits comes first', async () => {
    await server.fail({ kind: '500', operation: 'query', times: 2 });
    await server.fail({ kind: '503', operation: 'upsert' });
    await server.fail({ kind: '429' });
    const statuses: number[] = [];
    for (const request of [query, () => upsert('a'), query, query, query, () => upsert('a')]) {
      statuses.push((await request()).status);
    }
    expect(statuses).toEqual([500, 503, 500, 429, 200, 200]);
  });

  it('of 0 times stays until it is cleared', async () => {
    await server.fail({ kind: '503', times: 0 });
    for (let i = 0; i < 5; i += 1) expect((await query()).status).toBe(503);
    await server.clearFaults();
    expect((await query()).status).toBe(200);
  });

  it('that there is none of is refused', async () => {
    await expect(server.fail({ kind: 'none' as 'hang' })).rejects.toThrow('kind');
    await expect(server.fail({ kind: 'hang', operation: 'none' as 'list' })).rejects.toThrow('operation');
  });

  it('is seen through the SDK as what it is', async () => {
    const index = new Sdk({ apiKey: 'key', maxRetries: 0 }).index({ host: server.url, namespace });
    const failure = async (kind: '401' | '403-text' | '404' | '429' | '503' | 'reset' | 'garbage' | 'empty') => {
      await server.fail({ kind });
      return index.fetch({ ids: ['a'] }).then(
        () => 'none',
        (error: Error) => error.name,
      );
    };
    expect(await failure('401')).toBe('PineconeAuthorizationError');
    expect(await failure('403-text')).toBe('PineconeBadRequestError');
    expect(await failure('404')).toBe('PineconeNotFoundError');
    expect(await failure('429')).toBe('PineconeUnmappedHttpError');
    expect(await failure('503')).toBe('PineconeMaxRetriesExceededError');
    expect(await failure('reset')).toBe('PineconeConnectionError');
    expect(await failure('garbage')).toBe('SyntaxError');
    expect(await failure('empty')).toBe('SyntaxError');
  });
});

describe('calls', () => {
  it('are recorded with what they asked and how it ended, in order of arrival', async () => {
    await upsert('a');
    await ask(server, `/vectors/fetch?ids=a&ids=b&namespace=${namespace}`);
    await post(server, '/vectors/delete', { ids: ['a'], namespace: 'missing' });
    expect(await server.calls()).toEqual([
      {
        operation: 'upsert',
        method: 'POST',
        path: '/vectors/upsert',
        status: 200,
        body: { vectors: [{ id: 'a', values: [1] }], namespace },
      },
      { operation: 'fetch', method: 'GET', path: `/vectors/fetch?ids=a&ids=b&namespace=${namespace}`, status: 200 },
      {
        operation: 'delete',
        method: 'POST',
        path: '/vectors/delete',
        status: 404,
        body: { ids: ['a'], namespace: 'missing' },
      },
    ]);
    await server.resetCalls();
    expect(await server.calls()).toEqual([]);
  });

  it('are never given in part', () => {
    const records = createRecords();
    const call = { operation: 'list', method: 'GET', path: '/', status: 200 } as const;
    for (let i = 0; i < 50_000; i += 1) records.record(call);
    expect(records.calls()).toHaveLength(50_000);
    records.record(call);
    expect(() => records.calls()).toThrow('more than 50000');
    records.resetCalls();
    expect(records.calls()).toEqual([]);
  });
});
