import pg from 'pg';
import { RateLimiterPostgres } from 'rate-limiter-flexible';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ListQuery, RankingOptions, SearchQuery } from '#contract';
import { analyse, fromHalfBits } from '#ranking';
import type { Database, Run } from '../../providers/postgres/client/connections.ts';
import { toKeys, toTextArray } from '../../providers/postgres/sql/values.ts';
import { createKeyStore } from '../../providers/postgres/tables/api-keys.ts';
import { createAuditLog } from '../../providers/postgres/tables/audit-log.ts';
import { startHousekeeping } from '../../providers/postgres/tables/housekeeping.ts';
import { createKeyUse } from '../../providers/postgres/tables/idempotency.ts';
import { createQueue } from '../../providers/postgres/tables/ingestion-queue.ts';
import { createStatements } from '../../providers/postgres/tables/memory-statements.ts';
import { indexSettings, keysOf, searchStatements } from '../../providers/postgres/tables/search-statement.ts';
import { countStatement } from '../../providers/postgres/tables/search-strategy.ts';
import { countersOf, counting } from '../../src/rate-limit/stores.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { recordingLog } from '../support/subject.ts';
import { call, listOf, memoryOf, openStore, searchFor, type TestDatabase, until } from './store.ts';

const ROWS = { small: 200, other: 800, big: 1600 };
const WORDS = ['apple', 'bridge', 'candle', 'desert', 'engine', 'forest', 'garden', 'harbour', 'island', 'jungle'];
const embedder = hashingEmbedder();
const vectorOf = async (text: string) => (await embedder.embed([text], 'query', call))[0] ?? null;

let store: TestDatabase;
beforeAll(async () => {
  store = await openStore();
  await (await store.open()).close();
  const { insert } = createStatements(store.names, false);
  let made = 0;
  // "big" is a large user: its rows enter the indexes as they are inserted.
  await store.sql(`insert into ${store.names.largeUsers} values ('big', true)`);
  for (const [user, rows] of Object.entries(ROWS)) {
    for (let i = 0; i < rows; i++) {
      const content = `${WORDS[i % 10]} ${WORDS[(i * 7) % 9]} number ${i}`;
      const input = memoryOf(user, content, {
        scope: i % 5 === 0 ? null : `${WORDS[i % 10]}/${i % 97}`,
        tags: i % 400 === 0 ? ['rare', 'common'] : ['common'],
      });
      const created_at = new Date(1.7e12 + made * 1000).toISOString();
      const id = `mem_${String(made++).padStart(26, '0')}`;
      const memory = { ...input, id, created_at, updated_at: created_at, embedding_model: null, status: null };
      const { statement, values } = insert(
        { memory, bucket: 0, vector: await vectorOf(content), keywords: toKeys(user, analyse(content)) },
        call,
      );
      await store.sql(statement.text, values);
    }
  }
  await store.sql(`analyze ${store.names.memories}`);
});
afterAll(() => store.close());

/** A value as SQL text, for EXECUTE takes no parameters. */
const literal = (value: unknown): string => {
  if (value === null) return 'null';
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return pg.escapeLiteral(toTextArray(value));
  if (!Buffer.isBuffer(value)) return pg.escapeLiteral(String(value));
  // An array of one dimension; a vector begins with its length in two bytes.
  if (value.readUInt32BE(0) === 1) {
    const keys = Array.from({ length: value.readUInt32BE(12) }, (_, i) => value.readBigInt64BE(24 + i * 12));
    return `'{${keys}}'`;
  }
  const halves = Array.from({ length: value.readUInt16BE(0) }, (_, i) => fromHalfBits(value.readUInt16BE(4 + i * 2)));
  return `'[${halves.join(',')}]'`;
};

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  /** Where an insert looks whether the row is there. */
  readonly 'Conflict Arbiter Indexes'?: readonly string[];
  readonly Plans?: readonly Plan[];
}
/** A table that is read from end to end shows among them. */
const indexesOf = (plan: Plan): string[] => [
  ...(plan['Node Type'] === 'Seq Scan' ? [`all of ${plan['Relation Name']}`] : []),
  // Where the state of every record is looked up.
  ...(plan['Index Name'] && plan['Index Name'] !== 'ingestion_pkey' ? [plan['Index Name']] : []),
  ...(plan['Conflict Arbiter Indexes'] ?? []),
  ...(plan.Plans ?? []).flatMap(indexesOf),
];

