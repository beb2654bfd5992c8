import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { post, refused } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';

const namespace = 'n';
const RECORDS = {
  one: { kind: 'a', n: 1, on: true, tags: ['x', 'y'] },
  two: { kind: 'b', n: 2, on: false, tags: ['y', 'z'] },
  three: { kind: 'c', n: 3, on: true },
  bare: {},
};

let server: Pinecone;
beforeAll(async () => {
  server = await startPinecone({ dimension: 1 });
  const vectors = Object.entries(RECORDS).map(([id, metadata]) => ({ id, values: [1], metadata }));
  await post(server, '/vectors/upsert', { vectors: [...vectors, { id: 'none', values: [1] }], namespace });
});
afterAll(() => server.close());

const query = (filter: unknown) => post(server, '/query', { vector: [1], topK: 10, filter, namespace });
const found = async (filter: object): Promise<string[]> => {
  const { status, body } = await query(filter);
  expect({ status, body }).toMatchObject({ status: 200 });
  return (body as { matches: { id: string }[] }).matches.map(({ id }) => id);
};
const among = (...ids: string[]) => ids.sort();

describe('a filter', () => {
  it.each([
    ['a plain value is $eq', { kind: 'a' }, ['one']],
    ['$eq of a boolean', { on: { $eq: false } }, ['two']],
    ['$eq does not mix types', { n: '1' }, []],
    [
      '$ne where every record that the rest leaves has a value',
      { $and: [{ tags: 'y' }, { kind: { $ne: 'a' } }] },
      ['two'],
    ],
    ['$nin likewise', { kind: { $exists: true, $nin: ['a', 'b'] } }, ['three']],
    ['$gt', { n: { $gt: 2 } }, ['three']],
    ['$gte', { n: { $gte: 2 } }, among('two', 'three')],
    ['$lt', { n: { $lt: 2 } }, ['one']],
    ['$lte', { n: { $lte: 2 } }, among('one', 'two')],
    ['several operators hold together', { n: { $gt: 1, $lt: 3 } }, ['two']],
    ['several fields hold together', { on: true, n: { $gt: 1 } }, ['three']],
    ['$in', { kind: { $in: ['a', 'c', 'zz'] } }, among('one', 'three')],
    ['$in of numbers', { n: { $in: [2, 3] } }, among('two', 'three')],
    ['$exists', { tags: { $exists: true } }, among('one', 'two')],
    ['$exists false', { kind: { $exists: false } }, among('bare', 'none')],
    ['$or', { $or: [{ kind: 'a' }, { n: 3 }] }, among('one', 'three')],
    ['$and within $or', { $or: [{ $and: [{ on: true }, { n: 1 }] }, { kind: 'b' }] }, among('one', 'two')],
    ['of a list any element matches', { tags: 'y' }, among('one', 'two')],
    ['$in of a list: any element', { tags: { $in: ['x', 'zz'] } }, ['one']],
    ['all of a list: $and', { $and: [{ tags: 'x' }, { tags: 'y' }] }, ['one']],
    ['comparing finds no text', { kind: { $gt: 0 } }, []],
    ['a key that every object has is missing', { constructor: { $exists: true } }, []],
  ])('%s', async (_, filter, ids) => {
    expect((await found(filter)).sort()).toEqual(ids);
  });
});

describe('a filter is refused', () => {
  it.each([
    ['that is empty', {}],
    ['with a list for a value', { tags: ['a'] }],
    ['with $eq of a list', { tags: { $eq: ['a'] } }],
    ['with null for a value', { kind: null }],
    ['with an empty condition', { kind: {} }],
    ['"$gt: numbers only"', { kind: { $gt: '2020-01-01' } }],
    ['with $lte of a boolean', { n: { $lte: true } }],
    ['with an unknown operator', { kind: { $regex: 'a' } }],
    ['with an operator that every object has', { kind: { toString: 'a' } }],
    ['with $in of no list', { kind: { $in: 'a' } }],
    ['with an empty $in', { kind: { $in: [] } }],
    ['with $in of booleans', { on: { $in: [true] } }],
    ['with $exists of a number', { kind: { $exists: 1 } }],
    ['with $not at the top', { $not: { kind: 'a' } }],
    ['with $eq at the top', { $eq: 1 }],
    ['with $and of no list', { $and: { kind: 'a' } }],
    ['with an empty $or', { $or: [] }],
    ['with a mistake inside $or', { $or: [{ kind: 'a' }, { kind: { $is: 1 } }] }],
    ['with $ne where a record lacks the key', { kind: { $ne: 'a' } }],
    ['with $nin where a record lacks the key', { kind: { $nin: ['a'] } }],
    ['with $ne where a record has a list', { tags: { $exists: true, $ne: 'x' } }],
    ['with $or of which a negation decides', { $or: [{ kind: 'a' }, { kind: { $ne: 'b' } }] }],
  ])('%s', async (_, filter) => {
    expect(await query(filter)).toMatchObject({ status: 400, body: refused(expect.any(String)) });
  });

  it('with more than "10,000 values" in $in', async () => {
    const values = Array.from({ length: 10_001 }, (_, i) => i);
    expect(await query({ n: { $in: values } })).toMatchObject({ status: 400 });
    expect(await found({ n: { $in: values.slice(0, 10_000) } })).toHaveLength(3);
  });

  it('by delete, update and fetch_by_metadata as well, which then change nothing', async () => {
    const filter = { kind: { $regex: 'a' } };
    const before = await server.records(namespace);
    for (const [path, body] of [
      ['/vectors/delete', { filter: {} }],
      ['/vectors/delete', { filter }],
      ['/vectors/delete', { filter: { kind: { $ne: 'a' } } }],
      ['/vectors/update', { filter, setMetadata: { a: 1 } }],
      ['/vectors/fetch_by_metadata', { filter }],
      ['/vectors/fetch_by_metadata', {}],
    ] as const) {
      expect(await post(server, path, { ...body, namespace })).toMatchObject({ status: 400 });
    }
    expect(await server.records(namespace)).toEqual(before);
  });
});
