import { describe, expect, it } from 'vitest';
import type { MemoryPatch } from '#contract';
import { call, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import { recordingLog } from '../support/subject.ts';
import { BARE, COLUMNS, DOCUMENT, MIXED, openedTables, vectorOf } from './tables.ts';

const { tableOf } = openedTables();

const ID = '00000000-0000-4000-8000-000000000001';
const UNIT = { 'a key': "with a ' quote", list: [1, { two: null }], large: 12345678901234567890n.toString() };
/** A document of an application: memories use a few of its keys. */
const DOCUMENT_OF_APP = {
  text: 'likes tea',
  owner: { id: 'ana', name: 'Ana', more: { id: 'ignored' } },
  labels: ['a'],
  times: { created: '2024-01-01T00:00:00.000Z', seen: 'yesterday', valid: { until: 'never' } },
  page: 7,
  units: UNIT,
  'labels ': ['ignored'],
};

describe('a patch of a JSON document', () => {
  it.each<[MemoryPatch, object]>([
    [
      { tags: [], confidence: 0.5, supersedes: ['mem_a'] },
      { labels: [], confidence: 0.5, supersedes: ['mem_a'] },
    ],
    [{ extensions: { 'x-a': { b: [null] } } }, { more: { 'x-a': { b: [null] } } }],
    [
      { content: 'likes coffee', tags: ['b'], extensions: { 'x-a': 1, 'x-b': 'two' } },
      { text: 'likes coffee', labels: ['b'], more: { 'x-a': 1, 'x-b': 'two' } },
    ],
  ])('%j sets its keys and keeps all others', async (patch, set) => {
    const table = await tableOf(DOCUMENT);
    await table.insert({ id: ID, doc: DOCUMENT_OF_APP, Vector: await vectorOf('likes tea') });
    const provider = await table.open();
    const updated = await provider.update({ ref: refTo(ID), patch }, call);
    expect(updated).toMatchObject(patch);
    expect(await provider.get(refTo(ID), call)).toEqual(updated);
    const [row] = await table.sql<{ doc: typeof DOCUMENT_OF_APP }>(`select doc from ${table.name}`);
    const times = { ...DOCUMENT_OF_APP.times, updated: updated?.updated_at };
    expect(row?.doc).toEqual({ ...DOCUMENT_OF_APP, ...set, times });
  });

  it('sets a nested expiry, and removes it', async () => {
    const table = await tableOf(DOCUMENT);
    await table.insert({ id: ID, doc: DOCUMENT_OF_APP });
    const provider = await table.open();
    const docOf = async () =>
      (await table.sql<{ doc: { times: object } }>(`select doc from ${table.name}`))[0]?.doc.times;
    const valid_to = '2030-01-01T00:00:00.000Z';
    expect((await provider.update({ ref: refTo(ID), patch: { valid_to } }, call))?.valid_to).toBe(valid_to);
    expect(await docOf()).toMatchObject({ seen: 'yesterday', valid: { until: 'never', to: valid_to } });
    expect((await provider.update({ ref: refTo(ID), patch: { valid_to: null } }, call))?.valid_to).toBeNull();
    expect(await docOf()).toMatchObject({ seen: 'yesterday', valid: { until: 'never' } });
    expect(await docOf()).not.toHaveProperty('valid.to');
  });

  it('creates missing objects on the path, and never overwrites another value there', async () => {
    const table = await tableOf(DOCUMENT);
    const provider = await table.open();
    const row = { text: 'likes tea', owner: { id: 'ana' } };
    await table.insert({ id: ID, doc: row });
    expect(await provider.update({ ref: refTo(ID), patch: { extensions: { 'x-a': 1 } } }, call)).toMatchObject({
      extensions: { 'x-a': 1 },
    });
    for (const more of ['text', 7, ['list']]) {
      await table.sql(`update ${table.name} set doc = $1`, [{ ...row, more }]);
      const refused = provider.update({ ref: refTo(ID), patch: { extensions: { 'x-a': 1 } } }, call);
      await expect(refused).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringContaining('extensions'),
      });
      expect(await table.sql(`select doc from ${table.name}`)).toEqual([{ doc: { ...row, more } }]);
    }
  });

  it('keeps the type json and the other keys', async () => {
    const table = await tableOf(MIXED);
    const meta = { user_id: 'ana', page: 7, 'x-app': 1, nested: UNIT };
    await table.insert({ number: 5, body: 'likes tea', meta, made: '2024-01-01', labels: '["a", 3]' });
    const provider = await table.open();
    const patch = { extensions: { 'x-mine': [2] }, scope: 'home/kitchen', supersedes: ['5'] };
    const updated = await provider.update({ ref: refTo('5'), patch }, call);
    expect(updated).toMatchObject({ ...patch, extensions: { 'x-app': 1, 'x-mine': [2] }, tags: ['a'] });
    const [row] = await table.sql<{ meta: object; labels: unknown }>(`select meta, labels from ${table.name}`);
    expect(row?.meta).toEqual({ ...meta, scope: 'home/kitchen', supersedes: ['5'], 'x-mine': [2] });
    expect(row?.labels).toEqual(['a', 3]);
  });
});