/** A prepared statement is planned for its values or, once and for all, for any. */
const MODES = ['force_custom_plan', 'force_generic_plan'] as const;

/** The indexes Postgres uses for a prepared statement: the same in every mode. */
const indexes = async (
  text: string,
  values: readonly unknown[],
  { settings = '', modes = MODES as readonly string[] } = {},
): Promise<string[]> => {
  const used: string[][] = [];
  for (const mode of modes) {
    await store.sql(`begin; set local enable_seqscan = off; set local plan_cache_mode = ${mode}; ${settings}`);
    await store.sql(`prepare probe as ${text}`);
    const rows = await store.sql<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      `explain (format json) execute probe${values.length > 0 ? `(${values.map(literal).join(', ')})` : ''}`,
    );
    await store.sql('deallocate probe; rollback');
    used.push([...new Set(indexesOf((rows[0] as (typeof rows)[0])['QUERY PLAN'][0].Plan))].sort());
  }
  expect(used.at(-1), 'the last mode').toEqual(used[0]);
  return used[0] ?? [];
};

/** Takes statements down instead of sending them. */
const recorder = () => {
  const seen: (readonly [text: string, values: readonly unknown[]])[] = [];
  const run: Run = async (...[, text, values]) => {
    seen.push([text, values]);
    return [];
  };
  return { seen, run };
};

const list = (more: Partial<ListQuery>, large = false) => {
  const query = listOf('big', { limit: 51, ...more });
  const { statement, values } = createStatements(store.names, true).list(query, { large });
  return indexes(statement.text, values);
};
const search = async (
  how: 'exact' | 'indexed' | 'matching',
  more: Partial<SearchQuery>,
  mode: RankingOptions['mode'] = 'hybrid',
  modes: readonly string[] = MODES,
) => {
  const query = searchFor('big', 'apple bridge', more);
  const ranking = { mode, keyword_weight: 0.5 };
  const vector = mode === 'keyword' ? null : await vectorOf(query.text);
  const rarity = { rows: ROWS.big, holding: keysOf(ranking, query).map(() => ROWS.big / 10) };
  const { text, values } = searchStatements(
    store.names,
    ranking,
  )({
    query: { ...query, vector },
    ...(how !== 'exact' && { rarity, matching: how === 'matching' }),
  });
  // For so few rows sorting them all is still cheaper than the index; whether it can be used is the question here.
  const settings = `${indexSettings(ROWS.big)}; set local enable_sort = off`;
  return indexes(text, values, how === 'indexed' ? { settings, modes } : { modes });
};

