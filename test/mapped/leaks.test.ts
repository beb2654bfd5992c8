import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { MemoryPatch } from '#contract';
import { conditions } from '../../providers/postgres/sql/conditions.ts';
import { expectError } from '../support/expect-error.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { call, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import type { FullStore } from '../support/stores.ts';
import type { Subject } from '../support/subject.ts';
import { BARE, COLUMNS, DOCUMENT, type MappedTable, MIXED, openTable, vectorOf } from './tables.ts';

const text = 'ana likes green tea';
const uuid = (last: number): string => `00000000-0000-4000-8000-${String(last).padStart(12, '0')}`;

/** Documents that are no memory of any user. */
const HIDDEN: Readonly<Record<string, unknown>> = {
  sharedByAll: { text, labels: ['x'] },
  'without an owner in it': { text, owner: {}, labels: ['x'] },
  'an owner that is empty': { text, owner: { id: '' } },
  'an owner that is null': { text, owner: { id: null } },
  'an owner that is a list': { text, owner: { id: ['ana'] } },
  'an owner that is an object': { text, owner: { id: { id: 'ana' } } },
  'an owner elsewhere': { text, owner: 'ana', id: 'ana' },
  textless: { owner: { id: 'ana' }, labels: ['x'] },
  'a text that is empty': { text: '', owner: { id: 'ana' } },
  'a text that is null': { text: null, owner: { id: 'ana' } },
  'a text that is a list': { text: [text], owner: { id: 'ana' } },
  'no object': [{ text, owner: { id: 'ana' } }],
};
const SEEN = ['ana', 'bo', 'Ana', 'constructor', '%', '_', 'an%'];

describe('rows of another application', () => {
  let table: MappedTable;
  let subject: Subject;
  beforeAll(async () => {
    table = await openTable(DOCUMENT);
    const Vector = await vectorOf(text);
    for (const [number, doc] of Object.values(HIDDEN).entries()) {
      await table.insert({ id: uuid(number), doc: JSON.stringify(doc), Vector });
    }
    for (const [number, id] of SEEN.entries()) {
      await table.insert({ id: uuid(100 + number), doc: { text, owner: { id }, labels: ['x'] }, Vector });
    }
    subject = await table.serve();
  });
  afterAll(async () => {
    await subject.close();
    await table.close();
  });

  it.each(Object.keys(HIDDEN).map((what, number) => [what, uuid(number)]))(
    '[SPEC GET /memories/{id} unknown] %s: no verb reaches it',
    async (_, id) => {
      const { ask, tell, byId } = subject.client;
      const row = () => table.sql(`select t::text from ${table.name} as t where id = $1`, [id]);
      const before = await row();
      expectError(await ask(byId(id)), 'not_found');
      expectError(await tell('PATCH', byId(id), { content: 'mine', tags: ['mine'] }), 'not_found');
      expectError(await tell('DELETE', byId(id)), 'not_found');
      expect(before).toHaveLength(1);
      expect(await row()).toEqual(before);
    },
  );

  it.each([...SEEN, 'carl', 'null', '["ana"]', '{"id": "ana"}'])(
    '[SPEC Service users] list and search of %s return only their rows',
    async (user_id) => {
      const own = SEEN.includes(user_id) ? [uuid(100 + SEEN.indexOf(user_id))] : [];
      for (const tag of [undefined, 'x']) {
        const { items } = await subject.client.list({ user_id, tag });
        expect(items.map(({ id }) => id)).toEqual(own);
      }
      const hits = await subject.client.search({ user_id, q: text, limit: 100 });
      expect(hits.map(({ memory }) => memory.id)).toEqual(own);
    },
  );
});

it('[Decision 14] a row with an empty scope has no scope, and no grant covers it', async () => {
  const table = await openTable(COLUMNS);
  onTestFinished(() => table.close());
  const row = { content: text, user_id: 'ana', created_at: '2024-01-01', embedding: await vectorOf(text) };
  for (const scope of [null, '', 'coding/x']) await table.insert({ ...row, id: `in ${scope}`, scope });
  const provider = await table.open();
  expect(await provider.get(refTo('in '), call)).toMatchObject({ scope: null });
  for (const within of [['*'], ['coding/*']] as const) {
    expect(await provider.list(listOf('ana', { within }), call)).toMatchObject([{ scope: 'coding/x' }]);
    const hits = await provider.search(searchFor('ana', text, { within }), call);
    expect(hits).toMatchObject([{ memory: { scope: 'coding/x' } }]);
    expect(await provider.get(refTo('in ', { within }), call)).toBeUndefined();
    expect(await provider.delete(refTo('in null', { within }), call)).toBe(false);
  }
});

