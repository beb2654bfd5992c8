import { request } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openJudges } from '../pinecone-server/judge.ts';
import { ENDPOINTS } from '../pinecone-server/operations.ts';
import { ask, HEADERS, post, refused } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';

/*
 * What the provider relies on: Pinecone's documented API and limits. The numbers in quotation marks are Pinecone's words.
 */

/** Longer than any test takes, in milliseconds. */
const AN_HOUR = 3_600_000;

let server: Pinecone;
let namespace = '';
let made = 0;
beforeAll(async () => {
  server = await startPinecone({ dimension: 2 });
});
beforeEach(() => {
  made += 1;
  namespace = `n${made}`;
});
afterEach(async () => {
  await server.lag({});
  await server.clearFaults();
  await server.resetCalls();
});
afterAll(() => server.close());

const upsert = (...vectors: readonly object[]) =>
  post(server, '/vectors/upsert', { vectors: vectors.map((one) => ({ values: [1, 0], ...one })), namespace });
const update = (change: object) => post(server, '/vectors/update', { namespace, ...change });
const remove = (ids: readonly string[]) => post(server, '/vectors/delete', { ids, namespace });
const query = (asked: object = {}) => post(server, '/query', { vector: [1, 0], topK: 100, namespace, ...asked });
const get = (path: string, asked: Readonly<Record<string, string>> = {}) =>
  ask(server, `${path}?${new URLSearchParams({ namespace, ...asked })}`);
const idsUpTo = (count: number) => Array.from({ length: count }, (_, i) => `${i}`);

type Answer = ReturnType<typeof post>;
const idsIn = async (answer: Answer) => {
  const { matches, vectors } = (await answer).body as { matches?: { id: string }[]; vectors?: { id: string }[] };
  return (matches ?? vectors ?? []).map(({ id }) => id);
};
const fetched = async (...ids: string[]) =>
  (
    (await ask(server, `/vectors/fetch?namespace=${namespace}${ids.map((id) => `&ids=${id}`).join('')}`)).body as {
      vectors: object;
    }
  ).vectors;
const expectRejected = async (answer: Answer, message: string) =>
  expect(await answer).toMatchObject({ status: 400, body: refused(expect.stringContaining(message)) });
const expectAccepted = async (answer: Answer) => expect(await answer).toMatchObject({ status: 200 });

describe('records', () => {
  it('upsert creates the namespace and replaces whole records; values are 32-bit floats', async () => {
    await upsert({ id: 'a', metadata: { kept: 'no', n: 1 } });
    await upsert({ id: 'a', values: [0.1, 1], metadata: { n: 2 } });
    expect(await fetched('a', 'missing')).toEqual({
      a: { id: 'a', values: [Math.fround(0.1), 1], metadata: { n: 2 } },
    });
    expect(await server.namespaces()).toContain(namespace);
  });

  it('update merges keys, replaces values, and has no effect on a missing id', async () => {
    await upsert({ id: 'a', metadata: { a: 1, b: ['x'] } });
    await update({ id: 'a', setMetadata: { b: ['y'], c: true } });
    await update({ id: 'a', values: [0, 1] });
    await expectAccepted(update({ id: 'missing', setMetadata: { n: 1 }, values: [1, 1] }));
    expect(await server.records(namespace)).toEqual({ a: { values: [0, 1], metadata: { a: 1, b: ['y'], c: true } } });
  });

  it('delete ignores missing ids', async () => {
    await upsert({ id: 'a' }, { id: 'b' });
    await expectAccepted(remove(['a', 'missing']));
    expect(Object.keys(await server.records(namespace))).toEqual(['b']);
  });

  it('a write to a missing namespace is a 404; reads there find nothing', async () => {
    const missing = { status: 404, body: refused('Namespace not found', 5) };
    expect(await remove(['a'])).toMatchObject(missing);
    expect(await update({ id: 'a', setMetadata: {} })).toMatchObject(missing);
    expect(await fetched('a')).toEqual({});
    expect([await idsIn(query()), await idsIn(get('/vectors/list'))]).toEqual([[], []]);
  });

  it('stats have the dimension, the metric and the counts', async () => {
    await upsert({ id: 'a' });
    const { body } = await post(server, '/describe_index_stats', {});
    expect(body).toMatchObject({ dimension: 2, metric: 'cosine', namespaces: { [namespace]: { vectorCount: 1 } } });
  });

  it('"__default__" and "" are the same namespace', async () => {
    await post(server, '/vectors/upsert', { vectors: [{ id: 'a', values: [1, 0] }], namespace: '' });
    expect(await server.records('__default__')).toHaveProperty('a');
  });
});