describe('the time of change', () => {
  const changed = async (updated: unknown) => {
    const table = await tableOf(DOCUMENT);
    await table.insert({ id: ID, doc: { ...DOCUMENT_OF_APP, times: { ...DOCUMENT_OF_APP.times, updated } } });
    const provider = await table.open();
    const before = await provider.get(refTo(ID), call);
    const after = await provider.update({ ref: refTo(ID), patch: { confidence: 1 } }, call);
    const [row] = await table.sql<{ doc: { times: { updated: unknown } } }>(`select doc from ${table.name}`);
    expect((after?.updated_at ?? '') > (before?.updated_at ?? '')).toBe(true);
    return { stored: row?.doc.times.updated, shown: after?.updated_at as string };
  };

  it('is written in the form of the current value', async () => {
    const seconds = await changed(1_700_000_000);
    expect(seconds.stored).toBe(Date.parse(seconds.shown) / 1000);
    const milliseconds = await changed(1_700_000_000_123);
    expect(milliseconds.stored).toBe(Date.parse(milliseconds.shown));
    for (const before of ['2024-01-01T00:00:00.000Z', '2024-01-01 10:00:00+02', 'soon', null, undefined]) {
      const { stored, shown } = await changed(before);
      expect(stored).toBe(shown);
    }
  });

  it('[Decision 7] is later than the last, even if the clock went back', async () => {
    expect(await changed('2999-01-01T00:00:00.000Z')).toMatchObject({ shown: '2999-01-01T00:00:00.001Z' });
    expect(await changed(32_472_144_000)).toMatchObject({
      shown: '2999-01-01T00:00:00.001Z',
      stored: 32_472_144_000.001,
    });
  });

  it('[Decision 7] leaves the time of creation and all other columns unchanged', async () => {
    const table = await tableOf(COLUMNS);
    await table.insert({
      id: 'a',
      content: 'x',
      user_id: 'ana',
      created_at: '2024-01-01T00:00:00.123456Z',
      tags: ['t'],
    });
    const select = `select to_jsonb(t) - 'updated_at' - 'confidence' as rest from ${table.name} as t`;
    const before = await table.sql(select);
    const provider = await table.open();
    expect(await provider.get(refTo('a'), call)).toMatchObject({ updated_at: '2024-01-01T00:00:00.123Z' });
    await provider.update({ ref: refTo('a'), patch: { confidence: 0.5 } }, call);
    expect(await table.sql(select)).toEqual(before);
  });

  it('is optional', async () => {
    const table = await tableOf(BARE);
    const provider = await table.open();
    const { id } = await provider.add({ input: memoryOf('ana', 'likes tea') }, call);
    const after = await provider.update({ ref: refTo(id), patch: { content: 'likes coffee' } }, call);
    expect(after).toMatchObject({ content: 'likes coffee', updated_at: '1970-01-01T00:00:00.000Z' });
  });
});

