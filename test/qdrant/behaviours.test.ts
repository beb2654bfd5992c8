import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Answer, freshCollection, openQdrant, type Qdrant, tell } from './server.ts';

/*
 * What the adapter relies on, and what surprises: seen on Qdrant 1.18.3. With TEST_QDRANT_BIN the same tests run on it, without on the test server. The table in docs/backends/qdrant.md has every title.
 */

let server: Qdrant;
beforeAll(async () => {
  server = await openQdrant();
});
afterAll(() => server.close());

const PAGE = readFileSync('docs/backends/qdrant.md', 'utf8');
afterEach(({ task }) => {
  expect(PAGE).toContain(`| ${task.suite?.name} | ${task.name.replace(/ \((?:without an index|keyword)\)$/, '')} |`);
});

const UUID = '0193b4a0-0000-7000-8000-00000000000';
interface Made {
  put(...points: readonly object[]): Promise<Answer>;
  post(path: string, body: object): Promise<Answer>;
  /** Ids that pass a filter, in order. */
  ids(filter?: object, more?: object): Promise<unknown[]>;
  index(field_name: string, field_schema: string): Promise<Answer>;
  readonly path: string;
}

/** A collection of its own for a test. */
async function made(distance = 'Dot', size = 2): Promise<Made> {
  const path = `/collections/${freshCollection()}`;
  expect(await tell('PUT', server.url + path, { vectors: { size, distance } })).toMatchObject({
    status: 200,
    body: { result: true },
  });
  onTestFinished(async () => void (await tell('DELETE', server.url + path)));
  const post = (end: string, body: object) => tell('POST', `${server.url}${path}${end}`, body);
  return {
    path,
    post,
    put: (...points) =>
      tell('PUT', `${server.url}${path}/points?wait=true`, {
        points: points.map((point) => ({ vector: [1, 0], ...point })),
      }),
    ids: async (filter, more) =>
      idsIn(await post('/points/scroll', { ...(filter && { filter }), limit: 1_000, ...more })),
    index: (field_name, field_schema) =>
      tell('PUT', `${server.url}${path}/index?wait=true`, { field_name, field_schema }),
  };
}

const idsIn = ({ body }: Answer): unknown[] => body.result.points.map(({ id }: { id: unknown }) => id);
const expectRefused = (answer: Answer, status: number, message: string) =>
  expect(answer).toMatchObject({ status, body: { status: { error: expect.stringContaining(message) } } });
/** A point for each value of n; the id is its place from 1. */
const withValues = (...values: readonly unknown[]) =>
  values.map((n, at) => ({ id: at + 1, payload: n === undefined ? {} : { n } }));
const has = (match: object) => ({ must: [{ key: 'n', match }] });
const hasNot = (match: object) => ({ must_not: [{ key: 'n', match }] });

