import { toSql } from 'pgvector';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SearchHit, SearchQuery } from '#contract';
import { openConnections, type Row } from '../../providers/postgres/client/connections.ts';
import { createMappedStatements } from '../../providers/postgres/mapped/mapped-statements.ts';
import { createReading } from '../../providers/postgres/mapped/row-reading.ts';
import { createVectorSearch } from '../../providers/postgres/mapped/vector-search.ts';
import { call, listOf, searchFor } from '../support/requests.ts';
import type { Store } from '../support/stores.ts';
import { BARE, COLUMNS, embedder, type MappedTable, openedTables, openTable, vectorOf } from './tables.ts';

const { tableOf, closing } = openedTables();

const TEXTS = ['likes green tea', 'likes black tea', 'drives a red van', 'allergic to peanuts', 'lives in Lisbon'];
const fill = async (table: MappedTable, texts: readonly string[] = TEXTS, owner = 'ana') => {
  const rows = texts.map(async (content) => ({ content, owner, embedding: await vectorOf(content) }));
  await table.insert(...(await Promise.all(rows)));
};

/** The search alone, with the statements it sends. */
const directly = async (
  table: MappedTable,
  layout: Awaited<ReturnType<MappedTable['layout']>>,
  { large_user_rows, vector }: { large_user_rows: number; vector?: Float32Array },
) => {
  const db = openConnections({
    config: { connectionString: table.url },
    connections: 1,
    prepared_statements: 'auto',
    acquire_timeout_ms: 10_000,
    query_timeout_ms: 10_000,
  });
  const sent: string[] = [];
  const reading = createReading(layout, 'model');
  const search = createVectorSearch({
    run: ({ statement, values }, by, settings): Promise<Row[]> => {
      sent.push(settings === undefined ? 'all' : 'index');
      return db.query(statement, values, by, settings);
    },
    layout,
    reading,
    statements: createMappedStatements(layout, reading),
    large_user_rows,
  });
  const run = async (query: SearchQuery) => {
    sent.length = 0;
    const [computed = null] = vector ? [vector] : await embedder.embed([query.text], 'query', call);
    return { hits: await search({ ...query, vector: computed }, call), sent: [...sent] };
  };
  return Object.assign(run, { close: db.close });
};

/** Closed after the test. */
const searching: typeof directly = async (...wanted) => closing(await directly(...wanted));

describe('compared rows', () => {
  const LARGE = 300;
  let table: MappedTable;
  let run: Awaited<ReturnType<typeof directly>>;
  let thorough: Store;
  beforeAll(async () => {
    table = await openTable(COLUMNS);
    const users = [...Array(LARGE).fill('large'), ...Array(40).fill('small')];
    const rows = users.map(async (user_id, number) => {
      const content = `note ${number * 7919} of many`;
      return {
        ...{ id: `mem_${number}`, content, user_id, created_at: new Date(1.7e12 + number) },
        ...{ tags: number % 50 === 0 ? ['rare'] : [], scope: number % 2 === 0 ? 'even' : 'odd' },
        embedding: await vectorOf(content),
      };
    });
    await table.insert(...(await Promise.all(rows)));
    await table.sql(`create index on ${table.name} using hnsw (embedding vector_cosine_ops)`);
    run = await directly(table, await table.layout(), { large_user_rows: 100 });
    thorough = await table.open({ options: { large_user_rows: 1_000_000 } });
  });
  afterAll(async () => {
    await run.close();
    await table.close();
  });
  const ids = (hits: readonly SearchHit[]) => hits.map(({ memory }) => memory.id);
  /** What comparing all rows gives. */
  const truth = async (query: SearchQuery) => ids((await thorough.search?.(query, call)) ?? []);

  it('of a small user: all, in one statement', async () => {
    const query = searchFor('small', 'note 12 of many', { limit: 50 });
    const { hits, sent } = await run(query);
    expect(sent).toEqual(['all']);
    expect(hits).toHaveLength(40);
    expect(ids(hits)).toEqual(await truth(query));
  });

  it('of a large user: the nearest by the index, in one statement once the user is known as large', async () => {
    const query = searchFor('large', 'note 12 of many');
    const [first, second] = [await run(query), await run(query)];
    expect([first.sent, second.sent]).toEqual([['all', 'index'], ['index']]);
    expect(ids(first.hits)).toEqual(await truth(query));
    expect(second.hits).toEqual(first.hits);
  });

  it('of a filter that few rows match: all, also for a known large user', async () => {
    for (const more of [{ tags: ['rare'] }, { tags: ['rare'], scope: 'even' }, { tags: ['rare'], within: ['ev*'] }]) {
      const query = searchFor('large', 'note 12 of many', more);
      const { hits, sent } = await run(query);
      expect(sent).toEqual(['all']);
      expect(hits).toHaveLength(6);
      expect(ids(hits)).toEqual(await truth(query));
    }
    const many = await run(searchFor('large', 'note 12 of many', { scope: 'odd' }));
    expect(many.sent).toEqual(['all', 'index']);
    expect(new Set(many.hits.map(({ memory }) => memory.scope))).toEqual(new Set(['odd']));
  });

  it('[SPEC GET /memories/search limit] all if the index returns too few', async () => {
    const query = searchFor('large', 'note 12 of many', { limit: 400 });
    await run(query);
    const { hits, sent } = await run(query);
    expect(sent).toEqual(['index', 'all']);
    expect(hits).toHaveLength(LARGE);
    // Without vectors, rows are in no index.
    await table.sql(`update ${table.name} set embedding = null where user_id = 'large' and scope = 'odd'`);
    expect((await run(query)).hits).toHaveLength(LARGE / 2);
  });

  it('always all without iterative scans', async () => {
    const layout = await table.layout();
    const { index } = layout.vector;
    const vector = { ...layout.vector, index: index && { ...index, iterative: false } };
    const old = await searching(table, { ...layout, vector }, { large_user_rows: 100 });
    expect((await old(searchFor('large', 'note 12'))).sent).toEqual(['all']);
  });

  it('the same with ivfflat', async () => {
    const other = await tableOf(BARE);
    await fill(
      other,
      Array.from({ length: 200 }, (_, number) => `note ${number * 7919} of many`),
    );
    await fill(other, TEXTS, 'bo');
    await other.sql(`create index on ${other.name} using ivfflat (embedding vector_l2_ops) with (lists = 5)`);
    const through = await searching(other, await other.layout(), { large_user_rows: 100 });
    const { hits, sent } = await through(searchFor('ana', 'note 7919 of many'));
    expect(sent).toEqual(['all', 'index']);
    expect(hits[0]).toMatchObject({ memory: { content: 'note 7919 of many' }, score: expect.closeTo(1, 3) });
    expect(hits).toHaveLength(10);
    expect((await through(searchFor('bo', TEXTS[0] as string, { limit: 50 }))).hits).toHaveLength(TEXTS.length);
  });
});

