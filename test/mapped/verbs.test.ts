import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { NewMemory } from '#contract';
import postgres from '../../providers/postgres/index.ts';
import { expectError } from '../support/expect-error.ts';
import { knownCallers } from '../support/known-callers.ts';
import { call, contextOf, listOf, memoryOf, refTo, searchFor } from '../support/requests.ts';
import type { FullStore } from '../support/stores.ts';
import { recordingLog, type Subject } from '../support/subject.ts';
import { BARE, COLUMNS, DOCUMENT, embedder, MIXED, openedTables, type Shape } from './tables.ts';

const { tableOf, closing } = openedTables();
const served = async (shape: Shape, mapping: object = {}): Promise<Subject> => {
  return closing(await (await tableOf(shape)).serve({ mapping }));
};
describe('capabilities follow from the mapping', () => {
  const WRITES = ['add', 'update', 'delete'];
  it.each<[string, Shape, object, object]>([
    [
      'a column for each field',
      COLUMNS,
      {},
      { scopes: 'native', tags: true, temporal: true, supports_supersession: true, etags: true },
    ],
    [
      'tags without a scope',
      DOCUMENT,
      { scope: undefined },
      { scopes: 'none', tags: true, temporal: true, supports_supersession: true, etags: true },
    ],
    [
      'scope without tags',
      BARE,
      { scope: 'owner', user_id: `'shared'` },
      { scopes: 'native', tags: false, temporal: false, etags: false },
    ],
    ['only what is required', BARE, {}, { scopes: 'none', tags: false, temporal: false, supports_supersession: false }],
  ])('[SPEC Capabilities features] [SPEC Service capabilities] %s', async (_, shape, mapping, features) => {
    const { capabilities } = await served(shape, mapping);
    expect(capabilities.features).toMatchObject({
      ...features,
      vector_search: true,
      keyword_search: false,
      supports_audit: false,
      idempotency: false,
      consistency_tokens: false,
      max_content_length: null,
    });
    expect([...capabilities.verbs].sort()).toEqual(['context', 'get', 'list', 'search', ...WRITES].sort());
  });

  it('[SPEC Capabilities verbs] without OMP_MAPPING_WRITABLE the table is read-only', async () => {
    const { capabilities, client } = await served(COLUMNS, { writable: false });
    expect([...capabilities.verbs].sort()).toEqual(['context', 'get', 'list', 'search']);
    expect(capabilities.features.etags).toBe(false);
    for (const reply of [
      await client.tell('POST', '/memories', { user_id: 'ana', content: 'x' }),
      await client.tell('PATCH', client.byId('x'), { content: 'x' }),
      await client.tell('DELETE', client.byId('x')),
    ]) {
      const { message } = expectError(reply, 'unsupported_capability');
      expect(message).toMatch(/: the table is read-only: OMP_MAPPING_WRITABLE=true lets the gateway change it$/);
    }
  });
});

it.each([
  ['timestamptz', true],
  ['timestamp(3)', true],
  ['timestamp(0)', false],
  ['date', false],
  ['bigint', true],
  ['integer', false],
  ['float8', true],
  ['float4', false],
  ['text', true],
  ['jsonb', true],
  ['timestamptz generated always as (null) stored', false],
])('[Decision 36] ETags, by a time of change in a column of %s: %s', async (type, etags) => {
  const shape = {
    ...BARE,
    columns: `${BARE.columns}, changed ${type}`,
    mapping: { ...BARE.mapping, updated_at: 'changed' },
  };
  const table = await tableOf(shape);
  const provider = await table.open();
  expect(provider.capabilities.etags).toBe(etags);
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-11-23T04:00:00.123Z') });
  const before = await provider.add({ input: memoryOf('ana', 'likes tea') }, call);
  const after = await provider.update({ ref: refTo(before.id), patch: { content: 'likes coffee' } }, call);
  expect(after?.updated_at !== before.updated_at).toBe(etags);
});

