import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { type BatchOutcome, Call, type Embedder, type Memory, type NewMemory, OmpError } from '#contract';
import { createStatements } from '../../providers/postgres/tables/memory-statements.ts';
import type { RequestKey } from '../../src/core/idempotency.ts';
import { callOf } from '../embedding/observed-embedder.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import type { Store, WritableStore } from '../support/stores.ts';
import { call, failure, memoryOf, refTo, storeForEach, until } from './store.ts';

const store = storeForEach();

const keyOf = (more: Partial<RequestKey> = {}): RequestKey => ({
  caller: 'key:1',
  key: 'k',
  fingerprint: 'print',
  ...more,
});
const INPUT = memoryOf('u', 'made once', {
  scope: 'a/b',
  tags: ['t', 'ü'],
  source: { app: 'test', type: 'explicit' },
  confidence: 0.25,
  valid_to: '2030-01-01T00:00:00.000Z',
  supersedes: ['mem_before'],
  extensions: { 'x-z': [1, { b: 2, a: 1 }], 'x-a': null },
});
const addOnce = ({ add }: WritableStore, key = keyOf(), input: NewMemory = INPUT, by = call) => add({ input, key }, by);
/** The memories of a batch, or why there are none. */
const batchOnce = async ({ batch }: Store, contents: readonly string[], fingerprint = 'print', by = call) => {
  const inputs = contents.map((content) => memoryOf('u', content));
  return (await batch?.({ inputs, key: keyOf({ fingerprint }) }, by)) as BatchOutcome[];
};
const memories = () => store.sql<{ id: string }>(`select id from ${store.names.memories} order by id`);
const keys = () => store.sql(`select * from ${store.names.onceKeys}`);
/** Counts the texts that documents were embedded for. */
const counting = (model = 'counting'): Embedder & { readonly texts: string[] } => {
  const inner = hashingEmbedder();
  const texts: string[] = [];
  const embed: Embedder['embed'] = (asked, purpose, by) => {
    texts.push(...asked);
    return inner.embed(asked, purpose, by);
  };
  return { ...inner, model, texts, embed };
};

describe('a repeated add', () => {
  it('gets the same bytes from every gateway, and needs no embedding', async () => {
    const embedder = counting();
    const provider = await store.open({ embedder });
    const first = await addOnce(provider);
    expect(await provider.get(refTo(first.id), call)).toEqual(first);
    expect(JSON.stringify(await addOnce(provider))).toBe(JSON.stringify(first));
    expect(JSON.stringify(await addOnce(await store.open({ embedder })))).toBe(JSON.stringify(first));
    expect(embedder.texts).toEqual(['made once']);
    expect(await memories()).toEqual([{ id: first.id }]);
  });

  it('gets the first answer also from a gateway with another embedder', async () => {
    const keyword = await store.open({ mode: 'keyword' });
    const first = await addOnce(keyword);
    expect(first.embedding_model).toBeNull();
    await keyword.delete?.(refTo(first.id), call);
    expect(await addOnce(await store.open({ embedder: counting('another model') }))).toEqual(first);
  });
});

describe('a key', () => {
  it('[Decision 20] is stored as every release has stored it, by its kind and when its memories are erased', async () => {
    const provider = await store.open();
    const texts = async () => (await keys()).map(({ key }) => String(key)).sort();
    await addOnce(provider);
    await batchOnce(provider, ['one', 'two']);
    expect(await texts()).toEqual(['batch\nk', 'k']);
    await provider.erase?.({ user_id: 'u' }, call);
    expect(await texts()).toEqual([
      expect.stringMatching(/^erased\n[0-9a-f]{32}$/),
      expect.stringMatching(/^erased\n[0-9a-f]{32}$/),
    ]);
  });

  it('expires after a day and is free then', async () => {
    const provider = await store.open();
    const first = await addOnce(provider);
    const age = (by: string) =>
      store.sql(`update ${store.names.onceKeys} set created_at = created_at - interval '${by}'`);
    await age('23 hours 59 minutes');
    expect((await addOnce(provider)).id).toBe(first.id);
    await age('1 minute');
    const second = await addOnce(provider, keyOf({ fingerprint: 'other' }), memoryOf('u', 'another one'));
    expect(second.id).not.toBe(first.id);
    expect(await addOnce(provider, keyOf({ fingerprint: 'other' }), memoryOf('u', 'another one'))).toEqual(second);
    expect(await failure(addOnce(provider))).toMatchObject({ code: 'invalid_request' });
    expect(await memories()).toHaveLength(2);
    expect(await keys()).toHaveLength(1);
  });
});