describe('order and pages', () => {
  it('a scroll is ordered by id, numbers before UUIDs', async () => {
    const { put, ids } = await made();
    await put({ id: `${UUID}2` }, { id: 20 }, { id: `${UUID}1` }, { id: 3 });
    expect(await ids()).toEqual([3, 20, `${UUID}1`, `${UUID}2`]);
  });

  it('a scroll goes on at `next_page_offset`, which is the id of the next point and may be gone by then', async () => {
    const { put, post, ids } = await made();
    await put(...[1, 2, 3, 4, 5].map((id) => ({ id })));
    const { body } = await post('/points/scroll', { limit: 2 });
    expect(body.result.next_page_offset).toBe(3);
    await post('/points/delete?wait=true', { points: [3] });
    expect(await ids(undefined, { offset: 3 })).toEqual([4, 5]);
    expect((await post('/points/scroll', { limit: 5 })).body.result.next_page_offset).toBeNull();
  });

  it('`order_by` needs an index of numbers or times', async () => {
    const { put, post, index } = await made();
    await put(...withValues(1, 2));
    const ordered = () => post('/points/scroll', { order_by: { key: 'n' } });
    expectRefused(await ordered(), 400, 'No range index for `order_by` key: `n`');
    await index('n', 'keyword');
    expectRefused(await ordered(), 400, 'No range index for `order_by` key: `n`');
    await index('n', 'integer');
    expect((await ordered()).status).toBe(200);
  });

  it('`order_by` orders equal values in any way, and `start_from` includes its value', async () => {
    const { put, index, ids } = await made();
    await index('n', 'integer');
    await put(...withValues(7, 7, 9, 7, 1));
    const ordered = async (order: object) => {
      const found = (await ids(undefined, { order_by: { key: 'n', ...order } })).map(Number);
      const places = found.flatMap((id, at) => (id === 3 || id === 5 ? [[id, at]] : []));
      return { places, equal: found.filter((id) => id !== 3 && id !== 5).sort() };
    };
    const equal = [1, 2, 4];
    expect(await ordered({ direction: 'desc' })).toEqual({
      places: [
        [3, 0],
        [5, 4],
      ],
      equal,
    });
    expect(await ordered({ direction: 'desc', start_from: 7 })).toEqual({ places: [[5, 3]], equal });
    expect(await ordered({ direction: 'asc' })).toEqual({
      places: [
        [5, 0],
        [3, 4],
      ],
      equal,
    });
  });

  it('`order_by` leaves out points without a number, and shows one of a list once for each number', async () => {
    const { put, index, ids } = await made();
    await index('n', 'integer');
    await put(...withValues(undefined, null, 'two', [5, 1], 3));
    expect(await ids(undefined, { order_by: { key: 'n' } })).toEqual([4, 5, 4]);
  });

  it('`order_by` goes with no offset', async () => {
    const { put, index, post } = await made();
    await index('n', 'integer');
    await put(...withValues(1));
    expectRefused(
      await post('/points/scroll', { order_by: { key: 'n' }, offset: 1 }),
      400,
      'Cannot use an `offset` when using `order_by`',
    );
  });

  it('a limit is at least 1, and 10 when there is none; nothing limits it from above', async () => {
    const { put, post, ids } = await made();
    const many = Array.from({ length: 12_000 }, (_, id) => ({ id }));
    await put(...many);
    for (const [path, body] of [
      ['/points/scroll', {}],
      ['/points/query', { query: [1, 0] }],
    ] as const) {
      expect(await post(path, { ...body, limit: 0 })).toMatchObject({ status: 422 });
      expect(idsIn(await post(path, body))).toHaveLength(10);
      expect(idsIn(await post(path, { ...body, limit: 100_000 }))).toHaveLength(12_000);
    }
    expect(await ids(undefined, { offset: 11_990 })).toHaveLength(10);
  });

  it('a scroll shows payloads unless asked not to; a retrieve and a search only if asked', async () => {
    const { put, post } = await made();
    await put({ id: 1, payload: { n: 1, m: 2 } });
    const payloadOf = async (path: string, body: object) => {
      const { result } = (await post(path, body)).body;
      return (result.points ?? result)[0].payload ?? null;
    };
    for (const [path, body, whole] of [
      ['/points/scroll', {}, true],
      ['/points', { ids: [1] }, false],
      ['/points/query', { query: [1, 0] }, false],
    ] as const) {
      expect(await payloadOf(path, body)).toEqual(whole ? { n: 1, m: 2 } : null);
      expect(await payloadOf(path, { ...body, with_payload: ['m', 'none'] })).toEqual({ m: 2 });
      expect(await payloadOf(path, { ...body, with_payload: false })).toBeNull();
    }
  });

  it('a retrieve answers in another order than asked, each point once, and leaves out what is not there', async () => {
    const { put, post } = await made();
    await put({ id: 3 }, { id: 1 }, { id: 2 });
    const { body } = await post('/points', { ids: [2, 9, 1, 2, 3] });
    expect(body.result.map(({ id }: { id: number }) => id).sort()).toEqual([1, 2, 3]);
  });
});

