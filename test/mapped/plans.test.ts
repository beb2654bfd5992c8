import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ListQuery, SearchQuery } from '#contract';
import { createStatements } from '../../providers/postgres/mapped/mapped-statements.ts';
import { createReading } from '../../providers/postgres/mapped/row-reading.ts';
import { createSearchStatements, INDEX_SETTINGS } from '../../providers/postgres/mapped/vector-search.ts';
import type { Query } from '../../providers/postgres/tables/memory-statements.ts';
import { call, listOf, refTo, searchFor } from '../support/requests.ts';
import { COLUMNS, DOCUMENT, embedder, type MappedTable, openTable, type Shape, vectorOf } from './tables.ts';

const ROWS = 2_000;
const USERS = 20;
const WORDS = ['apple', 'bridge', 'candle', 'desert', 'engine', 'forest', 'garden', 'harbour', 'island', 'jungle'];
const uuid = (last: number): string => `00000000-0000-4000-8000-${String(last).padStart(12, '0')}`;

/** A value as SQL text, for EXECUTE takes no parameters. */
const literal = (value: unknown): string => {
  if (value === null || typeof value === 'number') return String(value);
  if (!Buffer.isBuffer(value)) return pg.escapeLiteral(String(value));
  const components = Array.from({ length: value.readUInt16BE(0) }, (_, i) => value.readFloatBE(4 + i * 4));
  return `'[${components.join(',')}]'`;
};

interface Plan {
  readonly 'Index Name'?: string;
  readonly Plans?: readonly Plan[];
}
const indexesOf = (plan: Plan): string[] => [
  ...(plan['Index Name'] ? [plan['Index Name']] : []),
  ...(plan.Plans ?? []).flatMap(indexesOf),
];

/** The indexes Postgres uses for a prepared statement, planned for its values and for any. */
async function indexes(table: MappedTable, query: Query | undefined, settings = ''): Promise<string[]> {
  if (!query) throw new Error('no statement');
  const { statement, values } = query;
  const used: string[][] = [];
  for (const mode of ['force_custom_plan', 'force_generic_plan']) {
    await table.sql(`begin; set local enable_seqscan = off; set local plan_cache_mode = ${mode}; ${settings}`);
    await table.sql(`prepare probe as ${statement.text}`);
    const [row] = await table.sql<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `explain (format json) execute probe(${values.map(literal).join(', ')})`,
    );
    await table.sql('deallocate probe; rollback');
    used.push([...new Set(indexesOf((row as { 'QUERY PLAN': [{ Plan: Plan }] })['QUERY PLAN'][0].Plan))].sort());
  }
  expect(used[1], 'for any values').toEqual(used[0]);
  return used[0] ?? [];
}

const MADE: readonly (readonly [Shape, owner: string, vector: string])[] = [
  [COLUMNS, '(user_id)', 'embedding vector_cosine_ops'],
  [DOCUMENT, `((doc->'owner'->>'id'))`, '"Vector" vector_ip_ops'],
];

describe.each(MADE)('with the suggested indexes: $label', (shape, owner, vector) => {
  let table: MappedTable;
  let statements: ReturnType<typeof createStatements>;
  let search: ReturnType<typeof createSearchStatements>;
  beforeAll(async () => {
    table = await openTable(shape);
    for (let i = 0; i < ROWS; i++) {
      const content = `${WORDS[i % 10]} ${WORDS[(i * 7) % 9]} number ${i}`;
      const [user, embedding] = [`user ${i % USERS}`, await vectorOf(content)];
      await table.insert(
        shape === COLUMNS
          ? {
              id: `mem_${i}`,
              content,
              user_id: user,
              created_at: new Date(1.7e12 + i),
              tags: ['t'],
              scope: 's',
              embedding,
            }
          : {
              id: uuid(i),
              doc: { text: content, owner: { id: user }, labels: ['t'], times: { created: 1.7e12 + i } },
              Vector: embedding,
            },
      );
    }
    await table.sql(`create index by_owner on ${table.name} ${owner};
      create index by_vector on ${table.name} using hnsw (${vector}); analyze ${table.name}`);
    const layout = await table.layout();
    const reading = createReading(layout, 'model');
    statements = createStatements(layout, reading);
    search = createSearchStatements(layout, reading, statements);
  });
  afterAll(() => table.close());
  const id = shape === COLUMNS ? 'mem_7' : uuid(7);

  it.each<[string, Partial<ListQuery>]>([
    ['a page', {}],
    ['the next page', { after: { created_at: new Date(1.7e12).toISOString(), id } }],
    ['a time range', { since: '2023-01-01T00:00:00.000Z', until: '2024-01-01T00:00:00.000Z' }],
    ['a tag', { tags: ['t'] }],
    ['a glob and a grant', { scope: 's*', within: ['s', 't/*'] }],
  ])('a list reads the rows of its user: %s', async (_, more) => {
    expect(await indexes(table, statements.list(listOf('user 3', more)))).toEqual(['by_owner']);
  });

  it.each<[string, Partial<SearchQuery>]>([
    ['everything', {}],
    ['under a prefix', { scope: 's' }],
    ['with a tag, in a grant', { tags: ['t'], within: ['s'] }],
  ])('a search compares only the rows of its user: %s', async (_, more) => {
    const wanted = await wantedOf(more);
    expect(await indexes(table, search.exact(wanted))).toEqual(['by_owner']);
    expect(await indexes(table, search.bounded(wanted, 5_000))).toEqual(['by_owner']);
  });

  it('a search of a large user uses the vector index', async () => {
    const wanted = await wantedOf({});
    expect(await indexes(table, search.indexed(wanted), INDEX_SETTINGS.hnsw)).toEqual(['by_vector']);
    const narrow = await wantedOf({ tags: ['t'], within: ['s'] });
    expect(await indexes(table, search.indexed(narrow), INDEX_SETTINGS.hnsw)).toEqual(['by_vector']);
  });

  it('one row is found by its key', async () => {
    const ref = refTo(id, { users: ['user 3', 'user 7'], within: ['s'] });
    const patch = { content: 'x', tags: ['u'], extensions: { 'x-a': 1 } };
    const vectors = await embedder.embed(['x'], 'document', call);
    const key = [expect.stringMatching(/_pkey$/)];
    expect(await indexes(table, statements.select(ref))).toEqual(key);
    expect(await indexes(table, statements.update(ref, { patch, vector: vectors[0], max_bytes: 1e9 }))).toEqual(key);
    expect(await indexes(table, statements.remove(ref))).toEqual(key);
  });
});

const wantedOf = async (more: Partial<SearchQuery>) => {
  const query = searchFor('user 3', 'apple bridge', more);
  return { query, vector: (await embedder.embed([query.text], 'query', call))[0] as Float32Array };
};