describe('a mapped time of creation', () => {
  const noted = (number: number, times: object) => ({
    id: `00000000-0000-4000-8000-00000000000${number}`,
    doc: { text: 'likes tea', owner: { id: 'ana' }, times },
  });
  const warningsOfTimes = ({ lines }: ReturnType<typeof recordingLog>) =>
    lines.map(({ message }) => message).filter((message) => message.startsWith('OMP_MAPPING_CREATED_AT'));

  it('[Decision 25] [SPEC Capabilities features.temporal] that no row has is not used', async () => {
    const table = await tableOf(DOCUMENT);
    await table.insert(noted(1, { createdAt: '2024-01-01' }));
    await table.insert(noted(2, { created: 'yesterday' }));
    const log = recordingLog();
    const provider = await table.open({ log });
    expect(provider.capabilities.temporal).toBe(false);
    expect(warningsOfTimes(log)).toEqual([
      expect.stringMatching(/^OMP_MAPPING_CREATED_AT: none of 2 rows of .* has a time there: lists are sorted by id/),
    ]);
    const { client, capabilities } = closing(await table.serve());
    expect(capabilities.features.temporal).toBe(false);
    expectError(await client.ask('/memories', { user_id: 'ana', since: '2000-01-01' }), 'unsupported_capability');
    const { items } = await client.list({ user_id: 'ana' });
    expect(items.map(({ id }) => id.at(-1))).toEqual(['2', '1']);
  });

  it('[Decision 25] [SPEC Capabilities features.temporal] that some rows have, or of an empty table, is used', async () => {
    const table = await tableOf(DOCUMENT);
    const empty = recordingLog();
    expect((await table.open({ log: empty })).capabilities.temporal).toBe(true);
    expect(warningsOfTimes(empty)).toEqual([]);
    await table.insert(noted(1, { created: '2024-01-01' }));
    await table.insert(noted(2, {}));
    const log = recordingLog();
    const provider = await table.open({ log });
    expect(provider.capabilities.temporal).toBe(true);
    expect(warningsOfTimes(log)).toEqual([
      expect.stringMatching(
        /^OMP_MAPPING_CREATED_AT: 1 of 2 rows of .* have no time there and count as created in 1970$/,
      ),
    ]);
    expect(await provider.list(listOf('ana', { since: '2023-01-01' }), call)).toMatchObject([{ content: 'likes tea' }]);
  });
});

describe('tags that another application wrote', () => {
  const TAGS = ['omp:scope:admin/x', 'omp:under:admin', 'omp:zzz', 'omp:tag:a', 'home'];

  it('[Decision 25] [Decision 14] are tags, never a scope that a grant covers', async () => {
    const table = await tableOf(DOCUMENT);
    const doc = { text: 'likes tea', owner: { id: 'ana' }, labels: TAGS };
    await table.insert({ id: '00000000-0000-4000-8000-000000000001', doc });
    const { authenticator, admit } = knownCallers();
    const { client, as } = closing(await table.serve({ mapping: { scope: undefined }, authenticator }));
    const bound = as(admit({ grants: ['*:admin/*'] }));
    expect((await bound.list({ user_id: 'ana' })).items).toEqual([]);
    const { items } = await client.list({ user_id: 'ana' });
    expect(items).toMatchObject([{ scope: null, tags: TAGS }]);
    expect((await client.list({ user_id: 'ana', tag: 'omp:zzz' })).items).toEqual(items);
  });
});

it('[Decision 6] extensions that are nested too deeply are omitted, and the rest of the row is served', async () => {
  const table = await tableOf(COLUMNS);
  const deep = `${'['.repeat(2_000)}${']'.repeat(2_000)}`;
  await table.insert({
    id: 'a',
    content: 'likes tea',
    user_id: 'ana',
    created_at: '2024-01-01',
    extensions: `{"x-deep": ${deep}, "x-note": 1}`,
  });
  const { client } = closing(await table.serve());
  const { items } = await client.list({ user_id: 'ana' });
  expect(items).toMatchObject([{ content: 'likes tea', 'x-note': 1 }]);
  expect(items[0]).not.toHaveProperty('x-deep');
});

