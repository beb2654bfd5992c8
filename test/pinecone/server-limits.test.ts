import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask, post, refused } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';

const namespace = 'n';
let server: Pinecone;

beforeAll(async () => {
  server = await startPinecone({ dimension: 2 });
  await upsert([{ id: 'there' }]);
});
// What is refused here is against the service's limits, not against the OpenAPI file: no violation.
afterAll(() => server.close());

const upsert = (vectors: readonly object[]) =>
  post(server, '/vectors/upsert', { vectors: vectors.map((one) => ({ values: [1, 0], ...one })), namespace });
const refusalOf = async (answer: ReturnType<typeof post>): Promise<string> => {
  const { status, body } = await answer;
  expect({ status, body }).toEqual({ status: 400, body: refused(expect.any(String)) });
  return (body as { message: string }).message;
};
const accepted = async (answer: ReturnType<typeof post>) => expect(await answer).toMatchObject({ status: 200 });

describe('metadata', () => {
  const withMetadata = (metadata: object) => upsert([{ id: 'm', metadata }]);
  // {"a":"…"} is 8 bytes longer than the text.
  const ofBytes = (bytes: number) => ({ a: 'x'.repeat(bytes - 8) });

  it('"40,960 bytes" of JSON are the most of a record', async () => {
    await accepted(withMetadata(ofBytes(40_960)));
    expect(await refusalOf(withMetadata(ofBytes(40_961)))).toBe(
      'Metadata size is 40961 bytes, which exceeds the limit of 40960 bytes per vector',
    );
    expect(await refusalOf(withMetadata({ a: 'ä'.repeat(20_477) }))).toContain('40962 bytes');
  });

  it('an update may not make it exceed them either', async () => {
    await accepted(withMetadata(ofBytes(40_960)));
    const update = (setMetadata: object) => post(server, '/vectors/update', { id: 'm', setMetadata, namespace });
    expect(await refusalOf(update({ b: 1 }))).toContain('exceeds the limit of 40960 bytes');
    await accepted(update({ a: 1 }));
    await accepted(update({ b: 1 }));
  });

  it.each([
    ['null', null],
    ['an object', { b: 1 }],
    ['a list of numbers', [1, 2]],
    ['a mixed list', ['a', 1]],
    ['an empty list', []],
  ])('"must be a string, number, boolean or list of strings": not %s', async (_, a) => {
    expect(await refusalOf(withMetadata({ fine: true, a }))).toBe(
      `Metadata value must be a string, number, boolean or list of strings, got '${JSON.stringify(a)}' for field 'a'`,
    );
    const update = { id: 'there', setMetadata: { a }, namespace };
    expect(await refusalOf(post(server, '/vectors/update', update))).toContain("for field 'a'");
  });

  it('keys "must not start with $"', async () => {
    await accepted(withMetadata({ a$: 1 }));
    expect(await refusalOf(withMetadata({ $a: 1 }))).toBe("Metadata key cannot start with '$', got '$a'");
  });
});

describe('records', () => {
  it('an id has 1 to 512 ASCII characters without NUL', async () => {
    await accepted(upsert([{ id: '~'.repeat(512) }]));
    const remove = (id: string) => refusalOf(post(server, '/vectors/delete', { ids: [id], namespace }));
    for (const id of ['', '~'.repeat(513), 'ä', 'a\0']) expect(await remove(id)).toContain('Vector ID must');
    for (const id of ['ä', 'a\0']) expect(await refusalOf(upsert([{ id }]))).toContain('Vector ID must');
    expect(await refusalOf(ask(server, `/vectors/fetch?ids=%C3%A4&namespace=${namespace}`))).toContain('Vector ID');
  });

  it("a vector has the index's dimension", async () => {
    const message = 'Vector dimension 3 does not match the dimension of the index 2';
    expect(await refusalOf(upsert([{ id: 'a', values: [1, 2, 3] }]))).toBe(message);
    expect(await refusalOf(post(server, '/query', { vector: [1, 2, 3], topK: 1, namespace }))).toBe(message);
    expect(await refusalOf(post(server, '/vectors/update', { id: 'there', values: [1, 2, 3], namespace }))).toBe(
      message,
    );
    expect(await refusalOf(upsert([{ id: 'a', values: undefined }]))).toContain('dimension 0');
  });

  it('"Dense vectors must contain at least one non-zero value"', async () => {
    const message = 'Dense vectors must contain at least one non-zero value';
    expect(await refusalOf(upsert([{ id: 'a', values: [0, 0] }]))).toBe(message);
    expect(await refusalOf(post(server, '/vectors/update', { id: 'there', values: [0, 0], namespace }))).toBe(message);
  });

  it('values are 32-bit floats', async () => {
    expect(await refusalOf(upsert([{ id: 'a', values: [1e39, 0] }]))).toContain('32-bit');
  });

  it('of an upsert that is refused nothing is kept', async () => {
    await refusalOf(upsert([{ id: 'fine' }, { id: 'bad', values: [0, 0] }]));
    expect(await server.records(namespace)).not.toHaveProperty('fine');
  });
});