describe('collections in one table', () => {
  const COLLECTIONS = { ours: uuid(1), theirs: uuid(2) };
  let table: MappedTable;
  let provider: FullStore;
  beforeAll(async () => {
    table = await openTable({
      columns: 'id varchar primary key, collection_id uuid, embedding vector, document varchar, cmetadata jsonb',
      mapping: { preset: 'langchain-py', collection: 'ours' },
    });
    await table.sql(
      `create table ${table.schema}.langchain_pg_collection (uuid uuid primary key, name varchar unique)`,
    );
    const embedding = await vectorOf(text);
    for (const [name, collection_id] of Object.entries(COLLECTIONS)) {
      await table.sql(`insert into ${table.schema}.langchain_pg_collection values ($1, $2)`, [collection_id, name]);
      await table.insert({ id: name, collection_id, embedding, document: text, cmetadata: { user_id: 'ana' } });
    }
    await table.insert({ id: 'none', embedding, document: text, cmetadata: { user_id: 'ana' } });
    provider = await table.open();
  });
  afterAll(() => table.close());

  it('[SPEC GET /memories/{id} unknown] no verb reaches rows of another collection, or of none', async () => {
    for (const id of ['theirs', 'none']) {
      expect(await provider.get(refTo(id), call)).toBeUndefined();
      expect(await provider.update({ ref: refTo(id), patch: { content: 'mine' } }, call)).toBeUndefined();
      expect(await provider.delete(refTo(id), call)).toBe(false);
    }
    expect(await table.sql(`select document from ${table.name}`)).toEqual(Array(3).fill({ document: text }));
    expect((await provider.list(listOf('ana'), call)).map(({ id }) => id)).toEqual(['ours']);
    const hits = await provider.search(searchFor('ana', text), call);
    expect(hits.map(({ memory }) => memory.id)).toEqual(['ours']);
  });

  it('a new row belongs to the configured collection', async () => {
    const { id } = await provider.add({ input: memoryOf('bo', 'likes coffee') }, call);
    const [row] = await table.sql(`select collection_id from ${table.name} where id = $1`, [id]);
    expect(row).toEqual({ collection_id: COLLECTIONS.ours });
    expect(await provider.list(listOf('bo'), call)).toHaveLength(1);
  });

  it('a recreated collection is served by its name', async () => {
    await table.sql(`update ${table.schema}.langchain_pg_collection set uuid = $1 where name = 'ours'`, [uuid(3)]);
    expect(await provider.list(listOf('ana'), call)).toEqual([]);
    await table.sql(`update ${table.name} set collection_id = $1 where id = 'ours'`, [uuid(3)]);
    expect(await provider.list(listOf('ana'), call)).toHaveLength(1);
  });
});

