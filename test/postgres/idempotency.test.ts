import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { type Embedder, type IdempotencyKey, type NewMemory, OmpError } from '#contract';
import { createStatements } from '../../providers/postgres/tables/memory-statements.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import type { Store } from '../support/stores.ts';
import { call, failure, memoryOf, refTo, storeForEach, until } from './store.ts';

const store = storeForEach();

const onceOf = (more: Partial<IdempotencyKey> = {}): IdempotencyKey => ({
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
const addIdempotent = (provider: Store, once: IdempotencyKey = onceOf(), input: NewMemory = INPUT, by = call) =>
  (provider.addIdempotent as NonNullable<Store['addIdempotent']>)(input, once, by);
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
    const first = await addIdempotent(provider);
    expect(await provider.get(refTo(first.id), call)).toEqual(first);
    expect(JSON.stringify(await addIdempotent(provider))).toBe(JSON.stringify(first));
    expect(JSON.stringify(await addIdempotent(await store.open({ embedder })))).toBe(JSON.stringify(first));
    expect(embedder.texts).toEqual(['made once']);
    expect(await memories()).toEqual([{ id: first.id }]);
  });

  it('gets the first answer also from a gateway with another embedder', async () => {
    const keyword = await store.open({ mode: 'keyword' });
    const first = await addIdempotent(keyword);
    expect(first.embedding_model).toBeNull();
    await keyword.delete?.(refTo(first.id), call);
    expect(await addIdempotent(await store.open({ embedder: counting('another model') }))).toEqual(first);
  });
});

describe('a key', () => {
  it('expires after a day and is free then', async () => {
    const provider = await store.open();
    const first = await addIdempotent(provider);
    const age = (by: string) =>
      store.sql(`update ${store.names.onceKeys} set created_at = created_at - interval '${by}'`);
    await age('23 hours 59 minutes');
    expect((await addIdempotent(provider)).id).toBe(first.id);
    await age('1 minute');
    const second = await addIdempotent(provider, onceOf({ fingerprint: 'other' }), memoryOf('u', 'another one'));
    expect(second.id).not.toBe(first.id);
    expect(await addIdempotent(provider, onceOf({ fingerprint: 'other' }), memoryOf('u', 'another one'))).toEqual(
      second,
    );
    expect(await failure(addIdempotent(provider))).toMatchObject({ code: 'invalid_request' });
    expect(await memories()).toHaveLength(2);
    expect(await keys()).toHaveLength(1);
  });
});

describe('an add that fails', () => {
  it.each([
    ['while it is embedded', 'embedding'],
    ['while it is written', 'writing'],
    ['because the caller gave up', 'giving up'],
  ])('%s leaves nothing behind, and the key can be used', async (_, how) => {
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
    await failure(addIdempotent(provider, onceOf(), INPUT, { ...call, signal: controller.signal }));
    expect(await memories()).toEqual([]);
    expect(await keys()).toEqual([]);
    expect(await store.sql(`select from ${store.names.auditLog}`)).toEqual([]);
    fails = false;
    await store.sql(`alter table ${store.names.memories} drop constraint if exists refused`);
    const made = await addIdempotent(provider);
    expect(await memories()).toEqual([{ id: made.id }]);
  });
});

describe('many at once', () => {
  it('on two replicas make one memory and get one answer', async () => {
    const replicas = [await store.open(), await store.open()] as const;
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        addIdempotent(replicas[i % 2] as Store, onceOf(), INPUT, { ...call, requestId: `r${i}` }),
      ),
    );
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(await memories()).toEqual([{ id: answers[0]?.id }]);
    const log = await store.sql(`select memory_id from ${store.names.auditLog} where action = 'add'`);
    expect(log).toEqual(answers.map(({ id }) => ({ memory_id: id })));
  });

  it('of a forgotten key make one memory', async () => {
    const replicas = [await store.open(), await store.open()] as const;
    const old = await addIdempotent(replicas[0]);
    await store.sql(`update ${store.names.onceKeys} set created_at = created_at - interval '1 day'`);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => addIdempotent(replicas[i % 2] as Store)));
    expect(new Set(answers.map(({ id }) => id)).size).toBe(1);
    expect(await memories()).toHaveLength(2);
    expect(answers[0]?.id).not.toBe(old.id);
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
    const wanted = { memory, bucket: 0, vector, keywords: [], key: onceOf() };
    const { statement, values } = createStatements(store.names, true).insert(wanted, call);
    const other = new pg.Client({ connectionString: store.url });
    await other.connect();
    await other.query('begin');
    await other.query(statement.text, [...values]);
    const second = addIdempotent(provider);
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