describe('requests', () => {
  const ids = (count: number) => Array.from({ length: count }, (_, i) => `${i}`);

  it('an upsert has "≤1,000 records"', async () => {
    await accepted(upsert(ids(1_000).map((id) => ({ id }))));
    expect(await refusalOf(upsert(ids(1_001).map((id) => ({ id }))))).toContain('1000 vectors');
    expect(await refusalOf(upsert([]))).toContain('at least one');
  });

  it('and "≤2 MB"', async () => {
    const metadata = { a: 'x'.repeat(40_000) };
    await accepted(upsert(ids(49).map((id) => ({ id, metadata }))));
    expect(await refusalOf(upsert(ids(50).map((id) => ({ id, metadata }))))).toContain('limit of 2000000 bytes');
  });

  it('a delete has "≤1,000 ids"', async () => {
    const remove = (count: number) => post(server, '/vectors/delete', { ids: ids(count), namespace });
    await accepted(remove(1_000));
    expect(await refusalOf(remove(1_001))).toContain('at most 1000 ids');
    expect(await refusalOf(remove(0))).toContain('at least one id');
  });

  it('a fetch has "≤1,000 ids", without spaces', async () => {
    const fetching = (list: readonly string[]) =>
      ask(
        server,
        `/vectors/fetch?namespace=${namespace}&${list.map((id) => `ids=${encodeURIComponent(id)}`).join('&')}`,
      );
    await accepted(fetching(ids(1_000)));
    expect(await refusalOf(fetching(ids(1_001)))).toContain('at most 1000 ids');
    expect(await refusalOf(fetching(['a b']))).toContain('spaces');
  });

  it('a delete says in exactly one way what goes', async () => {
    const remove = (body: object) => refusalOf(post(server, '/vectors/delete', { ...body, namespace }));
    for (const body of [{}, { deleteAll: false }, { ids: ['a'], deleteAll: true }, { ids: ['a'], filter: { a: 1 } }]) {
      expect(await remove(body)).toContain('exactly one');
    }
  });

  it('an update has an id or a filter, and sets values by id only', async () => {
    const update = (body: object) => refusalOf(post(server, '/vectors/update', { ...body, namespace }));
    expect(await update({ setMetadata: { a: 1 } })).toContain('either id or filter');
    expect(await update({ id: 'a', filter: { a: 1 }, setMetadata: { a: 1 } })).toContain('either id or filter');
    expect(await update({ filter: { a: 1 }, values: [1, 0] })).toContain('by filter');
    expect(await update({ filter: { a: 1 } })).toContain('setMetadata is required');
    expect(await update({ id: 'a', dryRun: true })).toContain('dryRun');
  });

  it('a query has a vector or an id', async () => {
    const query = (body: object) => refusalOf(post(server, '/query', { topK: 1, ...body, namespace }));
    expect(await query({})).toContain('either vector or id');
    expect(await query({ vector: [1, 0], id: 'there' })).toContain('either vector or id');
  });

  it('sparse values and what only other kinds of indexes know is refused', async () => {
    const sparseValues = { indices: [1], values: [1] };
    expect(await refusalOf(upsert([{ id: 'a', sparseValues }]))).toContain('dense');
    expect(await refusalOf(post(server, '/vectors/update', { id: 'there', sparseValues, namespace }))).toContain(
      'dense',
    );
    for (const other of [{ sparseVector: sparseValues }, { scanFactor: 1 }, { maxCandidates: 5 }, { queries: [] }]) {
      const asked = { vector: [1, 0], topK: 1, ...other, namespace };
      expect(await refusalOf(post(server, '/query', asked))).toContain('not supported by this index');
    }
    const withFilter = post(server, '/describe_index_stats', { filter: { a: 1 } });
    expect(await refusalOf(withFilter)).toContain('Serverless indexes do not support');
  });

  it("a namespace's name has at most 512 ASCII characters, and the default one's is reserved", async () => {
    const upsertInto = (name: string) =>
      post(server, '/vectors/upsert', { vectors: [{ id: 'a', values: [1, 0] }], namespace: name });
    await accepted(upsertInto('n'.repeat(512)));
    expect(await refusalOf(upsertInto('n'.repeat(513)))).toContain('at most 512');
    expect(await refusalOf(upsertInto('ä'))).toContain('ASCII');
    for (const name of ['', '__default__']) {
      expect(await refusalOf(post(server, '/namespaces', { name }))).toContain('reserved');
    }
  });

  it('a namespace has at most 50 filterable fields, and none that is not', async () => {
    const create = (fields: object) => post(server, '/namespaces', { name: 'fields', schema: { fields } });
    const many = (count: number) => Object.fromEntries(ids(count).map((id) => [id, { filterable: true }]));
    expect(await refusalOf(create(many(51)))).toContain('at most 50');
    expect(await refusalOf(create({ a: { filterable: false } }))).toContain('only filterable: true');
    await accepted(create(many(50)));
  });
});