describe('filters', () => {
  it('`must_not` finds points that lack the field, are null or an empty list', async () => {
    const { put, ids } = await made();
    await put(...withValues('a', undefined, null, [], 'b'));
    expect(await ids(hasNot({ value: 'a' }))).toEqual([2, 3, 4, 5]);
    expect(await ids(has({ value: 'a' }))).toEqual([1]);
  });

  it('`except` finds a list with any other element, and nothing that lacks the field or is null', async () => {
    const { put, ids } = await made();
    await put(...withValues('a', undefined, null, [], ['a', 'b'], ['a'], 'b', 1));
    expect(await ids(has({ except: ['a'] }))).toEqual([5, 7, 8]);
  });

  it.each(['without an index', 'keyword'])(
    'a condition on a list asks whether any element passes (%s)',
    async (kind) => {
      const { put, ids, index } = await made();
      if (kind === 'keyword') await index('n', kind);
      await put(...withValues(['a', 'b'], ['c'], 'a', [['a']]));
      expect(await ids(has({ value: 'a' }))).toEqual([1, 3]);
      expect(await ids(has({ any: ['b', 'c'] }))).toEqual([1, 2]);
      expect(
        await ids({
          must: [
            { key: 'n', match: { value: 'a' } },
            { key: 'n', match: { value: 'b' } },
          ],
        }),
      ).toEqual([1]);
    },
  );

  it('a range asks whether any number of a list is in it, and passes no text', async () => {
    const { put, ids } = await made();
    await put(...withValues(1, 1.5, [0, 9], '1', null, true));
    expect(await ids({ must: [{ key: 'n', range: { gte: 1, lt: 2 } }] })).toEqual([1, 2]);
    expect(await ids({ must: [{ key: 'n', range: { gt: 1 } }] })).toEqual([2, 3]);
  });

  it('1, true and "1" differ in a match, and a fraction cannot be asked for', async () => {
    const { put, ids, post } = await made();
    await put(...withValues(1, true, '1', 1.5));
    expect(await ids(has({ value: 1 }))).toEqual([1]);
    expect(await ids(has({ value: true }))).toEqual([2]);
    expect(await ids(has({ value: '1' }))).toEqual([3]);
    expect((await post('/points/scroll', { filter: has({ value: 1.5 }) })).status).toBe(400);
  });

  it('`any: []` finds nothing, `except: []` every point that has the field', async () => {
    const { put, ids } = await made();
    await put(...withValues('a', undefined, null, 1));
    expect(await ids(has({ any: [] }))).toEqual([]);
    expect(await ids(has({ except: [] }))).toEqual([1, 4]);
    expect(await ids({ must: [{ has_id: [] }] })).toEqual([]);
  });

  it('a filter without conditions passes everything, also in a delete', async () => {
    const { put, ids, post } = await made();
    for (const filter of [{}, { must: [] }, { should: [] }, { must_not: [] }]) {
      await put({ id: 1 }, { id: 2 });
      expect(await ids(filter)).toEqual([1, 2]);
      expect(await post('/points/delete?wait=true', { filter })).toMatchObject({ status: 200 });
      expect(await ids()).toEqual([]);
    }
  });

  it('two conditions in one field condition are joined by or', async () => {
    const { put, ids } = await made();
    await put(...withValues(1, 'a', 5));
    expect(await ids({ must: [{ key: 'n', match: { value: 'a' }, range: { gt: 4 } }] })).toEqual([2, 3]);
  });

  it('`is_empty` finds missing, null and an empty list; `is_null` null alone', async () => {
    const { put, ids } = await made();
    await put(...withValues(undefined, null, [], [null], '', 0));
    expect(await ids({ must: [{ is_empty: { key: 'n' } }] })).toEqual([1, 2, 3]);
    expect(await ids({ must: [{ is_null: { key: 'n' } }] })).toEqual([2]);
  });

  it('a dot in a name goes into an object, unless the name stands in quotation marks', async () => {
    const { put, ids } = await made();
    await put({ id: 1, payload: { 'a.b': 'x' } }, { id: 2, payload: { a: { b: 'x' } } });
    expect(await ids({ must: [{ key: 'a.b', match: { value: 'x' } }] })).toEqual([2]);
    expect(await ids({ must: [{ key: '"a.b"', match: { value: 'x' } }] })).toEqual([1]);
  });

  it('a name with other characters than letters, digits, _ and - is refused, unless it stands in quotation marks', async () => {
    const { put, ids, post } = await made();
    await put({ id: 1, payload: { 'the owner': { 'a.b': 'x' }, Größe: 'x', 'n-1': 'x' } });
    const by = (key: string) => ({ must: [{ key, match: { value: 'x' } }] });
    for (const key of ['"the owner"."a.b"', 'Größe', '"Größe"', 'n-1']) expect(await ids(by(key))).toEqual([1]);
    for (const key of ['the owner', 'a b.c', '"a"b"', '"a\\b"', '', 'a..b'])
      expectRefused(await post('/points/scroll', { filter: by(key) }), 400, 'Format error in JSON body');
  });

  it('a search applies its filter before it takes the nearest', async () => {
    const { put, post } = await made('Cosine');
    await put(...Array.from({ length: 2_000 }, (_, id) => ({ id, vector: [1, id / 1e6], payload: { n: id } })));
    await put({ id: 5_000, vector: [0, 1], payload: { n: -1 } });
    const filter = { must: [{ key: 'n', range: { lt: 0 } }] };
    expect(idsIn(await post('/points/query', { query: [1, 0], limit: 1, filter }))).toEqual([5_000]);
  });
});