describe('vectors', () => {
  it.each(['l2', 'ip', 'l1'])(
    'of other lengths than 1 are found by cosine, beside an index by %s, by large users too',
    async (metric) => {
      const table = await tableOf(BARE);
      const long = async (content: string, factor: number) =>
        `[${(JSON.parse(await vectorOf(content)) as number[]).map((value) => value * factor)}]`;
      const contents = Array.from({ length: 200 }, (_, number) => `note ${number * 7919} of many`);
      const wanted = searchFor('ana', contents[7] as string);
      await table.sql(`create index on ${table.name} using hnsw (embedding vector_${metric}_ops)`);
      const early = await searching(table, await table.layout(), { large_user_rows: 100 });
      const rows = contents.map(async (content, number) => ({
        content,
        owner: 'ana',
        embedding: await long(content, 3 + number),
      }));
      await table.insert(...(await Promise.all(rows)));
      const late = await searching(table, await table.layout(), { large_user_rows: 100 });
      const thorough = await searching(table, await table.layout(), { large_user_rows: 1_000 });
      const { hits } = await thorough(wanted);
      expect(hits[0]).toMatchObject({ memory: { content: contents[7] }, score: expect.closeTo(1, 3) });
      expect((await late(wanted)).hits).toEqual(hits);
      // Opened on the empty table.
      expect((await early(wanted)).hits).toEqual(hits);
      expect((await early(wanted)).sent).toEqual(['all']);
    },
  );

  it('of no or another length are listed, not found', async () => {
    const table = await tableOf({ ...BARE, columns: BARE.columns.replace('vector(64)', 'vector') });
    await fill(table);
    await table.insert({ content: 'without', owner: 'ana' });
    await table.insert({ content: 'short', owner: 'ana', embedding: '[1,2,3]' });
    const provider = await table.open();
    const found = await provider.search(searchFor('ana', 'without'), call);
    expect(found.map(({ memory }) => memory.content).sort()).toEqual([...TEXTS].sort());
    const listed = await provider.list(listOf('ana'), call);
    const models = Object.fromEntries(listed.map(({ content, embedding_model }) => [content, embedding_model]));
    expect(models).toEqual({
      ...Object.fromEntries(TEXTS.map((content) => [content, embedder.model])),
      without: null,
      short: null,
    });
  });

  it('[SPEC SearchResult score] of length 0 have score 0', async () => {
    const table = await tableOf(BARE);
    await fill(table);
    await table.insert({ content: 'zero', owner: 'ana', embedding: toSql(Array(64).fill(0)) });
    const provider = await table.open();
    const hits = await provider.search(searchFor('ana', TEXTS[0] as string), call);
    expect(hits.find(({ memory }) => memory.content === 'zero')?.score).toBe(0);
    // A text without three characters has none either.
    const none = await searching(table, await table.layout(), { large_user_rows: 100, vector: new Float32Array(64) });
    const { hits: all } = await none(searchFor('ana', 'x'));
    expect(new Set(all.map(({ score }) => score))).toEqual(new Set([0]));
    expect(all).toHaveLength(TEXTS.length + 1);
  });
});
