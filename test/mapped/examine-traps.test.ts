import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Layout } from '../../providers/postgres/mapped/layout.ts';
import { conditions } from '../../providers/postgres/sql/conditions.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { BARE, COLUMNS, type Examiner, openExaminer } from './examining.ts';
import { type LibraryDatabase, openLibraryDatabase } from './library-database.ts';

describe('unusual tables', () => {
  let db: Examiner;
  beforeAll(async () => {
    db = await openExaminer();
  });
  afterEach(() => db.sql(`drop table if exists ${db.in}notes cascade`));
  afterAll(() => db.close());

  const make = (columns = COLUMNS) => db.sql(`create table ${db.in}notes (${columns})`);
  const insert = (row: Record<string, unknown>) =>
    db.sql(
      `insert into ${db.in}notes (${Object.keys(row).map(pg.escapeIdentifier).join(', ')})
       values (${Object.keys(row).map((_, place) => `$${place + 1}`)})`,
      Object.values(row),
    );
  const json = (value: unknown) => JSON.stringify(value);
  const ids = async (layout: Layout, and?: Parameters<Examiner['rows']>[2]) =>
    (await db.rows(layout, `${layout.id.read} as id`, and)).map(({ id }) => id);

  it('(b) a text that the id column cannot hold is no id', async () => {
    const uuid = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
    const cases = {
      uuid: { ids: [uuid], none: [uuid.toUpperCase(), `{${uuid}}`, 'mem_1', ''] },
      bigint: { ids: ['0', '-7', '9223372036854775807'], none: ['9223372036854775808', '07', '1.0', ' 1', 'x'] },
      integer: { ids: ['2147483647', '-2147483648'], none: ['2147483648'] },
      smallint: { ids: ['32767'], none: ['32768'] },
      text: { ids: ['anything'], none: ['\0', '\ud800'] },
      'char(9)': { ids: ['x'], none: ['x '] },
    };
    for (const [type, texts] of Object.entries(cases)) {
      await make(COLUMNS.replace('id text', `id ${type}`));
      const { id } = await db.layout(BARE);
      await db.sql(`drop table ${db.in}notes`);
      for (const text of texts.ids) expect(id.parts(text), `${type} ${text}`).toBeDefined();
      for (const text of texts.none) expect(id.parts(text), `${type} ${text}`).toBeUndefined();
    }
  });

  it('(d) documents that jsonb rejects make a row unreadable, and fail no statement', async () => {
    await make('id text, embedding vector(3), meta json, other jsonb');
    const layout = await db.layout({
      ...BARE,
      content: `meta->>'text'`,
      user_id: `meta->>'who'`,
      tags: `meta->'tags'`,
    });
    const document = (more: string) => `{"text": "said", "who": "ana", "tags": ["x"], "more": ${more}}`;
    const readable = {
      a: '"\\ud83d\\ude00 \\u00e9"',
      b: '"a backslash \\\\u0000 and \\\\ud800"',
      c: '"1e99999 [2e99999]"',
      d: '1e999',
      e: `"${'x'.repeat(9_000)}"`,
      f: '[{"deep": [1, null, true]}]',
      g: '"\\\\\\" 1e9999"',
      h: `"${'9'.repeat(9_000)}"`,
    };
    const unreadable = {
      p: '"\\u0000"',
      q: '"\\ud800"',
      r: '"\\udc00 \\ud800"',
      s: '1e99999',
      t: '1e-99999',
      u: '"\\\\\\u0000"',
      v: '9'.repeat(200_000),
      w: `[${'"x",'.repeat(3_000)} -1E+999999]`,
      x: `0.${'0'.repeat(20_000)}1`,
    };
    for (const [id, more] of Object.entries({ ...readable, ...unreadable })) await insert({ id, meta: document(more) });
    for (const [id, meta] of Object.entries({ j: 'null', k: '"ana"', l: '[]', m: '{"who": "ana"}' }))
      await insert({ id, meta });
    const shown = await db.rows(
      layout,
      `${layout.id.read} as id, ${layout.fields.tags?.read} as tags, ${layout.fields.user_id?.read} as who`,
      (where) => `${layout.owner.is(where, ['ana'])} and ${layout.hasTags?.(where, ['x'])}`,
    );
    expect(shown).toEqual(Object.keys(readable).map((id) => ({ id, tags: ['x'], who: 'ana' })));
  });

  it('(d) an index on a key of json is used', async () => {
    await make('id text, content text, embedding vector(3), meta json');
    const mapping = { ...BARE, user_id: `meta->>'who'` };
    expect((await db.examine(mapping)).warnings.join()).toContain('has no index on');
    await db.sql(`create index on ${db.in}notes ((meta ->> 'who'))`);
    const { layout, warnings } = await db.examine(mapping);
    expect(warnings.join()).not.toContain('has no index on');
    expect(layout?.owner.is(conditions(), ['ana'])).toBe(`(t."meta" ->> 'who') = $1::text`);
  });

  it('(e) only vectors of the embedding length are compared, with a warning', async () => {
    await make(COLUMNS.replace('vector(3)', 'vector'));
    const vectors = { a: '[1,0,0]', b: '[1,0]', c: null, d: '[0,1,0]' };
    for (const [id, embedding] of Object.entries(vectors)) await insert({ id, content: id, user_id: 'ana', embedding });
    const { layout, warnings } = await db.examine(BARE);
    expect(warnings).toContain(
      `the vectors in "embedding" of ${db.schema}.notes have several lengths (3, 2): search finds only those of 3`,
    );
    if (!layout) throw new Error('no layout');
    expect(await ids(layout, () => layout.vector.comparable)).toEqual(['a', 'd']);
    // The score does not fail for the others.
    expect(await scores(layout)).toEqual([1, 0, 0, 0]);
  });

  it.each([
    ['vector', 'vector(3)', 'vector_cosine_ops'],
    ['vector', 'halfvec(3)', 'halfvec_cosine_ops'],
    ['halfvec', 'halfvec(3)', 'halfvec_cosine_ops'],
  ])('(e) an index on a %s cast to %s serves', async (type, cast, opclass) => {
    await make(COLUMNS.replace('vector(3)', type).replace('embedding', '"The Embedding"'));
    await db.sql(`create index notes_near on ${db.in}notes using hnsw (("The Embedding"::${cast}) ${opclass})`);
    const mapping = { ...BARE, embedding: '"The Embedding"' };
    const { vector, ...layout } = await db.layout(mapping);
    expect(vector.index).toMatchObject({ name: 'notes_near', method: 'hnsw', iterative: true });
    const plan = await db.sql<{ 'QUERY PLAN': string }>(
      `explain select 1 from ${layout.from} order by ${vector.index?.distance(`'[1,0,0]'`)} limit 1`,
    );
    expect(plan.map((row) => row['QUERY PLAN']).join('\n')).toContain('notes_near');
    // It does not serve another length.
    expect((await db.examine(mapping, { dimensions: 4 })).layout?.vector.index).toBeUndefined();
  });

  it('(f) a missing collection is named, and two of the same name are both served', async () => {
    await db.sql(
      `create table ${db.in}langchain_pg_collection (uuid uuid primary key default gen_random_uuid(), name varchar not null unique, cmetadata json)`,
    );
    await db.sql(
      `create table ${db.in}langchain_pg_embedding (id varchar primary key, collection_id uuid references ${db.in}langchain_pg_collection on delete cascade, embedding vector, document varchar, cmetadata jsonb)`,
    );
    const mapping = { preset: 'langchain-py', collection: 'mine' };
    const label = `${db.schema}.langchain_pg_collection`;
    expect((await db.examine(mapping)).mistakes).toEqual([
      `OMP_MAPPING_COLLECTION: ${label} has no collection mine; it has none yet`,
    ]);
    const collect = async (name: string, ...documents: string[]) => {
      await db.sql(`delete from ${db.in}langchain_pg_collection where name = $1`, [name]);
      const [row] = await db.sql<{ uuid: string }>(
        `insert into ${db.in}langchain_pg_collection (name) values ($1) returning uuid`,
        [name],
      );
      for (const id of documents) {
        await db.sql(
          `insert into ${db.in}langchain_pg_embedding values ($1, $2, '[1,0,0]', $1, '{"user_id": "ana"}')`,
          [id, row?.uuid],
        );
      }
    };
    await collect('theirs', 'a');
    await collect('others', 'b');
    expect((await db.examine(mapping)).mistakes).toEqual([
      `OMP_MAPPING_COLLECTION: ${label} has no collection mine; it has others, theirs`,
    ]);
    await collect('mine', 'c');
    const layout = await db.layout(mapping);
    // Where a library does not keep names apart, there may be two of one name.
    await db.sql(`alter table ${db.in}langchain_pg_collection drop constraint langchain_pg_collection_name_key`);
    await db.sql(`update ${db.in}langchain_pg_collection set name = 'mine' where name = 'others'`);
    expect(await ids(layout)).toEqual(['b', 'c']);
    const where = conditions();
    const [column] = layout.newColumns(where);
    const rows = await db.sql(
      `select name from ${db.in}langchain_pg_collection where uuid = ${column?.value}`,
      where.values,
    );
    expect([column?.column, rows]).toEqual(['"collection_id"', [{ name: 'mine' }]]);
  });

  it('(g) names of any spelling are quoted', async () => {
    const odd = `it's a "Table" -- $1`;
    const column = (name: string) => `"${name} ""of"" it's $2"`;
    await db.sql(`create table ${db.in}${pg.escapeIdentifier(odd)} (
      ${column('id')} text, ${column('text')} text, ${column('who')} json, ${column('vec')} vector(3), ${column('tags')} text[])`);
    const layout = await db.layout({
      table: odd,
      id: column('id'),
      content: column('text'),
      user_id: `${column('who')}->'it''s "x" \\'->>'$1'`,
      embedding: column('vec'),
      tags: column('tags'),
    });
    const who = json({ 'it\'s "x" \\': { $1: 'ana' } });
    await db.sql(`insert into ${layout.table} values ('a', 'x', $1, '[1,0,0]', '{"q"}')`, [who]);
    const where = conditions();
    where.and(layout.always(where));
    where.and(layout.owner.is(where, ['ana']));
    where.and(layout.hasTags?.(where, ['q']) ?? 'false');
    expect(await db.sql(`select ${layout.id.read} as id from ${layout.from} where ${where}`, where.values)).toEqual([
      { id: 'a' },
    ]);
  });

  describe('(g) in another database', () => {
    let library: LibraryDatabase;
    beforeEach(async ({ skip }) => {
      if (SERVER_URL === '') return skip(NO_SERVER);
      library = await openLibraryDatabase();
      await library.sql('drop extension vector');
      return () => library.close();
    });
    const examined = async () => {
      const client = new pg.Client({ connectionString: library.url });
      await client.connect();
      const found = await db.examine({ ...BARE, schema: 'public' }, undefined, client);
      await client.end();
      return found;
    };

    it('pgvector may be in any schema, on the search path or not', async () => {
      await library.sql('create schema "Ext ensions"; create extension vector schema "Ext ensions"');
      await library.sql(
        `create table notes (id text primary key, content text, user_id text, embedding "Ext ensions".vector);
         create index notes_near on notes using hnsw ((embedding::"Ext ensions".vector(3)) "Ext ensions".vector_l2_ops);
         insert into notes values ('a', 'x', 'ana', '[1,0,0]')`,
      );
      const { layout, mistakes } = await examined();
      expect(mistakes).toEqual([]);
      const index = { name: 'notes_near', metric: 'l2' };
      expect(layout?.vector).toMatchObject({ index, cast: '::"Ext ensions".vector' });
      const vector = layout?.vector.encode(Float32Array.from([0, 1, 0]));
      const { distance, comparable } = layout?.vector ?? {};
      expect(
        await library.sql(`select ${distance?.('$1')} as distance, ${comparable} as comparable from ${layout?.from}`, [
          vector,
        ]),
      ).toEqual([{ distance: 1, comparable: true }]);
    });

    it('pgvector is required', async () => {
      await library.sql('create table notes (id text, content text, user_id text, embedding float4[])');
      expect((await examined()).mistakes).toEqual([
        'this database has no pgvector (extension vector), which search needs',
        'OMP_MAPPING_EMBEDDING: the column "embedding" of public.notes is real[]; it must be vector or halfvec',
      ]);
    });
  });

  const scores = async (layout: Layout, query = [1, 0, 0]) => {
    const { vector } = layout;
    const sql = `select ${vector.score(`(${vector.distance('$1')})`)} as score from ${layout.from} order by t.id`;
    const rows = await db.sql<{ score: number }>(sql, [vector.encode(Float32Array.from(query))]);
    return rows.map(({ score }) => score);
  };

  it.each(
    ['cosine', 'l2', 'ip', 'l1'].flatMap((metric) =>
      (['vector', 'halfvec'] as const).map((type) => ({ metric, type })),
    ),
  )('(h) scores are the cosine, and the index of $type by $metric orders what it can', async ({ metric, type }) => {
    await make(COLUMNS.replace('vector(3)', `${type}(3)`));
    await db.sql(`create index on ${db.in}notes using hnsw (embedding ${type}_${metric}_ops)`);
    const vectors = ['[1,0,0]', '[0.6,0.8,0]', '[0,1,0]', '[-1,0,0]'];
    for (const [id, embedding] of vectors.entries()) await insert({ id, content: 'x', user_id: 'ana', embedding });
    const layout = await db.layout(BARE);
    const { index } = layout.vector;
    expect(index).toMatchObject({ metric, ranks: metric !== 'l1' });
    const plan = await db.sql<{ 'QUERY PLAN': string }>(
      `explain select 1 from ${layout.from} order by ${index?.distance(`'[1,0,0]'`)} limit 1`,
    );
    expect(plan[0]?.['QUERY PLAN']).toContain('Limit');
    expect(plan.map((row) => row['QUERY PLAN']).join('\n')).toContain('Index Scan');
    // And the zero vector, and one of another length.
    for (const [id, embedding] of ['[0,0,0]', '[30,40,0]'].entries())
      await insert({ id: 5 + id, content: 'x', user_id: 'ana', embedding });
    for (const [row, score] of [1, 0.6, 0, 0, 0, 0.6].entries())
      expect((await scores(layout))[row]).toBeCloseTo(score, 3);
    // A query vector of length 0.
    expect(await scores(layout, [0, 0, 0])).toEqual(Array(6).fill(0));
    expect((await db.layout(BARE)).vector.index?.ranks).toBe(metric === 'cosine');
  });

  it('(h) prefers an index by cosine, and skips unusable indexes', async () => {
    await make();
    const index = (name: string, rest: string) => db.sql(`create index ${name} on ${db.in}notes using ${rest}`);
    const chosen = async () => (await db.layout(BARE)).vector;
    await index('a_partial', `hnsw (embedding vector_cosine_ops) where user_id = 'ana'`);
    await index('b_bits', 'hnsw ((binary_quantize(embedding)::bit(3)) bit_hamming_ops)');
    await index('c_other', `hnsw ((embedding::halfvec(3)::vector(3)) vector_l2_ops)`);
    expect(await chosen()).toMatchObject({ index: undefined });
    await index('e_l2', 'ivfflat (embedding vector_l2_ops) with (lists = 1)');
    await index('d_ip', 'hnsw (embedding vector_ip_ops)');
    expect(await chosen()).toMatchObject({ index: { name: 'd_ip', method: 'hnsw', metric: 'ip' } });
    await index('f_cosine', 'ivfflat (embedding vector_cosine_ops) with (lists = 1)');
    expect(await chosen()).toMatchObject({ index: { name: 'f_cosine', method: 'ivfflat', metric: 'cosine' } });
  });

  it('(h) warns of an index that orders by the length of vectors, and of writing vectors of another length', async () => {
    await make();
    await db.sql(`create index near on ${db.in}notes using hnsw (embedding vector_l2_ops)`);
    await insert({ id: 'a', content: 'a', user_id: 'ana', embedding: '[0.6,0.8,0]' });
    const told = async (more = {}) =>
      (await db.examine({ ...BARE, ...more })).warnings.filter((text) => text.includes('cosine'));
    expect(await told({ writable: true })).toEqual([]);
    await insert({ id: 'b', content: 'b', user_id: 'ana', embedding: '[3,4,0]' });
    const column = `the vectors in "embedding" of ${db.schema}.notes do not have length 1`;
    const unused = `the index near does not order as the cosine does, since ${column}: a search compares all vectors of its user; an index by cosine would serve users with many rows`;
    expect(await told()).toEqual([unused]);
    expect(await told({ writable: true })).toEqual([
      unused,
      expect.stringMatching(`^${column}, and those that the gateway writes have`),
    ]);
    await db.sql(`create index nearer on ${db.in}notes using hnsw (embedding vector_cosine_ops)`);
    expect(await told({ writable: true })).toEqual([]);
  });
});
