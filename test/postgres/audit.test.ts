import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AuditEntry, AuditQuery, Call, Verb } from '#contract';
import type { Memories } from '../support/memories.ts';
import { call, memoryOf, openStore, refTo, type Store } from './store.ts';

let store: Store;
beforeEach(async () => {
  store = await openStore();
});
afterEach(() => store.close());

const byCaller = (app: string | null, requestId: string): Call => ({
  ...call,
  requestId,
  caller: { id: `key:${app}`, app },
});
const entries = () =>
  store.sql<Record<string, unknown>>(
    `select app, action, user_id, memory_id, scope, request_id, outcome from ${store.names.auditLog} order by seq`,
  );
const memories = () => store.sql(`select id from ${store.names.memories} order by id`);
const read = async (provider: Memories, more: Partial<AuditQuery> = {}) =>
  (await provider.audit?.read({ user_id: 'u', within: null, limit: 100, ...more }, call))?.map(
    ({ seq: _, ...entry }): AuditEntry => entry,
  );

describe('[Decision 11] a change', () => {
  it('writes who did what, and nothing of the contents', async () => {
    const provider = await store.open();
    const before = new Date().toISOString();
    const made = await provider.add(memoryOf('u', 'a secret text', { scope: 'a/b' }), byCaller('first', 'r1'));
    await provider.update?.(refTo(made.id), { content: 'another secret', scope: 'a/c' }, byCaller('second', 'r2'));
    await provider.delete?.(refTo(made.id), byCaller(null, 'r3'));
    const after = new Date().toISOString();

    const about = { user_id: 'u', memory_id: made.id, outcome: 'ok' };
    const expected = [
      { ...about, app: 'first', action: 'add', scope: 'a/b', request_id: 'r1' },
      { ...about, app: 'second', action: 'update', scope: 'a/c', request_id: 'r2' },
      { ...about, app: null, action: 'delete', scope: 'a/c', request_id: 'r3' },
    ];
    expect(await entries()).toEqual(expected);
    const told = (await read(provider)) ?? [];
    expect(told.map(({ timestamp: _, ...entry }) => entry)).toEqual(expected.toReversed());
    for (const { timestamp } of told) {
      expect(timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(timestamp >= before && timestamp <= after).toBe(true);
    }
    const [raw] = await store.sql<{ all: string }>(`select json_agg(l)::text as all from ${store.names.auditLog} as l`);
    expect(raw?.all).not.toMatch(/secret/);
  });

  it('that changes nothing is recorded as well, and what finds nothing is not', async () => {
    const provider = await store.open();
    const { id, updated_at } = await provider.add(memoryOf('u', 'same'), call);
    expect(await provider.update?.(refTo(id), { content: 'same' }, byCaller('again', 'r'))).toMatchObject({
      updated_at,
    });
    await provider.update?.(refTo('mem_unknown'), { content: 'x' }, call);
    await provider.update?.({ id, users: ['v'], within: null }, { content: 'x' }, call);
    await provider.update?.({ id, users: ['v'], within: null }, { content: 'same' }, call);
    await provider.delete?.(refTo('mem_unknown'), call);
    await provider.delete?.({ id, users: null, within: ['a/*'] }, call);
    expect((await entries()).map(({ action, app }) => [action, app])).toEqual([
      ['add', 'test'],
      ['update', 'again'],
    ]);
  });

  it('without its entry is not kept', async () => {
    const provider = await store.open();
    const kept = await provider.add(memoryOf('u', 'kept', { scope: 'a' }), call);
    const before = await store.sql(`select * from ${store.names.memories}`);
    await store.sql(`alter table ${store.names.auditLog} add constraint refused check (request_id <> 'refused')`);
    const refused = { ...call, requestId: 'refused' };
    const once = { caller: 'c', key: 'k', fingerprint: 'f' };
    for (const attempt of [
      () => provider.add(memoryOf('u', 'not kept'), refused),
      () => provider.addIdempotent?.(memoryOf('u', 'not kept'), once, refused),
      () => provider.update?.(refTo(kept.id), { content: 'changed' }, refused),
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
    const { id } = await provider.add(memoryOf('u', 'kept'), call);
    await store.sql(
      `alter table ${store.names.memories} add constraint refused check (content <> 'refused');
       create function ${store.names.schema}.refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
       create trigger refuse before delete on ${store.names.memories} execute function ${store.names.schema}.refuse()`,
    );
    const once = { caller: 'c', key: 'k', fingerprint: 'f' };
    for (const attempt of [
      () => provider.add(memoryOf('u', 'refused'), call),
      () => provider.addIdempotent?.(memoryOf('u', 'refused'), once, call),
      () => provider.update?.(refTo(id), { content: 'refused' }, call),
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
      Array.from({ length: 100 }, (_, i) => provider.add(memoryOf('u', `note ${i}`), call)),
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

describe('[Decision 11] where nothing is to be recorded', () => {
  it('there is no log, and every change works', async () => {
    const provider = await store.open({ audit: null });
    expect(provider.audit).toBeUndefined();
    const made = await provider.add(memoryOf('u', 'one', { scope: 'a' }), call);
    const once = { caller: 'c', key: 'k', fingerprint: 'f' };
    const repeatable = await provider.addIdempotent?.(memoryOf('u', 'two'), once, call);
    expect(await provider.addIdempotent?.(memoryOf('u', 'two'), once, call)).toEqual(repeatable);
    expect(await provider.update?.(refTo(made.id), { confidence: 0.5 }, call)).toMatchObject({ confidence: 0.5 });
    await provider.update?.(refTo(made.id), { confidence: 0.5 }, call);
    expect(await provider.delete?.(refTo(made.id), call)).toBe(true);
    expect(await memories()).toEqual([{ id: repeatable?.id }]);
    expect(await entries()).toEqual([]);
  });
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

  it('takes batches and gives them back, newest first, within one millisecond last recorded first', async () => {
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

  it('is kept as a whole batch or not at all', async () => {
    const provider = await store.open();
    const bad = entry({ request_id: null as unknown as string });
    await expect(provider.audit?.record([entry(), bad], call)).rejects.toMatchObject({ code: 'provider_error' });
    expect(await entries()).toEqual([]);
  });

  it('is filtered by user, app, time and what may be seen', async () => {
    const provider = await store.open();
    const actions: readonly Verb[] = ['add', 'search', 'get', 'update', 'delete', 'list', 'context', 'audit'];
    const given = Array.from({ length: 160 }, (_, i) =>
      entry({
        timestamp: new Date(1.7e12 + i).toISOString(),
        app: i % 3 === 0 ? 'one' : i % 3 === 1 ? 'two' : null,
        action: actions[i % 8] as Verb,
        user_id: i % 2 === 0 ? 'u' : 'v',
        scope: [null, 'coding/x', 'coding-secret/x', 'work'][i % 4] ?? null,
        request_id: `r${i}`,
      }),
    );
    await provider.audit?.record(given, call);
    const since = given[80]?.timestamp as string;
    const mine = given.filter(({ user_id }) => user_id === 'u').toReversed();
    expect(await read(provider)).toEqual(mine);
    expect(await read(provider, { app: 'one' })).toEqual(mine.filter(({ app }) => app === 'one'));
    expect(await read(provider, { since })).toEqual(mine.filter(({ timestamp }) => timestamp >= since));
    expect(await read(provider, { user_id: 'v', within: ['coding/*', 'wor?'] })).toEqual(
      given.filter(({ user_id, scope }) => user_id === 'v' && (scope === 'coding/x' || scope === 'work')).toReversed(),
    );
    expect(await read(provider, { within: ['*'] })).toEqual(mine.filter(({ scope }) => scope !== null));
    expect(await read(provider, { within: [] })).toEqual([]);
    expect(await read(provider, { app: 'three' })).toEqual([]);
  });
});