it.each([
  ['while it is embedded', 'embedding'],
  ['while it is written', 'writing'],
  ['because the caller gave up', 'giving up'],
])('an add that fails %s leaves nothing behind, and the key can be used', async (_, how) => {
  const embedder = counting();
  const controller = new AbortController();
  const gone = new OmpError('provider_error', 'gone');
  let fails = true;
  const embed: Embedder['embed'] = async (...args) => {
    if (fails && how === 'embedding') throw gone;
    if (fails && how === 'giving up') controller.abort(gone);
    return embedder.embed(...args);
  };
  const provider = await store.open({ embedder: { ...embedder, embed } });
  if (how === 'writing') {
    await store.sql(`alter table ${store.names.memories} add constraint refused check (content <> 'made once')`);
  }
  await failure(addOnce(provider, keyOf(), INPUT, callOf(controller.signal)));
  expect(await memories()).toEqual([]);
  expect(await keys()).toEqual([]);
  expect(await store.sql(`select from ${store.names.auditLog}`)).toEqual([]);
  fails = false;
  await store.sql(`alter table ${store.names.memories} drop constraint if exists refused`);
  const made = await addOnce(provider);
  expect(await memories()).toEqual([{ id: made.id }]);
});

describe('many at once', () => {
  it('on two replicas make one memory and get one answer', async () => {
    const replicas = [await store.open(), await store.open()] as const;
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        addOnce(replicas[i % 2] as WritableStore, keyOf(), INPUT, new Call(`r${i}`)),
      ),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(await memories()).toEqual([{ id: answers[0]?.id }]);
    const log = await store.sql(`select memory_id from ${store.names.auditLog} where action = 'add'`);
    expect(log).toEqual(answers.map(({ id }) => ({ memory_id: id })));
  });

  it('of a forgotten key make one memory', async () => {
    const replicas = [await store.open(), await store.open()] as const;
    const old = await addOnce(replicas[0]);
    await store.sql(`update ${store.names.onceKeys} set created_at = created_at - interval '1 day'`);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => addOnce(replicas[i % 2] as WritableStore)));
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    expect(await memories()).toHaveLength(2);
    expect(answers[0]?.id).not.toBe(old.id);
  });
});