describe('a query', () => {
  const records = [
    { id: 'd', values: [3, 4] },
    { id: 'b', values: [2, 0], metadata: { n: 1 } },
    { id: 'a', values: [4, 0] },
    { id: 'c', values: [-1, 0] },
  ];

  it('has values and metadata only on request', async () => {
    await upsert(...records);
    const asked = { vector: [5, 0], topK: 2 };
    expect((await query({ ...asked, includeValues: true, includeMetadata: true })).body).toMatchObject({
      matches: [
        { id: 'a', score: 1, values: [4, 0] },
        { id: 'b', score: 1, values: [2, 0], metadata: { n: 1 } },
      ],
    });
    const { matches } = (await query(asked)).body as { matches: object[] };
    expect(matches).toEqual([
      { id: 'a', score: 1 },
      { id: 'b', score: 1 },
    ]);
  });

  it.each([
    ['cosine', { a: 1, b: 1, d: 0.6, c: -1 }],
    ['dotproduct', { a: 4, d: 3, b: 2, c: -1 }],
    // The squared distance: lower is better.
    ['euclidean', { b: 1, c: 4, a: 9, d: 20 }],
  ] as const)('scores by %s, equal scores by id', async (metric, scores) => {
    const other = await startPinecone({ dimension: 2, metric });
    await post(other, '/vectors/upsert', { vectors: records, namespace });
    const { body } = await post(other, '/query', { vector: [1, 0], topK: 10, namespace });
    const found = (body as { matches: { id: string; score: number }[] }).matches;
    expect(found.map(({ id, score }) => [id, score])).toEqual(Object.entries(scores));
    await other.close();
  });

  it('accepts a vector of zeros', async () => {
    await upsert(...records);
    expect(await idsIn(query({ vector: [0, 0] }))).toEqual(['a', 'b', 'c', 'd']);
  });
});

describe('a filter', () => {
  beforeEach(() =>
    upsert(
      { id: 'one', metadata: { kind: 'a', n: 1, tags: ['x', 'y'] } },
      { id: 'two', metadata: { kind: 'b', n: 2, tags: ['y', 'z'] } },
      { id: 'none' },
    ),
  );

  it.each([
    ['$eq', { kind: { $eq: 'a' } }, ['one']],
    ['$eq of another type', { n: { $eq: '1' } }, []],
    ['any element of a list', { tags: { $eq: 'y' } }, ['one', 'two']],
    ['$and', { $and: [{ tags: { $eq: 'y' } }, { kind: { $eq: 'b' } }] }, ['two']],
    ['several fields', { tags: { $eq: 'y' }, kind: { $eq: 'b' } }, ['two']],
    ['a key that every object inherits', { constructor: { $exists: true } }, []],
  ])('%s', async (_, filter, ids) => {
    expect((await idsIn(query({ filter }))).sort()).toEqual(ids);
    const { body } = await post(server, '/vectors/fetch_by_metadata', { filter, namespace });
    expect(Object.keys((body as { vectors: object }).vectors).sort()).toEqual(ids);
  });

  it.each([
    ['without a condition', {}],
    ['with an empty condition', { kind: {} }],
    ['with a list as a value', { tags: { $eq: ['a'] } }],
    ['with an empty $and', { $and: [] }],
    ['with an unknown operator', { kind: { $regex: 'a' } }],
    ['with a mistake inside $and', { $and: [{ kind: { $eq: 'a' } }, { kind: { $is: 1 } }] }],
  ])('%s is rejected', async (_, filter) => {
    expect(await query({ filter })).toMatchObject({ status: 400 });
    expect(await post(server, '/vectors/fetch_by_metadata', { filter, namespace })).toMatchObject({ status: 400 });
  });

  it('by a key that is not filterable is rejected', async () => {
    const narrow = await startPinecone({ dimension: 2, filterable: ['user'] });
    const asked = (key: string) =>
      post(narrow, '/query', { vector: [1, 0], topK: 1, filter: { [key]: { $eq: 'a' } }, namespace });
    await expectAccepted(asked('user'));
    await expectRejected(asked('other'), 'the field other is not filterable');
    await narrow.close();
  });
});

