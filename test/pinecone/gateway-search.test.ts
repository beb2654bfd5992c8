import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Memory, SearchHit } from '#contract';
import { roundScore } from '#ranking';
import type { GatewayIndex } from '../../providers/pinecone/gateway-index/gateway-reads.ts';
import type { Metric } from '../../providers/pinecone/score.ts';
import { score } from '../pinecone-server/score.ts';
import { type Pinecone, startPinecone } from '../pinecone-server/start.ts';
import { call } from '../support/requests.ts';
import { NAMESPACE, openUserIndex, type UserIndex, vectorOf } from './gateway-index.ts';

const DIMENSION = 4;

let server: Pinecone;
let index: UserIndex;
beforeAll(async () => {
  server = await startPinecone({ dimension: DIMENSION });
});
beforeEach(async () => {
  await server.lag({});
  await server.resetCalls();
  index = openUserIndex(server, DIMENSION);
  return () => index.close();
});
afterAll(() => server.close());

/** A memory made so many milliseconds after the first. */
const memoryOf = (of: UserIndex, ms: number, content: string, more: Partial<Memory> = {}) =>
  of.memory(Date.UTC(2026, 0, 1) + ms, { content, ...more });
const memory = (ms: number, content: string, more: Partial<Memory> = {}) => memoryOf(index, ms, content, more);

interface Asked {
  readonly tags?: readonly string[];
  readonly limit?: number;
}

/** Every memory scored and sorted: what search has to answer. */
function truth(memories: readonly Memory[], query: string, { tags = [], limit = 10 }: Asked = {}): SearchHit[] {
  const asked = vectorOf(query, DIMENSION);
  return memories
    .filter((memory) => tags.every((tag) => memory.tags.includes(tag)))
    .map((memory) => {
      const cosine = score.cosine(asked, vectorOf(memory.content, DIMENSION));
      return { memory, score: roundScore(Math.max(0, cosine)) };
    })
    .sort((a, b) => b.score - a.score || listed(a.memory, b.memory))
    .slice(0, limit);
}
const listed = (a: Memory, b: Memory) =>
  (a.created_at === b.created_at ? a.id > b.id : a.created_at > b.created_at) ? -1 : 1;

/** Readable when it fails. */
const shown = (hits: readonly SearchHit[]) =>
  hits.map(({ memory, score }) => `${memory.id} ${memory.content} ${score}`);
const expectTruth = async (memories: readonly Memory[], query: string, asked: Asked = {}) => {
  const hits = await index.search(query, asked);
  expect(shown(hits)).toEqual(shown(truth(memories, query, asked)));
  expect(hits.map(({ memory }) => memory)).toEqual(truth(memories, query, asked).map(({ memory }) => memory));
};
const queries = async () => (await server.calls()).filter(({ operation }) => operation === 'query');
const topKs = async () => (await queries()).map(({ body }) => (body as { topK: number }).topK);
const operations = async () => (await server.calls()).map(({ operation }) => operation);

/** Few enough directions for ties, opposites and texts without signal to be common. */
const content = fc
  .array(fc.integer({ min: -1, max: 1 }), { minLength: 1, maxLength: DIMENSION })
  .map((made) => JSON.stringify(made));
const tags = fc.subarray(['a', 'b']);
const pick = fc.nat(99);

