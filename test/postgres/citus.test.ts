import pg from 'pg';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { ExportedMemory, Memory, OmpError, StoredEntry } from '#contract';
import { createKeyedMutex, newIdentity } from '#toolbox';
import { reembed } from '../../providers/postgres/commands/reembed.ts';
import { CLOCK } from '../../providers/postgres/commands/reembed-retry.ts';
import { Options } from '../../providers/postgres/postgres-options.ts';
import { withBucket } from '../../providers/postgres/scaling/placement.ts';
import { checkCompatibility } from '../../providers/postgres/startup/compatibility-check.ts';
import { openDatabase } from '../../providers/postgres/startup/open-database.ts';
import { openTables } from '../../providers/postgres/tables/provider.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { IS_CITUS, SERVER_OPTIONS } from '../support/postgres-server.ts';
import { auditOf, contextOf } from '../support/requests.ts';
import { type FullStore, openStoreOf } from '../support/stores.ts';
import { recordingLog } from '../support/subject.ts';
import { findingsOn, told } from './databases.ts';
import {
  call,
  listOf,
  memoryOf,
  type OpenOptions,
  openStore,
  refTo,
  searchFor,
  type TestDatabase,
  tablesSince,
  until,
} from './store.ts';

const HYBRID = { ranking: { mode: 'hybrid', keyword_weight: 0.5 }, embedder: hashingEmbedder() } as const;
const KEY = { caller: 'c', kind: 'add', key: 'k', fingerprint: 'f' } as const;
const CLAIM = { ...KEY, before: undefined, places: [0], size: 1 };
const BATCH_CLAIM = { ...CLAIM, kind: 'batch' } as const;
const USERS = Array.from({ length: 12 }, (_, i) => `user ${i}`);

const SHARDS = 4;

/** Runs a statement in a transaction that is rolled back. Resolves with the shards that Citus sent parts of it to. */
async function watchShards({ url, schema }: TestDatabase) {
  const client = new pg.Client({ connectionString: url });
  onTestFinished(() => client.end());
  await client.connect();
  const { rows } = await client.query<{ shard: string; first: number }>(
    'select shardid as shard, shardminvalue::int as first from pg_dist_shard where logicalrelid::text like $1',
    [`${schema}.%`],
  );
  const firstBuckets = new Map(rows.map(({ shard, first }) => [shard, first]));
  const sent: string[] = [];
  client.on('notice', ({ message = '' }) => sent.push(message));
  const watch = async (text: string, values: readonly unknown[], settings: string): Promise<Set<number>> => {
    await client.query('begin; set local citus.log_remote_commands = on; set local client_min_messages = notice');
    await client.query(settings);
    sent.length = 0;
    await client.query(text, [...values]);
    const ids = sent.flatMap((command) => [...command.matchAll(/_(\d{6,})\b/g)].map(([, id = '']) => id));
    await client.query('rollback');
    return new Set(ids.flatMap((id) => firstBuckets.get(id) ?? []));
  };
  // One at a time: the store also works in the background, and the rollback of one statement would end the transaction of another, which
  // would then stay, and be a duplicate of what the store does itself.
  const mutex = createKeyedMutex();
  return (text: string, values: readonly unknown[], settings = '') => mutex('', () => watch(text, values, settings));
}