describe('texts that are equal only under a collation', () => {
  beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

  /** Every text of the table is compared without regard to case, and every text index too. */
  const openCaseless = async () => {
    const table = await openTable(COLUMNS);
    onTestFinished(() => table.close());
    const caseless = `${table.schema}.caseless`;
    await table.sql(`create collation ${caseless} (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`);
    for (const [column, type] of Object.entries({
      id: 'text',
      content: 'text',
      user_id: 'varchar(80)',
      scope: 'text',
      tags: 'text[]',
      created_at: 'text',
      supersedes: 'varchar[]',
    })) {
      await table.sql(`alter table ${table.name} alter ${column} type ${type} collate ${caseless}`);
    }
    await table.sql(`create index on ${table.name} (user_id)`);
    const embedding = await vectorOf(text);
    const row = { content: text, created_at: '2024-01-01T10:00:00Z', embedding, tags: ['x'], scope: 'coding/x' };
    await table.insert({ ...row, id: 'a', user_id: 'ana' });
    await table.insert({ ...row, id: 'B', user_id: 'ANA' });
    await table.insert({ ...row, id: 'c', user_id: 'ana', scope: 'CODING/x', tags: ['X'] });
    return table;
  };
  const idsOf = (memories: readonly { readonly id: string }[]) => memories.map(({ id }) => id).sort();

  it('[Decision 14] [SPEC Service users] are different owners, ids, scopes and tags for every verb', async () => {
    const table = await openCaseless();
    const provider = await table.open();
    const before = await table.sql(`select t::text from ${table.name} as t order by id`);
    const all = () => table.sql(`select t::text from ${table.name} as t order by id`);
    expect(idsOf(await provider.list(listOf('ana'), call))).toEqual(['a', 'c']);
    expect(idsOf(await provider.list(listOf('ANA'), call))).toEqual(['B']);
    expect(idsOf(await provider.list(listOf('Ana'), call))).toEqual([]);
    expect(idsOf(await provider.list(listOf('ana', { tags: ['X'] }), call))).toEqual(['c']);
    expect(idsOf(await provider.list(listOf('ana', { scope: 'coding/x' }), call))).toEqual(['a']);
    expect(idsOf(await provider.list(listOf('ana', { within: ['coding/*'] }), call))).toEqual(['a']);
    expect(idsOf(await provider.list(listOf('ana', { until: '2024-01-01T10:00:00Z', limit: 1 }), call))).toEqual(['c']);
    const hits = await provider.search(searchFor('ANA', text), call);
    expect(idsOf(hits.map(({ memory }) => memory))).toEqual(['B']);
    for (const ref of [
      refTo('B', { users: ['ana'] }),
      refTo('B', { users: ['ana', 'aNA'] }),
      refTo('b'),
      refTo('A', { users: ['ana'] }),
      refTo('c', { users: ['ana'], within: ['coding/*'] }),
    ]) {
      expect(await provider.get(ref, call)).toBeUndefined();
      expect(await provider.update({ ref, patch: { confidence: 1 } }, call)).toBeUndefined();
      expect(await provider.delete(ref, call)).toBe(false);
    }
    expect(await all()).toEqual(before);
    expect(await provider.update({ ref: refTo('B', { users: ['ANA'] }), patch: { tags: ['y'] } }, call)).toMatchObject({
      id: 'B',
    });
    expect(await provider.delete(refTo('B', { users: ['ANA'] }), call)).toBe(true);
    expect((await provider.add({ input: memoryOf('anA', 'x') }, call)).user_id).toBe('anA');
  });

  it('[Decision 25] are found through the indexes of the table', async () => {
    const table = await openCaseless();
    const layout = await table.layout();
    const where = conditions();
    where.and(layout.owner.is(where, ['ana']));
    for (const column of layout.id.columns) where.and(column.is(where.bind('a')));
    const literal = (place: string) => pg.escapeLiteral(String(where.values[Number(place.slice(1)) - 1]));
    const condition = String(where).replace(/\$\d+/g, literal);
    await table.sql('begin; set local enable_seqscan = off');
    const plan = await table.sql(`explain select from ${layout.from} where ${condition}`);
    await table.sql('rollback');
    expect(JSON.stringify(plan)).toMatch(/Index (?:Only )?Scan/);
  });
});

describe.each([
  ['timestamptz', 'now()'],
  ['timestamp', 'now()'],
  ['date', 'current_date'],
  ['boolean', 'true'],
])('rows that are marked as deleted by %s', (type, value) => {
  const shape = { ...COLUMNS, columns: `${COLUMNS.columns}, "deletedAt" ${type}` };
  const mapping = { deleted_at: '"deletedAt"' };
  const insert = async (table: MappedTable, id: string) =>
    table.insert({ id, user_id: 'ana', content: text, created_at: '2024-01-01', embedding: await vectorOf(text) });
  const gone = refTo('gone');

  it('[Decision 25] are reached by no verb but the erase of their user', async () => {
    const table = await openTable(shape);
    onTestFinished(() => table.close());
    for (const id of ['gone', 'kept']) await insert(table, id);
    await table.sql(`update ${table.name} set "deletedAt" = ${value} where id = 'gone'`);
    const provider = await table.open({ mapping });
    const row = () => table.sql(`select ctid, t::text from ${table.name} as t where id = 'gone'`);
    const before = await row();
    const ids = (found: readonly { id: string }[]) => found.map(({ id }) => id);
    const verbs: Record<string, () => Promise<unknown>> = {
      get: async () =>
        ids([(await provider.get(gone, call)) ?? [], (await provider.get(refTo('kept'), call)) ?? []].flat()),
      list: async () => ids(await provider.list(listOf('ana'), call)),
      search: async () => ids((await provider.search(searchFor('ana', text), call)).map(({ memory }) => memory)),
      export: async () =>
        ids(
          (await provider.export?.({ limit: 9, max_bytes: 1e9, vectors: true }, call))?.items.map(
            ({ memory }) => memory,
          ) ?? [],
        ),
      update: async () => {
        expect(await provider.update({ ref: gone, patch: { content: 'mine' } }, call)).toBeUndefined();
        return ids([(await provider.update({ ref: refTo('kept'), patch: { tags: ['x'] } }, call)) ?? []].flat());
      },
      delete: async () => ((await provider.delete(gone, call)) ? ['gone', 'kept'] : ['kept']),
      erase: async () => ['kept'],
    };
    const others = ['add', 'batch', 'queryVector', 'ping', 'close', 'stats'];
    const methods = Object.entries(provider).flatMap(([name, each]) => (typeof each === 'function' ? [name] : []));
    expect([...Object.keys(verbs), ...others].sort()).toEqual(methods.sort());
    for (const [name, ask] of Object.entries(verbs)) expect(await ask(), name).toEqual(['kept']);
    expect(await row()).toEqual(before);

    expect(await provider.delete(refTo('kept'), call)).toBe(true);
    expect(await provider.list(listOf('ana'), call)).toEqual([]);
    expect(await provider.delete(refTo('kept'), call)).toBe(false);
    expect(await table.sql(`select id from ${table.name} where "deletedAt" is not null order by 1`)).toEqual([
      { id: 'gone' },
      { id: 'kept' },
    ]);
    expect(await provider.erase({ user_id: 'ana' }, call)).toMatchObject([{ removed: { memories: 2, vectors: 2 } }]);
    expect(await table.sql(`select from ${table.name}`)).toEqual([]);
  });
});