describe('answers', () => {
  it('a query\'s result and that of fetch_by_metadata are "≤4 MB"', async () => {
    const metadata = { a: 'x'.repeat(40_900), big: true };
    for (let part = 0; part < 3; part += 1) {
      await accepted(upsert(Array.from({ length: 34 }, (_, i) => ({ id: `big${part}-${i}`, metadata }))));
    }
    const query = (topK: number) =>
      post(server, '/query', { vector: [1, 0], topK, filter: { big: true }, includeMetadata: true, namespace });
    await accepted(query(97));
    expect(await refusalOf(query(98))).toContain('4000000 bytes');
    const fetching = (limit: number) =>
      post(server, '/vectors/fetch_by_metadata', { filter: { big: true }, limit, namespace });
    await accepted(fetching(97));
    expect(await refusalOf(fetching(98))).toContain('4000000 bytes');
  });

  it('a page of fetch_by_metadata has at most 10,000 records', async () => {
    const fetching = (limit: number) =>
      post(server, '/vectors/fetch_by_metadata', { filter: { a: 'none' }, limit, namespace });
    await accepted(fetching(10_000));
    expect(await refusalOf(fetching(10_001))).toContain('between 1 and 10000');
  });

  it('"fetch_by_metadata 5 req/s per namespace", where rate limits are on', async () => {
    const limited = await startPinecone({ dimension: 2, rateLimits: true });
    const asked = Array.from({ length: 60 }, () =>
      post(limited, '/vectors/fetch_by_metadata', { filter: { a: 1 }, namespace }),
    );
    const answers = await Promise.all(asked);
    expect(answers.slice(0, 5).map(({ status }) => status)).toContain(200);
    expect(answers.filter(({ status }) => status === 429)[0]?.body).toEqual(
      refused(`Request failed. You've reached the fetch by metadata QPS limit for namespace ${namespace}`, 8),
    );
    const elsewhere = await post(limited, '/vectors/fetch_by_metadata', { filter: { a: 1 }, namespace: 'other' });
    expect(elsewhere.status).toBe(200);
    await limited.close();
  });
});