describe('limits', () => {
  /** {"a":"…"} is 8 bytes longer than the text. */
  const ofBytes = (bytes: number) => ({ a: 'x'.repeat(bytes - 8) });

  it('"40,960 bytes" of metadata, also after an update', async () => {
    const withMetadata = (metadata: object) => upsert({ id: 'm', metadata });
    await expectRejected(withMetadata({ a: 'ä'.repeat(20_477) }), '40962 bytes');
    await expectRejected(withMetadata(ofBytes(40_961)), 'exceeds the limit of 40960 bytes');
    await expectAccepted(withMetadata(ofBytes(40_960)));
    await expectRejected(update({ id: 'm', setMetadata: { b: 1 } }), 'exceeds the limit of 40960 bytes');
    await expectAccepted(update({ id: 'm', setMetadata: { a: 1 } }));
  });

  it.each([null, { b: 1 }, [1, 2], ['a', 1], []])(
    '"must be a string, number, boolean or list of strings": not %j',
    async (a) => {
      await upsert({ id: 'm' });
      await expectRejected(upsert({ id: 'm', metadata: { fine: true, a } }), "for field 'a'");
      await expectRejected(update({ id: 'm', setMetadata: { a } }), "for field 'a'");
    },
  );

  it('metadata keys do not start with $', () =>
    expectRejected(upsert({ id: 'm', metadata: { $a: 1 } }), "cannot start with '$'"));

  it('ids have 1 to 512 ASCII characters without NUL', async () => {
    await expectAccepted(upsert({ id: '~'.repeat(512) }));
    for (const id of ['', '~'.repeat(513), 'ä', 'a\0']) await expectRejected(remove([id]), 'Vector ID must');
    for (const id of ['ä', 'a\0']) await expectRejected(upsert({ id }), 'Vector ID must');
    await expectRejected(get('/vectors/fetch', { ids: 'a b' }), 'spaces');
  });

  it('vectors have the dimension of the index, are 32-bit floats, and not zero', async () => {
    await upsert({ id: 'a' });
    for (const [values, message] of [
      [[1, 2, 3], 'Vector dimension 3 does not match the dimension of the index 2'],
      [[1e39, 0], '32-bit floats'],
      [[0, 0], 'Dense vectors must contain at least one non-zero value'],
    ] as const) {
      await expectRejected(upsert({ id: 'fine' }, { id: 'a', values }), message);
      await expectRejected(update({ id: 'a', values }), message);
    }
    await expectRejected(query({ vector: [1, 2, 3] }), 'does not match the dimension');
    expect(await server.records(namespace)).not.toHaveProperty('fine');
  });

  it('an upsert has "≤1,000 records" and "≤2 MB"', async () => {
    const records = (count: number, more = {}) => idsUpTo(count).map((id) => ({ id, ...more }));
    await expectAccepted(upsert(...records(1_000)));
    await expectRejected(upsert(...records(1_001)), '1000 vectors');
    const metadata = { a: 'x'.repeat(40_000) };
    await expectAccepted(upsert(...records(49, { metadata })));
    await expectRejected(upsert(...records(50, { metadata })), 'limit of 2000000 bytes');
  });

  it('a delete and a fetch have "≤1,000 ids"', async () => {
    await upsert({ id: 'a' });
    const fetching = (count: number) =>
      ask(
        server,
        `/vectors/fetch?namespace=${namespace}&${idsUpTo(count)
          .map((id) => `ids=${id}`)
          .join('&')}`,
      );
    for (const request of [(count: number) => remove(idsUpTo(count)), fetching]) {
      await expectAccepted(request(1_000));
      await expectRejected(request(1_001), 'at most 1000 ids');
    }
  });

  it('answers of query and fetch_by_metadata have "≤4 MB"', async () => {
    const metadata = { a: 'x'.repeat(40_900), big: true };
    for (const part of [0, 1, 2]) await upsert(...idsUpTo(34).map((id) => ({ id: `${part}-${id}`, metadata })));
    const filter = { big: { $eq: true } };
    for (const request of [
      (count: number) => query({ topK: count, filter, includeMetadata: true }),
      (limit: number) => post(server, '/vectors/fetch_by_metadata', { filter, limit, namespace }),
    ]) {
      await expectAccepted(request(97));
      await expectRejected(request(98), '4000000 bytes');
    }
  });

  it('"fetch_by_metadata 5 req/s per namespace" with rate limits', async () => {
    const limited = await startPinecone({ dimension: 2, rateLimits: true });
    const fetching = (name: string) =>
      post(limited, '/vectors/fetch_by_metadata', { filter: { a: { $eq: 1 } }, namespace: name });
    const answers = await Promise.all(Array.from({ length: 60 }, () => fetching(namespace)));
    expect(answers.find(({ status }) => status === 429)?.body).toEqual(
      refused(`Request failed. You've reached the fetch by metadata QPS limit for namespace ${namespace}`, 8),
    );
    await expectAccepted(fetching('other'));
    await limited.close();
  });
});