describe('an unmapped field', () => {
  const FIELDS: Readonly<Record<string, unknown>> = {
    tags: ['a'],
    source: { app: 'editor' },
    confidence: 0,
    valid_from: '2024-01-01',
    valid_to: '2024-01-01',
    supersedes: ['mem_a'],
    'x-note': 1,
  };

  it('[SPEC Errors unsupported_capability] [Decision 25] is rejected by name, with all others, and nothing is written', async () => {
    const { client } = await served(BARE);
    const all = await client.tell('POST', '/memories', { user_id: 'ana', content: 'x', ...FIELDS });
    const names = 'tags, source, confidence, valid_from, valid_to, supersedes, x-note';
    expect(expectError(all, 'unsupported_capability').message).toBe(`${names}: the table has no column for this`);
    const { id } = await client.add({ user_id: 'ana', content: 'likes tea' });
    const reply = await client.tell('PATCH', client.byId(id), { content: 'likes coffee', confidence: 1, 'x-a': 1 });
    expect(expectError(reply, 'unsupported_capability').message).toMatch(/^confidence, x-a: /);
    expect((await client.get(id)).content).toBe('likes tea');
  });

  it('empty values are accepted', async () => {
    const { client } = await served(BARE);
    const nothing = { tags: [], supersedes: [], confidence: null, source: null, valid_to: null, 'x-a': null };
    const { id } = await client.add({ user_id: 'ana', content: 'likes tea', ...nothing });
    expect(await client.update(id, { tags: [], supersedes: [], valid_to: null })).toMatchObject({
      content: 'likes tea',
    });
  });

  it('is rejected by the provider itself', async () => {
    const provider = await (await tableOf(BARE)).open();
    const refused = (name: string) => ({
      code: 'unsupported_capability',
      message: expect.stringMatching(`^${name}: `),
    });
    const moment = '2024-01-01T00:00:00.000Z';
    await expect(provider.list(listOf('ana', { since: moment }), call)).rejects.toMatchObject(refused('since'));
    await expect(provider.list(listOf('ana', { until: moment }), call)).rejects.toMatchObject(refused('until'));
    await expect(provider.list(listOf('ana', { tags: ['a'] }), call)).rejects.toMatchObject(refused('tag'));
    await expect(provider.search(searchFor('ana', 'x', { tags: ['a'] }), call)).rejects.toMatchObject(refused('tag'));
    for (const given of [{ scope: 'a' }, { extensions: { 'x-a': 1 } }] satisfies Partial<NewMemory>[]) {
      await expect(provider.add({ input: memoryOf('ana', 'x', given) }, call)).rejects.toMatchObject(
        refused('scope' in given ? 'scope' : 'x-a'),
      );
    }
  });
});

describe('the order of lists', () => {
  /** Follows the pages of one row each. */
  const walk = async (provider: FullStore) => {
    const seen: string[] = [];
    let after: { created_at: string; id: string } | undefined;
    for (;;) {
      const [memory] = await provider.list(listOf('ana', { limit: 1, ...(after && { after }) }), call);
      if (!memory) return seen;
      seen.push(memory.id);
      after = memory;
    }
  };

  it('[Decision 1] [SPEC GET /memories pagination] without a time: by id, in the order of its type, descending', async () => {
    const table = await tableOf({
      ...MIXED,
      mapping: { ...BARE.mapping, id: 'number', embedding: 'emb', content: 'body', user_id: `meta->>'user_id'` },
    });
    for (const number of [9, 10, 100, -1]) {
      await table.insert({ number, body: 'x', meta: { user_id: 'ana' }, made: '2024-01-01' });
    }
    const provider = await table.open({ mapping: { writable: false } });
    expect(await walk(provider)).toEqual(['100', '10', '9', '-1']);
    const listed = await provider.list(listOf('ana'), call);
    expect(listed.map(({ id }) => id)).toEqual(['100', '10', '9', '-1']);
    expect(new Set(listed.map(({ created_at }) => created_at))).toEqual(new Set(['1970-01-01T00:00:00.000Z']));
  });

  it('[Decision 1] [Decision 2] ignores fractions of milliseconds, and pages lose no row', async () => {
    const table = await tableOf(COLUMNS);
    const made = ['00.000900', '00.000100', '00.000999', '00.001000', '00.000000'];
    for (const [number, fraction] of made.entries()) {
      const created_at = `2024-01-01T00:00:${fraction}Z`;
      await table.insert({ id: `${number}`, content: 'x', user_id: 'ana', created_at });
    }
    expect(await walk(await table.open())).toEqual(['3', '4', '2', '1', '0']);
  });

  it('[Decision 1] rows with an unreadable time count as created in 1970, in lists, filters and pages', async () => {
    const table = await tableOf(DOCUMENT);
    const times = ['2024-01-01', 'soon', null, 0, '1969-12-31T23:59:59Z', 1_700_000_000, ['2024'], '2024-02-30'];
    const uuid = (number: number) => `00000000-0000-4000-8000-00000000000${number}`;
    for (const [number, created] of times.entries()) {
      await table.insert({ id: uuid(number), doc: { text: 'x', owner: { id: 'ana' }, times: { created } } });
    }
    const provider = await table.open();
    const order = [0, 5, 7, 6, 3, 2, 1, 4].map(uuid);
    expect(await walk(provider)).toEqual(order);
    const between = async (bounds: object) => (await provider.list(listOf('ana', bounds), call)).map(({ id }) => id);
    const epoch = '1970-01-01T00:00:00.000Z';
    expect(await between({ since: epoch, until: epoch })).toEqual([7, 6, 3, 2, 1].map(uuid));
    expect(await between({ until: '1969-12-31T23:59:59.999Z' })).toEqual([uuid(4)]);
  });

  it('[SPEC Errors invalid_request] a cursor with an impossible id is rejected', async () => {
    const provider = await (await tableOf(DOCUMENT)).open();
    const after = { created_at: '2024-01-01T00:00:00.000Z', id: 'no uuid' };
    await expect(provider.list(listOf('ana', { after }), call)).rejects.toMatchObject({ code: 'invalid_request' });
  });

  it('times are independent of session settings', async () => {
    const table = await tableOf(MIXED);
    await table.insert({
      number: 1,
      body: 'x',
      meta: { user_id: 'ana', from: '2024-01-01 10:00' },
      made: '2024-07-01 12:00',
    });
    const url = new URL(table.url);
    url.searchParams.set('options', '-c TimeZone=Asia/Kolkata -c DateStyle=SQL,DMY -c IntervalStyle=sql_standard');
    const [plain, odd] = [await table.open(), await table.open({ options: { url: url.href } })];
    const expected = { created_at: '2024-07-01T12:00:00.000Z', valid_from: '2024-01-01T10:00:00.000Z' };
    expect(await odd.get(refTo('1'), call)).toMatchObject(expected);
    const patch = { valid_to: '2030-01-01T00:00:00.000Z' };
    const changed = await odd.update({ ref: refTo('1'), patch }, call);
    expect(changed).toMatchObject({ ...expected, ...patch });
    expect(await plain.get(refTo('1'), call)).toEqual(changed);
    const added = await odd.add({ input: memoryOf('ana', 'y', { valid_from: '2024-01-01T00:00:00.000Z' }) }, call);
    expect(await plain.get(refTo(added.id), call)).toEqual(added);
    expect((await plain.list(listOf('ana'), call))[0]).toEqual(added);
  });
});

