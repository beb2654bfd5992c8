import { describe, expect, it } from 'vitest';
import { type AuditEntry, type AuditQuery, Call } from '#contract';
import type { Store } from '../support/stores.ts';
import { call, memoryOf, refTo, storeForEach } from './store.ts';

const store = storeForEach();

const entries = () =>
  store.sql<Record<string, unknown>>(
    `select app, action, user_id, memory_id, scope, request_id, outcome from ${store.names.auditLog} order by seq`,
  );
const memories = () => store.sql(`select id from ${store.names.memories} order by id`);
const read = async (provider: Store, more: Partial<AuditQuery> = {}) =>
  (await provider.audit?.read({ user_id: 'u', within: null, limit: 100, ...more }, call))?.map(
    ({ seq: _, ...entry }): AuditEntry => entry,
  );

// What an entry says, and who may read it: test/conformance.
describe('[Decision 11] a change', () => {
  it('is not kept without its entry', async () => {
    const provider = await store.open();
    const kept = await provider.add({ input: memoryOf('u', 'kept', { scope: 'a' }) }, call);
    const before = await store.sql(`select * from ${store.names.memories}`);
    await store.sql(`alter table ${store.names.auditLog} add constraint refused check (request_id <> 'refused')`);
    const refused = new Call('refused', call.caller);
    const once = { caller: 'c', key: 'k', fingerprint: 'f' };
    for (const attempt of [
      () => provider.add({ input: memoryOf('u', 'not kept') }, refused),
      () => provider.add({ input: memoryOf('u', 'not kept'), key: once }, refused),
      () => provider.update?.({ ref: refTo(kept.id), patch: { content: 'changed' } }, refused),
      () => provider.delete?.(refTo(kept.id), refused),
    ]) {
      await expect(attempt()).rejects.toMatchObject({ code: 'provider_error', cause: { code: '23514' } });
    }
    expect(await store.sql(`select * from ${store.names.memories}`)).toEqual(before);
    expect(await store.sql(`select from ${store.names.onceKeys}`)).toEqual([]);
    expect(await entries()).toHaveLength(1);
  });

  it('that fails leaves no entry', async () => {
    const provider = await store.open();
    const { id } = await provider.add({ input: memoryOf('u', 'kept') }, call);
    await store.sql(
      `alter table ${store.names.memories} add constraint refused check (content <> 'refused');
       create function ${store.names.schema}.refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
       create trigger refuse before delete on ${store.names.memories} execute function ${store.names.schema}.refuse()`,
    );
    const once = { caller: 'c', key: 'k', fingerprint: 'f' };
    for (const attempt of [
      () => provider.add({ input: memoryOf('u', 'refused') }, call),
      () => provider.add({ input: memoryOf('u', 'refused'), key: once }, call),
      () => provider.update?.({ ref: refTo(id), patch: { content: 'refused' } }, call),
      () => provider.delete?.(refTo(id), call),
    ]) {
      await expect(attempt()).rejects.toMatchObject({ code: 'provider_error' });
    }
    expect((await entries()).map(({ action }) => action)).toEqual(['add']);
    expect(await store.sql(`select from ${store.names.onceKeys}`)).toEqual([]);
    expect(await memories()).toEqual([{ id }]);
  });

  it('of many at once has exactly one entry each', async () => {
    const provider = await store.open();
    const made = await Promise.all(
      Array.from({ length: 100 }, (_, i) => provider.add({ input: memoryOf('u', `note ${i}`) }, call)),
    );
    const deleted = await Promise.all(
      made.flatMap(({ id }) => [1, 2, 3].map(() => provider.delete?.(refTo(id), call))),
    );
    expect(deleted.filter(Boolean)).toHaveLength(100);
    const counts = await store.sql(
      `select action, count(*)::int as all, count(distinct memory_id)::int as ids from ${store.names.auditLog} group by action order by action`,
    );
    expect(counts).toEqual([
      { action: 'add', all: 100, ids: 100 },
      { action: 'delete', all: 100, ids: 100 },
    ]);
  });
});

it('[Decision 11] without audit there is no log, and every change works', async () => {
  const provider = await store.open({ audit: null });
  expect(provider.audit).toBeUndefined();
  const made = await provider.add({ input: memoryOf('u', 'one', { scope: 'a' }) }, call);
  const once = { caller: 'c', key: 'k', fingerprint: 'f' };
  const repeatable = await provider.add({ input: memoryOf('u', 'two'), key: once }, call);
  expect(await provider.add({ input: memoryOf('u', 'two'), key: once }, call)).toEqual(repeatable);
  expect(await provider.update?.({ ref: refTo(made.id), patch: { confidence: 0.5 } }, call)).toMatchObject({
    confidence: 0.5,
  });
  await provider.update?.({ ref: refTo(made.id), patch: { confidence: 0.5 } }, call);
  expect(await provider.delete?.(refTo(made.id), call)).toBe(true);
  expect(await memories()).toEqual([{ id: repeatable?.id }]);
  expect(await entries()).toEqual([]);
});

describe('[Decision 11] the log', () => {
  const entry = (more: Partial<AuditEntry> = {}): AuditEntry => ({
    timestamp: '2024-05-05T05:05:05.005Z',
    app: 'app',
    action: 'get',
    user_id: 'u',
    memory_id: null,
    scope: null,
    request_id: 'r',
    outcome: 'ok',
    ...more,
  });

  it('returns a batch newest first, and of one millisecond the last recorded first', async () => {
    const provider = await store.open();
    const awkward = ['{"a",\\b}', "it's", 'null', 'NULL', '', ' ', '😀', '$1', '\\'];
    const given: AuditEntry[] = [
      ...awkward.map((text, i) => entry({ app: text, memory_id: text, scope: text, request_id: `r${i}` })),
      entry({ app: null, outcome: 'scope_denied', action: 'search' }),
      entry({ timestamp: '2024-05-05T05:05:05.006Z', outcome: 'not_found', memory_id: 'mem_x' }),
      entry({ timestamp: '0001-01-01T00:00:00.000Z' }),
      entry({ timestamp: '9999-12-31T23:59:59.999Z' }),
      entry({ user_id: null, memory_id: 'mem_nobody' }),
      entry({ user_id: 'v' }),
    ];
    await provider.audit?.record(given, call);
    await provider.audit?.record([], call);
    const mine = given.filter(({ user_id }) => user_id === 'u');
    const newestFirst = mine
      .toReversed()
      .sort((a, b) => (a.timestamp < b.timestamp ? 1 : a.timestamp > b.timestamp ? -1 : 0));
    expect(await read(provider)).toEqual(newestFirst);
    expect(await read(provider, { limit: 3 })).toEqual(newestFirst.slice(0, 3));
    expect(await entries()).toHaveLength(given.length);
  });

  it('keeps a whole batch or nothing', async () => {
    const provider = await store.open();
    const bad = entry({ request_id: null as unknown as string });
    await expect(provider.audit?.record([entry(), bad], call)).rejects.toMatchObject({ code: 'provider_error' });
    expect(await entries()).toEqual([]);
  });
});
