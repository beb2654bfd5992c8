import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FIELDS, type FieldName } from '../../providers/postgres/mapped/field-mapping.ts';
import type { Layout } from '../../providers/postgres/mapped/layout.ts';
import { createId } from '../../providers/postgres/mapped/row-identity.ts';
import { conditions } from '../../providers/postgres/sql/conditions.ts';
import { BARE, COLUMNS, type Examiner, openExaminer } from './examining.ts';

const UUID = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
const AT = '2025-07-01T10:20:30.456Z';

describe('reading and writing columns', () => {
  let db: Examiner;
  let notes: string;
  let citext: string | undefined;
  beforeAll(async () => {
    db = await openExaminer();
    notes = `${db.in}notes`;
    // Not every server has it. It is dropped again, unless it was there before.
    const [there] = await db.sql(`select from pg_extension where extname = 'citext'`);
    citext = await db.sql('create extension if not exists citext').then(
      () => (there ? '' : 'drop extension citext'),
      () => undefined,
    );
  });
  afterEach(() => db.sql(`drop table if exists ${notes} cascade`));
  afterAll(async () => {
    if (citext) await db.sql(citext);
    await db.close();
  });

  const ids = async (layout: Layout, and?: Parameters<Examiner['rows']>[2]) =>
    (await db.rows(layout, `${layout.id.read} as id`, and)).map(({ id }) => id);
  const of = (layout: Layout, ...users: string[]) => ids(layout, (where) => layout.owner.is(where, users));
  const planOf = async (layout: Layout, condition: string, values: readonly unknown[]) => {
    await db.sql('begin; set local enable_seqscan = off');
    try {
      const plan = await db.sql(`explain select 1 from ${layout.from} where ${condition}`, values);
      return plan.map((row) => Object.values(row)[0]).join('\n');
    } finally {
      await db.sql('rollback');
    }
  };

  describe('the rows of a user', () => {
    const TYPES = ['text', 'varchar(40)', 'char(8)', 'citext'];
    it.each([...TYPES.map((type) => ({ type, index: 'btree (who, id)' })), { type: 'text', index: 'hash (who)' }])(
      'a column of type $type with $index',
      async ({ type, index }) => {
        if (type === 'citext' && citext === undefined) return;
        await db.sql(`create table ${notes} (id text, content text, who ${type}, embedding vector(3))`);
        await db.sql(`create index by_who on ${notes} using ${index}`);
        await db.sql(
          `insert into ${notes} values ('a', 'x', 'ana'), ('b', 'x', 'Ana'), ('c', 'x', 'ben'), ('d', 'x', null), ('e', 'x', '')`,
        );
        const { layout, warnings } = await db.examine({ ...BARE, user_id: 'who' });
        if (!layout) throw new Error('no layout');
        expect(warnings.join()).not.toContain('has no index on');
        expect(await of(layout, 'ana')).toEqual(['a']);
        expect(await of(layout, 'ana', 'ben', 'carl')).toEqual(['a', 'c']);
        expect(await of(layout, '')).toEqual([]);
        for (const users of index.startsWith('btree') ? [['ana'], ['ana', 'ben']] : [['ana']]) {
          const where = conditions();
          expect(await planOf(layout, layout.owner.is(where, users), where.values)).toContain('by_who');
        }
      },
    );

    it.each([
      { type: 'uuid', stored: UUID, none: [UUID.toUpperCase(), 'ana', `{${UUID}}`] },
      { type: 'bigint', stored: '42', none: ['042', '42.0', 'ana', '9223372036854775808', ' 42'] },
      { type: 'integer', stored: '-7', none: ['2147483648', '-07'] },
      { type: 'smallint', stored: '7', none: ['32768'] },
    ])('a column of type $type holds no other texts', async ({ type, stored, none }) => {
      await db.sql(`create table ${notes} (id text, content text, who ${type}, embedding vector(3))`);
      await db.sql(`create index by_who on ${notes} (who)`);
      await db.sql(`insert into ${notes} values ('a', 'x', $1), ('b', 'x', null)`, [stored]);
      const layout = await db.layout({ ...BARE, user_id: 'who' });
      expect(await of(layout, stored)).toEqual(['a']);
      expect(await of(layout, ...none, stored)).toEqual(['a']);
      expect(await of(layout, ...none)).toEqual([]);
      for (const text of none) expect(layout.owner.toStored(text), text).toBeUndefined();
      const where = conditions();
      expect(await planOf(layout, layout.owner.is(where, [stored]), where.values)).toContain('by_who');
    });

    it.each([
      { index: `btree ((meta -> 'who' ->> 'id'))`, plan: 'Index' },
      { index: `btree ((((meta -> 'who') ->> 'id')), id)`, plan: 'Index' },
      { index: 'gin (meta)', plan: '@>' },
      { index: 'gin (meta jsonb_path_ops)', plan: '@>' },
    ])('a path with $index', async ({ index, plan }) => {
      await db.sql(`create table ${notes} (id text, content text, meta jsonb, embedding vector(3))`);
      await db.sql(`create index by_who on ${notes} using ${index}`);
      const owners = ['"ana"', '"4.50"', '4.50', '4.5', '"true"', 'true', '["ana"]', '"it\'s \\"x\\""'];
      for (const [id, who] of owners.entries()) {
        await db.sql(`insert into ${notes} values ($1, 'x', $2)`, [id, `{"who": {"id": ${who}}}`]);
      }
      const { layout, warnings } = await db.examine({ ...BARE, user_id: `meta->'who'->>'id'` });
      if (!layout) throw new Error('no layout');
      expect(warnings.join()).not.toContain('has no index on');
      expect(await of(layout, 'ana')).toEqual(['0']);
      expect(await of(layout, '4.50', 'ana')).toEqual(['0', '1', '2']);
      expect(await of(layout, 'true')).toEqual(['4', '5']);
      expect(await of(layout, '["ana"]')).toEqual([]);
      expect(await of(layout, `it's "x"`)).toEqual(['7']);
      const where = conditions();
      const text = await planOf(layout, layout.owner.is(where, ['ana', '4.50']), where.values);
      expect(text).toContain('by_who');
      expect(text).toContain(plan);
    });

    it('warns without an index for the rows of a user', async () => {
      const told = async (mapping: object) =>
        (await db.examine({ ...BARE, ...mapping })).warnings.some((text) => text.includes('has no index on'));
      await db.sql(`create table ${notes} (id text, content text, user_id text, meta jsonb, embedding vector(3))`);
      await db.sql(`create index on ${notes} (id, user_id)`);
      await db.sql(`create index on ${notes} (user_id) where content <> ''`);
      await db.sql(`create index on ${notes} (lower(user_id))`);
      await db.sql(`create index on ${notes} ((meta ->> 'user'))`);
      expect(await told({})).toBe(true);
      expect(await told({ user_id: `meta->>'user_id'` })).toBe(true);
      expect(await told({ user_id: `meta->>'user'` })).toBe(false);
      expect(await told({ user_id: `'shared'` })).toBe(false);
    });

    it('reads a user pattern literally', async () => {
      await db.sql(`create table ${notes} (${COLUMNS})`);
      const stored = ['a_b.%ana\\.x', 'a_b.%ben\\.x', 'axb.%ana\\.x', 'a_b.%\\.x', 'ana', 'a_b.%ana\\.y', null];
      for (const [id, who] of stored.entries()) await db.sql(`insert into ${notes} values ($1, 'x', $2)`, [id, who]);
      const layout = await db.layout({ ...BARE, user_pattern: 'a_b.%{user}\\.x' });
      expect(await ids(layout)).toEqual(['0', '1']);
      expect(await of(layout, 'ana')).toEqual(['0']);
      expect(layout.owner.toUser('a_b.%ana\\.x')).toBe('ana');
      expect(['a_b.%\\.x', 'ana', 'a_b.%', ''].map((text) => layout.owner.toUser(text))).toEqual(
        Array(4).fill(undefined),
      );
      expect(layout.owner.toStored('ana')).toBe('a_b.%ana\\.x');
    });
  });

  it('rows without an id, an owner or a text are no memories', async () => {
    await db.sql(`create table ${notes} (id text, content text, user_id text, embedding vector(3))`);
    await db.sql(`insert into ${notes} values
      ('a', 'x', 'ana'), (null, 'x', 'ana'), ('b', null, 'ana'), ('c', '', 'ana'), ('d', 'x', null), ('e', 'x', '')`);
    expect(await ids(await db.layout(BARE))).toEqual(['a']);
  });

  it('splits ids of several columns', async () => {
    const part = fc.stringMatching(/^[%/a25F.]{0,6}$/);
    const rows = fc.sample(fc.tuple(part, fc.integer({ min: -9, max: 99 }), part), 300);
    await db.sql(`create table ${notes} (prefix text, number int, key text)`);
    for (const row of rows) await db.sql(`insert into ${notes} values ($1, $2, $3)`, row);
    const column = { notNull: true, hasDefault: false, generated: false, deterministic: true, dimensions: null };
    const id = createId(
      [
        { ...column, name: 'prefix', type: 'text', base: 'text' },
        { ...column, name: 'number', type: 'integer', base: 'int4' },
        { ...column, name: 'key', type: 'text', base: 'text' },
      ],
      'text',
    );
    const read = await db.sql<{ id: string; prefix: string; number: number; key: string }>(
      `select ${id.read} as id, prefix, number, key from ${notes} as t`,
    );
    for (const row of read) expect(id.parts(row.id)).toEqual([row.prefix, String(row.number), row.key]);
    expect(new Set(read.map((row) => row.id)).size).toBe(new Set(rows.map((row) => JSON.stringify(row))).size);
    const none = ['a', 'a/1', 'a%20/1/b', 'a/x/b', '%2f/1/b', ''];
    expect(none.filter((text) => id.parts(text))).toEqual([]);
  });

  const MEMORY: Readonly<Record<FieldName, unknown>> = {
    content: 'said',
    user_id: 'ana',
    scope: 'a/b',
    tags: ['x', 'y "z"'],
    source: { app: 'notes' },
    confidence: 0.1 + 0.2,
    created_at: AT,
    updated_at: AT,
    valid_from: AT,
    valid_to: AT,
    supersedes: ['m'],
    extensions: { 'x-a': [1] },
  };
  const parameterOf = (name: FieldName): unknown => {
    const value = MEMORY[name];
    if (Array.isArray(value)) return `{${value.map((each) => JSON.stringify(each)).join(',')}}`;
    return typeof value === 'object' ? JSON.stringify(value) : value;
  };

  /** Separated by semicolons. */
  const TYPES: readonly (readonly [FieldName, string])[] = [
    ['content', 'text; varchar(9); char(4); json; jsonb'],
    ['scope', 'text'],
    ['tags', 'text[]; varchar(9)[]; json; jsonb'],
    ['source', 'json; jsonb'],
    ['confidence', 'float8; float4; numeric; numeric(4,3); text; jsonb'],
    ['created_at', 'timestamptz; timestamp; date; integer'],
    ['valid_to', 'timestamptz; timestamp; bigint; numeric; float8; text; json'],
    ['supersedes', 'varchar[]'],
    ['extensions', 'json; jsonb'],
  ];
  /** Types that cannot hold the value exactly. */
  const ROUNDED: Readonly<Record<string, unknown>> = {
    float4: 0.3,
    'numeric(4,3)': 0.3,
    date: '2025-07-01T00:00:00.000Z',
    integer: '2025-07-01T10:20:30.000Z',
  };
  it.each(TYPES.flatMap(([name, types]) => types.split('; ').map((type) => ({ name, type }))))(
    '$name in a column of type $type reads as written',
    async ({ name, type }) => {
      await db.sql(`create table ${notes} (${COLUMNS.replace('content text', 'said text')}, x ${type})`);
      const layout = await db.layout({ ...BARE, content: 'said', [name]: 'x' });
      const { read, write } = layout.fields[name] ?? {};
      if (write?.kind !== 'column') throw new Error('not written into a column');
      await db.sql(`insert into ${layout.table} as t (id, ${write.column}) values ('a', ${write.from('$1')})`, [
        parameterOf(name),
      ]);
      const [row] = await db.sql<{ x: unknown }>(`select ${read} as x from ${layout.from}`);
      expect(row?.x instanceof Date ? row.x.toISOString() : row?.x).toEqual(ROUNDED[type] ?? MEMORY[name]);
      await db.sql(`update ${layout.table} as t set ${write.column} = ${write.from('$1')}`, [null]);
      const [none] = await db.sql<{ x: unknown }>(`select ${read} as x from ${layout.from}`);
      expect(none?.x).toBeNull();
    },
  );

  it.each<readonly [FieldName, string]>([
    ['confidence', 'integer'],
    ['valid_to', 'date'],
    ['valid_from', 'integer'],
    ['scope', `text generated always as ('x') stored`],
    ['tags', `jsonb generated always as ('[]') stored`],
  ])('%s cannot be written into a column of type %s', async (name, type) => {
    await db.sql(`create table ${notes} (${COLUMNS}, x ${type})`);
    const field = (await db.layout({ ...BARE, [name]: 'x' })).fields[name];
    expect(field).toEqual({ read: expect.any(String), write: undefined, constant: undefined });
  });

  it('writes numbers since 1970 in the unit of the existing rows', async () => {
    await db.sql(`create table ${notes} (${COLUMNS}, at bigint)`);
    const write = async () => {
      const { write: at } = (await db.layout({ ...BARE, created_at: 'at' })).fields.created_at ?? {};
      if (at?.kind !== 'column') throw new Error('not written into a column');
      return (await db.sql<{ at: string }>(`select ${at.from('$1')}::text as at`, [AT]))[0]?.at;
    };
    expect(await write()).toBe(String(Date.parse(AT)));
    await db.sql(`insert into ${notes} values ('a', 'x', 'ana', null, 1700000000)`);
    expect(await write()).toBe(String(Math.floor(Date.parse(AT) / 1_000)));
    await db.sql(`update ${notes} set at = at * 1000`);
    expect(await write()).toBe(String(Date.parse(AT)));
  });

  it('reads constants', async () => {
    await db.sql(`create table ${notes} (${COLUMNS})`);
    await db.sql(`insert into ${notes} values ('a', 'x', 'ana')`);
    const constants = {
      scope: `'it''s \\ mine'`,
      tags: `'["x", "y"]'`,
      source: `'{"app": "notes"}'`,
      confidence: `'.5'`,
      created_at: `'2025-07-01T12:00:00+02:00'`,
      valid_from: `'2024-02-29'`,
    };
    const layout = await db.layout({ ...BARE, ...constants });
    const names = Object.keys(constants) as FieldName[];
    const [row] = await db.rows(layout, names.map((name) => `${layout.fields[name]?.read} as ${name}`).join(', '));
    expect(row).toEqual({
      scope: `it's \\ mine`,
      tags: ['x', 'y'],
      source: { app: 'notes' },
      confidence: 0.5,
      created_at: new Date('2025-07-01T10:00:00Z'),
      valid_from: new Date('2024-02-29T00:00:00Z'),
    });
    expect(names.map((name) => layout.fields[name]?.constant)).toEqual([
      `it's \\ mine`,
      '["x","y"]',
      '{"app":"notes"}',
      '0.5',
      '2025-07-01T10:00:00.000Z',
      '2024-02-29T00:00:00.000Z',
    ]);
    const where = conditions();
    expect([layout.hasTags?.(where, ['y']), layout.hasTags?.(where, ['y', 'z'])]).toEqual(['true', 'false']);
  });

  it('filters by the tags that records show', async () => {
    await db.sql(`create table ${notes} (${COLUMNS}, array_of text[], varchars varchar(9)[], meta jsonb, list json)`);
    const lists = ['["a","b"]', '["a",1,null,["b"]]', '"a"', '[]', '{"a":1}', '1', 'null'];
    for (const [id, list] of lists.entries()) {
      await db.sql(`insert into ${notes} values ($1, 'x', 'ana', null, null, null, $2, $3)`, [
        id,
        `{"tags":${list}}`,
        list,
      ]);
    }
    const shown = [['a', 'b'], ['a'], ['a'], [], null, null, null];
    const withTags = async (place: string, ...tags: string[]) => {
      const layout = await db.layout({ ...BARE, tags: place });
      return ids(layout, (where) => layout.hasTags?.(where, tags) ?? '');
    };
    for (const place of [`meta->'tags'`, 'list']) {
      const layout = await db.layout({ ...BARE, tags: place });
      expect((await db.rows(layout, `${layout.fields.tags?.read} as tags`)).map(({ tags }) => tags)).toEqual(shown);
      expect(await withTags(place, 'a')).toEqual(['0', '1', '2']);
      expect(await withTags(place, 'a', 'b')).toEqual(['0']);
      expect(await withTags(place, '1')).toEqual([]);
    }
    await db.sql(`delete from ${notes}`);
    const arrays = ['{a,b}', '{a,null}', '{{a,b},{c,d}}', '{}', null];
    for (const [id, list] of arrays.entries()) {
      await db.sql(`insert into ${notes} values ($1, 'x', 'ana', null, $2, $3)`, [id, list, list]);
    }
    for (const place of ['array_of', 'varchars']) {
      const layout = await db.layout({ ...BARE, tags: place });
      expect((await db.rows(layout, `${layout.fields.tags?.read} as tags`)).map(({ tags }) => tags)).toEqual([
        ['a', 'b'],
        ['a'],
        null,
        null,
        null,
      ]);
      expect(await withTags(place, 'a')).toEqual(['0', '1']);
      expect(await withTags(place, 'b', 'a')).toEqual(['0']);
    }
  });

  it('no document makes a field fail', async () => {
    await db.sql(`create table ${notes} (id serial, embedding vector(3), doc jsonb, plain json, text text)`);
    const odd = fc.constantFrom<unknown>(
      1e300,
      -1e300,
      5e-324,
      1e-7,
      'NaN',
      '1e999',
      '0.5',
      '-0',
      '2025-02-31',
      AT,
      1e11,
      -1e15,
      1e18,
    );
    const value = fc.oneof(fc.jsonValue(), odd, fc.array(odd), fc.dictionary(fc.constantFrom('x-a', 'x-', 'b'), odd));
    const documents = fc.sample(
      fc.oneof(fc.record(Object.fromEntries(FIELDS.map((name) => [name, value]))), value),
      1_000,
    );
    const texts = documents.map((document) => JSON.stringify(document));
    // jsonb cannot hold what json can.
    const held = texts.filter((text) => !/\\u0000|\\ud[89a-f]/i.test(text));
    await db.sql(`insert into ${notes} (doc, text) select t::jsonb, t from unnest($1::text[]) as t`, [held]);
    await db.sql(`insert into ${notes} (plain, text) select t::json, t from unnest($1::text[]) as t`, [texts]);
    for (const column of ['doc', 'plain']) {
      const places = [
        Object.fromEntries(FIELDS.map((name) => [name, `${column}->'${name}'`])),
        Object.fromEntries(FIELDS.map((name) => [name, column])),
      ];
      for (const place of places) {
        const layout = await db.layout({ ...BARE, ...place });
        const select = FIELDS.map((name) => `${layout.fields[name]?.read} as ${name}`).join(', ');
        const rows = await db.sql<Record<string, unknown>>(
          `select ${select} from ${layout.from} where ${column} is not null`,
        );
        expect(rows).toHaveLength(column === 'doc' ? held.length : texts.length);
        for (const { confidence } of rows) {
          expect(confidence === null || ((confidence as number) >= 0 && (confidence as number) <= 1)).toBe(true);
        }
        // Owners and tags too, whatever is asked for.
        const asked = await db.rows(
          layout,
          '1 as one',
          (where) => `(${layout.owner.is(where, ['ana', '1'])} or ${layout.hasTags?.(where, ['a', '"'])})`,
        );
        expect(asked.length).toBeLessThanOrEqual(rows.length);
      }
    }
  });

  it('confidence is a number from 0 to 1, also in a text', async () => {
    await db.sql(
      `create table ${notes} (id int, content text, user_id text, embedding vector(3), doc jsonb, exact numeric, single real)`,
    );
    const values = '0 1 0.1 5e-324 "0.7" "1e-3" -0.1 1.0001 "x" true 1e-400 "-0" "1e400"'.split(' ');
    for (const [id, each] of values.entries()) {
      await db.sql(`insert into ${notes} values ($1, 'x', 'ana', null, $2)`, [id, `{"sure": ${each}}`]);
    }
    const read = async (place: string) => {
      const layout = await db.layout({ ...BARE, confidence: place });
      return (await db.rows(layout, `${layout.fields.confidence?.read} as sure`)).map(({ sure }) => sure);
    };
    expect(await read(`doc->'sure'`)).toEqual([0, 1, 0.1, 5e-324, 0.7, 0.001, null, null, null, null, 0, 0, null]);
    await db.sql(`delete from ${notes}`);
    const numbers = ['0.1', '1', '1.5', 'NaN', '1e-400'];
    for (const [id, each] of numbers.entries()) {
      await db.sql(`insert into ${notes} values ($1, 'x', 'ana', null, null, $2, $3)`, [
        id,
        each,
        each === '1e-400' ? 0 : each,
      ]);
    }
    expect(await read('exact')).toEqual([0.1, 1, null, null, 0]);
    expect(await read('single')).toEqual([0.1, 1, null, null, 0]);
  });

  it('joins a table of vectors, one for each row', async () => {
    const store = `${db.in}store`;
    const vectors = `${db.in}store_vectors`;
    await db.sql(
      `create table ${store} (prefix text, key text, value jsonb, created_at timestamptz, updated_at timestamptz, expires_at timestamptz, ttl_minutes int)`,
    );
    await db.sql(`create table ${vectors} (prefix text, key text, field_name text, embedding vector(3))`);
    try {
      await db.sql(`insert into ${store} values ('ana', 'a', '{"text": "x"}'), ('ana', 'b', '{"text": "y"}')`);
      const fields = [`it's`, 'other', 'text'];
      for (const [place, field] of fields.entries()) {
        await db.sql(`insert into ${vectors} values ('ana', 'a', $1, $2)`, [field, `[${place},1,0]`]);
      }
      await db.sql(`create index near on ${vectors} using hnsw (embedding vector_ip_ops)`);
      const distances = async (mapping: object) => {
        const { layout, mistakes, vectors: found } = await db.examine({ preset: 'langgraph-store', ...mapping });
        expect([mistakes, found?.name, layout?.vector.index?.name]).toEqual([[], 'store_vectors', 'near']);
        return db.sql(
          `select ${layout?.id.read} as id, ${layout?.vector.comparable} as comparable, ${layout?.vector.distance('$1')} as distance
             from ${layout?.from} order by 1`,
          [layout?.vector.encode(Float32Array.from([1, 0, 0]))],
        );
      };
      const without = { id: 'ana/b', comparable: false, distance: null };
      expect(await distances({})).toEqual([
        { id: 'ana/a', comparable: true, distance: expect.closeTo(1 - 2 / Math.sqrt(5)) },
        without,
      ]);
      expect(await distances({ collection: `it's` })).toEqual([
        { id: 'ana/a', comparable: true, distance: 1 },
        without,
      ]);
      await db.sql(`alter table ${vectors} drop column key, drop column field_name`);
      const has = 'it has prefix, embedding';
      expect((await db.examine({ preset: 'langgraph-store' })).mistakes).toEqual([
        `OMP_MAPPING_PRESET: ${db.schema}.store_vectors has no column "key"; ${has}`,
        `OMP_MAPPING_PRESET: ${db.schema}.store_vectors has no column "field_name"; ${has}`,
      ]);
      await db.sql(`drop table ${vectors}`);
      expect((await db.examine({ preset: 'langgraph-store' })).mistakes[0]).toContain(
        `OMP_MAPPING_PRESET: there is no table ${db.schema}.store_vectors`,
      );
    } finally {
      await db.sql(`drop table if exists ${store}, ${vectors}`);
    }
  });
});