describe('search', () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('add' as const), ms: fc.nat(4), content, tags }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('change' as const), pick, content, tags }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('remove' as const), pick }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constantFrom('hold' as const, 'settle' as const, 'restart' as const) }),
    },
  );
  const asked = fc.record({ content, tags, limit: fc.integer({ min: 1, max: 12 }) });

  it('[SPEC GET /memories/search order] is exact, also for what this gateway wrote and the index does not show yet', async () => {
    let overlaid = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 25, size: 'max' }),
        fc.array(asked, { minLength: 2, maxLength: 4 }),
        async (steps, searches) => {
          index.close();
          index = openUserIndex(server, DIMENSION);
          await server.lag({});
          const memories: Memory[] = [];
          const chosen = (number: number) => number % Math.max(1, memories.length);
          for (const next of steps) {
            const at = 'pick' in next ? chosen(next.pick) : memories.length;
            const before = memories[at];
            if (next.kind === 'add') {
              const made = memory(next.ms, next.content, { tags: next.tags });
              memories.push(made);
              await index.add(made);
            } else if (next.kind === 'change' && before) {
              const after = { ...before, content: next.content, tags: next.tags };
              memories[at] = after;
              await index.change(before, after);
            } else if (next.kind === 'remove' && before) {
              memories.splice(at, 1);
              await index.remove(before);
            } else if (next.kind === 'hold') await server.lag({ held: true });
            else if (next.kind !== 'change' && next.kind !== 'remove') {
              await server.settle();
              if (next.kind === 'restart') index.forget();
            }
          }
          const { live, deleted } = index.own.overlay.of(index.userPart);
          if (live.length + deleted.size > 0) overlaid += 1;
          for (const { content: query, ...more } of searches) await expectTruth(memories, query, more);
        },
      ),
      { numRuns: 60 },
    );
    expect(overlaid).toBeGreaterThan(20);
  });

  it('[SPEC GET /memories/search limit] of many memories is exact at every limit', async () => {
    const made = fc.sample(fc.tuple(fc.nat(50), content, tags), { numRuns: 320, seed: 3 });
    const memories = made.map(([ms, text, own]) => memory(ms, text, { tags: own }));
    await index.seed(memories);
    for (const limit of [1, 10, 96, 97, 98, 100, 250, 320, 500]) await expectTruth(memories, '[1,1,0,1]', { limit });
    for (const limit of [10, 100]) await expectTruth(memories, '[1,-1]', { limit, tags: ['a', 'b'] });
  });

  it('asks one request where few memories are wanted or there; larger pages are filled by id', async () => {
    await index.seed(Array.from({ length: 90 }, (_, i) => memory(i, JSON.stringify([i, 300]))));
    const asked = async (limit: number) => {
      await server.resetCalls();
      await index.search('[1,1]', { limit });
      return { operations: await operations(), topKs: await topKs() };
    };
    expect(await asked(500)).toEqual({ operations: ['query'], topKs: [97] });
    await index.seed(Array.from({ length: 210 }, (_, i) => memory(i, JSON.stringify([i + 90, 300]))));
    expect(await asked(10)).toEqual({ operations: ['query'], topKs: [11] });
    expect(await asked(96)).toEqual({ operations: ['query'], topKs: [97] });
    expect(await asked(100)).toEqual({ operations: ['query', 'query', 'fetch'], topKs: [97, 388] });
    const { path } = (await server.calls()).at(-1) as { path: string };
    expect(path.match(/ids=/g)).toHaveLength(3);
    expect((await asked(10_000)).topKs).toEqual([97, 10_000]);
  });

  it('[SPEC GET /memories/search limit] answers stay below 4 MB though every record has all of its 40,960 bytes', async () => {
    const memories = Array.from({ length: 120 }, (_, i) => memory(i, '[1]'));
    const metadata = { ...index.metadataOf(memories[0] as Memory), 'x-more': '' };
    const padding = 'm'.repeat(40_960 - Buffer.byteLength(JSON.stringify(metadata)));
    await index.seed(memories, { 'x-more': padding });
    for (const limit of [96, 97, 100, 120]) expect(await index.search('[1]', { limit })).toHaveLength(limit);
  });
});

describe('what nothing speaks for', () => {
  it('follows newest first, however much of it there is', async () => {
    const far = Array.from({ length: 400 }, (_, i) => memory(i * 3, '[-1]'));
    const near = [memory(7, '[1,1]'), memory(8, '[1]')];
    const silent = Array.from({ length: 200 }, (_, i) => memory(i * 3 + 1, 'no signal'));
    const memories = [...far, ...near, ...silent];
    await index.seed(memories);
    for (const limit of [1, 2, 3, 10, 100, 150, 700]) await expectTruth(memories, '[1]', { limit });
  });

  it('is looked for by the index where tags narrow it, since a list reads everything first', async () => {
    const memories = Array.from({ length: 400 }, (_, i) => memory(i, '[-1]', { tags: i % 2 ? ['a'] : [] }));
    await index.seed(memories);
    await server.resetCalls();
    for (const limit of [10, 150]) await expectTruth(memories, '[1]', { limit, tags: ['a'] });
    expect(new Set(await operations())).toEqual(new Set(['query', 'fetch']));
    const filter = { $and: [{ user_id: { $eq: index.user_id } }, { tags: { $eq: 'a' } }] };
    for (const { body } of await queries()) expect(body).toMatchObject({ filter });
    await expectTruth(memories, '[1]', { limit: 10 });
    expect(await operations()).toContain('list');
  });
});

it('[SPEC Errors invalid_request] of more than 10,000 equal scores any fill the page; when all are just deleted it is an error, never a partial answer', async () => {
  const equal = Array.from({ length: 10_050 }, (_, i) => memory(i, '[1]'));
  await index.seed([...equal, ...Array.from({ length: 30 }, (_, i) => memory(i, '[1,1]'))]);
  const hits = await index.search('[1]', { limit: 10 });
  expect(hits.map(({ score }) => score)).toEqual(Array(10).fill(1));
  expect(Math.max(...(await topKs()))).toBe(10_000);
  await server.resetCalls();
  const owner = index.userPart;
  for (const { id } of equal) index.own.overlay.bury({ id, owner }, { namespace: NAMESPACE, lsn: undefined });
  await expect(index.search('[1]')).rejects.toMatchObject({ code: 'invalid_request' });
  expect(Math.max(...(await topKs()))).toBe(10_000);
});