describe('a new row', () => {
  it('leaves unmapped columns to their defaults', async () => {
    const table = await tableOf(COLUMNS);
    const provider = await table.open();
    const memory = await provider.add({ input: memoryOf('ana', 'likes tea') }, call);
    expect(await provider.get(refTo(memory.id), call)).toEqual(memory);
    const [row] = await table.sql(`select * from ${table.name}`);
    expect(row).toMatchObject({ "Owner's": 'untouched', tags: [], source: null, confidence: null, valid_to: null });
  });

  it('stores only the given fields in a document', async () => {
    const table = await tableOf(DOCUMENT);
    const provider = await table.open();
    const { created_at } = await provider.add({ input: memoryOf('ana', 'likes tea') }, call);
    const times = { created: created_at, updated: created_at };
    expect(await table.sql(`select doc from ${table.name}`)).toEqual([
      { doc: { text: 'likes tea', owner: { id: 'ana' }, times } },
    ]);
  });

  it('merges x- keys into a shared document', async () => {
    const table = await tableOf(MIXED);
    const provider = await table.open();
    const added = await provider.add(
      { input: memoryOf('ana', 'likes tea', { extensions: { 'x-a': 1 }, scope: 's' }) },
      call,
    );
    expect(added).toMatchObject({ extensions: { 'x-a': 1 }, scope: 's', id: '100000' });
    expect(await table.sql(`select meta from ${table.name}`)).toEqual([
      { meta: { user_id: 'ana', scope: 's', 'x-a': 1 } },
    ]);
  });

  it('accepts the value of a constant, and no other', async () => {
    const table = await tableOf(BARE);
    const provider = await table.open({ mapping: { confidence: "'0.5'", user_id: "'shared'" } });
    const memory = await provider.add({ input: memoryOf('shared', 'likes tea', { confidence: 0.5 }) }, call);
    expect(memory).toMatchObject({ user_id: 'shared', confidence: 0.5 });
    expect(await provider.list(listOf('shared'), call)).toEqual([memory]);
    expect(await provider.list(listOf('ana'), call)).toEqual([]);
    expect(await provider.search(searchFor('ana', 'tea'), call)).toEqual([]);
    const refused = { code: 'unsupported_capability', message: expect.stringMatching(/^confidence: /) };
    await expect(provider.add({ input: memoryOf('shared', 'x', { confidence: 1 }) }, call)).rejects.toMatchObject(
      refused,
    );
    await expect(provider.update({ ref: refTo(memory.id), patch: { confidence: 1 } }, call)).rejects.toMatchObject(
      refused,
    );
    await expect(provider.add({ input: memoryOf('ana', 'x') }, call)).rejects.toMatchObject({
      code: 'unsupported_capability',
      message: expect.stringMatching(/^user_id: /),
    });
  });
});

it('accepts the list or object of a constant, and no other', async () => {
  const { columns, mapping } = BARE;
  const table = await tableOf({ columns, mapping: { ...mapping, source: `'{"app":"notes"}'`, tags: `'["x"]'` } });
  const provider = await table.open();
  const given = memoryOf('ana', 'x', { source: { app: 'notes' }, tags: ['x'] });
  const added = await provider.add({ input: given }, call);
  expect(added).toMatchObject({ source: { app: 'notes' }, tags: ['x'] });
  await expect(provider.add({ input: { ...given, tags: ['y'] } }, call)).rejects.toThrow(/^tags: /);
  await expect(provider.add({ input: { ...given, source: { app: 'mail' } } }, call)).rejects.toThrow(/^source: /);
});

it('stores nothing in a collection that was deleted in the meantime', async () => {
  const columns = 'id varchar primary key, collection_id uuid, embedding vector(64), document text, cmetadata jsonb';
  const table = await tableOf({ columns, mapping: {} });
  await table.sql(`create table ${table.schema}.langchain_pg_collection (uuid uuid primary key, name text)`);
  await table.sql(`insert into ${table.schema}.langchain_pg_collection values ($1, 'langchain')`, [ID]);
  const provider = await table.open({ mapping: { preset: 'langchain-py' } });
  expect(await provider.add({ input: memoryOf('ana', 'kept') }, call)).toMatchObject({ content: 'kept' });
  await table.sql(`delete from ${table.schema}.langchain_pg_collection`);
  await expect(provider.add({ input: memoryOf('ana', 'lost') }, call)).rejects.toMatchObject({
    code: 'provider_error',
  });
  expect(await table.sql(`select document from ${table.name}`)).toEqual([{ document: 'kept' }]);
});

