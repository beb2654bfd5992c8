import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { BARE, COLUMNS, type Examiner, openExaminer } from './examining.ts';

describe('a mapping that does not fit', () => {
  let owner: Examiner;
  let label: string;
  beforeAll(async () => {
    owner = await openExaminer();
    label = `${owner.schema}.notes`;
  });
  afterEach(() => owner.sql(`drop table if exists ${owner.in}notes, ${owner.in}collections cascade`));
  afterAll(() => owner.close());

  const make = (columns = COLUMNS) => owner.sql(`create table ${owner.in}notes (${columns})`);
  const mistakes = async (mapping: object, model?: { dimensions: number }) => {
    const { layout, mistakes, warnings } = await owner.examine(mapping, model);
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
    const { mistakes: told } = await owner.examine({ ...BARE, content: 'user_id', user_id: 'user_id' });
    expect(told.filter((mistake) => mistake.includes('are the same'))).toEqual([]);
  });

  it('says why a preset is read-only, and what to do', async () => {
    expect((await owner.examine({ preset: 'llamaindex-py', writable: true })).mistakes[0]).toMatch(
      /^OMP_MAPPING_WRITABLE: .+; if that library does not need to read the rows, set OMP_MAPPING_PRESET=custom$/,
    );
  });

  it('names similar tables', async () => {
    expect(await mistakes({ ...BARE, table: 'no_such_table_anywhere' })).toEqual([
      `OMP_MAPPING_TABLE: there is no table ${owner.schema}.no_such_table_anywhere; no table has a similar name`,
    ]);
    await make();
    expect(await mistakes({ ...BARE, table: 'Notes' })).toEqual([
      expect.stringMatching(`^OMP_MAPPING_TABLE: there is no table ${owner.schema}\\.Notes; similar names: .*${label}`),
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
    await owner.sql(`create domain ${owner.in}email as varchar(80)`);
    await make(
      `id numeric(10,2), content bytea, user_id float8, scope text[], tags ${owner.in}email, source text, confidence bool,
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
      `OMP_MAPPING_TAGS: ${column('tags', `${owner.schema}.email`)} ${list}`,
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
    await owner.sql(`alter table ${owner.in}notes alter column embedding type vector`);
    // Without rows the length is unknown.
    expect((await owner.examine(BARE, { dimensions: 4 })).mistakes).toEqual([]);
    await owner.sql(`insert into ${owner.in}notes values
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
      expect((await owner.examine({ ...writing, scope: 'one', supersedes: `'[]'` })).mistakes).toEqual([
        `OMP_MAPPING_WRITABLE: ${label} requires a value in "two", which no setting maps; give it a default`,
      ]);
    });

    it('requires that an id identifies one row', async () => {
      const told = `OMP_MAPPING_WRITABLE: ${label} has no primary key or unique index over exactly "id", so a write could change several rows`;
      await make('id text, content text, user_id text, embedding vector(3)');
      expect(await mistakes(writing)).toEqual([told]);
      await owner.sql(`create unique index on ${owner.in}notes (id, user_id)`);
      await owner.sql(`create unique index on ${owner.in}notes (id) where user_id is not null`);
      await owner.sql(`create unique index on ${owner.in}notes (lower(id))`);
      expect(await mistakes(writing)).toEqual([told]);
      await owner.sql(`create unique index on ${owner.in}notes (id) include (content)`);
      expect((await owner.examine(writing)).mistakes).toEqual([]);
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
      const { layout, mistakes } = await owner.examine({ ...writing, ...(ids !== undefined && { new_ids: ids }) });
      expect(mistakes).toEqual([]);
      expect(layout?.id.newIds).toBe(expected);
    });

    it('[Decision 25] names missing privileges and the grant statement', async ({ skip }) => {
      if (SERVER_URL === '') return skip(NO_SERVER);
      await make();
      const role = `${owner.schema}_reader`;
      const table = `"${owner.schema}"."notes"`;
      await owner.sql(`create role ${role} login`);
      try {
        const url = new URL(owner.url);
        url.username = role;
        const asRole = async (mapping: object) => {
          const client = new pg.Client({ connectionString: url.href });
          await client.connect();
          try {
            return (await owner.examine(mapping, undefined, client)).mistakes;
          } finally {
            await client.end();
          }
        };
        expect(await asRole(BARE)).toEqual([
          `OMP_MAPPING_TABLE: the role of the gateway has no USAGE on the schema ${owner.schema}; run: grant usage on schema "${owner.schema}" to "${role}"`,
        ]);
        await owner.sql(`grant usage on schema ${owner.schema} to ${role}`);
        expect(await asRole(BARE)).toEqual([
          `OMP_MAPPING_TABLE: the role of the gateway has no SELECT on ${label}; run: grant select on ${table} to "${role}"`,
        ]);
        await owner.sql(`grant select on ${owner.in}notes to ${role}`);
        expect(await asRole(BARE)).toEqual([]);
        expect(await asRole(writing)).toEqual([
          `OMP_MAPPING_WRITABLE: the role of the gateway has no INSERT, UPDATE and DELETE on ${label}; run: grant insert, update, delete on ${table} to "${role}"`,
        ]);
        await owner.sql(`grant insert, delete on ${owner.in}notes to ${role}`);
        expect(await asRole(writing)).toEqual([
          `OMP_MAPPING_WRITABLE: the role of the gateway has no UPDATE on ${label}; run: grant update on ${table} to "${role}"`,
        ]);
      } finally {
        await owner.sql(`drop owned by ${role}; drop role ${role}`);
      }
    });

    it('rejects a view that takes no writes', async () => {
      await make();
      await owner.sql(`create view ${owner.in}seen as select distinct * from ${owner.in}notes`);
      expect(await mistakes({ ...writing, table: 'seen' })).toEqual([
        `OMP_MAPPING_WRITABLE: the role of the gateway has no INSERT, UPDATE and DELETE on ${owner.schema}.seen, or the view takes no writes`,
        `OMP_MAPPING_WRITABLE: ${owner.schema}.seen has no primary key or unique index over exactly "id", so a write could change several rows`,
      ]);
    });
  });
});