describe('pages', () => {
  const list = (asked: Readonly<Record<string, string>> = {}) => get('/vectors/list', asked);
  const nextOf = async (answer: Answer) => ((await answer).body as { pagination?: { next: string } }).pagination?.next;

  it('of a list are in byte order, within the prefix, of 1 to 100 ids', async () => {
    await upsert(...['b', 'a10', 'a', 'B', 'a2', 'a#', '~'].map((id) => ({ id })));
    expect(await idsIn(list())).toEqual(['B', 'a', 'a#', 'a10', 'a2', 'b', '~']);
    expect(await idsIn(list({ prefix: 'a' }))).toEqual(['a', 'a#', 'a10', 'a2']);
    for (const limit of ['0', '-1', '101']) await expectRejected(list({ limit }), 'limit must be between 1 and 100');
  });

  it("as Pinecone's own tests have them: prefix 99 of 1000, five at a time, without pagination at the end", async () => {
    await upsert(...idsUpTo(1_000).map((id) => ({ id })));
    const pages: string[] = [];
    for (let token: string | undefined = ''; token !== undefined; ) {
      const page = list({ prefix: '99', limit: '5', ...(token && { paginationToken: token }) });
      pages.push((await idsIn(page)).join());
      token = await nextOf(page);
    }
    expect(pages).toEqual(['99,990,991,992,993', '994,995,996,997,998', '999']);
  });

  it('continue after the last id, whatever was added and deleted meanwhile', async () => {
    await upsert(...['a1', 'a3', 'a5', 'a7'].map((id) => ({ id })));
    const token = (await nextOf(list({ prefix: 'a', limit: '2' }))) ?? '';
    await upsert({ id: 'a2' }, { id: 'a4' });
    await remove(['a1', 'a3', 'a5']);
    expect(await idsIn(list({ prefix: 'a', limit: '2', paginationToken: token }))).toEqual(['a4', 'a7']);
    for (const wrong of [{ paginationToken: 'nonsense' }, { paginationToken: token, prefix: 'b' }]) {
      await expectRejected(list({ prefix: 'a', limit: '2', ...wrong }), 'Invalid pagination token');
    }
  });

  it('of fetch_by_metadata hold every match once', async () => {
    await upsert(...idsUpTo(7).map((id) => ({ id, metadata: { odd: Number(id) % 2 } })));
    const filter = { odd: { $eq: 0 } };
    const found: string[] = [];
    for (let token: string | undefined = ''; token !== undefined; ) {
      const asked = { filter, limit: 3, namespace, ...(token && { paginationToken: token }) };
      const page = post(server, '/vectors/fetch_by_metadata', asked);
      found.push(...Object.keys(((await page).body as { vectors: object }).vectors));
      token = await nextOf(page);
    }
    expect(found.sort()).toEqual(['0', '2', '4', '6']);
  });
});