describe('list', () => {
  const after = { created_at: new Date(1.7e12).toISOString(), id: 'mem_00000000000000000000000000' };
  it.each([
    ['a page', {}],
    ['the next page', { after }],
    ['a time range', { since: '2023-01-01T00:00:00.000Z', until: '2024-01-01T00:00:00.000Z' }],
  ])('reads %s in the order of its index', async (_, query) => {
    expect(await list(query)).toEqual(['memories_user_time']);
  });

  it.each([
    ['equality', 'apple/7'],
    ['a prefix', 'apple/*'],
    ['a glob', 'appl?/*7'],
    ['a glob with a special character', 'app%*'],
  ])('finds %s of scope in its index', async (_, scope) => {
    expect(await list({ scope, limit: 501 })).toEqual(['memories_user_scope']);
  });

  it.each([
    ['one glob', ['apple/*']],
    ['several globs', ['apple/*', '*7', 'desert']],
  ])('stays with the order of time under a grant of %s', async (_, within) => {
    expect(await list({ within, user_id: 'small' })).toEqual(['memories_user_time']);
    expect(await list({ within, after, user_id: 'small' })).toEqual(['memories_user_time']);
  });

  it.each([
    ['a tag', { tags: ['rare'] }],
    ['the end of a scope', { scope: '*/7' }],
  ])('reads %s in the order of time', async (_, query) => {
    expect(await list(query)).toEqual(['memories_user_time']);
  });

  it.each([
    ['a tag', { tags: ['rare'] }, ['memories_user_tags']],
    ['a scope', { scope: 'apple/7' }, ['memories_user_scope']],
    ['a prefix of scope', { scope: 'apple/*' }, ['memories_user_scope']],
    ['the end of a scope', { scope: '*/7' }, []],
  ] as const)('of a large user reads %s in the order of time, and the rest in its index', async (_, query, index) => {
    expect(await list({ ...query, tags: [...(('tags' in query && query.tags) || [])] }, true)).toEqual(
      ['memories_pkey', 'memories_user_time', ...index].sort(),
    );
  });
});

describe('search', () => {
  /** Each memory of a user in the order of time, and the hits by their keys. */
  const ALL = ['memories_pkey', 'memories_user_time'];

  it.each(['hybrid', 'vector', 'keyword'] as const)(
    'reads the memories of one user, and nobody else, exactly, %s',
    async (mode) => {
      expect(await search('exact', { user_id: 'small' }, mode)).toEqual(ALL);
    },
  );

  it.each([
    ['a scope prefix', { scope: 'apple' }],
    ['any scope', { scope: '' }],
    ['a tag', { tags: ['common'] }],
    ['a time', { since: '2023-01-01T00:00:00.000Z' }],
  ])('counts words over all memories of the user, also under %s', async (_, more) => {
    expect(await search('exact', { user_id: 'small', ...more })).toEqual(ALL);
  });

  // The rest, read in the order of time, only where the vector index gave up.
  it.each([
    ['hybrid', ['memories_embedding', 'memories_keywords', ...ALL]],
    ['vector', ['memories_embedding', ...ALL]],
    ['keyword', ['memories_keywords', 'memories_pkey']],
  ] as const)('of a large user takes candidates from the indexes, %s', async (mode, expected) => {
    expect(await search('indexed', {}, mode)).toEqual(expected);
  });

  it('of a large user does so for a long page too', async () => {
    expect(await search('indexed', { limit: 100 })).toEqual(['memories_embedding', 'memories_keywords', ...ALL]);
  });

  it.each([
    ['a scope prefix', { scope: 'apple' }, 'memories_user_scope'],
    ['a tag', { tags: ['rare'] }, 'memories_user_tags'],
    ['a time range', { since: '2023-01-01T00:00:00.000Z', until: '2023-02-01T00:00:00.000Z' }, 'memories_user_time'],
  ])('of a large user takes the same under %s, or all that match from its index', async (_, more, index) => {
    const used = await search('indexed', more);
    expect(used).toEqual(expect.arrayContaining(['memories_embedding', 'memories_keywords', 'memories_pkey']));
    // The rest, only where the walk gave up.
    expect(['memories_user_time', 'memories_user_scope']).toContain(used[3]);
    expect(await search('matching', more)).toEqual(['memories_pkey', index]);
  });

  it('of a large user does so also where the average user has one memory', async () => {
    const column = `alter table ${store.names.memories} alter user_id`;
    await store.sql(`${column} set (n_distinct = 2000); analyze ${store.names.memories}`);
    onTestFinished(async () => {
      await store.sql(`${column} reset (n_distinct); analyze ${store.names.memories}`);
    });
    expect(await search('indexed', {})).toEqual(['memories_embedding', 'memories_keywords', ...ALL]);
  });

  it.each([
    ['all', null, ['memories_keywords', 'memories_user_time']],
    ['what a grant shows', ['apple/*'], ['memories_keywords', 'memories_user_scope']],
  ])('counts the words of a large user in the indexes, of %s', async (_, within, expected) => {
    const query = searchFor('big', 'apple', { within });
    const keys = keysOf({ mode: 'hybrid', keyword_weight: 0.5 }, query);
    const { text, values } = countStatement(store.names, query, { keys, all: true });
    expect(await indexes(text, values)).toEqual(expected);
    const words = countStatement(store.names, query, { keys, all: false });
    expect(await indexes(words.text, words.values)).toEqual(['memories_keywords']);
  });
});

