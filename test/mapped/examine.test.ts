import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { readTable, type Table } from '../../providers/postgres/mapped/catalogue.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { BARE, COLUMNS, type Examiner, openExaminer } from './examining.ts';

describe('a mapping that does not fit', () => {
  let db: Examiner;
  let label: string;
  beforeAll(async () => {
    db = await openExaminer();
    label = `${db.schema}.notes`;
  });
  afterEach(() => db.sql(`drop table if exists ${db.in}notes, ${db.in}collections cascade`));
  afterAll(() => db.close());

  const make = (columns = COLUMNS) => db.sql(`create table ${db.in}notes (${columns})`);
  const mistakes = async (mapping: object, model?: { dimensions: number }) => {
    const { layout, mistakes, warnings } = await db.examine(mapping, model);
    expect({ layout, warnings }).toEqual({ layout: undefined, warnings: [] });
    return mistakes;
  };

  it('names every setting that is missing', async () => {
    expect(await mistakes({})).toEqual([
      'OMP_MAPPING_PRESET=custom needs OMP_MAPPING_TABLE, OMP_MAPPING_ID, OMP_MAPPING_EMBEDDING, OMP_MAPPING_CONTENT and OMP_MAPPING_USER_ID',
    ]);
    expect(await mistakes({ table: 'notes', id: 'id', embedding: 'e', content: 'c' })).toEqual([
      'OMP_MAPPING_PRESET=custom needs OMP_MAPPING_USER_ID',
      expect.stringContaining('there is no table'),
    ]);
  });

  it('rejects a constant as content', async () => {
    await make();
    expect(await mistakes({ ...BARE, content: `'always the same'` })).toEqual([
      'OMP_MAPPING_CONTENT is a constant; it must name the column that holds the text of a row',
    ]);
  });

  it('names settings without effect', async () => {
    await make();
    expect(await mistakes({ ...BARE, collection: 'mine', new_ids: 'text' })).toEqual([
      'OMP_MAPPING_NEW_IDS has no effect while OMP_MAPPING_WRITABLE is not true',
      'OMP_MAPPING_COLLECTION: OMP_MAPPING_PRESET=custom has no collections',
    ]);
  });

  it('rejects two fields in the same column if it is written', async () => {
    await make();
    const fields = { content: 'c', source: `m->'a'`, extensions: `m->'a'` };
    expect(await mistakes({ ...BARE, ...fields, content: 'user_id', user_id: 'user_id', writable: true })).toEqual(
      expect.arrayContaining([
        'OMP_MAPPING_USER_ID and OMP_MAPPING_CONTENT are the same; OMP_MAPPING_WRITABLE needs a column or path for each',
        'OMP_MAPPING_EXTENSIONS and OMP_MAPPING_SOURCE are the same; OMP_MAPPING_WRITABLE needs a column or path for each',
      ]),
    );
    const { mistakes: told } = await db.examine({ ...BARE, content: 'user_id', user_id: 'user_id' });
    expect(told.filter((mistake) => mistake.includes('are the same'))).toEqual([]);
  });

  it('says why a preset is read-only, and what to do', async () => {
    expect((await db.examine({ preset: 'llamaindex-py', writable: true })).mistakes[0]).toMatch(
      /^OMP_MAPPING_WRITABLE: .+; if that library does not need to read the rows, set OMP_MAPPING_PRESET=custom$/,
    );
  });

  it('names similar tables', async () => {
    expect(await mistakes({ ...BARE, table: 'no_such_table_anywhere' })).toEqual([
      `OMP_MAPPING_TABLE: there is no table ${db.schema}.no_such_table_anywhere; no table has a similar name`,
    ]);
    await make();
    expect(await mistakes({ ...BARE, table: 'Notes' })).toEqual([
      expect.stringMatching(`^OMP_MAPPING_TABLE: there is no table ${db.schema}\\.Notes; similar names: .*${label}`),
    ]);
    expect(await mistakes({ ...BARE, schema: 'elsewhere' })).toEqual([
      expect.stringMatching(`^OMP_MAPPING_TABLE: there is no table elsewhere\\.notes; similar names: .*${label}`),
    ]);
  });

  it('names the existing columns, for every setting at once', async () => {
    await make();
    const has = `it has id, content, user_id, embedding`;
    expect(await mistakes({ ...BARE, id: 'ID', embedding: 'vector', content: 'text', tags: `meta->'tags'` })).toEqual([
      `OMP_MAPPING_ID: ${label} has no column "ID"; ${has}`,
      `OMP_MAPPING_CONTENT: ${label} has no column "text"; ${has}`,
      `OMP_MAPPING_TAGS: ${label} has no column "meta"; ${has}`,
      `OMP_MAPPING_EMBEDDING: ${label} has no column "vector"; ${has}`,
    ]);
  });

  it('names the types of columns, and the types they must have', async () => {
    await db.sql(`create domain ${db.in}email as varchar(80)`);
    await make(
      `id numeric(10,2), content bytea, user_id float8, scope text[], tags ${db.in}email, source text, confidence bool,
       created_at time, updated_at interval, valid_from bool, valid_to uuid, supersedes integer[], extensions varchar(9),
       embedding float4[]`,
    );
    const columns = 'scope tags source confidence created_at updated_at valid_from valid_to supersedes extensions';
    const fields = Object.fromEntries(columns.split(' ').map((name) => [name, name]));
    const column = (name: string, type: string) => `the column "${name}" of ${label} is ${type}; it must be`;
    const text = 'text, varchar, uuid, a number or JSON';
    const list = 'text[], varchar[], json or jsonb';
    const time = 'timestamptz, timestamp, date, a number since 1970, a text in ISO 8601 or JSON';
    expect(await mistakes({ ...BARE, ...fields })).toEqual([
      `OMP_MAPPING_ID: ${column('id', 'numeric(10,2)')} text, varchar, uuid, smallint, integer or bigint`,
      `OMP_MAPPING_CONTENT: ${column('content', 'bytea')} ${text}`,
      `OMP_MAPPING_SCOPE: ${column('scope', 'text[]')} ${text}`,
      `OMP_MAPPING_TAGS: ${column('tags', `${db.schema}.email`)} ${list}`,
      `OMP_MAPPING_SOURCE: ${column('source', 'text')} json or jsonb`,
      `OMP_MAPPING_CONFIDENCE: ${column('confidence', 'boolean')} a number, a text or JSON`,
      `OMP_MAPPING_CREATED_AT: ${column('created_at', 'time without time zone')} ${time}`,
      `OMP_MAPPING_UPDATED_AT: ${column('updated_at', 'interval')} ${time}`,
      `OMP_MAPPING_VALID_FROM: ${column('valid_from', 'boolean')} ${time}`,
      `OMP_MAPPING_VALID_TO: ${column('valid_to', 'uuid')} ${time}`,
      `OMP_MAPPING_SUPERSEDES: ${column('supersedes', 'integer[]')} ${list}`,
      `OMP_MAPPING_EXTENSIONS: ${column('extensions', 'character varying(9)')} json or jsonb`,
      `OMP_MAPPING_USER_ID: ${column('user_id', 'double precision')} text, varchar, uuid, smallint, integer, bigint or JSON`,
      `OMP_MAPPING_EMBEDDING: ${column('embedding', 'real[]')} vector or halfvec`,
    ]);
  });

  it('names a mark of deleted rows that cannot be one, and finds one that is not set', async () => {
    const named = 'deletedAt isDeleted deleted deleted_on undeleted deleted_by'.split(' ');
    await make(`${COLUMNS}, "deletedAt" timestamptz, "isDeleted" boolean, deleted int, deleted_on date, undeleted boolean, deleted_by text,
      never boolean generated always as (false) stored`);
    const warned = async (more = {}) =>
      (await db.examine({ ...BARE, ...more })).warnings.filter((each) => named.some((name) => each.includes(name)));
    expect(await warned()).toEqual([
      `${label} has a column deletedAt, isDeleted and deleted_on, and rows that are marked as deleted there are served; OMP_MAPPING_DELETED_AT=deletedAt hides them`,
    ]);
    expect(await warned({ deleted_at: 'isDeleted' })).toEqual([]);
    expect(await mistakes({ ...BARE, deleted_at: 'deleted' })).toEqual([
      `OMP_MAPPING_DELETED_AT: the column "deleted" of ${label} is integer; it must be timestamptz, timestamp, date or boolean`,
    ]);
    expect(await mistakes({ ...BARE, deleted_at: 'never', writable: true })).toEqual([
      'OMP_MAPPING_WRITABLE: the database computes the column of OMP_MAPPING_DELETED_AT, so no row can be marked as deleted',
    ]);
    expect(await mistakes({ ...BARE, deleted_at: 'missing' })).toEqual([
      expect.stringContaining('has no column "missing"'),
    ]);
  });

  it('names a path into a column of text', async () => {
    await make(`${COLUMNS}, meta text`);
    expect(await mistakes({ ...BARE, tags: `meta->'tags'` })).toEqual([
      `OMP_MAPPING_TAGS: the column "meta" of ${label} is text; a path needs json or jsonb (a view can convert a text column)`,
    ]);
  });

  it('names constants of the wrong form', async () => {
    await make();
    const constants = {
      user_id: `''`,
      tags: `'notes'`,
      source: `'["app"]'`,
      confidence: `'2'`,
      created_at: `'2025-02-31'`,
      supersedes: `'[1]'`,
    };
    const constant = 'is a constant and must be';
    expect(await mistakes({ ...BARE, ...constants })).toEqual([
      `OMP_MAPPING_USER_ID ${constant} a text`,
      `OMP_MAPPING_TAGS ${constant} a list in JSON such as '["notes"]'`,
      `OMP_MAPPING_SOURCE ${constant} an object in JSON such as '{"app":"notes"}'`,
      `OMP_MAPPING_CONFIDENCE ${constant} a number from 0 to 1 such as '0.5'`,
      `OMP_MAPPING_CREATED_AT ${constant} a time such as '2026-01-31T12:00:00Z'`,
      `OMP_MAPPING_SUPERSEDES ${constant} a list in JSON such as '["notes"]'`,
    ]);
  });

  it('names a user pattern that no row can match', async () => {
    await make('id text, content text, user_id integer, embedding vector(3)');
    expect(await mistakes({ ...BARE, user_pattern: 'u-{user}' })).toEqual([
      `OMP_MAPPING_USER_PATTERN: the column "user_id" of ${label} is integer, which holds only the id; remove the pattern`,
    ]);
    expect(await mistakes({ ...BARE, user_id: `'shared'`, user_pattern: 'u-{user}' })).toEqual([
      `OMP_MAPPING_USER_ID: the constant 'shared' does not match OMP_MAPPING_USER_PATTERN=u-{user}`,
    ]);
  });

  it('names both lengths of vectors and the settings to change', async () => {
    const told = (has: string) =>
      `OMP_MAPPING_EMBEDDING: the vectors in "embedding" of ${label} have ${has} dimensions, those of the embedder three-dimensions have 4; set OMP_EMBEDDING_MODEL or OMP_EMBEDDING_DIMENSIONS to what computed them, or OMP_MAPPING_EMBEDDING to another column`;
    await make();
    expect(await mistakes(BARE, { dimensions: 4 })).toEqual([told('3')]);
    await db.sql(`alter table ${db.in}notes alter column embedding type vector`);
    // Without rows the length is unknown.
    expect((await db.examine(BARE, { dimensions: 4 })).mistakes).toEqual([]);
    await db.sql(`insert into ${db.in}notes values
      ('a', 'a', 'ana', '[1,2,3]'), ('b', 'b', 'ana', '[1,2,3]'), ('c', 'c', 'ana', '[1,2]'), ('d', 'd', null, '[1,2,3,4]')`);
    expect(await mistakes(BARE, { dimensions: 4 })).toEqual([told('3 or 2')]);
  });

  describe('of a writable table', () => {
    const writing = { ...BARE, writable: true };

    it('names required columns that nothing fills', async () => {
      await make(`${COLUMNS}, one text not null, two int not null, three int not null default 3, four text,
        five int not null generated always as identity, six text not null generated always as ('6') stored`);
      expect(await mistakes(writing)).toEqual([
        `OMP_MAPPING_WRITABLE: ${label} requires a value in "one" and "two", which no setting maps; give them defaults`,
      ]);
      expect((await db.examine({ ...writing, scope: 'one', supersedes: `'[]'` })).mistakes).toEqual([
        `OMP_MAPPING_WRITABLE: ${label} requires a value in "two", which no setting maps; give it a default`,
      ]);
    });

    it('requires that an id identifies one row', async () => {
      const told = `OMP_MAPPING_WRITABLE: ${label} has no primary key or unique index over exactly "id", so a write could change several rows`;
      await make('id text, content text, user_id text, embedding vector(3)');
      expect(await mistakes(writing)).toEqual([told]);
      await db.sql(`create unique index on ${db.in}notes (id, user_id)`);
      await db.sql(`create unique index on ${db.in}notes (id) where user_id is not null`);
      await db.sql(`create unique index on ${db.in}notes (lower(id))`);
      expect(await mistakes(writing)).toEqual([told]);
      await db.sql(`create unique index on ${db.in}notes (id) include (content)`);
      expect((await db.examine(writing)).mistakes).toEqual([]);
    });

    it('requires that an id identifies one row of a partition', async () => {
      await make('id text, content text, user_id text, embedding vector(3)) partition by hash (user_id');
      expect(await mistakes(writing)).toEqual([
        `OMP_MAPPING_WRITABLE: ${label} has no primary key or unique index that contains "id", so a write could change several rows`,
      ]);
      await db.sql(`create unique index on ${db.in}notes (user_id, id)`);
      expect((await db.examine(writing)).mistakes).toEqual([]);
    });

    it('names computed columns', async () => {
      await make(
        `id text primary key, content text generated always as ('x') stored, user_id text generated always as ('u') stored, embedding vector(3)`,
      );
      expect(await mistakes(writing)).toEqual([
        'OMP_MAPPING_WRITABLE: the database computes the column of OMP_MAPPING_CONTENT, so it cannot be written',
        'OMP_MAPPING_WRITABLE: the database computes the column of OMP_MAPPING_USER_ID, so it cannot be written',
      ]);
    });

    const told = (ids: string, type: string) => `OMP_MAPPING_NEW_IDS=${ids}: the column "id" of ${label} is ${type}`;
    it.each([
      ['text', 'uuid', 'uuid, which cannot hold ids of 30 characters; use uuid'],
      ['text', 'bigserial', 'bigint, which cannot hold ids of 30 characters; use database'],
      ['text', 'varchar(20)', 'character varying(20), which cannot hold ids of 30 characters; use database'],
      ['uuid', 'varchar(35)', 'character varying(35), which cannot hold ids of 36 characters; use database'],
      ['uuid', 'int', 'integer, which cannot hold ids of 36 characters; use database'],
      ['database', 'text', 'text and has no default'],
      ['uuid', 'bigint generated always as identity', 'bigint and computed by the database; use database'],
      // The default for the type.
      [undefined, 'integer', 'integer and has no default'],
    ])('new ids of kind %s do not fit %s', async (ids, type, mistake) => {
      await make(COLUMNS.replace('id text', `id ${type}`));
      const setting = ids === undefined ? {} : { new_ids: ids };
      expect(await mistakes({ ...writing, ...setting })).toEqual([told(ids ?? 'database', mistake)]);
    });

    it.each([
      ['text', 'varchar(30)', 'text'],
      ['uuid', 'char(36)', 'uuid'],
      ['database', 'uuid default gen_random_uuid()', 'database'],
      [undefined, 'uuid', 'uuid'],
      [undefined, 'text', 'text'],
      [undefined, 'bigserial', 'database'],
      [undefined, 'int generated always as identity', 'database'],
    ])('new ids of kind %s fit %s', async (ids, type, expected) => {
      await make(COLUMNS.replace('id text', `id ${type}`));
      const { layout, mistakes } = await db.examine({ ...writing, ...(ids !== undefined && { new_ids: ids }) });
      expect(mistakes).toEqual([]);
      expect(layout?.id.newIds).toBe(expected);
    });

    it('[Decision 25] names missing privileges and the grant statement', async ({ skip }) => {
      if (SERVER_URL === '') return skip(NO_SERVER);
      await make();
      const role = `${db.schema}_reader`;
      const table = `"${db.schema}"."notes"`;
      await db.sql(`create role ${role} login`);
      try {
        const url = new URL(db.url);
        url.username = role;
        const asRole = async (mapping: object) => {
          const client = new pg.Client({ connectionString: url.href });
          await client.connect();
          try {
            return (await db.examine(mapping, undefined, client)).mistakes;
          } finally {
            await client.end();
          }
        };
        expect(await asRole(BARE)).toEqual([
          `OMP_MAPPING_TABLE: the role of the gateway has no USAGE on the schema ${db.schema}; run: grant usage on schema "${db.schema}" to "${role}"`,
        ]);
        await db.sql(`grant usage on schema ${db.schema} to ${role}`);
        expect(await asRole(BARE)).toEqual([
          `OMP_MAPPING_TABLE: the role of the gateway has no SELECT on ${label}; run: grant select on ${table} to "${role}"`,
        ]);
        await db.sql(`grant select on ${db.in}notes to ${role}`);
        expect(await asRole(BARE)).toEqual([]);
        expect(await asRole(writing)).toEqual([
          `OMP_MAPPING_WRITABLE: the role of the gateway has no INSERT, UPDATE and DELETE on ${label}; run: grant insert, update, delete on ${table} to "${role}"`,
        ]);
        await db.sql(`grant insert, delete on ${db.in}notes to ${role}`);
        expect(await asRole(writing)).toEqual([
          `OMP_MAPPING_WRITABLE: the role of the gateway has no UPDATE on ${label}; run: grant update on ${table} to "${role}"`,
        ]);
      } finally {
        await db.sql(`drop owned by ${role}; drop role ${role}`);
      }
    });

    it('rejects a view that takes no writes', async () => {
      await make();
      await db.sql(`create view ${db.in}seen as select distinct * from ${db.in}notes`);
      expect(await mistakes({ ...writing, table: 'seen' })).toEqual([
        `OMP_MAPPING_WRITABLE: the role of the gateway has no INSERT, UPDATE and DELETE on ${db.schema}.seen, or the view takes no writes`,
        `OMP_MAPPING_WRITABLE: ${db.schema}.seen has no primary key or unique index over exactly "id", so a write could change several rows`,
      ]);
    });
  });
});