it('[Decision 25] changes rows of a partitioned table, whose key has the user in it', async () => {
  const table = await tableOf({
    ...BARE,
    columns: `${BARE.columns.replace(' primary key', '')}, primary key (owner, id)) partition by hash (owner`,
  });
  for (const part of [0, 1])
    await table.sql(
      `create table ${table.schema}.part_${part} partition of ${table.name} for values with (modulus 2, remainder ${part})`,
    );
  const log = recordingLog();
  const provider = await table.open({ log });
  expect(log.lines.map(({ message }) => message).join()).toContain('changes by such an id are refused');
  for (const user of ['ana', 'bo', 'cleo', 'dan']) {
    const { id } = await provider.add({ input: memoryOf(user, 'likes tea') }, call);
    expect(await provider.update({ ref: refTo(id), patch: { content: 'likes coffee' } }, call)).toMatchObject({ id });
    expect(await provider.get(refTo(id), call)).toMatchObject({ user_id: user, content: 'likes coffee' });
    expect(await provider.delete(refTo(id), call)).toBe(true);
    await provider.add({ input: memoryOf(user, 'likes milk') }, call);
  }
  await provider.erase({ user_id: 'ana' }, call);
  expect(await table.sql(`select owner from ${table.name} order by 1`)).toEqual(
    ['bo', 'cleo', 'dan'].map((owner) => ({ owner })),
  );
});

describe('a constraint violation', () => {
  const shape = {
    columns: `id uuid primary key, content varchar(10) not null, owner varchar(5), kind text not null default 'note',
      embedding vector(64), scope text check (scope <> 'bad'), unique (content)`,
    mapping: { ...BARE.mapping, new_ids: 'uuid', scope: 'scope' },
  };

  it.each([
    [{ user_id: 'somebody' }, /^content or user_id or scope: does not fit the column$/],
    [{ content: 'more than ten' }, /^content or user_id or scope: does not fit the column$/],
    [{ scope: 'bad' }, /^memory: a check constraint of the table rejects this$/],
    [{ content: 'twice' }, /^memory: the table already has such a row$/],
  ])('[SPEC Errors invalid_request] %j is an invalid request', async (fields, message) => {
    const table = await tableOf(shape);
    const provider = await table.open();
    await provider.add({ input: memoryOf('ana', 'twice') }, call);
    const { user_id, content, ...more } = { user_id: 'ana', content: 'x', ...fields } as {
      user_id: string;
      content: string;
    };
    const refused = provider.add({ input: memoryOf(user_id, content, more) }, call);
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringMatching(message) });
    const { id } = (await provider.list(listOf('ana'), call))[0] as { id: string };
    const tooLong = provider.update({ ref: refTo(id), patch: { content: 'more than ten' } }, call);
    await expect(tooLong).rejects.toMatchObject({ code: 'invalid_request' });
    expect(await table.sql(`select content from ${table.name}`)).toEqual([{ content: 'twice' }]);
  });
});

it.each([DOCUMENT, MIXED])(
  '[SPEC PATCH /memories/{id}] keeps concurrent patches of several gateways: $label',
  async (shape) => {
    const table = await tableOf(shape);
    const gateways = [await table.open(), await table.open(), await table.open()];
    const [first] = gateways as [(typeof gateways)[number]];
    const { id } = await first.add({ input: memoryOf('ana', 'likes tea') }, call);
    const keys = Array.from({ length: 24 }, (_, number) => `x-${number}` as const);
    await Promise.all(
      keys.map((key, number) =>
        gateways[number % 3]?.update({ ref: refTo(id), patch: { extensions: { [key]: number } } }, call),
      ),
    );
    const { extensions } = (await first.get(refTo(id), call)) ?? {};
    expect(extensions).toEqual(Object.fromEntries(keys.map((key, number) => [key, number])));
  },
);