describe('search under a grant', () => {
  it('looks only at what a literal prefix leads to', async () => {
    const ranges = ['memories_pkey', 'memories_user_scope'];
    const all = ['memories_pkey', 'memories_user_time'];
    expect(await search('exact', { within: ['apple/*'] })).toEqual(ranges);
    expect(await search('exact', { within: ['apple/*', 'desert/*'] })).toEqual(ranges);
    expect(await search('exact', { user_id: 'small', within: ['apple/*', '*/7'] })).toEqual(all);
    const many = ['apple/1', 'bridge/1', 'candle/1', 'desert/1', 'engine/1'];
    expect(await search('exact', { user_id: 'small', within: many })).toEqual(all);
  });

  it('of a large user still takes candidates from both indexes', async () => {
    const used = await search('indexed', { within: ['apple/*'] });
    expect(used).toEqual(expect.arrayContaining(['memories_embedding', 'memories_keywords']));
  });
});

describe('the audit log', () => {
  const ROWS_OF_LOG = 4_000;
  beforeAll(async () => {
    await store.sql(
      `insert into ${store.names.auditLog} (timestamp, app, action, user_id, memory_id, scope, request_id, outcome)
       select timestamptz '2024-01-01' + n * interval '1 minute', 'app ' || n % 7, 'get', 'user ' || n % 200, 'mem_' || n,
         'scope/' || n % 50, 'r', 'ok' from generate_series(1, ${ROWS_OF_LOG}) as n;
       insert into ${store.names.onceKeys}
       select 'c', n::text, 'f', 'mem_' || n, timestamptz '2024-01-01' + n * interval '1 minute', null
       from generate_series(1, ${ROWS_OF_LOG}) as n;
       analyze ${store.names.auditLog}; analyze ${store.names.onceKeys}`,
    );
  });
  it.each([
    ['everything', {}],
    ['one app', { app: 'app 3' }],
    ['a time', { since: '2024-01-03T00:00:00.000Z' }],
    ['a grant', { within: ['scope/1*'] }],
  ])('is read in the order of its index, %s', async (_, more) => {
    const query = { user_id: 'user 3', within: null, max_bytes: 1e9, limit: 20, ...more };
    const { seen, run } = recorder();
    await createAuditLog(store.names, run).read(query, call);
    for (const [text, values] of seen) expect(await indexes(text, values)).toEqual(['audit_log_user_time']);
    expect(seen).toHaveLength(1);
  });

  it('and the keys of adds, memories, and usage tell from an index what is past its time', async () => {
    const { seen, run } = recorder();
    const housekeeping = startHousekeeping({
      run,
      names: store.names,
      audit: { retention_days: 30 },
      purge_expired_days: 1,
      log: recordingLog(),
    });
    await until(async () => seen.length === 6);
    await housekeeping.close();
    const used = [];
    for (const [text, values] of seen) used.push(await indexes(text, values));
    const [log, memories, keys] = [['audit_log_time'], ['memories_valid_to'], ['once_keys_time']];
    expect(used).toEqual([[...log, 'log_starts_pkey'], log, memories, ['embedding_usage_pkey'], keys, keys]);
  });
});

it('one record is found by its key', async () => {
  const statements = createStatements(store.names, true);
  const ref = { id: 'mem_x', users: ['big'], within: ['apple/*'] };
  const update = { patch: { confidence: 1 }, vector: null, keywords: undefined, max_bytes: 1e9 };
  for (const { statement, values } of [
    statements.select(ref),
    statements.remove(ref, call),
    statements.update(ref, update, call),
  ]) {
    expect(await indexes(statement.text, values)).toEqual(['memories_pkey']);
  }
});

