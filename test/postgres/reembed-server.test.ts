import pg from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Embedder, OmpError } from '#contract';
import { CLOCK, type Clock, createPace } from '../../providers/postgres/commands/reembed-retry.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { listOf, searchFor } from '../support/requests.ts';
import {
  addMemories,
  answersOf,
  contentOf,
  embedderOf,
  expectedAnswers,
  memoriesUpTo,
  type ServerSubject,
  serverSubject,
} from './reembed-subject.ts';
import { call, memoryOf, refTo, until } from './store.ts';

beforeEach(({ skip }) => skip(SERVER_URL === '', NO_SERVER));

const COUNT = 30;

/** A clock that only goes on when somebody sleeps. */
function fakeClock() {
  const slept: number[] = [];
  let now = 0;
  const clock: Clock = {
    now: () => now,
    async sleep(ms, signal) {
      signal.throwIfAborted();
      slept.push(ms);
      now += ms;
    },
  };
  return { clock, slept };
}

/** Does something before each batch of documents. */
const withHook = (
  inner: ReturnType<typeof embedderOf>,
  before: (batch: number, texts: readonly string[]) => Promise<void> | void,
): Embedder => {
  let batch = 0;
  return {
    ...inner,
    async embed(texts, purpose, about) {
      if (purpose === 'document') await before(batch++, texts);
      return inner.embed(texts, purpose, about);
    },
  };
};

const filled = async (embedder = embedderOf('old')) => {
  const subject = await serverSubject();
  const gateway = await subject.open(embedder);
  await addMemories(gateway, 0, COUNT);
  return { subject, gateway };
};

const contents = async ({ sql, names }: ServerSubject) =>
  sql<{ user_id: string; content: string }>(`select user_id, content from ${names.memories}`);

describe('while a gateway serves', () => {
  it('what it adds, changes and deletes is right afterwards, and it mixes nothing', async () => {
    const { subject, gateway } = await filled();
    const rows = await gateway.list?.(listOf('ana'), call);
    const ids = (rows ?? []).map(({ id }) => id).reverse();
    const to = embedderOf('new', 32);
    const busy = withHook(to, async (batch) => {
      // The first of all has its vector already when the second batch comes.
      if (batch === 1)
        await gateway.update?.({ ref: refTo(ids[0] ?? ''), patch: { content: 'an apple, changed' } }, call);
      if (batch === 1) await gateway.update?.({ ref: refTo(ids[1] ?? ''), patch: { tags: ['only', 'tags'] } }, call);
      // The second batch is being embedded while its own content changes.
      if (batch === 1)
        await gateway.update?.({ ref: refTo(ids[3] ?? ''), patch: { content: 'a bridge, changed' } }, call);
      if (batch === 2) await gateway.delete?.(refTo(ids[2] ?? ''), call);
      if (batch < 4) await gateway.add({ input: memoryOf('ana', `added during batch ${batch}`) }, call);
    });
    expect(await subject.reembed(busy)).toMatchObject({ switched: true, done: COUNT + 3, total: COUNT + 3 });

    const trouble = { code: 'provider_error' };
    await expect(gateway.add({ input: memoryOf('ana', 'late') }, call)).rejects.toMatchObject(trouble);
    await expect(gateway.search?.(searchFor('ana', 'late'), call)).rejects.toMatchObject(trouble);
    await expect(
      gateway.update?.({ ref: refTo(ids[0] ?? ''), patch: { content: 'late' } }, call),
    ).rejects.toMatchObject(trouble);

    const now = await contents(subject);
    expect(now.map(({ content }) => content)).toEqual(
      expect.arrayContaining(['an apple, changed', 'a bridge, changed', 'added during batch 3']),
    );
    expect(now).toHaveLength(COUNT + 3);
    expect(await answersOf(await subject.open(to))).toEqual(await expectedAnswers(to, now));
  });

  it('a content changed after the last batch gets its vector while writers wait', async () => {
    const { subject, gateway } = await filled();
    const [first] = (await gateway.list?.(listOf('ana', { limit: 50 }), call))?.slice(-1) ?? [];
    const to = embedderOf('new', 32);
    const last = withHook(to, async (batch) => {
      if (batch === 4)
        await gateway.update?.({ ref: refTo(first?.id ?? ''), patch: { content: 'changed at the end' } }, call);
    });
    expect(await subject.reembed(last)).toMatchObject({ embedded: COUNT + 1, switched: true });
    expect(to.seen.at(-1)).toBe('changed at the end');
    expect(await answersOf(await subject.open(to))).toEqual(await expectedAnswers(to, await contents(subject)));
  });

  it('retries when it does not get a lock', async () => {
    const { subject } = await filled();
    const reader = new pg.Client({ connectionString: subject.url });
    await reader.connect();
    await reader.query(`begin; select count(*) from ${subject.names.memories}`);
    let pauses = 0;
    const clock: Clock = {
      now: CLOCK.now,
      async sleep() {
        pauses++;
        await reader.query('commit');
      },
    };
    const to = embedderOf('new', 32);
    expect(await subject.reembed(to, {}, clock)).toMatchObject({ switched: true });
    expect(pauses).toBe(1);
    await reader.end();
  });
});