describe('lag', () => {
  const lsnOf = async (answer: Answer) => {
    const { headers } = await answer;
    return headers.get('x-pinecone-request-lsn') ?? headers.get('x-pinecone-max-indexed-lsn');
  };
  const seen = async () => [await idsIn(query()), await idsIn(get('/vectors/list'))];

  it('"a write is visible to queries once max-indexed >= request", and not before', async () => {
    await server.lag({ writes: 2 });
    const numbers: Record<string, number> = {};
    for (const id of ['a', 'b', 'c', 'd']) {
      numbers[id] = Number(await lsnOf(upsert({ id })));
      const answer = query();
      const [ids, lsn] = [await idsIn(answer), Number(await lsnOf(answer))];
      for (const [written, number] of Object.entries(numbers)) expect(ids.includes(written)).toBe(lsn >= number);
    }
    expect(numbers).toEqual({ a: 1, b: 2, c: 3, d: 4 });
    expect(await seen()).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
  });

  it('may have no numbers: neither in lists, nor in an empty namespace, nor in such an index', async () => {
    expect(await lsnOf(query())).toBeNull();
    await upsert({ id: 'a' });
    expect(await lsnOf(get('/vectors/list'))).toBeNull();
    const other = await startPinecone({ dimension: 2, lsn: false });
    expect(await lsnOf(post(other, '/vectors/upsert', { vectors: [{ id: 'a', values: [1, 0] }] }))).toBeNull();
    expect(await lsnOf(post(other, '/query', { vector: [1, 0], topK: 1 }))).toBeNull();
    await other.close();
  });

  it('hides writes, deletes and updates until they settle, in their order', async () => {
    await upsert({ id: 'a', metadata: { n: 0 } });
    await server.lag({ held: true });
    await upsert({ id: 'b' });
    await update({ id: 'b', setMetadata: { n: 1 } });
    await remove(['a']);
    expect(await seen()).toEqual([['a'], ['a']]);
    expect(await fetched('b')).toEqual({});
    await server.settle();
    expect(await seen()).toEqual([['b'], ['b']]);
    expect(await fetched('b')).toMatchObject({ b: { metadata: { n: 1 } } });
    await upsert({ id: 'c' });
    expect(await seen()).toEqual([['b'], ['b']]);
  });

  it('of fetch and list may be their own; what was visible stays visible', async () => {
    await upsert({ id: 'a' });
    await server.lag({ fetchMs: AN_HOUR });
    await upsert({ id: 'b' });
    expect(await seen()).toEqual([['a', 'b'], ['a']]);
    await server.lag({ held: true, fetchMs: 0 });
    await upsert({ id: 'c' });
    expect(await seen()).toEqual([
      ['a', 'b'],
      ['a', 'b', 'c'],
    ]);
    await server.lag({ ms: AN_HOUR });
    expect((await seen())[0]).toEqual(['a', 'b']);
  });
});

describe('faults', () => {
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
  ] as const)('%s answers %i and does nothing, once', async (kind, status, body) => {
    await server.fail({ kind, retryAfter: '7' });
    const answer = await upsert({ id: kind });
    expect(answer).toMatchObject({ status, body });
    expect(answer.headers.get('retry-after')).toBe(typeof body === 'string' ? null : '7');
    expect(await server.records(namespace)).toEqual({});
    await expectAccepted(upsert({ id: kind }));
    expect((await server.calls()).map((call) => call.status)).toEqual([status, 200]);
  });

  it('reset closes the connection before the request is carried out, reset-after afterwards', async () => {
    await server.fail({ kind: 'reset' });
    await expect(upsert({ id: 'before' })).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
    await server.fail({ kind: 'reset-after' });
    await expect(upsert({ id: 'after' })).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
    expect(Object.keys(await server.records(namespace))).toEqual(['after']);
  });

  it('hang never answers, slow answers when faults are cleared; other operations go on', async () => {
    await server.fail({ kind: 'hang', operation: 'upsert' });
    await server.fail({ kind: 'slow', operation: 'upsert' });
    const abort = new AbortController();
    const body = JSON.stringify({ vectors: [{ id: 'hung', values: [1, 0] }], namespace });
    const hung = fetch(`${server.url}/vectors/upsert`, {
      method: 'POST',
      headers: HEADERS,
      body,
      signal: abort.signal,
    });
    await expect.poll(() => server.calls()).toMatchObject([{ operation: 'upsert', status: 0 }]);
    const slow = upsert({ id: 'slow' });
    await expect.poll(() => server.calls()).toHaveLength(2);
    await expectAccepted(query());
    abort.abort();
    await expect(hung).rejects.toThrow('aborted');
    expect(await server.records(namespace)).toEqual({});
    await server.clearFaults();
    await expectAccepted(slow);
    expect(Object.keys(await server.records(namespace))).toEqual(['slow']);
  });

  it('meet as many requests of their operation as they say; 0: until they are cleared', async () => {
    await server.fail({ kind: '500', operation: 'query', times: 2 });
    await server.fail({ kind: '503', operation: 'upsert', times: 0 });
    const statuses: number[] = [];
    for (const send of [query, () => upsert({ id: 'a' }), query, query, () => upsert({ id: 'a' })]) {
      statuses.push((await send()).status);
    }
    expect(statuses).toEqual([500, 503, 500, 200, 503]);
    await expect(server.fail({ kind: 'none' as 'hang' })).rejects.toThrow('kind');
  });
});

