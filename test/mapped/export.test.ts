import { describe, expect, it } from 'vitest';
import type { ExportQuery, Memory, Provider } from '#contract';
import { createRetention } from '../../src/features/retention/retention.ts';
import { expectError } from '../support/expect-error.ts';
import { call, refTo } from '../support/requests.ts';
import type { FullStore } from '../support/stores.ts';
import { exported } from './exported.ts';
import { BARE, COLUMNS, DOCUMENT, MIXED, openedTables, type Shape, vectorOf } from './tables.ts';

const { tableOf, closing } = openedTables();

const walk = async (provider: FullStore, more: Partial<ExportQuery> = {}) => {
  const items = [];
  const pages = [];
  for (let after: string | undefined; ; ) {
    const query = { vectors: false, limit: 1, max_bytes: 1e6, after, ...more };
    const part = await provider.export(query, call);
    items.push(...part.items);
    pages.push(part.items.length);
    after = part.next;
    if (after === undefined) return { items, pages };
  }
};
const idsOf = async (provider: FullStore, more?: Partial<ExportQuery>) =>
  (await walk(provider, more)).items.map(({ memory }) => memory.id);

/** A row of each shape: what is not given has no value. */
const ROWS: readonly [Shape, (n: number, of: { user?: string; text?: string }) => Record<string, unknown>][] = [
  [
    COLUMNS,
    (n, { user = '', text = '' }) => ({ id: `n/${n}`, user_id: user, content: text, created_at: '2024-01-01' }),
  ],
  [DOCUMENT, (n, { user, text }) => ({ id: uuid(n), doc: { text, owner: { id: user } } })],
  [MIXED, (n, { user, text = '' }) => ({ number: n, meta: { user_id: user }, body: text, made: '2024-01-01' })],
  [BARE, (n, { user, text }) => ({ id: uuid(n), owner: user, content: text })],
];
const uuid = (n: number) => `00000000-0000-4000-8000-0000000000${n}`;

describe('[Decision 43] the memories of a mapped table', () => {
  it.each(ROWS.map(([shape, row]) => ({ label: shape.label, shape, row })))(
    'come once each, in the order of their keys, between rows that are none: $label',
    async ({ shape, row }) => {
      const table = await tableOf(shape);
      const embedding = shape.mapping.embedding?.replaceAll('"', '') as string;
      for (const n of [17, 12, 15, 19, 11])
        await table.insert({
          ...row(n, { user: `user ${n % 2}`, text: `note ${n}` }),
          [embedding]: await vectorOf('x'),
        });
      await table.insert(row(16, { user: 'user 1', text: 'without a vector' }));
      for (const n of [10, 13, 20]) await table.insert(row(n, n === 13 ? { user: 'ana' } : { text: 'nobody has it' }));
      const provider = await table.open({ mapping: { writable: false } });
      const { items } = await walk(provider, { vectors: true });
      const at = (n: number) => String(Object.values(row(n, {}))[0]);
      expect(items.map(({ memory }) => memory.id)).toEqual([11, 12, 15, 16, 17, 19].map(at));
      for (const { memory, vector } of items) {
        expect(await provider.get(refTo(memory.id), call)).toEqual(memory);
        expect(vector?.length).toBe(memory.id === at(16) ? undefined : 64);
      }
      expect((await walk(provider)).items.map(({ vector }) => vector)).toEqual(items.map(() => null));
      expect(await idsOf(provider, { limit: 4 })).toEqual([11, 12, 15, 16, 17, 19].map(at));
      expect(await idsOf(provider, { user_id: 'user 1' })).toEqual([11, 15, 16, 17, 19].map(at));
      const ids = [at(19), at(10), 'no such id', at(12), at(12)];
      expect(await idsOf(provider, { ids })).toEqual([at(12), at(19)]);
      expect(await idsOf(provider, { ids, user_id: 'user 0' })).toEqual([at(12)]);
    },
  );

  it('fill pages up to the limit in bytes, with at least two rows', async () => {
    const table = await tableOf(BARE);
    for (const n of [10, 11, 12, 13, 14]) await table.insert({ id: uuid(n), owner: 'ana', content: 'x'.repeat(1_000) });
    const { pages } = await walk(await table.open(), { limit: 100, max_bytes: 2_500 });
    expect(pages).toEqual([3, 2, 0]);
  });

  it('come once although several rows have one key', async () => {
    const shape = { ...BARE, columns: 'id text, content text, owner text, embedding vector(64)' };
    const table = await tableOf(shape);
    for (const id of ['a', 'b', 'b', 'b', 'c', null]) await table.insert({ id, owner: 'ana', content: 'x' });
    const provider = await table.open({ mapping: { writable: false } });
    for (const limit of [1, 2, 3, 10]) expect(await idsOf(provider, { limit }), String(limit)).toEqual(['a', 'b', 'c']);
  });

  it('changed since a time are those whose time of change says so, and without one the request is rejected', async () => {
    const columns = await tableOf(COLUMNS);
    const times = ['2024-01-01T00:00:00.000Z', '2024-01-02T00:00:00.000Z', null] as const;
    for (const [n, updated_at] of times.entries())
      await columns.insert({ id: `${n}`, user_id: 'ana', content: 'x', created_at: '2024-01-01', updated_at });
    const provider = await columns.open();
    expect(await idsOf(provider, { since: '2024-01-01T00:00:00.000Z' })).toEqual(['0', '1', '2']);
    expect(await idsOf(provider, { since: '2024-01-01T00:00:00.001Z' })).toEqual(['1']);
    const { client } = closing(await (await tableOf(BARE)).serve());
    const { message } = expectError(await client.ask('/export', { since: '2024-01-01' }), 'unsupported_capability');
    expect(message).toContain('since: the table has no time of change');
  });

  it.each(['text', 'char(4)'])('are not those whose key is empty, which no request can name: %s', async (type) => {
    const table = await tableOf({ ...BARE, columns: `id ${type}, content text, owner text, embedding vector(64)` });
    for (const id of ['', 'a']) await table.insert({ id, owner: 'ana', content: 'x' });
    const { client } = closing(await table.serve({ mapping: { writable: false } }));
    expect((await exported(client)).map(({ id }) => id)).toEqual(['a']);
    expect((await client.list({ user_id: 'ana' })).items).toHaveLength(1);
  });

  it('[SPEC Errors invalid_request] do not begin after what cannot be a key', async () => {
    const provider = await (await tableOf(DOCUMENT)).open();
    await expect(walk(provider, { after: 'no uuid' })).rejects.toMatchObject({ code: 'invalid_request' });
  });
});