describe('one run at a time', () => {
  it('a second run is rejected while the first is running', async () => {
    const { subject } = await filled();
    const to = embedderOf('new', 32);
    const refused: unknown[] = [];
    const nested = withHook(to, async (batch) => {
      if (batch === 0)
        refused.push(await subject.reembed(embedderOf('new', 32)).catch((error: Error) => error.message));
    });
    expect(await subject.reembed(nested)).toMatchObject({ embedded: COUNT, switched: true });
    expect(refused).toEqual([expect.stringContaining('another "omp-gateway reembed" is running')]);
  });

  it('a run that lost the advisory lock stops, and the next continues', async () => {
    const { subject } = await filled();
    const to = embedderOf('new', 32);
    const cut = withHook(to, async (batch) => {
      if (batch !== 1) return;
      await subject.sql(
        `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()
           and database = (select oid from pg_database where datname = current_database())`,
      );
      await until(
        async () =>
          (
            await subject.sql(
              `select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
            )
          ).length === 0,
      );
    });
    await expect(subject.reembed(cut)).rejects.toThrow(/lost.*again/);
    expect(await subject.reembed(to)).toMatchObject({ done: COUNT, switched: true });
    expect(await answersOf(await subject.open(to))).toEqual(await expectedAnswers(to, memoriesUpTo(COUNT)));
  });

  it('a restarted re-embed gets a new column, so no other run can write into it', async () => {
    const { subject } = await filled();
    const stopping = new AbortController();
    await subject.reembed(embedderOf('first', 32), { signal: stopping.signal, progress: () => stopping.abort() });
    const column = () => subject.sql<{ next_column: string }>(`select next_column from ${subject.names.store}`);
    const [before] = await column();
    const again = new AbortController();
    const request = { restart: true, signal: again.signal, progress: () => again.abort() };
    await subject.reembed(embedderOf('second', 32), request);
    const [after] = await column();
    expect(before?.next_column).toBe('embedding_2');
    expect(after?.next_column).toBe('embedding_3');
  });
});

describe('an embedding service in trouble', () => {
  const failing = (inner: ReturnType<typeof embedderOf>, error: OmpError, times: number) => {
    let left = times;
    return withHook(inner, () => {
      if (left-- > 0) throw error;
    });
  };

  it('is retried with growing pauses, or after the time it asks for', async () => {
    const { subject } = await filled();
    const { clock, slept } = fakeClock();
    const down = new OmpError('provider_error', 'The embedding service failed.');
    expect(await subject.reembed(failing(embedderOf('new', 32), down, 7), {}, clock)).toMatchObject({ switched: true });
    expect(slept).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    const limited = new OmpError('rate_limited', 'Too many.', { retryAfter: 77 });
    slept.length = 0;
    await subject.reembed(failing(embedderOf('newer', 32), limited, 1), {}, clock);
    expect(slept).toEqual([77_000]);
  });

  it('is given up after ten attempts, and the next run continues', async () => {
    const { subject } = await filled();
    const { clock } = fakeClock();
    const to = embedderOf('new', 32);
    const down = new OmpError('provider_error', 'The embedding service failed.');
    await expect(subject.reembed(failing(to, down, 10), {}, clock)).rejects.toThrow(/service failed.*10 times.*again/);
    expect(to.seen).toEqual([]);
    expect(await subject.reembed(to)).toMatchObject({ embedded: COUNT, switched: true });
  });

  it('rejects a text: everything else is embedded, and the memory is reported by its id', async () => {
    const { subject, gateway } = await filled();
    const [bad] = await subject.sql<{ id: string }>(`select id from ${subject.names.memories} where content = $1`, [
      contentOf(11),
    ]);
    const inner = embedderOf('new', 32);
    const picky = withHook(inner, (_, texts) => {
      if (texts.includes(contentOf(11))) throw new OmpError('invalid_request', 'Refused.');
    });
    const told = await subject.reembed(picky).catch((error: Error) => error.message);
    expect(told).toContain(bad?.id);
    expect(told).not.toContain(contentOf(11));
    expect(new Set(inner.seen).size).toBe(COUNT - 1);
    await gateway.delete?.(refTo(bad?.id ?? ''), call);
    expect(await subject.reembed(picky)).toMatchObject({ embedded: 0, done: COUNT - 1, switched: true });
  });
});

describe('at most so many a minute', () => {
  it('are sent in any minute, attempts that fail included', async () => {
    const { subject } = await filled();
    const { clock } = fakeClock();
    const sent: { at: number; texts: number }[] = [];
    const counted = withHook(embedderOf('new', 32), (batch, texts) => {
      sent.push({ at: clock.now(), texts: texts.length });
      if (batch === 1) throw new OmpError('provider_error', 'The embedding service failed.');
    });
    expect(await subject.reembed(counted, { per_minute: 10, batch_size: 4 }, clock)).toMatchObject({ switched: true });
    for (const { at } of sent) {
      const minute = sent.filter((other) => other.at >= at && other.at < at + 60_000);
      expect(minute.reduce((sum, { texts }) => sum + texts, 0)).toBeLessThanOrEqual(10);
    }
    expect(sent.reduce((sum, { texts }) => sum + texts, 0)).toBe(COUNT + 4);
  });

  it('also where a batch would be larger', async () => {
    const { subject } = await filled();
    const { clock } = fakeClock();
    const sizes: number[] = [];
    const counted = withHook(embedderOf('new', 32), (_, texts) => void sizes.push(texts.length));
    await subject.reembed(counted, { per_minute: 3, batch_size: 100 }, clock);
    expect(Math.max(...sizes)).toBe(3);
  });

  it('waiting ends when the run is stopped', async () => {
    const stopping = new AbortController();
    const clock: Clock = {
      now: () => 0,
      sleep: async (_, signal) => {
        stopping.abort(new Error('stopped'));
        signal.throwIfAborted();
      },
    };
    const pace = createPace(2, { clock, signal: stopping.signal });
    await pace(2);
    await expect(pace(1)).rejects.toThrow('stopped');
  });
});

describe('the new column', () => {
  const columns = ({ sql, names }: ServerSubject) =>
    sql(
      `select attname, attstorage, format_type(atttypid, atttypmod) as type from pg_attribute
       where attrelid = $1::regclass and attname like 'embedding%' and not attisdropped order by attnum`,
      [names.memories],
    );
  const indexes = ({ sql }: ServerSubject) =>
    sql(
      `select c.relname as name, i.indisvalid as valid, pg_get_indexdef(c.oid) ~ 'embedding_2' as new
       from pg_index i join pg_class c on c.oid = i.indexrelid
       where c.relname in ('memories_embedding', 'memories_without_vector', 'memories_embedding_next', 'memories_without_vector_next')
       order by 1`,
    );

  it.each([
    { before: 1536, after: 1536, during: 'p', later: 'p' },
    { before: 2_000, after: 2_000, during: 'e', later: 'p' },
    { before: 2_000, after: 3_000, during: 'e', later: 'e' },
    { before: 3_000, after: 2_000, during: 'p', later: 'p' },
    { before: 64, after: 4_500, during: 'e', later: 'e' },
  ])('of $after dimensions beside $before fits into the page', async ({ before, after, during, later }) => {
    const subject = await serverSubject({ large_user_rows: 5 });
    const gateway = await subject.open(embedderOf('old', before));
    for (let i = 0; i < 9; i++) {
      await gateway.add({ input: memoryOf('ana', contentOf(i).repeat(60), { scope: 's'.repeat(512) }) }, call);
    }
    const seen: unknown[] = [];
    const to = embedderOf('new', after);
    const looking = withHook(to, async () => void seen.push((await columns(subject)).at(-1)));
    await subject.reembed(looking);
    const type = `halfvec(${after})`;
    expect(seen[0]).toEqual({ attname: 'embedding_2', attstorage: during, type });
    expect(await columns(subject)).toEqual([{ attname: 'embedding_2', attstorage: later, type }]);
    expect(await indexes(subject)).toEqual([
      ...(after <= 4_000 ? [{ name: 'memories_embedding', valid: true, new: true }] : []),
      { name: 'memories_without_vector', valid: true, new: true },
    ]);
    const search = await (await subject.open(to)).search?.(searchFor('ana', contentOf(4).repeat(60)), call);
    expect(search?.[0]).toMatchObject({ memory: { content: contentOf(4).repeat(60) }, score: 1 });
  });

  it('has its indexes made again when making them was interrupted', async () => {
    const { subject } = await filled();
    const to = embedderOf('new', 32);
    const stopping = new AbortController();
    await subject.reembed(to, { signal: stopping.signal, progress: () => stopping.abort() });
    await subject.sql(
      `update pg_index set indisvalid = false where indexrelid::regclass::text like '%\\_next';
       drop index omp.memories_without_vector_next`,
    );
    expect(await subject.reembed(to)).toMatchObject({ switched: true });
    expect(await indexes(subject)).toEqual([
      { name: 'memories_embedding', valid: true, new: true },
      { name: 'memories_without_vector', valid: true, new: true },
    ]);
  });

  it('leaves no trigger or function behind after a discard or a switch', async () => {
    const { subject } = await filled();
    const left = () =>
      subject.sql(
        `select tgname from pg_trigger where not tgisinternal union all select proname from pg_proc where pronamespace = 'omp'::regnamespace`,
      );
    const stopping = new AbortController();
    await subject.reembed(embedderOf('new'), { signal: stopping.signal, progress: () => stopping.abort() });
    expect(await left()).toHaveLength(2);
    await subject.reembed(embedderOf('old'), { restart: true });
    expect(await left()).toEqual([]);
    expect(await columns(subject)).toHaveLength(1);
    await subject.reembed(embedderOf('new'));
    expect(await left()).toEqual([]);
  });

  it('is searched through its index for a large user', async () => {
    const { subject, gateway } = await filled();
    await gateway.close();
    const to = embedderOf('new', 32);
    await subject.reembed(to);
    const fresh = await subject.open(to, { large_user_rows: 5 });
    const exact = await answersOf(fresh);
    await until(async () => (await subject.sql(`select from ${subject.names.largeUsers} where ready`)).length === 3);
    expect(await answersOf(fresh)).toEqual(exact);
    await subject.sql('begin; set local enable_seqscan = off; set local enable_sort = off');
    const plan = await subject.sql<{ 'QUERY PLAN': string }>(
      `explain select id from ${subject.names.memories} where large order by embedding_2 <=> '[${Array(32).fill(1)}]' limit 5`,
    );
    await subject.sql('rollback');
    expect(plan.map((line) => line['QUERY PLAN']).join('\n')).toContain('memories_embedding');
  });
});

describe('a dry run', () => {
  it('leaves a schema of an older gateway, or none, as it is', async () => {
    const subject = await serverSubject();
    expect(await subject.reembed(embedderOf('new'), { dry_run: true })).toMatchObject({ from: null, total: 0 });
    expect(await subject.sql(`select from pg_namespace where nspname = 'omp'`)).toEqual([]);
    const gateway = await subject.open(embedderOf('old'));
    await addMemories(gateway, 0, 3);
    await gateway.close();
    const { schema, memories, versions, largeUsers, auditLog, store, ingestion, onceKeys, apiKeys } = subject.names;
    const { migrations, logStarts, webhooks, embeddingUsage, userUsage } = subject.names;
    await subject.sql(
      `delete from ${migrations} where version > 2; drop index ${schema}.memories_user_tags, ${schema}.memories_valid_to, ${schema}.memories_conversation;
       drop table ${ingestion}, ${logStarts}, ${webhooks}, ${versions}, ${embeddingUsage}, ${userUsage}; alter table ${apiKeys} drop untrusted; alter table ${onceKeys} drop status, drop bucket, drop added, drop users;
       alter table ${memories} drop bucket, drop version; alter table ${largeUsers} drop bucket; alter table ${auditLog} drop bucket, drop node, drop xid, drop left_scopes;
       alter table ${store} drop embedding_column, drop columns_made, drop next_model, drop next_dimensions, drop next_column, drop bucket_secret,
         drop log_origin, drop log_base`,
    );
    expect(await subject.reembed(embedderOf('new'), { dry_run: true })).toMatchObject({ done: 0, total: 3 });
    expect(await subject.sql(`select max(version) as version from ${migrations}`)).toEqual([{ version: 2 }]);
    expect(await subject.reembed(embedderOf('new'))).toMatchObject({ embedded: 3, switched: true });
  });
});