describe('a batch with a key', () => {
  const keyed = () =>
    store.sql<{ key: string; added: ({ id: string } | null)[] }>(`select key, added from ${store.names.onceKeys}`);
  const ids = (outcomes: readonly BatchOutcome[]) => outcomes.map((outcome) => (outcome as Memory).id);

  it('stores the key in one row, and gets the same bytes from every gateway', async () => {
    const embedder = counting();
    const provider = await store.open({ embedder });
    const first = await batchOnce(provider, ['one', 'two', 'three']);
    expect(JSON.stringify(await batchOnce(provider, ['one', 'two', 'three']))).toBe(JSON.stringify(first));
    const other = await store.open({ embedder });
    expect(JSON.stringify(await batchOnce(other, ['one', 'two', 'three']))).toBe(JSON.stringify(first));
    expect(embedder.texts).toEqual(['one', 'two', 'three']);
    expect(await memories()).toEqual(ids(first).map((id) => ({ id })));
    expect((await keyed()).map(({ added }) => added.map((one) => one?.id))).toEqual([ids(first)]);
    for (const memory of first as Memory[]) expect(await provider.get(refTo(memory.id), call)).toEqual(memory);
  });

  it('can have another input once the key has expired', async () => {
    const provider = await store.open();
    await batchOnce(provider, ['one']);
    await store.sql(`update ${store.names.onceKeys} set created_at = created_at - interval '1 day'`);
    const second = await batchOnce(provider, ['another'], 'other');
    expect(await batchOnce(provider, ['another'], 'other')).toEqual(second);
    expect(await memories()).toHaveLength(2);
    expect(await keyed()).toHaveLength(1);
  });

  it('tries again what was not added, and adds the rest no second time', async () => {
    const embedder = counting();
    const refused = new OmpError('invalid_request', 'refused');
    let refuses = true;
    const embed: Embedder['embed'] = async (texts, ...args) => {
      if (refuses && texts.includes('two')) throw refused;
      return embedder.embed(texts, ...args);
    };
    const provider = await store.open({ embedder: { ...embedder, embed } });
    const [one, failed, three] = await batchOnce(provider, ['one', 'two', 'three']);
    expect(failed).toBe(refused);
    expect((await keyed())[0]?.added.map((added) => added && 'an id')).toEqual(['an id', null, 'an id']);
    refuses = false;
    const again = await batchOnce(provider, ['one', 'two', 'three']);
    expect([again[0], again[2]]).toEqual([one, three]);
    expect(await memories()).toHaveLength(3);
    expect((await keyed()).map(({ added }) => added.map((each) => each?.id))).toEqual([ids(again)]);
    expect(await batchOnce(provider, ['one', 'two', 'three'])).toEqual(again);
  });

  it('that fails leaves nothing behind, and the key can be used', async () => {
    const provider = await store.open();
    await store.sql(`alter table ${store.names.memories} add constraint refused check (content <> 'two')`);
    await failure(batchOnce(provider, ['one', 'two']));
    expect(await memories()).toEqual([]);
    expect(await keys()).toEqual([]);
    await store.sql(`alter table ${store.names.memories} drop constraint refused`);
    await batchOnce(provider, ['one', 'two']);
    expect(await memories()).toHaveLength(2);
  });

  it('many times at once adds what was not added once', async () => {
    let refuses = true;
    const embedder = hashingEmbedder();
    const embed: Embedder['embed'] = async (texts, ...args) => {
      if (refuses && texts.includes('two')) throw new OmpError('invalid_request', 'refused');
      return embedder.embed(texts, ...args);
    };
    const replicas = [
      await store.open({ embedder: { ...embedder, embed } }),
      await store.open({ embedder: { ...embedder, embed } }),
    ] as const;
    await batchOnce(replicas[0], ['one', 'two']);
    refuses = false;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => batchOnce(replicas[i % 2] as Store, ['one', 'two'])),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(await memories()).toHaveLength(2);
  });
});

// The embedded engine has one session for all its clients: no two transactions are ever under way.
describe.skipIf(SERVER_URL === '')(`while the first is under way${SERVER_URL === '' ? `: ${NO_SERVER}` : ''}`, () => {
  /** A first add by another gateway that has not committed yet, and a second one that waits for it. */
  const begin = async () => {
    const provider = await store.open();
    const identity = { id: 'mem_first', created_at: new Date().toISOString() };
    const memory = {
      ...INPUT,
      ...identity,
      updated_at: identity.created_at,
      embedding_model: null,
      status: 'done' as const,
    };
    const [vector = null] = await hashingEmbedder().embed([INPUT.content], 'document', call);
    const wanted = {
      memory,
      bucket: 0,
      vector,
      keywords: [],
      key: { ...keyOf(), kind: 'add' as const, before: undefined, places: [0], size: 1 },
    };
    const { statement, values } = createStatements(store.names, true).insert(wanted, call);
    const other = new pg.Client({ connectionString: store.url });
    await other.connect();
    await other.query('begin');
    await other.query(statement.text, [...values]);
    const second = addOnce(provider);
    const blocked = `select from pg_locks where not granted and locktype = 'transactionid' and pid in (
      select pid from pg_stat_activity where query like '%${store.schema}%')`;
    await until(async () => (await store.sql(blocked)).length > 0);
    return { other, second };
  };

  it('the second waits for it and gives its answer', async () => {
    const { other, second } = await begin();
    await other.query('commit');
    await other.end();
    expect((await second).id).toBe('mem_first');
    expect(await memories()).toEqual([{ id: 'mem_first' }]);
  });

  it('the second takes over when it fails', async () => {
    const { other, second } = await begin();
    await other.query('rollback');
    await other.end();
    const { id } = await second;
    expect(id).not.toBe('mem_first');
    expect(await memories()).toEqual([{ id }]);
  });
});