describe('[Decision 38] [Decision 62] a user of a mapped table', () => {
  const open = async () => {
    const table = await tableOf(DOCUMENT);
    for (const [n, user] of ['ana', 'ben', 'ana', 'Ana', 'ana '].entries())
      await table.insert({
        id: uuid(10 + n),
        doc: { text: 'tea', owner: { id: user } },
        Vector: n === 0 ? await vectorOf('tea') : null,
      });
    await table.insert({ id: uuid(20), doc: { owner: { id: 'ana' } } });
    const left = async () =>
      (await table.sql(`select right(id::text, 2) as id from ${table.name} order by 1`)).map(({ id }) => id);
    return { table, left };
  };
  const RECEIPT = { read_back: 'counted', mapped: true, removed: { memories: 2, vectors: 1 } };

  it('is erased with all memories, and the receipt says that the other application may hold more', async () => {
    const { table, left } = await open();
    const { client } = closing(await table.serve());
    const { body } = await client.tell('DELETE', '/users/ana/memories');
    expect(body).toMatchObject({
      deleted: 2,
      receipt: { complete: true, stores: [{ ...RECEIPT, left: { memories: 0, vectors: 0 } }] },
    });
    const { receipt } = body as { receipt: { kept: { what: string }[] } };
    expect(receipt.kept.map(({ what }) => what)).toEqual(['other_application', 'backups']);
    // A row without a text is no memory.
    expect(await left()).toEqual(['11', '13', '14', '20']);
    expect((await client.tell('DELETE', '/users/ana/memories')).body).toMatchObject({ deleted: 0 });
  });

  it('is erased also if there are more memories than a statement deletes', async () => {
    const table = await tableOf(BARE);
    await table.sql(`insert into ${table.name} (id, owner, content)
      select gen_random_uuid(), 'ana', 'tea' from generate_series(1, 1001)`);
    // Stands for what makes a delete of more rows longer than a statement may take.
    await table.sql(`create function ${table.schema}.bound() returns trigger language plpgsql as $$
      begin if (select count(*) from gone) > 1000 then raise 'too many'; end if; return null; end $$`);
    await table.sql(`create trigger bound after delete on ${table.name} referencing old table as gone
      for each statement execute function ${table.schema}.bound()`);
    const { client } = closing(await table.serve());
    expect((await client.tell('DELETE', '/users/ana/memories')).body).toMatchObject({ deleted: 1_001 });
  });

  it('[SPEC Errors invalid_request] stays with a row that another table refers to, as a delete of it does', async () => {
    const table = await tableOf(COLUMNS);
    await table.sql(`create table ${table.schema}.links (memory text references ${table.name} (id))`);
    await table.insert({ id: 'linked', user_id: 'ana', content: 'x', created_at: '2024-01-01' });
    await table.sql(`insert into ${table.schema}.links values ('linked')`);
    const { client } = closing(await table.serve());
    for (const path of ['/memories/linked', '/users/ana/memories']) {
      const { message } = expectError(await client.tell('DELETE', path), 'invalid_request');
      expect(message).toContain('another table refers to this row');
    }
  });

  it('stays in part if the table keeps a row, and the receipt is not complete', async () => {
    const { table, left } = await open();
    const { client } = closing(await table.serve());
    await table.sql(`create function ${table.schema}.keep() returns trigger language plpgsql as $$
      begin if old.id = '${uuid(12)}' then return null; end if; return old; end $$`);
    await table.sql(
      `create trigger keep before delete on ${table.name} for each row execute function ${table.schema}.keep()`,
    );
    const { body } = await client.tell('DELETE', '/users/ana/memories');
    expect(body).toMatchObject({ deleted: 1, receipt: { complete: false, stores: [{ left: { memories: 1 } }] } });
    expect(await left()).toEqual(['11', '12', '13', '14', '20']);
  });

  it('is not erased from a table that is read-only', async () => {
    const { table, left } = await open();
    const { client, capabilities } = closing(await table.serve({ mapping: { writable: false } }));
    expect(capabilities.features).toMatchObject({ erase: false, retention: false, export: true });
    expectError(await client.tell('DELETE', '/users/ana/memories'), 'unsupported_capability');
    expect(await left()).toHaveLength(6);
  });
});