describe('an add', () => {
  const once = {
    caller: 'c',
    kind: 'add',
    key: '7',
    fingerprint: 'f',
    before: undefined,
    places: [0],
    size: 1,
  } as const;

  it('finds its idempotency key', async () => {
    const { seen, run } = recorder();
    await createKeyUse(store.names, run)(once, call);
    expect(seen).toHaveLength(1);
    for (const [text, values] of seen)
      expect(await indexes(text, values, { modes: ['force_generic_plan'] })).toEqual(['once_keys_pkey']);
  });

  it.each([
    ['without a key', undefined, ['large_users_pkey']],
    ['with its key', once, ['large_users_pkey', 'once_keys_pkey']],
  ])('looks once whether its user is large, %s', async (_, key, expected) => {
    const created_at = new Date().toISOString();
    const identity = { id: 'mem_x', created_at, updated_at: created_at };
    const memory = { ...memoryOf('u', 'x'), ...identity, embedding_model: null, status: null };
    const added = { memory, bucket: 0, vector: null, keywords: [], ...(key && { key }) };
    const { statement, values } = createStatements(store.names, true).insert(added, call);
    expect(await indexes(statement.text, values)).toEqual(expected);
  });
});

describe('an API key', () => {
  it('is found, and its use noted, by its id', async () => {
    await store.sql(`insert into ${store.names.apiKeys} (id, name, hash, grants, created_at)
      select 'id ' || n, 'name ' || n, 'h', '{}', now() from generate_series(1, 2000) as n; analyze ${store.names.apiKeys}`);
    const { seen, run } = recorder();
    const db = { query: ({ text }: { text: string }, values: readonly unknown[]) => run('small', text, values, call) };
    const keys = createKeyStore({ db: db as unknown as Database, names: store.names });
    await keys.find('id 7', call);
    await keys.touch({ ids: ['id 7', 'id 8'], time: new Date().toISOString() }, call);
    expect(seen).toHaveLength(2);
    for (const [text, values] of seen) expect(await indexes(text, values)).toEqual(['api_keys_pkey']);
  });
});

describe('a rate limit', () => {
  it('counts and looks by its key', async () => {
    await store.sql(`insert into ${store.names.rateLimits} select 'key ' || n, 1, 0 from generate_series(1, 2000) as n;
      analyze ${store.names.rateLimits}`);
    const seen: { text: string; values: unknown[] }[] = [];
    const client = {
      query: async (sent: { text: string; values: unknown[] }) => {
        seen.push(sent);
        return { rows: [{ points: 1, expire: Date.now() }] };
      },
    };
    const limiter = new RateLimiterPostgres({
      ...counting('requests'),
      ...{
        storeClient: client,
        storeType: 'client',
        tableName: 'rate_limits',
        schemaName: store.schema,
        tableCreated: true,
      },
    });
    const counters = countersOf(limiter);
    await counters.add('7', 1);
    await counters.read('7');
    expect(seen).toHaveLength(2);
    for (const { text, values } of seen) expect(await indexes(text, values)).toEqual(['rate_limits_pkey']);
  });
});

it('starting sees from an index whether a memory lacks its vector', async () => {
  const text = `select 1 from ${store.names.memories} where embedding is null limit 1`;
  expect(await indexes(text, [])).toEqual(['memories_without_vector']);
});

it('the queue of memories without a vector is read from its head, and by claim', async () => {
  const { seen, run } = recorder();
  const claim = await createQueue(store.names, run).claim();
  await claim.settle([], []);
  await claim.end();
  const used = [];
  for (const [text, values] of seen) used.push(await indexes(text, values));
  expect(used).toEqual([['ingestion_due', 'memories_pkey'], ['ingestion_claim', 'memories_pkey'], ['ingestion_claim']]);
});