describe('ids', () => {
  it('are unsigned integers and UUIDs, nothing else', async () => {
    const { put, ids } = await made();
    for (const id of ['text', '12', -1, 1.5, null, '']) expect(await put({ id })).toMatchObject({ status: 400 });
    expect(await ids()).toEqual([]);
  });

  it('four spellings of a UUID are one point, shown in lower case with hyphens', async () => {
    const { put, ids } = await made();
    const plain = 'abcdef01234567890123456789abcdef';
    const hyphens = plain.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    for (const id of [plain, hyphens.toUpperCase(), `urn:uuid:${hyphens}`, `{${hyphens}}`]) {
      expect(await put({ id })).toMatchObject({ status: 200 });
    }
    expect(await ids()).toEqual([hyphens]);
  });

  it('of one id twice in a batch the last one stays', async () => {
    const { put, post } = await made();
    await put({ id: 1, payload: { n: 1 } }, { id: 1, payload: { n: 2 } });
    expect((await post('/points', { ids: [1], with_payload: true })).body.result).toMatchObject([
      { payload: { n: 2 } },
    ]);
  });
});

describe('writes', () => {
  it('an upsert replaces vector and payload', async () => {
    const { put, post } = await made();
    await put({ id: 1, vector: [1, 0], payload: { a: 1, b: 2 } });
    await put({ id: 1, vector: [0, 1], payload: { b: 3 } });
    const { body } = await post('/points', { ids: [1], with_payload: true, with_vector: true });
    expect(body.result).toEqual([{ id: 1, payload: { b: 3 }, vector: [0, 1] }]);
  });

  it('with `wait` a write is completed and can be read at once', async () => {
    const { put, ids, post } = await made();
    expect(await put({ id: 1 })).toMatchObject({ body: { result: { status: 'completed' } } });
    expect(await ids()).toEqual([1]);
    expect(await post('/points/delete?wait=true', { points: [1] })).toMatchObject({
      body: { result: { status: 'completed' } },
    });
    expect(await ids()).toEqual([]);
  });

  it('a delete says the same whether there was a point or not', async () => {
    const { put, post } = await made();
    await put({ id: 1 });
    const answers = [
      await post('/points/delete?wait=true', { points: [1] }),
      await post('/points/delete?wait=true', { points: [1] }),
    ];
    for (const { status, body } of answers) {
      expect(status).toBe(200);
      expect(Object.keys(body.result).sort()).toEqual(['operation_id', 'status']);
    }
  });

  it('`insert_only`, `update_only` and `update_filter` skip points without saying so', async () => {
    const { put, path, post } = await made();
    await put({ id: 1, payload: { n: 1 } });
    const conditional = (more: object, ...ids: number[]) =>
      tell('PUT', `${server.url}${path}/points?wait=true`, {
        points: ids.map((id) => ({ id, vector: [0, 1], payload: { n: 2 } })),
        ...more,
      });
    const values = async () =>
      (await post('/points/scroll', {})).body.result.points.map(({ payload }: { payload: { n: number } }) => payload.n);
    expect(await conditional({ update_mode: 'insert_only' }, 1, 2)).toMatchObject({
      body: { result: { status: 'completed' } },
    });
    expect(await values()).toEqual([1, 2]);
    await conditional({ update_mode: 'update_only' }, 3);
    expect(await values()).toEqual([1, 2]);
    await conditional({ update_filter: has({ value: 9 }) }, 1, 4);
    expect(await values()).toEqual([1, 2, 2]);
    await conditional({ update_filter: has({ value: 1 }) }, 1);
    expect(await values()).toEqual([2, 2, 2]);
  });

  it('one vector of another length refuses the whole batch', async () => {
    const { put, ids, post } = await made();
    expectRefused(
      await put({ id: 1 }, { id: 2, vector: [1, 2, 3] }),
      400,
      'Vector dimension error: expected dim: 2, got 3',
    );
    expect(await ids()).toEqual([]);
    await put({ id: 1 });
    expectRefused(
      await post('/points/query', { query: [1, 2, 3] }),
      400,
      'Vector dimension error: expected dim: 2, got 3',
    );
  });

  it('a payload keeps null, nested values, integers of 53 bits and text of any letters', async () => {
    const { put, post } = await made();
    const payload = {
      a: null,
      b: { c: [1, [2], { d: null }] },
      n: 2 ** 53 - 1,
      f: 0.1,
      t: '\u0000ä😀',
      e: [],
      o: {},
      'x-y.z': 1,
    };
    expect(await put({ id: 1, payload })).toMatchObject({ status: 200 });
    expect((await post('/points', { ids: [1], with_payload: true })).body.result[0].payload).toEqual(payload);
  });

  it('of a body of more than 32 MiB nothing is read: mostly the connection breaks before the answer, a 400, arrives', async () => {
    const { put, ids } = await made();
    const text = 'x'.repeat(1024 * 1024);
    const large = await put({ id: 1, payload: { text: Array.from({ length: 33 }, () => text) } }).catch(
      (error) => error.message,
    );
    if (large !== 'fetch failed') expectRefused(large, 400, 'is larger than allowed');
    expect(await ids()).toEqual([]);
    expect(await put({ id: 1, payload: { text: Array.from({ length: 31 }, () => text) } })).toMatchObject({
      status: 200,
    });
  });
});

