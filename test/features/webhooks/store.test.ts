import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { StoredWebhook, WebhookStore } from '#contract';
import { memoryOf, openStore, type TestDatabase } from '../../postgres/store.ts';
import { eventually } from '../../support/eventually.ts';
import { call, openMemoryStore } from './gateway.ts';

const webhook = (id: string, changes: Partial<StoredWebhook> = {}): StoredWebhook => ({
  ...{ id, url: 'https://example.com/', users: ['größe ☃'], scope: null, actions: null },
  ...{
    created_at: `2026-01-01T00:00:00.00${id.at(-1)}Z`,
    secret: 'sealed',
    previous_secret: null,
    previous_until: null,
  },
  ...{ state: 'active', cursor: '1', failing_since: null, undelivered: 0, deliveries: [] },
  ...changes,
});

describe.each(['memory', 'postgres'])('[Decision 52] the webhooks of %s', (kind) => {
  let database: TestDatabase | undefined;
  let store: WebhookStore;
  let other: WebhookStore;
  beforeAll(async () => {
    if (kind === 'memory') return;
    database = await openStore();
    store = (await database.open({ mode: 'keyword' })).webhooks as WebhookStore;
    // Another gateway.
    other = (await database.open({ mode: 'keyword' })).webhooks as WebhookStore;
  });
  afterAll(() => database?.close());
  beforeEach(async () => {
    if (database) await database.sql(`delete from ${database.names.webhooks}`);
    else store = other = (await openMemoryStore()).webhooks as WebhookStore;
  });
  const create = (...webhooks: StoredWebhook[]) =>
    Promise.all(webhooks.map((one) => store.create({ webhook: one, most: 50 }, call)));
  const claim = (holder: string, by = store) => by.claim({ holder, seconds: 30 }, call);

  it('are kept as they are, oldest first, and not more than the limit', async () => {
    const [first, second] = [webhook('wh_1'), webhook('wh_2', { actions: ['add'], undelivered: 7 })];
    expect(await create(first, second)).toEqual([true, true]);
    expect(await store.list(call)).toEqual([first, second]);
    expect(await store.find('wh_2', call)).toEqual(second);
    expect(await store.find('wh_3', call)).toBeUndefined();
    expect(await store.create({ webhook: webhook('wh_3'), most: 2 }, call)).toBe(false);
    expect(await store.change({ id: 'wh_2', patch: { state: 'gone', scope: 'a/*' } }, call)).toEqual({
      ...second,
      ...{ state: 'gone', scope: 'a/*' },
    });
    expect(await store.change({ id: 'wh_3', patch: {} }, call)).toBeUndefined();
    expect([await store.delete('wh_1', call), await store.delete('wh_1', call)]).toEqual([true, false]);
    expect((await store.list(call)).map(({ id }) => id)).toEqual(['wh_2']);
  });

  it('are leased to one holder, which stores its progress until somebody changes them', async () => {
    await create(webhook('wh_1'), webhook('wh_2', { state: 'given_up' }));
    const [lease, ...none] = await claim('one');
    expect([lease?.webhook.id, none]).toEqual(['wh_1', []]);
    const id = 'wh_1';
    const save = (patch: Partial<StoredWebhook>, by = lease) => store.save({ id, lease: by?.lease ?? '', patch }, call);
    expect(await claim('one')).toEqual([lease]);
    expect(await save({ cursor: '2' })).toBe(true);
    expect((await claim('one'))[0]).toEqual({ lease: lease?.lease, webhook: webhook(id, { cursor: '2' }) });

    await store.change({ id, patch: { url: 'https://example.org/' } as object }, call);
    expect(await save({ cursor: '3' })).toBe(false);
    const [next] = await claim('one');
    expect(next?.lease).not.toBe(lease?.lease);
    expect(next?.webhook).toMatchObject({ cursor: '2', url: 'https://example.org/' });
    expect(await save({ state: 'gone' }, next)).toBe(true);
    expect(await claim('one')).toEqual([]);
    await store.delete(id, call);
    expect(await save({ cursor: '4' }, next)).toBe(false);
  });

  it('go to another holder when the lease has ended, and at once when it is released', async ({ skip }) => {
    skip(!database, 'a process is the only holder of its memory');
    await create(webhook('wh_1'), webhook('wh_2'));
    const [lease] = await claim('one');
    expect(await claim('two', other)).toEqual([]);
    const { names, sql } = database as TestDatabase;
    // The holder has died, and its lease is over.
    await sql(`update ${names.webhooks} set held_until = now() where id = 'wh_1'`);
    const [taken] = await claim('two', other);
    expect(taken?.webhook.id).toBe('wh_1');
    expect((await claim('one')).map(({ webhook: { id } }) => id)).toEqual(['wh_2']);
    expect(await store.save({ id: 'wh_1', lease: lease?.lease ?? '', patch: { cursor: '9' } }, call)).toBe(false);

    await store.release('one', call);
    expect((await claim('two', other)).map(({ webhook: { id } }) => id).sort()).toEqual(['wh_1', 'wh_2']);
    expect(await claim('one')).toEqual([]);
  });

  it('renew their lease when half of it is over', async ({ skip }) => {
    skip(!database, 'a process is the only holder of its memory');
    const { names, sql } = database as TestDatabase;
    await create(webhook('wh_1'));
    const [lease] = await claim('one');
    const left = async () =>
      (
        await sql<{ left: number }>(
          `select extract(epoch from held_until - now())::float8 as left from ${names.webhooks}`,
        )
      )[0]?.left as number;
    await sql(`update ${names.webhooks} set held_until = now() + interval '14 s'`);
    expect((await claim('one'))[0]).toEqual(lease);
    expect(await left()).toBeGreaterThan(15);
  });

  it('are leased once, however many gateways claim them at the same time', async () => {
    await create(...Array.from({ length: 9 }, (_, n) => webhook(`wh_${n + 1}`)));
    const claims = await Promise.all(
      Array.from({ length: 8 }, (_, n) => claim(database ? `gateway ${n}` : 'the process', n % 2 ? other : store)),
    );
    const ids = claims.flatMap((leases) => leases.map(({ webhook: { id } }) => id));
    if (database) expect(ids.sort()).toEqual(Array.from({ length: 9 }, (_, n) => `wh_${n + 1}`));
    else expect(new Set(ids).size).toBe(9);
  });
});

it('[Decision 52] the key of a change, of which the id of its event is made, is the same however the feed is read', async () => {
  const database = await openStore();
  try {
    const { add, changes } = await database.open({ mode: 'keyword' });
    for (let n = 0; n < 12; n++) await add({ input: memoryOf(`user ${n % 5}`, 'x') }, call);
    const readBy = async (limit: number, users: readonly string[] | null = null): Promise<string[]> => {
      const keys: string[] = [];
      for (let after: string | undefined, more = true; more; ) {
        const part = (await changes?.({ after, limit, users, within: null }, call)) ?? {
          changes: [],
          next: '',
          more: false,
        };
        keys.push(...part.changes.map(({ key }) => key));
        ({ next: after, more } = part);
      }
      return keys;
    };
    await eventually(async () => expect(await readBy(100)).toHaveLength(12));
    const keys = new Set(await readBy(100));
    expect(keys.size).toBe(12);
    expect(new Set(await readBy(1))).toEqual(keys);
    for (let n = 0; n < 5; n++) for (const key of await readBy(2, [`user ${n}`])) expect(keys.delete(key)).toBe(true);
    expect(keys.size).toBe(0);
  } finally {
    await database.close();
  }
});