describe('the OpenAPI file', () => {
  it.each([
    [
      'a misspelled key',
      '/query',
      { vector: [1, 0], topK: 1, includeMetaData: true },
      'query: body: #/includeMetaData unknown',
    ],
    ['a missing key', '/query', { vector: [1, 0] }, 'query: body: # required'],
    ['a limit', '/query', { vector: [1, 0], topK: 10_001 }, 'query: body: #/topK maximum'],
    [
      'a type',
      '/vectors/upsert',
      { vectors: [{ id: 'a', values: [1, '2'] }] },
      'upsert: body: #/vectors/0/values/1 type',
    ],
    ['an id', '/vectors/upsert', { vectors: [{ id: '' }] }, 'upsert: body: #/vectors/0/id minLength'],
  ])('rejects %s with 400; closing the server fails', async (_, path, body, mistake) => {
    const running = await startPinecone({ dimension: 2 });
    expect(await post(running, path, body)).toMatchObject({ status: 400 });
    expect(await running.violations()).toContain(mistake);
    await expect(running.close()).rejects.toThrow(mistake);
    await expect(fetch(running.url)).rejects.toThrow();
  });

  it('requires headers, JSON, known parameters and known paths', async () => {
    const running = await startPinecone({ dimension: 2, apiKey: 'key' });
    const { 'x-pinecone-api-version': _, ...unversioned } = HEADERS;
    const send = (headers: Record<string, string>, body: string) =>
      ask(running, '/query', { method: 'POST', headers, body });
    await send(unversioned, '{"vector":[1,0],"topK":1}');
    await send(HEADERS, '{');
    await ask(running, '/vectors/fetch?ids=a&id=b');
    expect(await ask(running, '/vectors')).toMatchObject({ status: 404 });
    expect(await send({ ...HEADERS, 'api-key': 'wrong' }, '{"vector":[1,0],"topK":1}')).toMatchObject({
      status: 401,
      body: 'Invalid API Key',
    });
    expect(await running.violations()).toEqual([
      'query: header x-pinecone-api-version: missing',
      'query: body: not JSON',
      'fetch: query id: unknown',
      'GET /vectors: no operation of this server',
    ]);
    await running.close().catch(() => {});
  });

  it('describes answers too', async () => {
    const judge = (await openJudges()).get(ENDPOINTS.query);
    expect(judge?.answer(200, { matches: [{ id: 'a', score: 1, values: [1, 2] }], namespace: 'n' })).toEqual([]);
    expect(judge?.answer(200, { matches: [{ score: 1 }] })).toContain('answer 200: #/matches/0 required');
    expect(judge?.answer(200, { found: [] })).toEqual(['answer 200: #/found unknown']);
    expect(judge?.answer(302, {})).toEqual(['answer 302: not in the file']);
  });

  it('has nothing against a client that disconnects while it sends', async () => {
    const sending = request(`${server.url}/query`, {
      method: 'POST',
      headers: { ...HEADERS, 'content-length': '100' },
    });
    sending.on('error', () => {});
    await new Promise((sent) => sending.write('{', sent));
    sending.destroy();
    await new Promise((closed) => sending.once('close', closed));
    await expectAccepted(query());
    expect(await server.violations()).toEqual([]);
  });

  it('of 2025-01 has no fetch_by_metadata and no "__default__"', async () => {
    const old = await startPinecone({ dimension: 2, apiVersion: '2025-01' });
    const vectors = [{ id: 'a', values: [1, 0] }];
    await expectAccepted(post(old, '/vectors/upsert', { vectors, namespace }));
    const filter = { a: { $eq: 1 } };
    expect(await post(old, '/vectors/fetch_by_metadata', { filter, namespace })).toMatchObject({ status: 404 });
    await expectRejected(post(old, '/vectors/upsert', { vectors, namespace: '__default__' }), 'is not allowed');
    await old.close();
  });
});
