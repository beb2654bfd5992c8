import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ENDPOINTS } from '../pinecone-server/endpoints.ts';
import { openJudges } from '../pinecone-server/judge.ts';
import { ask, HEADERS, post, refused } from '../pinecone-server/plain.ts';
import { type Pinecone, type PineconeOptions, startPinecone } from '../pinecone-server/start.ts';

/** Asked what is wrong, by most of these tests. */
let server: Pinecone;
let seen = 0;
beforeAll(async () => {
  server = await startPinecone({ dimension: 1 });
});
afterAll(() => server.close().catch(() => {}));
/** What was noticed since the last look. */
const noticed = async (): Promise<string[]> => {
  const all = await server.violations();
  const found = all.slice(seen);
  seen = all.length;
  return found;
};

/** One of the test's own, whose closing is looked at. */
const start = (options: PineconeOptions = {}) => startPinecone({ dimension: 1, ...options });

const vectors = [{ id: 'a', values: [1] }];
const without = (name: keyof typeof HEADERS) =>
  Object.fromEntries(Object.entries(HEADERS).filter(([header]) => header !== name));

describe('the OpenAPI file', () => {
  it('is kept by what is right: nothing is noticed, and closing resolves', async () => {
    const running = await start();
    expect(await post(running, '/vectors/upsert', { vectors, namespace: 'n' })).toMatchObject({ status: 200 });
    expect(await running.violations()).toEqual([]);
    await running.close();
  });

  it('is broken by a misspelled key: that is noticed, refused with 400, and closing rejects', async () => {
    const running = await start();
    const answer = await post(running, '/query', { vector: [1], topK: 1, includeMetaData: true });
    const mistake = 'body: #/includeMetaData unknown';
    expect(answer).toMatchObject({ status: 400, body: refused(`Invalid request: ${mistake}`) });
    expect(await running.violations()).toEqual([`query: ${mistake}`]);
    await expect(running.close()).rejects.toThrow(`query: ${mistake}`);
    await expect(fetch(running.url)).rejects.toThrow();
  });

  it.each([
    ['upsert', '/vectors/upsert', {}, '# required'],
    ['upsert', '/vectors/upsert', { vectors: [{ values: [1] }] }, '#/vectors/0 required'],
    ['upsert', '/vectors/upsert', { vectors: [{ id: '', values: [1] }] }, '#/vectors/0/id minLength'],
    ['upsert', '/vectors/upsert', { vectors: [{ id: 'a'.repeat(513) }] }, '#/vectors/0/id maxLength'],
    ['upsert', '/vectors/upsert', { vectors: [{ id: 'a', values: [1, '2'] }] }, '#/vectors/0/values/1 type'],
    ['upsert', '/vectors/upsert', { vectors: [{ id: 'a', values: [1, null] }] }, '#/vectors/0/values/1 type'],
    ['upsert', '/vectors/upsert', { vectors: [{ id: 'a', metadata: null }] }, '#/vectors/0/metadata type'],
    ['upsert', '/vectors/upsert', { vectors: [{ id: 'a', extra: 1 }] }, '#/vectors/0/extra unknown'],
    ['query', '/query', { vector: [1], topK: 0 }, '#/topK minimum'],
    ['query', '/query', { vector: [1], topK: 10_001 }, '#/topK maximum'],
    ['query', '/query', { vector: [1], topK: 1.5 }, '#/topK type'],
    ['query', '/query', { vector: [1] }, '# required'],
    ['query', '/query', { vector: [1], topK: 1, filter: 'a' }, '#/filter type'],
    ['update', '/vectors/update', { id: 'a', metadata: {} }, '#/metadata unknown'],
    ['delete', '/vectors/delete', { ids: 'a' }, '#/ids type'],
    ['fetch_by_metadata', '/vectors/fetch_by_metadata', { filter: { a: 1 }, limit: 0 }, '#/limit minimum'],
    ['stats', '/describe_index_stats', [], '# type'],
    ['create_namespace', '/namespaces', { name: 'a', schema: {} }, '#/schema required'],
  ])('is broken by this %s', async (operation, path, body, mistake) => {
    expect(await post(server, path, body)).toMatchObject({ status: 400 });
    expect(await noticed()).toContain(`${operation}: body: ${mistake}`);
  });

  it.each([
    ['/vectors/fetch?namespace=n', 'fetch: query ids: missing'],
    ['/vectors/fetch?ids=a&id=b', 'fetch: query id: unknown'],
    ['/vectors/list?limit=many', 'list: query limit: # type'],
    ['/vectors/list?prefix=a&prefix=b', 'list: query prefix: more than once'],
    ['/namespaces?page=1', 'list_namespaces: query page: unknown'],
  ])('is broken by GET %s', async (path, mistake) => {
    expect(await ask(server, path)).toMatchObject({ status: 400 });
    expect(await noticed()).toEqual([mistake]);
  });

  it('asks for headers', async () => {
    const body = JSON.stringify({ vectors });
    const upsert = (headers: Record<string, string>) =>
      ask(server, '/vectors/upsert', { method: 'POST', headers, body });
    expect(await upsert(without('x-pinecone-api-version'))).toMatchObject({ status: 400 });
    expect(await upsert({ ...HEADERS, 'x-pinecone-api-version': 'new' })).toMatchObject({ status: 400 });
    expect(await upsert(without('api-key'))).toMatchObject({ status: 401 });
    expect(await upsert({ ...HEADERS, 'content-type': 'text/plain' })).toMatchObject({ status: 400 });
    expect(await noticed()).toEqual([
      'upsert: header x-pinecone-api-version: missing',
      'upsert: header x-pinecone-api-version: not a version',
      'upsert: header api-key: missing',
      'upsert: header content-type: not application/json',
    ]);
  });

  it('asks for JSON, and knows every path that is served', async () => {
    expect(await ask(server, '/query', { method: 'POST', body: '{' })).toMatchObject({ status: 400 });
    expect(await ask(server, '/vectors')).toMatchObject({ status: 404 });
    expect(await noticed()).toEqual(['query: body: not JSON', 'GET /vectors: no operation of this server']);
  });

  it('judges requests that meet a fault as well', async () => {
    await server.fail({ kind: '503' });
    expect(await post(server, '/query', {})).toMatchObject({ status: 503 });
    expect(await noticed()).toEqual(['query: body: # required']);
  });
});

