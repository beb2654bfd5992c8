import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openJudges } from '../pinecone-server/judge.ts';
import { ENDPOINTS } from '../pinecone-server/operations.ts';
import { ask, HEADERS, post, refused } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';

/*
 * Pinecone's documented limits, which the provider never exceeds, so that no test of the provider reaches them. The texts in
 * quotation marks are Pinecone's words. Everything else that the server does is tested by the tests of the provider.
 */

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
const expectRejected = async (answer: Answer, message: string) =>
  expect(await answer).toMatchObject({ status: 400, body: refused(expect.stringContaining(message)) });
const expectAccepted = async (answer: Answer) => expect(await answer).toMatchObject({ status: 200 });

it.each([
  ['without a condition', {}],
  ['with an empty condition', { kind: {} }],
  ['with a list as a value', { tags: { $eq: ['a'] } }],
  ['with an empty $and', { $and: [] }],
  ['with an unknown operator', { kind: { $regex: 'a' } }],
  ['with a mistake inside $and', { $and: [{ kind: { $eq: 'a' } }, { kind: { $is: 1 } }] }],
])('a filter %s is rejected', async (_, filter) => {
  expect(await query({ filter })).toMatchObject({ status: 400 });
  expect(await post(server, '/vectors/fetch_by_metadata', { filter, namespace })).toMatchObject({ status: 400 });
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
    const fetching = (count: number) => {
      const asked = idsUpTo(count).map((id) => `&ids=${id}`);
      return ask(server, `/vectors/fetch?namespace=${namespace}${asked.join('')}`);
    };
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
});

describe('the OpenAPI file', () => {
  it.each([
    ['a misspelled key', { vector: [1, 0], topK: 1, includeMetaData: true }, '#/includeMetaData unknown'],
    ['a missing key', { vector: [1, 0] }, '# required'],
    ['a limit', { vector: [1, 0], topK: 10_001 }, '#/topK maximum'],
    ['a type', { vector: [1, 0], topK: '1' }, '#/topK type'],
  ])('rejects %s with 400; closing the server fails', async (_, body, reason) => {
    const mistake = `query: body: ${reason}`;
    const running = await startPinecone({ dimension: 2 });
    expect(await post(running, '/query', body)).toMatchObject({ status: 400 });
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
});