// What every store does, on Citus too: test/providers and test/differential, with TEST_DISTRIBUTED=citus.
describe.skipIf(!IS_CITUS)('on Citus', () => {
  let store: TestDatabase;
  beforeEach(async () => {
    store = await openStore();
    return () => store.close();
  });

  const open = (options?: OpenOptions, on = store) => on.open(options) as Promise<FullStore>;
  const countOf = async (table: string) =>
    Number((await store.sql<{ count: string }>(`select count(*) from ${table}`))[0]?.count);
  const vectorOf = async (text: string) => (await HYBRID.embedder.embed([text], 'query', call))[0] ?? null;
  const scanned = async (provider: FullStore, limit = 7): Promise<ExportedMemory[]> => {
    const all: ExportedMemory[] = [];
    for (let after: string | undefined = ''; after !== undefined; ) {
      const { items, next } = await provider.export({ after, vectors: true, limit, max_bytes: 1e6 }, call);
      all.push(...items);
      after = next;
    }
    return all;
  };

  it('[Decision 46] a verb about one user asks one shard', async () => {
    await open();
    const options = Options.parse({ ...SERVER_OPTIONS, schema: store.schema, large_user_rows: 20 });
    const context = contextOf(HYBRID);
    const database = await openDatabase(options, context, (client, names) =>
      checkCompatibility(client, names, HYBRID.embedder, context.log),
    );
    const asked = new Set<number>();
    const shards = await watchShards(store);
    const db: typeof database.db = {
      ...database.db,
      async query(statement, values, by, settings) {
        for (const shard of await shards(statement.text, values, settings)) asked.add(shard);
        return database.db.query(statement, values, by, settings);
      },
    };
    const provider = (await openTables({ ...database, db }, options, context)) as Required<
      Awaited<ReturnType<typeof openTables>>
    >;
    const vector = await vectorOf('apple');
    const fields = { tags: ['t'], scope: 'a/b', source: { ref: 'talk' } };
    const add = (user: string) => provider.add({ input: memoryOf(user, 'apple', fields), vector }, call);
    for (let i = 0; i < 25; i++) await add('large');
    await until(async () => {
      await provider.search(searchFor('large', 'apple', { vector }), call);
      return (await store.sql(`select from ${store.names.largeUsers} where ready`)).length > 0;
    });
    const { id } = (await add('ana')) as Memory;

    const verbs: Readonly<Record<string, () => Promise<unknown>>> = {
      add: () => add('ana'),
      batch: () => provider.batch({ items: [1, 2, 3].map(() => ({ input: memoryOf('ana', 'apple'), vector })) }, call),
      'add with a key': () => provider.add({ input: memoryOf('ana', 'apple'), vector, key: CLAIM }, call),
      'look-up of a key': () => provider.keyUse({ ...KEY, users: ['ana'] }, call),
      'batch with a key': () =>
        provider.batch({ items: [{ input: memoryOf('ana', 'apple'), vector }], key: BATCH_CLAIM }, call),
      get: () => provider.get(refTo(id), call),
      update: () => provider.update({ ref: refTo(id), patch: { content: 'pear', tags: ['u'] }, vector }, call),
      'update without a change': () => provider.update({ ref: refTo(id), patch: { tags: ['u'] }, vector: null }, call),
      list: () => provider.list(listOf('ana', { tags: ['u'], scope: 'a*' }), call),
      'list of a large user': () => provider.list(listOf('large', { tags: ['t'] }), call),
      search: () => provider.search(searchFor('ana', 'apple', { vector, scope: 'a' }), call),
      'search of a large user': () => provider.search(searchFor('large', 'apple', { vector }), call),
      'search of a large user, filtered': () =>
        provider.search(searchFor('large', 'apple', { vector, tags: ['t'], explain: true }), call),
      neighbours: async () =>
        expect(
          await provider.neighbours({ user_id: 'ana', within: null, ids: [id], max_bytes: 1e6 }, call),
        ).toHaveLength(1),
      stats: () => provider.userStats({ user_id: 'ana', within: null, limit: 5 }, call),
      'export of a user': () => provider.export({ user_id: 'ana', vectors: true, limit: 5, max_bytes: 1e6 }, call),
      audit: () => provider.audit.read(auditOf('ana'), call),
      delete: () => provider.delete(refTo(id), call),
      // These ask every shard; an erase for idempotency keys alone.
      erase: () => provider.erase({ user_id: 'ana' }, call),
      'get of an id made elsewhere': () => provider.get(refTo('elsewhere'), call),
      users: () => provider.users({ users: null, within: null, limit: 5 }, call),
      backlog: () => provider.backlog(call),
    };
    const counts: Record<string, number> = {};
    for (const [verb, ask] of Object.entries(verbs)) {
      asked.clear();
      await ask();
      counts[verb] = asked.size;
    }
    await provider.close();
    // Of the user, and of the key, which may be the same.
    for (const verb of ['add with a key', 'batch with a key'])
      counts[verb] = (counts[verb] as number) <= 2 ? 1 : Number.NaN;
    const all = { erase: SHARDS, 'get of an id made elsewhere': SHARDS, users: SHARDS, backlog: SHARDS };
    expect(counts).toEqual({ ...Object.fromEntries(Object.keys(verbs).map((verb) => [verb, 1])), ...all });
  });

  it('[Decision 46] statements at the same time are watched one after another, and none of them stays', async () => {
    const provider = await open();
    const {
      placement: { bucketOf },
      largeUsers,
    } = store.names;
    const shards = await watchShards(store);
    const insert = `insert into ${largeUsers} (bucket, user_id) values ($1, $2)`;
    const watched = USERS.map((user) => shards(insert, [bucketOf(user), user]));
    expect((await Promise.all(watched)).map(({ size }) => size)).toEqual(USERS.map(() => 1));
    expect(await countOf(largeUsers)).toBe(0);
    await provider.close();
  });

  it('[Decision 46] changes of one user at the same time violate no unique constraint on a worker', async () => {
    const provider = await open({ options: { large_user_rows: 5 } });
    const many = <Result>(work: (i: number) => Promise<Result>) => Array.from({ length: 8 }, (_, i) => work(i));
    const input = memoryOf('ana', 'apple', { scope: 'a' });
    const limits = () => ({ memories: 1_000, bytes: 1e9, adds_per_day: 1_000 });
    for (let round = 0; round < 5; round++) {
      const { id } = await provider.add({ input }, call);
      const own = { ...KEY, key: `key ${round}` };
      const [item] = await scanned(provider, 1);
      const moved = {
        ...(item as ExportedMemory),
        memory: { ...(item as ExportedMemory).memory, id: `moved ${round}` },
      };
      const outcomes = await Promise.allSettled<unknown>([
        ...many(() => provider.add({ input, key: own }, call)),
        ...many(() => provider.batch({ inputs: [input], key: own }, call)),
        ...many(() => provider.add({ input, limits }, call)),
        ...many((i) => provider.update({ ref: refTo(id), patch: { content: `pear ${i}` } }, call)),
        ...many((i) => provider.import({ items: [moved], replace: i % 2 === 0 }, call)),
        ...many(() => provider.search(searchFor('ana', 'apple'), call)),
        provider.erase({ user_id: 'ana' }, call),
      ]);
      const failures = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as OmpError] : []));
      // What the caller did wrong, such as a key of what was erased meanwhile, is no failure of the database.
      expect(failures.filter(({ code }) => code !== 'invalid_request')).toEqual([]);
    }
    await provider.close();
  });

  it('[Decision 46] a store with data is distributed as it is, and stays so without the setting', async () => {
    const plain = await open({ options: { distributed: 'off' } });
    const made: Memory[] = [];
    for (const user of USERS) made.push(await plain.add({ input: memoryOf(user, `of ${user}`, { scope: 'a' }) }, call));
    const keyed = await plain.add({ input: memoryOf('ana', 'once'), key: KEY }, call);
    // As older versions made them.
    const id = newIdentity().id;
    await store.sql(`update ${store.names.memories} set id = $1 where id = $2`, [id, made[0]?.id]);
    const [entry] = await plain.audit.read(auditOf('user 0'), call);
    await plain.audit.record([{ ...(entry as StoredEntry), user_id: null }], call);
    made[0] = { ...(made[0] as Memory), id };
    await plain.close();

    const log = recordingLog();
    const distributed = await open({ log });
    expect(log.lines.map(({ message }) => message)).toContain('the tables are distributed');
    const later = await open({ log: recordingLog(), options: { distributed: 'off' } });
    for (const provider of [distributed, later]) {
      for (const memory of made) {
        expect(await provider.get(refTo(memory.id), call)).toEqual(memory);
        expect(await provider.list(listOf(memory.user_id), call)).toEqual([memory]);
        expect(await provider.audit.read(auditOf(memory.user_id), call)).toHaveLength(1);
      }
      expect(await provider.add({ input: memoryOf('ana', 'once'), key: KEY }, call)).toEqual(keyed);
    }
    expect(await distributed.update({ ref: refTo(id), patch: { content: 'changed' } }, call)).toMatchObject({
      content: 'changed',
    });
    expect(await later.delete(refTo(id), call)).toBe(true);
    expect(await distributed.get(refTo(id), call)).toBeUndefined();
  });

  it('[Decision 55] versions come with their memories when tables are distributed, and to distributed tables of before', async () => {
    const plain = await open({ options: { distributed: 'off' } });
    const { id } = await plain.add({ input: memoryOf('ana', 'one'), key: undefined }, call);
    const change = (provider: FullStore, content: string) =>
      provider.update({ ref: refTo(id), patch: { content } }, call);
    const contentsOf = async (provider: FullStore) => {
      const found = await provider.versions?.list({ ref: refTo(id), limit: 10, max_bytes: 1_000_000 }, call);
      return [found?.current, ...(found?.versions.map(({ memory }) => memory) ?? [])].map((one) => one?.content);
    };
    await change(plain, 'two');
    await plain.close();
    const distributed = await open();
    await change(distributed, 'three');
    expect(await contentsOf(distributed)).toEqual(['three', 'two', 'one']);
    // As the version before left the tables.
    const { memories, versions, apiKeys, onceKeys, migrations } = store.names;
    await store.sql(`drop table ${tablesSince(10, store.names).join(', ')}`);
    await store.sql(`alter table ${onceKeys} drop column users`);
    await store.sql(`drop index ${store.names.schema}.memories_conversation`);
    await store.sql(`alter table ${memories} drop column version`);
    await store.sql(`alter table ${apiKeys} drop column untrusted`);
    await store.sql(`delete from ${migrations} where version > 10`);
    const upgraded = await open({ options: { distributed: 'off' } });
    await change(upgraded, 'four');
    expect(await contentsOf(upgraded)).toEqual(['four', 'three']);
    expect(await upgraded.delete(refTo(id), call)).toBe(true);
    expect(await countOf(versions)).toBe(0);
  });

  it('the doctor tells how the nodes share the memories, and of ids that ask all of them', async () => {
    const provider = await open();
    await provider.add({ input: memoryOf('ana', 'x') }, call);
    const doctor = () => findingsOn(SERVER_OPTIONS.url, { ...SERVER_OPTIONS, schema: store.schema });
    const first = await doctor();
    expect(told(first, 'problem')).toEqual([]);
    expect(told(first, 'ok').join('\n')).toMatch(
      /size: the memories are distributed over 2 nodes of Citus: \S+ 2 shards, \d+ MB; \S+ 2 shards, \d+ MB/,
    );
    const moved = (await scanned(provider)).map((item) => ({ ...item, memory: { ...item.memory, id: 'moved' } }));
    await provider.import({ items: moved, replace: false }, call);
    expect(told(await doctor(), 'ok').join('\n')).toContain('1 were made elsewhere');
  });

  it('moves every memory out once and in again, whatever its id', async () => {
    const provider = await open();
    for (const user of USERS)
      for (let i = 0; i < 5; i++) await provider.add({ input: memoryOf(user, `${i} of ${user}`) }, call);
    const all = await scanned(provider);
    expect(new Set(all.map(({ memory }) => memory.id)).size).toBe(60);
    expect(all).toHaveLength(60);

    const target = await openStore();
    try {
      const other = await open({}, target);
      // Ids made on another store name other buckets, or none.
      const moved = all.map((item, i) => (i % 2 ? item : { ...item, memory: { ...item.memory, id: `moved-${i}` } }));
      for (let i = 0; i < moved.length; i += 20)
        expect(await other.import({ items: moved.slice(i, i + 20), replace: false }, call)).not.toContain(false);
      const [first, last] = [moved[0], moved.at(-1)] as [ExportedMemory, ExportedMemory];
      const taken = { ...first, memory: { ...first.memory, user_id: 'another' } };
      expect(await other.import({ items: [taken, last], replace: false }, call)).toEqual([false, false]);
      const newer = { ...last, memory: { ...last.memory, content: 'newer' } };
      expect(await other.import({ items: [taken, newer], replace: true }, call)).toEqual([false, true]);
      const back = new Map((await scanned(other)).map((item) => [item.memory.id, item]));
      expect(back.size).toBe(60);
      for (const item of [...moved.slice(0, -1), newer]) {
        expect(back.get(item.memory.id)).toEqual(item);
        expect(await other.get(refTo(item.memory.id), call)).toEqual(item.memory);
      }
    } finally {
      await target.close();
    }
  });

  it('[Decision 46] finds a memory whose id names the bucket of another user', async () => {
    const provider = await open();
    const { id } = await provider.add({ input: memoryOf('ana', 'hers') }, call);
    const wrong = withBucket(newIdentity().id, (store.names.placement.bucketOf('ana') + 1) % 2 ** 15);
    await store.sql(`update ${store.names.memories} set id = $1 where bucket = $2 and id = $3`, [
      wrong,
      store.names.placement.bucketOf('ana'),
      id,
    ]);
    expect((await provider.update({ ref: refTo(wrong), patch: { content: 'found' } }, call))?.content).toBe('found');
    expect(await provider.delete(refTo(wrong), call)).toBe(true);
  });

  it('[Decision 46] takes every change without an audit log, with keys too', async () => {
    const provider = await openStoreOf(
      'postgres',
      { ...SERVER_OPTIONS, schema: store.schema },
      contextOf({ ...HYBRID, audit: undefined }),
    );
    try {
      const { id } = await provider.add({ input: memoryOf('ana', 'once'), key: KEY }, call);
      expect((await provider.add({ input: memoryOf('ana', 'once'), key: KEY }, call)).id).toBe(id);
      const inputs = [memoryOf('ana', 'one'), memoryOf('ana', 'two')];
      const added = await provider.batch({ inputs, key: KEY }, call);
      expect(await provider.batch({ inputs, key: KEY }, call)).toEqual(added);
      expect((await provider.update({ ref: refTo(id), patch: { content: 'changed' } }, call))?.content).toBe('changed');
      expect(await provider.delete(refTo(id), call)).toBe(true);
      const items = await scanned(provider);
      expect(await provider.erase({ user_id: 'ana' }, call)).toMatchObject([{ removed: { memories: 2 } }]);
      expect(await provider.import({ items, replace: false }, call)).toEqual([true, true]);
    } finally {
      await provider.close();
    }
  });

  it('computes the vectors of all shards later', async () => {
    const provider = await openStoreOf(
      'postgres',
      { ...SERVER_OPTIONS, schema: store.schema, ingestion: 'async' },
      contextOf(HYBRID),
    );
    try {
      for (const user of USERS)
        for (let i = 0; i < 5; i++) await provider.add({ input: memoryOf(user, `${i} of ${user}`) }, call);
      await until(async () => (await countOf(`${store.schema}.ingestion`)) === 0);
      expect(await countOf(`${store.schema}.memories where embedding is null`)).toBe(0);
      expect((await provider.search(searchFor('user 3', '2 of user 3'), call))[0]?.score).toBe(1);
    } finally {
      await provider.close();
    }
  });

  it('deletes what has expired on all shards', async () => {
    const first = await open();
    const [old, young] = [40, 1].map((days) => new Date(Date.now() - days * 86_400_000).toISOString());
    for (const user of USERS) {
      await first.add({ input: memoryOf(user, 'old', { valid_to: old as string }) }, call);
      await first.add({ input: memoryOf(user, 'young', { valid_to: young as string }) }, call);
      await first.add({ input: memoryOf(user, 'once'), key: { ...KEY, key: user } }, call);
    }
    const { auditLog, onceKeys, memories } = store.names;
    for (const [table, column] of [
      [auditLog, 'timestamp'],
      [onceKeys, 'created_at'],
    ])
      await store.sql(`update ${table} set ${column} = $1`, [old]);
    const [one, two] = await Promise.all(
      [1, 2].map(() => open({ audit: { retention_days: 30 }, options: { purge_expired_days: 30 } })),
    );
    await until(
      async () =>
        (await countOf(memories)) === 24 && (await countOf(auditLog)) === 12 && (await countOf(onceKeys)) === 0,
    );
    for (const user of USERS) {
      expect((await one?.list(listOf(user), call))?.map(({ content }) => content).sort()).toEqual(['once', 'young']);
      expect(await two?.audit.read(auditOf(user), call)).toMatchObject([{ action: 'delete', app: null }]);
    }
  });

  it('is embedded again while it is written', async () => {
    const provider = await open();
    for (const user of USERS)
      for (let i = 0; i < 5; i++) await provider.add({ input: memoryOf(user, `${i} of ${user}`) }, call);
    const embedder = hashingEmbedder(32);
    // After the switch this gateway has to be restarted, and says so.
    const writes: Promise<number>[] = [];
    const outcome = await reembed(
      Options.parse({ ...SERVER_OPTIONS, schema: store.schema }),
      contextOf({ ...HYBRID, embedder }),
      {
        ...{ dry_run: false, restart: false, batch_size: 7, per_minute: undefined },
        signal: new AbortController().signal,
        progress() {
          if (writes.length === 40) return;
          const during = provider.add({ input: memoryOf('ana', `during ${writes.length}`) }, call);
          writes.push(
            during.then(
              () => 1,
              () => 0,
            ),
          );
        },
      },
      CLOCK,
    );
    expect(outcome).toMatchObject({ switched: true, to: { dimensions: 32 } });
    const written = (await Promise.all(writes)).reduce((sum, one) => sum + one, 0);
    await provider.close();
    const after = await open({ embedder });
    expect((await after.search(searchFor('user 3', '2 of user 3'), call))[0]).toMatchObject({
      score: 1,
      memory: { content: '2 of user 3' },
    });
    expect(await after.list(listOf('ana', { limit: 100 }), call)).toHaveLength(written);
  });
});