describe('an answer', () => {
  it('is judged by its status', async () => {
    const judge = (await openJudges()).get(ENDPOINTS.query);
    const matches = [{ id: 'a', score: 1, values: [1, 2] }];
    expect(judge?.answer(200, { matches, namespace: 'n', usage: { readUnits: 1 } })).toEqual([]);
    expect(judge?.answer(200, { matches: [{ score: 1 }] })).toContain('answer 200: #/matches/0 required');
    expect(judge?.answer(200, { matches: [{ id: 'a', values: [1, '2'] }] })).toEqual([
      'answer 200: #/matches/0/values/1 type',
    ]);
    expect(judge?.answer(200, { found: [] })).toEqual(['answer 200: #/found unknown']);
    expect(judge?.answer(429, refused('too many', 8))).toEqual([]);
    expect(judge?.answer(404, { code: '5' })).toEqual(['answer 404: #/code type']);
    expect(judge?.answer(302, {})).toEqual(['answer 302: not in the file']);
  });
});

describe('a client that goes while it sends', () => {
  it('is no violation', async () => {
    const running = await start();
    const headers = { ...HEADERS, 'content-length': '100' };
    const sending = request(`${running.url}/query`, { method: 'POST', headers });
    sending.on('error', () => {});
    await new Promise((sent) => sending.write('{', sent));
    sending.destroy();
    await new Promise((gone) => sending.once('close', gone));
    expect(await post(running, '/query', { vector: [1], topK: 1 })).toMatchObject({ status: 200 });
    await running.close();
  });
});

describe('a key', () => {
  it('is any, or the one that is set; others are a plain-text 401', async () => {
    const running = await start({ apiKey: 'right' });
    const asked = (key: string) => ask(running, '/vectors/list', { headers: { ...HEADERS, 'api-key': key } });
    expect(await asked('right')).toMatchObject({ status: 200 });
    expect(await asked('wrong')).toMatchObject({ status: 401, body: 'Invalid API Key' });
    await running.close();
  });
});

describe('API 2025-01', () => {
  it('has no fetch_by_metadata, no namespaces, no update by filter and no "__default__"; that is no violation', async () => {
    const running = await start({ apiVersion: '2025-01' });
    const [filter, setMetadata, namespace] = [{ a: 1 }, { b: 1 }, 'n'];
    expect(await post(running, '/vectors/upsert', { vectors, namespace })).toMatchObject({ status: 200 });
    expect(await post(running, '/vectors/fetch_by_metadata', { filter, namespace })).toMatchObject({ status: 404 });
    expect(await ask(running, '/namespaces')).toMatchObject({ status: 404 });
    expect(await post(running, '/namespaces', { name: 'm' })).toMatchObject({ status: 404 });
    expect(await ask(running, '/namespaces/n')).toMatchObject({ status: 404 });
    expect(await ask(running, '/namespaces/n', { method: 'DELETE' })).toMatchObject({ status: 404 });
    expect(await post(running, '/vectors/update', { filter, setMetadata, namespace })).toMatchObject({ status: 400 });
    expect(await post(running, '/vectors/update', { id: 'a', setMetadata, namespace })).toMatchObject({ status: 200 });
    expect(await post(running, '/vectors/upsert', { vectors, namespace: '__default__' })).toMatchObject({
      status: 400,
      body: refused("Use of namespace='__default__' is not allowed"),
    });
    expect(await post(running, '/vectors/upsert', { vectors, namespace: '' })).toMatchObject({ status: 200 });
    expect(await running.namespaces()).toEqual(['', 'n']);
    await running.close();
  });
});
