import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ask, HEADERS, post } from '../pinecone-server/plain.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';

let server: Pinecone;
let namespace = '';
let made = 0;
beforeAll(async () => {
  server = await startPinecone({ dimension: 1 });
});
beforeEach(async () => {
  await server.lag({});
  made += 1;
  namespace = `n${made}`;
});
afterAll(() => server.close());

/** Longer than any test takes. */
const AN_HOUR = 3_600_000;

const write = async (path: string, body: object): Promise<string | null> => {
  const { status, headers } = await post(server, path, { namespace, ...body });
  expect(status).toBe(200);
  return headers.get('x-pinecone-request-lsn');
};
const deleteNamespace = () => ask(server, `/namespaces/${namespace}`, { method: 'DELETE', headers: HEADERS });
const upsert = (id: string, metadata = {}) =>
  write('/vectors/upsert', { vectors: [{ id, values: [1], metadata: { id, ...metadata } }] });

interface Queried {
  readonly matches: { readonly id: string; readonly metadata: object }[];
}
const query = async () => {
  const asked = { vector: [1], topK: 100, includeMetadata: true, namespace };
  const { body, headers } = await post(server, '/query', asked);
  const { matches } = body as Queried;
  return { matches, ids: matches.map(({ id }) => id), lsn: headers.get('x-pinecone-max-indexed-lsn') };
};
const queried = async () => (await query()).ids;
const listed = async () => {
  const { body } = await ask(server, `/vectors/list?namespace=${namespace}`);
  return (body as { vectors: { id: string }[] }).vectors.map(({ id }) => id);
};
const fetched = async (id: string) => {
  const { body } = await ask(server, `/vectors/fetch?ids=${id}&namespace=${namespace}`);
  return Object.keys((body as { vectors: object }).vectors);
};
const becomes = (look: () => Promise<string[]>, wanted: readonly string[]) =>
  expect.poll(look, { interval: 20 }).toEqual(wanted);

describe('log sequence numbers', () => {
  it('of a namespace count its writes; a query says up to which it saw', async () => {
    expect(await upsert('a')).toBe('1');
    expect(await upsert('b')).toBe('2');
    expect(await write('/vectors/update', { id: 'a', setMetadata: { n: 1 } })).toBe('3');
    expect(await write('/vectors/delete', { ids: ['b'] })).toBe('4');
    expect(await query()).toMatchObject({ ids: ['a'], lsn: '4' });
    expect(
      await write('/vectors/upsert', { namespace: `${namespace}-other`, vectors: [{ id: 'x', values: [1] }] }),
    ).toBe('1');
    const { headers } = await ask(server, `/vectors/list?namespace=${namespace}`);
    expect([...headers.keys()].filter((name) => name.includes('lsn'))).toEqual([]);
  });

  it('"a write is visible to queries once max-indexed >= request", and not before', async () => {
    await server.lag({ writes: 2 });
    const numbers: Record<string, number> = {};
    for (const id of ['a', 'b', 'c', 'd']) {
      numbers[id] = Number(await upsert(id));
      const { ids, lsn } = await query();
      for (const [written, number] of Object.entries(numbers)) {
        expect(ids.includes(written), `${written} after ${id}`).toBe(Number(lsn) >= number);
      }
    }
    expect(await query()).toMatchObject({ ids: ['a', 'b'], lsn: '2' });
  });

  it('go on when a namespace is deleted and made again', async () => {
    await upsert('a');
    expect(await deleteNamespace()).toMatchObject({ status: 200 });
    expect(await upsert('b')).toBe('3');
    expect(await query()).toMatchObject({ ids: ['b'], lsn: '3' });
  });

  it('may be absent, and what lags from the start does so', async () => {
    const other = await startPinecone({ dimension: 1, lsn: false, lagWrites: 1, lagMs: 1 });
    const vectorsOf = (id: string) => ({ vectors: [{ id, values: [1] }], namespace });
    const first = await post(other, '/vectors/upsert', vectorsOf('a'));
    const seen = async () =>
      (await post(other, '/query', { vector: [1], topK: 2, namespace })) as { headers: Headers; body: Queried };
    expect((await seen()).body.matches).toEqual([]);
    await post(other, '/vectors/upsert', vectorsOf('b'));
    await becomes(async () => (await seen()).body.matches.map(({ id }) => id), ['a']);
    for (const { headers } of [first, await seen()]) {
      expect([...headers.keys()].filter((name) => name.includes('lsn'))).toEqual([]);
    }
    await other.close();
  });

  it('are absent of a namespace that was never written to', async () => {
    expect(await query()).toMatchObject({ ids: [], lsn: null });
  });
});