describe('[Decision 61] the file of a person from a mapped table', () => {
  const open = async (columns = BARE.columns) => {
    const table = await tableOf({ ...BARE, columns });
    const lists: unknown[] = [];
    const { client } = closing(
      await table.serve({
        mapping: { writable: false },
        alter: (provider) => ({
          ...provider,
          list: (query, call) => {
            lists.push(query);
            return (provider as Required<Provider>).list(query, call);
          },
        }),
      }),
    );
    const idsIn = async () =>
      (await client.ask('/users/ana/file')).text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line))
        .filter(({ type }) => type === 'memory')
        .map(({ id }) => id);
    return { table, lists, idsIn };
  };

  it('goes on from page to page by the key, where no two rows have one, instead of sorting all rows for each page', async () => {
    const { table, lists, idsIn } = await open();
    const ids = Array.from({ length: 40 }, (_, n) => uuid(10 + n));
    for (const id of ids) await table.insert({ id, owner: 'ana', content: 'x'.repeat(20_000) });
    await table.insert({ id: uuid(60), owner: 'ben', content: 'x' });
    expect(await idsIn()).toEqual(ids);
    expect(lists).toEqual([]);
  });

  it('has every row where several have one key', async () => {
    const { table, lists, idsIn } = await open('id text, content text, owner text, embedding vector(64)');
    for (const id of ['a', 'b', 'b', 'b', 'c']) await table.insert({ id, owner: 'ana', content: 'x' });
    expect((await idsIn()).sort()).toEqual(['a', 'b', 'b', 'b', 'c']);
    expect(lists.length).toBeGreaterThan(0);
  });
});

describe('[Decision 60] retention on a mapped table', () => {
  const DAY = 86_400_000;
  const ago = (days: number) => new Date(Date.now() - days * DAY).toISOString();

  it.each([true, false])('deletes what is old, and a row that changes meanwhile stays (etags: %s)', async (etags) => {
    const table = await tableOf(COLUMNS);
    const insert = (id: string, created_at: string) =>
      table.insert({ id, user_id: 'ana', content: 'x', created_at, updated_at: created_at });
    for (const id of ['old', 'tagged', 'moved']) await insert(id, ago(9));
    await insert('new', ago(1));
    const provider = await table.open({ mapping: etags ? {} : { updated_at: undefined } });
    expect(provider.capabilities.etags).toBe(etags);
    const store: FullStore = {
      ...provider,
      async export(query, own) {
        const part = await provider.export(query, own);
        await table.sql(`update ${table.name} set tags = '{keep}', updated_at = now() where id = 'tagged'`);
        await table.sql(`update ${table.name} set created_at = now(), updated_at = now() where id = 'moved'`);
        return part;
      },
    };
    const deleted: Memory[] = [];
    const rules = [{ tag: 'keep', days: null }, { days: 7 }];
    for await (const step of createRetention(rules).pass({ store, dry_run: false }, call))
      deleted.push(...step.deleted.map(({ memory }) => memory));
    expect(deleted.map(({ id }) => id)).toEqual(['old']);
    const rows = await table.sql(`select id from ${table.name} order by id`);
    expect(rows.map(({ id }) => id)).toEqual(['moved', 'new', 'tagged']);
  });
});