describe('starting', () => {
  const contextWith = (log = recordingLog()) =>
    contextOf({ embedder, ranking: { mode: 'vector', keyword_weight: 0 }, log });
  const mapping = { preset: 'custom', table: 'notes', ...BARE.mapping };

  it('reports every mistake', async () => {
    const table = await tableOf(BARE);
    const wrong = { mapping: { content: 'contents', user_id: 'user', embedding: 'vector' } };
    await expect(table.open(wrong)).rejects.toThrow(
      /^the table cannot be served \(see docs\/integrations\/custom\.md\):\n {2}- .*OMP_MAPPING_CONTENT(.|\n)*\n {2}- /,
    );
  });

  it('needs a reachable server, and vectors', async () => {
    await expect(postgres.open({ mapping }, contextWith())).rejects.toThrow(/DATABASE_URL/);
    const options = { mapping, url: 'postgres://127.0.0.1:1/none' };
    await expect(postgres.open(options, contextWith())).rejects.toThrow(/cannot connect.*ECONNREFUSED.*DATABASE_URL/);
    await expect(postgres.open(options, contextOf())).rejects.toThrow(/OMP_SEARCH_MODE/);
  });

  it('logs warnings', async () => {
    const log = recordingLog();
    await (await tableOf(BARE)).open({ log });
    expect(log.lines.map(({ message }) => message).join('\n')).toMatch(/index/);
  });

  it('creates nothing in the database', async () => {
    const table = await tableOf(COLUMNS);
    const all = () => table.sql('select count(*) from pg_class where relnamespace = $1::regnamespace', [table.schema]);
    const before = await all();
    const provider = await table.open();
    await provider.add({ input: memoryOf('ana', 'likes tea', { tags: ['a'] }) }, call);
    await provider.ping(call);
    expect(await all()).toEqual(before);
  });

  it('[SPEC GET /healthz] reports a dropped table as unhealthy', async () => {
    const table = await tableOf(BARE);
    const provider = await table.open();
    await provider.ping(call);
    await table.sql(`drop table ${table.name}`);
    await expect(provider.ping(call)).rejects.toMatchObject({ code: 'provider_error' });
  });
});