describe('reading is behind writing', () => {
  it('by a number of later writes: for query, fetch, list and stats', async () => {
    await server.lag({ writes: 1 });
    await upsert('a');
    expect([await queried(), await listed(), await fetched('a')]).toEqual([[], [], []]);
    await upsert('b');
    expect([await queried(), await listed(), await fetched('a'), await fetched('b')]).toEqual([
      ['a'],
      ['a'],
      ['a'],
      [],
    ]);
    const { body } = await post(server, '/describe_index_stats', {});
    expect(body).toMatchObject({ namespaces: { [namespace]: { vectorCount: 1 } } });
    expect(Object.keys(await server.records(namespace))).toEqual(['a', 'b']);
  });

  it('for as long as it is held', async () => {
    await upsert('a');
    await server.lag({ held: true });
    await upsert('b');
    await write('/vectors/delete', { ids: ['a'] });
    expect([await queried(), await listed(), await fetched('b')]).toEqual([['a'], ['a'], []]);
    await server.lag({ held: false });
    expect([await queried(), await listed(), await fetched('b')]).toEqual([['b'], ['b'], ['b']]);
  });

  it('by a time', async () => {
    await server.lag({ ms: AN_HOUR });
    await upsert('a');
    expect([await queried(), await listed()]).toEqual([[], []]);
    await server.lag({ ms: 1 });
    await becomes(queried, ['a']);
    await becomes(listed, ['a']);
  });

  it('in its own time for fetch and list, which then follow nothing else', async () => {
    await server.lag({ fetchMs: AN_HOUR });
    await upsert('a');
    expect([await queried(), await listed(), await fetched('a')]).toEqual([['a'], [], []]);
    await server.lag({ held: true, fetchMs: 0 });
    await upsert('b');
    expect([await queried(), await listed(), await fetched('b')]).toEqual([['a'], ['a', 'b'], ['b']]);
  });

  it('until everything settles; what is written later lags again', async () => {
    await server.lag({ ms: AN_HOUR });
    await upsert('a');
    await server.lag({ held: true, fetchMs: AN_HOUR });
    await server.settle();
    expect([await queried(), await listed()]).toEqual([['a'], ['a']]);
    await upsert('b');
    expect([await queried(), await listed()]).toEqual([['a'], ['a']]);
  });

  it('but what was seen once is not unseen when the lag grows', async () => {
    await upsert('a');
    await server.lag({ ms: AN_HOUR });
    expect([await queried(), await listed()]).toEqual([['a'], ['a']]);
  });

  it('and shows the records of a deleted namespace until it catches up', async () => {
    await upsert('a');
    await server.lag({ held: true });
    await deleteNamespace();
    expect(await server.namespaces()).not.toContain(namespace);
    expect([await queried(), await listed()]).toEqual([['a'], ['a']]);
    await server.settle();
    expect([await queried(), await listed()]).toEqual([[], []]);
  });
});

describe('writes', () => {
  it('apply in their order: an update and a delete by filter reach what cannot be read yet', async () => {
    await server.lag({ held: true });
    await upsert('a', { kind: 'x' });
    await write('/vectors/update', { id: 'a', setMetadata: { n: 1 } });
    await upsert('b', { kind: 'y' });
    await write('/vectors/delete', { filter: { kind: 'y' } });
    await write('/vectors/update', { filter: { kind: 'x' }, setMetadata: { m: 2 } });
    expect(await queried()).toEqual([]);
    await server.settle();
    expect((await query()).matches).toMatchObject([{ id: 'a', metadata: { id: 'a', kind: 'x', n: 1, m: 2 } }]);
  });

  it('are seen as a prefix: what can be read is what was written up to some write, however long the log', async () => {
    const states = [['first']];
    const writeMany = async (count: number) => {
      const ids = new Set(states.at(-1));
      for (let i = 0; i < count; i += 1) {
        const id = `${i % 7}`;
        if (ids.delete(id)) await write('/vectors/delete', { ids: [id] });
        else {
          ids.add(id);
          await upsert(id);
        }
        states.push([...ids].sort());
        if (i > 990) expect((await queried()).sort()).toEqual(states.at(-4));
      }
    };
    await server.lag({ writes: 3, fetchMs: AN_HOUR });
    await upsert('first');
    await writeMany(1_100);
    expect(await listed()).toEqual([]);
    await server.settle();
    expect([(await queried()).sort(), await listed()]).toEqual([states.at(-1), states.at(-1)]);
    await server.lag({ writes: 3 });
    await writeMany(1_100);
    expect([(await queried()).sort(), await listed()]).toEqual([states.at(-4), states.at(-4)]);
  });
});
