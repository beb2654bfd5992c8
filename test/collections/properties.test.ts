import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type ExportedMemory,
  type ListQuery,
  type Provider,
  type ProviderModule,
  type SearchQuery,
  type Traits,
  toUnit,
} from '#provider';
import memory from '../../providers/memory/index.ts';
import { FULL } from '../support/full.ts';
import { recordingLog } from '../support/gateway.ts';
import { call, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { DATABASES, type Database } from './databases.ts';
import { inMemory } from './in-memory.ts';

/** OMP_TEST_HISTORIES: how many histories are tried on each; OMP_TEST_SEED: others, or those of a failure again. */
const HISTORIES = process.env.OMP_TEST_HISTORIES;
const SEED = Number(process.env.OMP_TEST_SEED ?? 45);
/** Of a database whose writes take long, fewer are tried. */
const FEWER: Readonly<Record<string, number>> = {
  ...{ Chroma: 20, LanceDB: 40, Weaviate: 40 },
  ...(!FULL && { Qdrant: 60 }),
};

const MODEL = 'drawn';
/** Their cosines are 0, ±1/2 and ±1, which single precision computes exactly. */
const VECTORS = [
  [1, 0, 0, 0],
  [0, 1, 0, 0],
  [0, 0, -1, 0],
  [1, 1, 1, 1],
  [1, 1, -1, -1],
  [1, -1, 1, -1],
  [0, 0, 0, 0],
];
const vector = fc.constantFrom(...VECTORS).map((components) => Float32Array.from(components));

const tag = fc.constantFrom('a', 'b', 'a,b', 'ä', 'omp:tag:x', '"]');
const scope = fc.constantFrom(null, 'a', 'a/b', 'a/bc', 'ab', 'a/b/c', '%', 'a_b');
const glob = fc.constantFrom('a', 'a/*', '*', 'a*', 'a/?', '*/b', '', 'a/b', 'nothing');
/** Times that collide, lie far apart, and before 1970. */
const moment = fc.constantFrom(
  -62_135_596_800_000,
  -1,
  0,
  1_000,
  1_001,
  1_700_000_000_000,
  1_700_000_000_001,
  4_000_000_000_000,
);
const key = fc.constantFrom(undefined, 'k', 'via:http');

const drawnMemory = fc.record({
  user: fc.nat(2),
  content: fc.constantFrom('tea', 'ä'.repeat(40), 'x'.repeat(300), '"quoted\\'),
  tags: fc.uniqueArray(tag, { maxLength: 3 }),
  scope,
  created: moment,
  vector,
  key,
});
const filters = {
  user: fc.nat(2),
  tags: fc.uniqueArray(tag, { maxLength: 2 }),
  within: fc.option(fc.uniqueArray(glob, { maxLength: 3 })),
  outside: fc.option(fc.uniqueArray(fc.constantFrom('a/b', 'ab', '%'), { maxLength: 2 }), { nil: undefined }),
  since: fc.option(moment, { nil: undefined }),
  until: fc.option(moment, { nil: undefined }),
  limit: fc.integer({ min: 1, max: 12 }),
  written: fc.constantFrom(
    undefined,
    { trusted: true } as const,
    { origin: { key: 'k' } } as const,
    { origin: { via: 'unknown' } } as const,
  ),
};
const history = fc.record({
  memories: fc.array(drawnMemory, { maxLength: 40 }),
  patched: fc.array(
    fc.record({ at: fc.nat(39), tags: fc.uniqueArray(tag, { maxLength: 2 }), vector: fc.option(vector) }),
    { maxLength: 5 },
  ),
  deleted: fc.array(fc.nat(39), { maxLength: 5 }),
  lists: fc.array(
    fc.record({
      ...filters,
      scope: fc.option(
        glob.filter((one) => one !== ''),
        { nil: undefined },
      ),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  searches: fc.array(
    fc.record({
      ...filters,
      vector,
      scope: fc.constantFrom(undefined, 'a', 'a/b', '%'),
      longest: fc.constantFrom(undefined, 79, 80),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});

type Opened = Required<Provider>;
const open = async (module: ProviderModule, options: object, data_dir: string): Promise<Opened> =>
  (await module.open(options, {
    embedder: { model: MODEL, dimensions: 4 },
    ranking: { mode: 'vector', keyword_weight: 0 },
    audit: undefined,
    data_dir,
    log: recordingLog(),
  })) as Opened;

const timeOf = (at: number | undefined) => (at === undefined ? undefined : new Date(at).toISOString());

/** A thousand memories of others, among which those of a history are few. */
const others = (): ExportedMemory[] =>
  Array.from({ length: 1_000 }, (_, i) => ({
    memory: { ...memoryOf(`other ${i % 50}`, 'tea', { tags: ['a'] }), ...identity(`noise-${i}`, i * 1_000) },
    vector: Float32Array.from(VECTORS[i % 6] as number[]),
  }));
const identity = (id: string, created: number) => ({
  id,
  created_at: new Date(created).toISOString(),
  updated_at: new Date(created).toISOString(),
  embedding_model: MODEL,
  status: 'done' as const,
});

const pagesOf = async (store: Opened, query: ListQuery): Promise<string[][]> => {
  const pages: string[][] = [];
  for (let after: ListQuery['after']; pages.length < 20; ) {
    const page = await store.list({ ...query, ...(after && { after }) }, call);
    pages.push(page.map(({ id }) => id));
    after = page.at(-1);
    if (page.length < query.limit) break;
  }
  return pages;
};

const all = async <Item>(
  read: (after: string | undefined) => Promise<{ items: readonly Item[]; next: string | undefined }>,
): Promise<Item[]> => {
  const items: Item[] = [];
  let after: string | undefined;
  do {
    const part = await read(after);
    items.push(...part.items);
    after = part.next;
  } while (after !== undefined);
  return items;
};

/** Everything that a history asks, of one store. */
async function answersOf(
  store: Opened,
  { memories, patched, deleted, lists, searches }: History,
  run: string,
  native: boolean,
) {
  const userOf = (user: number) => `${run} ${user}`;
  const idOf = (at: number) => `${run}-${String(at % Math.max(1, memories.length)).padStart(2, '0')}`;
  const items = memories.map(({ user, content, tags, scope, created, vector, key: app }, at) => {
    const extensions = {
      ...(app !== undefined && { 'x-omp-origin': { key: app, via: 'http' } }),
      ...(at % 3 === 0 && { 'x-omp-untrusted': true }),
    };
    const input = memoryOf(userOf(user), content, { tags, scope: native ? scope : null, extensions });
    return { memory: { ...input, ...identity(idOf(at), created) }, vector };
  });
  const visible = ({
    within,
    outside,
    scope,
  }: {
    within: string[] | null;
    outside?: string[] | undefined;
    scope?: string | undefined;
  }) => (native ? { within, outside, ...(scope !== undefined && { scope }) } : { within: null });
  const filtersOf = ({
    user,
    since,
    until,
    limit,
    tags,
    written,
  }: (typeof lists)[number] | (typeof searches)[number]) => ({
    user_id: userOf(user),
    ...{ tags, limit, written, since: timeOf(since), until: timeOf(until) },
  });
  const stored = await store.import({ items, replace: false }, call);
  const patches = [];
  for (const { at, tags, vector } of patched) {
    const patch = { tags, ...(vector && { content: `new ${at}` }) };
    const after = await store.update({ ref: refTo(idOf(at)), patch, vector }, call);
    patches.push(after && [after.tags, after.content]);
  }
  const gone = [];
  for (const at of deleted) gone.push(await store.delete(refTo(idOf(at)), call));
  const mine = { users: [0, 1, 2].map(userOf), within: null };
  const exported = await all((after) =>
    store.export({ vectors: true, limit: 7, max_bytes: 1e6, user_id: userOf(0), after }, call),
  );
  return {
    stored,
    patches,
    gone,
    lists: await Promise.all(
      lists.map((query) =>
        pagesOf(store, { ...listOf(userOf(0)), ...filtersOf(query), ...visible(query) } as ListQuery),
      ),
    ),
    searches: await Promise.all(
      searches.map(async (query) => {
        const wanted = {
          ...searchFor(userOf(0), ''),
          ...filtersOf(query),
          ...visible(query),
          vector: query.vector,
          max_content_bytes: query.longest,
        };
        return (await store.search(wanted as SearchQuery, call)).map(({ memory, score }) => [memory.id, score]);
      }),
    ),
    users: (await all((after) => store.users({ ...mine, limit: 2, ...(after !== undefined && { after }) }, call)))
      .map(({ user_id, count }) => [user_id, count])
      .sort(),
    exported: exported
      .map(({ memory: { id, content, tags }, vector }) => [id, content, tags, [...toUnit(vector)]])
      .sort(),
  };
}
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

const DOUBLES: Readonly<Record<string, Partial<Traits>>> = {
  'a database that can everything': {},
  'one that sorts by a number': {
    order: 'number',
    filters: ['prefix'],
    ids: 'uuid',
    max_batch: 10,
    measure: 'product',
  },
  'one that can least': { order: 'none', filters: [], exact: false, max_limit: 1_000, measure: 'squared distance' },
};
const doubles: readonly Database[] = Object.entries(DOUBLES).map(([name, traits]) => ({
  ...{ name, provider: inMemory(traits), absent: '' },
  open: async () => ({ options: { collection: randomUUID() }, env: {}, close: async () => {} }),
}));

describe.each([...DATABASES, ...doubles])('on $name', ({ name, provider, absent, open: openDatabase }) => {
  const closing: (() => Promise<unknown>)[] = [];
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
  });

  const histories = Number(HISTORIES ?? FEWER[name] ?? 200);

  it(`[Decision 64] ${histories} drawn histories have the answers of memory: nothing missing, nothing too much`, async ({
    skip,
  }) => {
    skip(absent !== '', absent);
    const folder = await mkdtemp(join(tmpdir(), 'omp-properties-'));
    closing.push(() => rm(folder, { recursive: true }));
    const { options, close } = await openDatabase();
    closing.push(close);
    const [model, store] = await Promise.all([
      open(memory, { scopes: 'native' }, folder),
      open(provider, options, folder),
    ]);
    closing.push(store.close);
    for (const each of [model, store]) await each.import({ items: others(), replace: false }, call);
    const native = store.capabilities.scopes === 'native';
    const holds = async (drawn: History) => {
      const run = randomUUID();
      expect(await answersOf(store, drawn, run, native)).toEqual(await answersOf(model, drawn, run, native));
    };
    await fc.assert(fc.asyncProperty(history, holds), { numRuns: histories, seed: SEED });
  });
});