describe('what was just deleted or changed', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => memory(i, JSON.stringify([count, i])));

  it('takes no place of what remains', async () => {
    const memories = many(300);
    await index.seed(memories);
    await server.lag({ held: true });
    for (const memory of memories.slice(0, 150)) await index.remove(memory);
    await server.resetCalls();
    for (const limit of [1, 10, 100, 150, 200]) await expectTruth(memories.slice(150), '[1]', { limit });
    expect(Math.max(...(await topKs()))).toBeLessThan(500);
  });

  it('is not left to fetch, which may show less than a query did', async () => {
    await server.lag({ fetchMs: 3_600_000 });
    const memories = many(120);
    for (const memory of memories) await index.add(memory);
    await expectTruth(memories, '[1]', { limit: 110 });
  });

  it('through another gateway, between asking for ids and for records, lets others move up', async () => {
    const memories = many(150);
    await index.seed(memories);
    await server.lag({ held: true, fetchMs: 0 });
    const gone = memories.slice(100, 120);
    await index.own.service.remove(
      NAMESPACE,
      gone.map(({ id }) => id),
      call,
    );
    const left = memories.filter((memory) => !gone.includes(memory));
    for (const limit of [120, 150]) await expectTruth(left, '[1]', { limit });
  });
});

describe('a record that is not this user’s to see', () => {
  const elsewhere = (altered: Record<string, unknown>): Partial<GatewayIndex> => ({
    service: {
      ...index.own.service,
      query: (namespace, request, during) => index.own.service.query(namespace, { ...request, ...altered }, during),
    },
  });

  it('never comes back, even where the index minds no filter', async () => {
    const other = openUserIndex(server, DIMENSION);
    const [mine, untagged] = [memory(1, '[1]', { tags: ['a'] }), memory(2, '[1]')];
    await index.seed([mine, untagged]);
    await other.seed([memoryOf(other, 3, '[1]', { tags: ['a'] })]);
    // As if an id of ours had come to hold somebody else's memory.
    await index.seed([memory(4, '[1]', { tags: ['a'] })], { user_id: other.user_id });
    const filter = { user_id: { $in: [index.user_id, other.user_id] } };
    const everything = elsewhere({ filter });
    expect(await index.search('[1]', { tags: ['a'] }, everything)).toEqual([{ memory: mine, score: 1 }]);
    const unread = elsewhere({ filter, includeMetadata: false });
    expect(await index.search('[1]', { tags: ['a'] }, unread)).toEqual([{ memory: mine, score: 1 }]);
    other.close();
  });

  it('never comes back under an id that get would not find', async () => {
    const mine = memory(1, '[1]');
    await index.seed([mine, { ...mine, id: 'somebody-elses' }, { ...mine, id: `mem_${'0'.repeat(52)}` }]);
    expect(await index.search('[1]')).toEqual([{ memory: mine, score: 1 }]);
  });

  it('is none: not the record that describes the index, nor one without text', async () => {
    const mine = memory(1, '[1]');
    await index.seed([mine]);
    await index.seed([memory(2, '[1]')], { content: '' });
    expect(await index.search('[1]')).toEqual([{ memory: mine, score: 1 }]);
  });
});

describe.each(['dotproduct', 'euclidean'] as const)('an index by %s', (metric: Metric) => {
  it('[SPEC GET /memories/search order] orders as by cosine', async () => {
    const other = await startPinecone({ dimension: DIMENSION, metric });
    const there = openUserIndex(other, DIMENSION, { metric });
    const texts = Array.from({ length: 150 }, (_, i) => JSON.stringify([150 - i, i - 20, 10]));
    const made = texts.map((text, ms) => memoryOf(there, ms, text));
    await there.seed(made.slice(0, 100));
    await other.lag({ held: true });
    for (const memory of made.slice(100)) await there.add(memory);
    for (const query of ['[1]', '[-1,1]', '[-1]', '[0,0,-1]']) {
      for (const limit of [10, 120]) {
        const hits = await there.search(query, { limit });
        const wanted = truth(made, query, { limit });
        // Vectors are of length 1 to within a thousandth only, and these metrics mind that.
        for (const [at, hit] of hits.entries()) expect(hit.score).toBeCloseTo(wanted[at]?.score as number, 2);
        expect(hits).toHaveLength(limit);
        const zero = ({ score }: SearchHit) => score === 0;
        expect(hits.filter(zero).map(({ memory }) => memory.id)).toEqual(
          wanted.filter(zero).map(({ memory }) => memory.id),
        );
        expect(hits.map(({ score }) => score)).toEqual(hits.map(({ score }) => score).sort((a, b) => b - a));
      }
    }
    there.own.overlay.close();
    await other.close();
  });
});