describe('vectors and scores', () => {
  it('a cosine collection stores vectors with length 1, and reads them so; the others as they were', async () => {
    const read = async (distance: string) => {
      const { put, post } = await made(distance);
      await put({ id: 1, vector: [3, 4] }, { id: 2, vector: [0, 0] });
      const { body } = await post('/points', { ids: [1, 2], with_vector: true });
      return body.result
        .sort((a: { id: number }, b: { id: number }) => a.id - b.id)
        .map(({ vector }: { vector: number[] }) => vector);
    };
    expect(await read('Cosine')).toEqual([
      [0.6, 0.8],
      [0, 0],
    ]);
    for (const distance of ['Dot', 'Euclid', 'Manhattan'])
      expect(await read(distance)).toEqual([
        [3, 4],
        [0, 0],
      ]);
  });

  it('scores: cosine and dot best first; Euclid and Manhattan are distances, nearest first', async () => {
    const scores = async (distance: string) => {
      const { put, post } = await made(distance);
      await put({ id: 1, vector: [3, 4] }, { id: 2, vector: [-3, -4] }, { id: 3, vector: [0, 0] });
      const { body } = await post('/points/query', { query: [3, 4] });
      return body.result.points.map(({ id, score }: { id: number; score: number }) => [
        id,
        Math.round(score * 1e4) / 1e4,
      ]);
    };
    expect(await scores('Cosine')).toEqual([
      [1, 1],
      [3, 0],
      [2, -1],
    ]);
    expect(await scores('Dot')).toEqual([
      [1, 25],
      [3, 0],
      [2, -25],
    ]);
    expect(await scores('Euclid')).toEqual([
      [1, 0],
      [3, 5],
      [2, 10],
    ]);
    expect(await scores('Manhattan')).toEqual([
      [1, 0],
      [3, 7],
      [2, 14],
    ]);
  });
});

describe('errors', () => {
  it('a collection that does not exist is 404, one that exists already 409', async () => {
    const { path } = await made();
    for (const [end, body] of [
      ['/points/scroll', {}],
      ['/points/query', { query: [1, 0] }],
      ['/points/count', {}],
    ] as const) {
      expectRefused(
        await tell('POST', `${server.url}/collections/omp-test-none${end}`, body),
        404,
        "Collection `omp-test-none` doesn't exist!",
      );
    }
    expectRefused(
      await tell('PUT', server.url + path, { vectors: { size: 2, distance: 'Dot' } }),
      409,
      'already exists!',
    );
  });

  it('a description has size, metric, indexes, the number of points and the metadata of a collection', async () => {
    const path = `/collections/${freshCollection()}`;
    onTestFinished(async () => void (await tell('DELETE', server.url + path)));
    await tell('PUT', server.url + path, { vectors: { size: 3, distance: 'Cosine' }, metadata: { model: 'm' } });
    await tell('PUT', `${server.url}${path}/index?wait=true`, {
      field_name: 'n',
      field_schema: { type: 'keyword', is_tenant: true },
    });
    expect((await tell('GET', server.url + path)).body.result).toMatchObject({
      status: 'green',
      points_count: 0,
      config: { params: { vectors: { size: 3, distance: 'Cosine' } }, metadata: { model: 'm' } },
      payload_schema: { n: { data_type: 'keyword', params: { is_tenant: true } } },
    });
  });
});

describe('an API key', () => {
  it('that is wrong or missing is 401 in plain text', async () => {
    const guarded = await openQdrant({ apiKey: 'a-key' });
    onTestFinished(guarded.close);
    const ask = (headers: object) => tell('GET', `${guarded.url}/collections/omp-test-none`, undefined, headers);
    expect(await ask({})).toEqual({ status: 401, body: 'Must provide an API key or an Authorization bearer token' });
    expect(await ask({ 'api-key': 'no' })).toEqual({ status: 401, body: 'Invalid API key or JWT' });
    expect(await ask({ 'api-key': 'a-key' })).toMatchObject({ status: 404 });
  });
});