describe('the catalogue', () => {
  let db: Examiner;
  let client: pg.Client;
  beforeAll(async () => {
    db = await openExaminer();
    client = new pg.Client({ connectionString: db.url });
    await client.connect();
  });
  afterEach(() => db.sql(`drop schema ${db.schema} cascade; create schema ${db.schema}`));
  afterAll(async () => {
    await client.end();
    await db.close();
  });

  const read = async (name: string): Promise<Table> => {
    const found = await readTable(client, db.schema, name, 'OMP_MAPPING_TABLE');
    if ('mistake' in found) throw new Error(found.mistake);
    return found.table;
  };

  it('reads columns with the type beneath their domains', async () => {
    await db.sql(
      `create domain ${db.in}short as varchar(9) default 'x' not null; create domain ${db.in}shorter as ${db.in}short`,
    );
    await db.sql(`create domain ${db.in}three as vector(3)`);
    await db.sql(`create table ${db.in}"Odd Table" (gone int, a ${db.in}shorter, "B b" timestamptz not null,
      c int generated always as identity, d int generated by default as identity, e int generated always as (c + 1) stored,
      f halfvec(5), g ${db.in}three, h vector, i text[] not null default '{}')`);
    await db.sql(`alter table ${db.in}"Odd Table" drop column gone`);
    const plain = { notNull: false, hasDefault: false, generated: false, deterministic: true, dimensions: null };
    const { columns, kind, may, rowSecurity, rows } = await read('Odd Table');
    expect({ kind, may, rowSecurity, rows }).toEqual({
      kind: 'table',
      may: { select: true, insert: true, update: true, delete: true },
      rowSecurity: false,
      rows: null,
    });
    const domain = (name: string) => `${db.schema}.${name}`;
    expect([...columns.values()]).toEqual([
      { ...plain, name: 'a', type: domain('shorter'), base: 'varchar', notNull: true, hasDefault: true },
      { ...plain, name: 'B b', type: 'timestamp with time zone', base: 'timestamptz', notNull: true },
      { ...plain, name: 'c', type: 'integer', base: 'int4', notNull: true, hasDefault: true, generated: true },
      { ...plain, name: 'd', type: 'integer', base: 'int4', notNull: true, hasDefault: true },
      { ...plain, name: 'e', type: 'integer', base: 'int4', hasDefault: true, generated: true },
      { ...plain, name: 'f', type: 'halfvec(5)', base: 'halfvec', dimensions: 5 },
      { ...plain, name: 'g', type: domain('three'), base: 'vector', dimensions: 3 },
      { ...plain, name: 'h', type: 'vector', base: 'vector' },
      { ...plain, name: 'i', type: 'text[]', base: '_text', notNull: true, hasDefault: true },
    ]);
  });

  it('reads indexes, also on expressions', async () => {
    await db.sql(`create table ${db.in}notes (${COLUMNS}, meta jsonb)`);
    await db.sql(
      `create unique index b_two on ${db.in}notes (user_id desc, lower(content)) include (meta) where id <> ''`,
    );
    await db.sql(`create index c_meta on ${db.in}notes using gin (meta jsonb_path_ops)`);
    await db.sql(`create index d_user on ${db.in}notes ((meta ->> 'user_id'))`);
    const { indexes } = await read('notes');
    const index = { unique: false, primary: false, valid: true, partial: false };
    const key = (column: string | null, expression: string, opclass = 'text_ops') => ({ column, expression, opclass });
    expect(indexes).toEqual([
      {
        ...index,
        name: 'b_two',
        method: 'btree',
        unique: true,
        partial: true,
        keys: [key('user_id', 'user_id'), key(null, 'lower(content)')],
      },
      { ...index, name: 'c_meta', method: 'gin', keys: [key('meta', 'meta', 'jsonb_path_ops')] },
      { ...index, name: 'd_user', method: 'btree', keys: [key(null, `((meta ->> 'user_id'::text))`)] },
      { ...index, name: 'notes_pkey', method: 'btree', unique: true, primary: true, keys: [key('id', 'id')] },
    ]);
  });

  it('skips an unfinished index', async () => {
    await db.sql(
      `create table ${db.in}notes (${COLUMNS}); create index near on ${db.in}notes using hnsw (embedding vector_l2_ops)`,
    );
    expect((await db.layout(BARE)).vector.index?.name).toBe('near');
    await db.sql(`update pg_index set indisvalid = false where indexrelid = '${db.in}near'::regclass`);
    expect((await read('notes')).indexes[0]).toMatchObject({ name: 'near', valid: false });
    expect((await db.layout(BARE)).vector.index).toBeUndefined();
  });

  it('serves partitioned tables, views and materialized views', async () => {
    await db.sql(`create table ${db.in}parts (id text, content text, user_id text, embedding vector(3)) partition by hash (user_id);
      create table ${db.in}part_0 partition of ${db.in}parts for values with (modulus 2, remainder 0);
      create table ${db.in}part_1 partition of ${db.in}parts for values with (modulus 2, remainder 1);
      create index on ${db.in}parts (user_id);
      insert into ${db.in}parts values ('a', 'x', 'ana'), ('b', 'y', 'ben');
      create view ${db.in}seen as select * from ${db.in}parts;
      create materialized view ${db.in}kept as select * from ${db.in}parts;`);
    expect([(await read('parts')).kind, (await read('seen')).kind, (await read('kept')).kind]).toEqual([
      'partitioned',
      'view',
      'materialized view',
    ]);
    expect((await read('seen')).may).toEqual({ select: true, insert: true, update: true, delete: true });
    expect((await read('kept')).may).toMatchObject({ select: true, insert: false, update: false, delete: false });
    for (const table of ['parts', 'seen', 'kept']) {
      const { layout, mistakes, warnings } = await db.examine({ ...BARE, table });
      expect(mistakes).toEqual([]);
      // The indexes behind a view are unknown.
      expect(warnings.some((text) => text.includes('has no index on'))).toBe(table === 'kept');
      if (!layout) throw new Error('no layout');
      expect(await db.rows(layout, 't.id', (where) => layout.owner.is(where, ['ben']))).toEqual([{ id: 'b' }]);
    }
  });

  it('warns of keys that may not be unique', async () => {
    await db.sql(`create table ${db.in}notes (id text, content text, user_id text, embedding vector(3))`);
    const told = async () => (await db.examine(BARE)).warnings.filter((text) => text.startsWith('OMP_MAPPING_ID'));
    const index = (more: string) => db.sql(`create unique index on ${db.in}notes ${more}`);
    await index('(id, user_id)');
    await index(`(id) where content <> ''`);
    expect(await told()).toEqual([expect.stringContaining('export and migrate read one')]);
    await index('(id)');
    expect(await told()).toEqual([]);
  });

  it('warns of a large table without a vector index', async () => {
    await db.sql(`create table ${db.in}notes (${COLUMNS})`);
    // As ANALYZE would estimate.
    await db.sql(`update pg_class set reltuples = 250000 where oid = '${db.in}notes'::regclass`);
    const told = async () => (await db.examine(BARE)).warnings.filter((text) => text.includes('250000'));
    expect(await told()).toEqual([
      `${db.schema}.notes has about 250000 rows and no vector index that can be used: a search compares all vectors of its user`,
    ]);
    await db.sql(`alter table ${db.in}notes alter column embedding type vector`);
    await db.sql(`update pg_class set reltuples = 250000 where oid = '${db.in}notes'::regclass`);
    expect(await told()).toEqual([
      expect.stringMatching(
        /: a search compares all vectors of its user; the column does not declare the length of its vectors, so an index must be on a cast of it to vector\(3\)$/,
      ),
    ]);
    await db.sql(`create index on ${db.in}notes using hnsw ((embedding::vector(3)) vector_cosine_ops)`);
    await db.sql(`update pg_class set reltuples = 250000 where oid = '${db.in}notes'::regclass`);
    expect(await told()).toEqual([]);
  });

  it('warns if row security hides rows from the role', async ({ skip }) => {
    if (SERVER_URL === '') return skip(NO_SERVER);
    await db.sql(`create table ${db.in}notes (${COLUMNS}); alter table ${db.in}notes enable row level security`);
    const role = `${db.schema}_reader`;
    await db.sql(
      `create role ${role} login; grant usage on schema ${db.schema} to ${role}; grant select on ${db.in}notes to ${role}`,
    );
    const url = new URL(db.url);
    url.username = role;
    const reader = new pg.Client({ connectionString: url.href });
    await reader.connect();
    try {
      const told = async (on?: pg.Client) =>
        (await db.examine(BARE, undefined, on)).warnings.filter((text) => text.startsWith('row security'));
      // Superusers see everything.
      expect(await told()).toEqual([]);
      expect(await told(reader)).toEqual([
        `row security applies to the role of the gateway: it never sees rows of ${db.schema}.notes that the policies hide`,
      ]);
    } finally {
      await reader.end();
      await db.sql(`drop owned by ${role}; drop role ${role}`);
    }
  });

  it('warns of an old pgvector', async () => {
    await db.sql(`create table ${db.in}notes (${COLUMNS})`);
    const { extension, warnings } = await db.examine(BARE);
    const old = /^0\.[0-7]\.|^0\.8\.[0-3]$/.test(extension?.version ?? '');
    expect(warnings.filter((text) => text.startsWith('pgvector'))).toEqual(
      old
        ? [
            `pgvector ${extension?.version} is older than 0.8.4, which fixes CVE-2026-3172 and HNSW indexes damaged by vacuum; upgrade it`,
          ]
        : [],
    );
  });
});