describe('a write that would change another row', () => {
  it('[Decision 14] [Decision 25] is rolled back: a trigger gives the row to another user, or changes its id', async () => {
    const table = await openTable(COLUMNS);
    onTestFinished(() => table.close());
    const row = { content: text, created_at: '2024-01-01', embedding: await vectorOf(text) };
    await table.insert({ ...row, id: 'a', user_id: 'ana' });
    const provider = await table.open();
    const before = await table.sql(`select t::text from ${table.name} as t`);
    for (const change of [`new.user_id := 'bo'`, `new.user_id := ''`, `new.id := 'b'`]) {
      await table.sql(
        `create or replace function ${table.schema}.give() returns trigger language plpgsql as $$ begin ${change}; return new; end $$;
         create or replace trigger give before insert or update on ${table.name} for each row execute function ${table.schema}.give()`,
      );
      for (const users of [['ana'], null]) {
        const changed = provider.update({ ref: refTo('a', { users }), patch: { confidence: 1 } }, call);
        await expect(changed, change).rejects.toMatchObject({ code: 'provider_error' });
      }
      await expect(provider.add({ input: memoryOf('ana', 'x') }, call), change).rejects.toMatchObject({
        code: 'provider_error',
      });
      expect(await table.sql(`select t::text from ${table.name} as t`), change).toEqual(before);
    }
  });

  it.each([COLUMNS, DOCUMENT, MIXED, BARE])(
    '[Decision 25] is rolled back: the application gave a second row the same id, in a table with $label',
    async (shape) => {
      const table = await openTable(shape);
      onTestFinished(() => table.close());
      const provider = await table.open();
      const { id, updated_at } = await provider.add({ input: memoryOf('ana', 'likes tea') }, call);
      const [key] = await table.sql<{ name: string }>(
        `select conname as name from pg_constraint where conrelid = $1::regclass and contype = 'p'`,
        [table.name],
      );
      await table.sql(
        `alter table ${table.name} drop constraint "${key?.name}"; insert into ${table.name} select * from ${table.name}`,
      );
      const rows = () => table.sql(`select ctid, t::text from ${table.name} as t`);
      const before = await rows();
      expect(before).toHaveLength(2);
      const patches: MemoryPatch[] = [{ content: 'likes coffee' }];
      if (shape !== BARE)
        patches.push(
          { tags: ['b'] },
          { confidence: 0.5 },
          { valid_to: '2030-01-01T00:00:00.000Z' },
          { extensions: { 'x-a': 1 } },
        );
      const refused = { code: 'provider_error', message: expect.stringContaining('several rows of one id') };
      const refs = [
        {},
        { users: ['ana'] },
        ...(provider.capabilities.etags ? [{ versions: [updated_at as string] }] : []),
      ];
      for (const ref of refs.map((more) => refTo(id, more))) {
        for (const patch of patches) await expect(provider.update({ ref, patch }, call)).rejects.toMatchObject(refused);
        await expect(provider.delete(ref, call)).rejects.toMatchObject(refused);
      }
      expect(await rows()).toEqual(before);
    },
  );

  it('[Decision 14] [Decision 25] is rolled back: a rule deletes the row of another user', async () => {
    const table = await openTable(COLUMNS);
    onTestFinished(() => table.close());
    const row = { content: text, created_at: '2024-01-01', embedding: await vectorOf(text) };
    await table.insert({ ...row, id: 'a', user_id: 'ana' });
    const other = `${table.schema}.other`;
    await table.sql(
      `create table ${other} as select * from ${table.name}; update ${other} set user_id = 'ANA';
       create rule elsewhere as on delete to ${table.name} do instead delete from ${other} where id = old.id returning ${other}.*`,
    );
    const provider = await table.open();
    await expect(provider.delete(refTo('a', { users: ['ana'] }), call)).rejects.toMatchObject({
      code: 'provider_error',
    });
    expect(await table.sql(`select id from ${other}`)).toEqual([{ id: 'a' }]);
  });
});
