import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { Memory, Provider, Vector } from '#contract';
import { type Database, statement } from '../../providers/postgres/client/connections.ts';
import { PipelinedConnection } from '../../providers/postgres/client/pipelined-connection.ts';
import { dropTask } from '../../providers/postgres/client/task.ts';
import { openProvider } from '../../src/registry.ts';
import { COLUMNS, type MappedTable, openTable } from '../mapped/tables.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { IS_CITUS, SERVER_URL } from '../support/postgres-server.ts';
import { auditOf, callBy, contextOf } from '../support/requests.ts';
import { UNHURRIED_POSTGRES, VERSIONED } from '../support/subject.ts';
import { closedGate } from './sessions.ts';
import { call, listOf, memoryOf, openStore, refTo, searchFor, type TestDatabase } from './store.ts';

type Query = Parameters<Database['query']>;
/** What every database that a provider has opened was asked. */
const asked = {
  sent: [] as string[],
  /** May replace it, or delay it. */
  before: (...query: Query): Query | Promise<Query> => query,
};
const { send } = PipelinedConnection.prototype;

/** Of each kind that a user, or the store, has. */
const ROWS = 4_000;
/** What a statement that is not heavy reads at most: the calls below name three memories, or pages of ten. */
const FEW = 200;

type Stored = Required<Provider>;
type Calls = Readonly<Record<string, (store: Stored, memory: Memory) => Promise<unknown>>>;
/** Methods that ask the backend. Each needs a call below: a new one does not compile until it has one. */
type Methods = Exclude<keyof Stored, NoMethods>;
type NoMethods = 'name' | 'capabilities' | 'read_only' | 'check' | 'stats' | 'close' | Parts;
type Parts = 'audit' | 'versions' | 'freezing' | 'keys' | 'webhooks' | 'embeddingUsage' | 'ingestion';
type Of<Part extends keyof Stored, Without = never> = `${Part}.${Exclude<keyof Stored[Part], Without> & string}`;
type Asked =
  | Methods
  | Of<'audit' | 'freezing' | 'webhooks' | 'embeddingUsage'>
  | Of<'versions'>
  | Of<'keys', 'close'>
  | Of<'ingestion', 'deferred'>;

const embedder = hashingEmbedder();
const vectorOf = async (text: string): Promise<Vector> => (await embedder.embed([text], 'query', call))[0] ?? null;
const page = { within: null, limit: 10, max_bytes: 1e6 } as const;
const ids = (memory: Memory) => [memory.id, 'n1', 'n2'];
const add = async (store: Stored, user = 'big') =>
  (await store.add({ input: memoryOf(user, 'x'), vector: await vectorOf('x') }, call)) as Memory;
const usage = { day: '2026-01-01', app: 'a', model: 'm', texts: 1, tokens: 1, requests: 1 };
const key = { caller: 'c', kind: 'add', key: 'k' } as const;
const webhook = { id: 'w', created_at: '2026-01-01', state: 'paused' } as never;
const LIMITS = () => ({ memories: 1e6, bytes: 1e9, adds_per_day: 1e6 });

/** What both kinds of tables do. */
const SHARED = {
  get: (store, { id }) => store.get(refTo(id), call),
  add: (store) => add(store),
  update: async (store, { id }) =>
    store.update({ ref: refTo(id), patch: { content: 'y' }, vector: await vectorOf('y') }, call),
  delete: async (store) => store.delete(refTo((await add(store)).id), call),
  list: (store) => store.list(listOf('big', { limit: 10 }), call),
  'list, by tag': (store) => store.list(listOf('big', { tags: ['none'] }), call),
  'list, by scope': (store) => store.list(listOf('big', { scope: '*none*' }), call),
  'list, of a restricted caller': (store) => store.list(listOf('big', { within: ['none/*'] }), call),
  search: async (store) => store.search(searchFor('big', 'text', { vector: await vectorOf('text') }), call),
  export: (store) => store.export({ user_id: 'big', vectors: true, limit: 10, max_bytes: 1e6 }, call),
  'export, by id': (store, memory) =>
    store.export({ ids: ids(memory), vectors: false, limit: 10, max_bytes: 1e6 }, call),
  holdings: (store) => store.holdings({ user_id: 'big' }, call),
  erase: (store) => store.erase({ user_id: 'gone' }, call),
  ping: (store) => store.ping(call),
} satisfies Calls;

const TABLES = {
  ...SHARED,
  batch: async (store) => store.batch({ items: [{ input: memoryOf('big', 'x'), vector: await vectorOf('x') }] }, call),
  'add, with limits': async (store) =>
    store.add({ input: memoryOf('big', 'x'), vector: await vectorOf('x'), limits: LIMITS }, call),
  keyUse: (store) => store.keyUse({ ...key, users: ['big'] }, call),
  'list, by origin': (store) => store.list(listOf('big', { written: { origin: { key: 'none' } } }), call),
  'list, without large contents': (store) => store.list(listOf('long', { limit: 10, max_bytes: 1_000 }), call),
  neighbours: (store, memory) => store.neighbours({ user_id: 'big', ids: ids(memory), ...page }, call),
  users: (store) => store.users({ users: null, ...page }, call),
  userStats: (store) => store.userStats({ user_id: 'big', ...page }, call),
  userUsage: (store) => store.userUsage({ user_id: 'big' }, call),
  'export, with versions': (store) =>
    store.export({ user_id: 'big', vectors: false, versions: true, limit: 10, max_bytes: 1e6 }, call),
  import: async (store, memory) =>
    store.import({ items: [{ memory, vector: await vectorOf('x') }], replace: true }, call),
  changes: (store) => store.changes({ users: null, within: null, scope: 'none', limit: 10 }, call),
  changesHeld: (store) => store.changesHeld(call),
  backlog: (store) => store.backlog(call),
  'audit.record': (store) => store.audit.record([], call),
  'audit.read': (store) => store.audit.read(auditOf('big', { app: 'none' }), call),
  'versions.list': (store, { id }) => store.versions.list({ ref: refTo(id), limit: 10, max_bytes: 1e6 }, call),
  'versions.purge': (store, { id }) => store.versions.purge(refTo(id), call),
  'versions.writtenIn': (store) =>
    store.versions.writtenIn({ user_id: 'big', since: '2020-01-01T00:00:00.000Z', key: 'none', limit: 10 }, call),
  'freezing.current': (store) => store.freezing.current(call),
  'freezing.freeze': (store) => store.freezing.freeze({ by: 'test' }, call),
  'freezing.unfreeze': (store) => store.freezing.unfreeze(call),
  'keys.find': (store) => store.keys.find('k7', call),
  'keys.hasAny': (store) => store.keys.hasAny(call),
  'keys.list': (store) => store.keys.list({ limit: 10 }, call),
  'keys.create': (store) =>
    store.keys.create({ id: 'new', name: 'new', hash: 'h', users: null, grants: [], expires_at: null }, call),
  'keys.revoke': (store) => store.keys.revoke('k8', call),
  'keys.touch': (store) => store.keys.touch({ ids: ['k7'], time: '2026-01-01T00:00:00.000Z' }, call),
  'webhooks.list': (store) => store.webhooks.list(call),
  'webhooks.find': (store) => store.webhooks.find('w', call),
  'webhooks.create': (store) => store.webhooks.create({ webhook, most: 5 }, call),
  'webhooks.change': (store) => store.webhooks.change({ id: 'w', patch: {} }, call),
  'webhooks.delete': (store) => store.webhooks.delete('none', call),
  'webhooks.claim': (store) => store.webhooks.claim({ holder: 'h', seconds: 1 }, call),
  'webhooks.save': (store) =>
    store.webhooks.save({ id: 'w', lease: '00000000-0000-0000-0000-000000000000', patch: {} } as never, call),
  'webhooks.release': (store) => store.webhooks.release('h', call),
  'embeddingUsage.add': (store) => store.embeddingUsage.add([usage], call),
  'embeddingUsage.read': (store) =>
    store.embeddingUsage.read({ since: '2020-01-01', until: '2030-01-01', limit: 10 }, call),
  'ingestion.claim': async (store) => (await store.ingestion.claim()).end(),
  'ingestion.clearFailed': (store) => store.ingestion.clearFailed(),
} satisfies Calls & Readonly<Record<Asked, Calls[string]>>;

interface Plan {
  readonly 'Node Type': string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Index Recheck'?: number;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Plan[];
}
/** The most rows that one part of a plan reads of a table. */
const rowsRead = (plan: Plan): number =>
  Math.max(
    ...(plan['Relation Name'] && /Scan$/.test(plan['Node Type'])
      ? [
          (plan['Actual Loops'] ?? 0) *
            ((plan['Actual Rows'] ?? 0) +
              (plan['Rows Removed by Filter'] ?? 0) +
              (plan['Rows Removed by Index Recheck'] ?? 0)),
        ]
      : []),
    ...(plan.Plans ?? []).map(rowsRead),
    0,
  );

let client: pg.Client;
/** Statements that are not heavy, although they read many rows. */
const misjudged: string[] = [];
/** Heavy statements that would be compiled. */
const compiled: string[] = [];
/** Runs a statement in a transaction of its own that is undone, to see what it reads. Of a heavy one, sees whether it is compiled. */
const judge = async (...query: Query): Promise<Query> => {
  const [{ text, weight }, values, , settings] = query;
  if (!/^\s*(with|select|insert|update|delete)\b/i.test(text)) return query;
  const heavy = weight === 'heavy';
  await client.query(`begin; set local enable_seqscan = off; set local jit_above_cost = 0; ${settings ?? ''}`);
  try {
    const { rows } = await client.query(`explain (analyze ${!heavy}, format json) ${text}`, [...values]);
    const [{ Plan, JIT }] = rows[0]['QUERY PLAN'];
    const read = rowsRead(Plan);
    if (heavy && JIT) compiled.push(text);
    if (!heavy && read > FEW) misjudged.push(`${read} rows: ${text}`);
  } finally {
    await client.query('rollback');
  }
  return query;
};

/** The weights of the statements of each call, one after the other. */
async function weigh(store: Stored, calls: Calls): Promise<Record<string, string>> {
  const memory = await add(store);
  // On the embedded engine, all would be in the transaction that is undone.
  if (SERVER_URL !== '') asked.before = judge;
  const weights: Record<string, string> = {};
  for (const [name, run] of Object.entries(calls)) {
    asked.sent.length = 0;
    await run(store, memory).catch((error: unknown) => {
      throw new Error(name, { cause: error });
    });
    weights[name] = asked.sent.filter((weight, at) => weight !== asked.sent[at - 1]).join(', ');
  }
  asked.before = (...query) => query;
  return weights;
}

/** The tables of docs/backends/postgres.md: a call, and the weights of its statements. */
const documented = (heading: string): Record<string, string> => {
  const [, section = ''] = readFileSync('docs/backends/postgres.md', 'utf8').split(`### ${heading}\n`);
  const rows = (section.split('\n#')[0] as string).matchAll(/^\| (.+?) \| (.+?) \|$/gm);
  const found = [...rows]
    .slice(2)
    .flatMap(([, calls = '', weights = '']) =>
      calls.split('; ').map((name): [string, string] => [name.replaceAll('`', ''), weights]),
    );
  return Object.fromEntries(found);
};

let tables: TestDatabase;
let mapped: MappedTable;
let onTables: Stored;
let onMapped: Stored;
beforeAll(async () => {
  vi.spyOn(PipelinedConnection.prototype, 'send').mockImplementation(function (this: PipelinedConnection, task, named) {
    asked.sent.push(task.statement.weight);
    const { statement, values, call, settings } = task;
    const query = asked.before(statement, values, call, settings);
    const sendAs = ([statement, values, , settings]: Query) =>
      send.call(this, Object.assign(task, { statement, values, settings }), named);
    // What is not sent at once is not counted among the load of the connection.
    if (!(query instanceof Promise)) return sendAs(query);
    query.then(sendAs).catch((error: unknown) => dropTask(task, error));
  });
  client = new pg.Client({ connectionString: SERVER_URL || undefined });
  if (SERVER_URL !== '') await client.connect();
  tables = await openStore();
  mapped = await openTable(COLUMNS);
  const options = { ...UNHURRIED_POSTGRES, connections: 1, url: tables.url };
  const context = { embedder, ranking: { mode: 'hybrid', keyword_weight: 0.5 }, versions: VERSIONED } as const;
  onTables = (await openProvider('postgres', { ...options, schema: tables.schema }, contextOf(context))) as Stored;
  onMapped = (await openProvider('postgres', { ...options, ...mapped.options }, contextOf(context))) as Stored;
  const { memories, auditLog, onceKeys, apiKeys, embeddingUsage, ingestion, store } = tables.names;
  const vector = `'[1${',0'.repeat(63)}]'`;
  await tables.sql(`
    insert into ${memories} (id, user_id, content, created_at, updated_at, keywords, embedding)
      select 'n' || n, 'big', 'text', now() - n * interval '1 s', now(), '{1}', ${vector} from generate_series(1, ${ROWS}) as n;
    insert into ${memories} (id, user_id, content, created_at, updated_at, keywords, embedding)
      select 'l' || n, 'long', repeat('x', 500), now(), now(), '{1}', ${vector} from generate_series(1, 20) as n;
    insert into ${auditLog} (timestamp, app, action, user_id, request_id, outcome, node, xid)
      select now() - n * interval '1 s', 'app', 'add', 'big', 'r', 'ok', 0, '1' from generate_series(1, ${ROWS}) as n;
    insert into ${onceKeys} (caller, key, fingerprint, memory_id, created_at)
      select 'c', 'k' || n, 'f', 'n' || n, now() from generate_series(1, ${ROWS}) as n;
    insert into ${apiKeys} (id, name, hash, grants, created_at)
      select 'k' || n, 'name' || n, 'h', '{}', now() from generate_series(1, ${ROWS}) as n;
    insert into ${embeddingUsage} (day, app, model, texts, tokens, requests)
      select '2026-01-01', 'app' || n, 'm', 1, 1, 1 from generate_series(1, ${ROWS}) as n;
    insert into ${ingestion} (memory_id, due_at, queued_at, status)
      select 'n' || n, now(), now(), 'failed' from generate_series(1, ${ROWS}) as n;
    analyze ${memories}, ${auditLog}, ${onceKeys}, ${apiKeys}, ${embeddingUsage}, ${ingestion}, ${store}`);
  await mapped.sql(`
    insert into ${mapped.name} (id, content, user_id, created_at, embedding)
      select 'n' || n, 'text', 'big', now() - n * interval '1 s', ${vector} from generate_series(1, ${ROWS}) as n;
    create index on ${mapped.name} (user_id, created_at); analyze ${mapped.name}`);
});
afterAll(async () => {
  await onTables.close();
  await onMapped.close();
  await mapped.close();
  await tables.close();
  if (SERVER_URL !== '') await client.end();
  vi.restoreAllMocks();
});

it.skipIf(IS_CITUS)('[Decision 29] what is heavy is documented, and nothing else reads what a user has', async () => {
  const ofTables = await weigh(onTables, TABLES);
  const ofMapped = await weigh(onMapped, SHARED);
  expect(misjudged).toEqual([]);
  expect(ofTables).toEqual(documented("The gateway's tables"));
  expect(ofMapped).toEqual(documented('A mapped table'));
});

it.skipIf(SERVER_URL === '' || IS_CITUS)('[Decision 29] no heavy statement of a mapped table is compiled', async () => {
  // Without JIT in the server there would be nothing to see.
  expect((await client.query('select pg_jit_available() as available')).rows).toEqual([{ available: true }]);
  await weigh(onTables, { userStats: TABLES.userStats });
  expect(compiled.splice(0)).not.toEqual([]);
  await weigh(onMapped, SHARED);
  expect(compiled).toEqual([]);
});

it.skipIf(SERVER_URL === '' || IS_CITUS)(
  '[Decision 29] heavy statements of one caller hold up no other caller',
  async () => {
    const options = { ...UNHURRIED_POSTGRES, connections: 4 };
    const context = contextOf({ embedder, ranking: { mode: 'hybrid', keyword_weight: 0.5 }, versions: VERSIONED });
    const opened = [
      [TABLES, { ...options, url: tables.url, schema: tables.schema }],
      [SHARED, { ...mapped.options, ...options }],
    ] as const;
    for (const [calls, of] of opened) {
      const store = (await openProvider('postgres', of, context)) as Stored;
      const memory = await add(store);
      const gate = await closedGate();
      // Whatever the statement is, it waits.
      asked.before = (...query) => {
        const [{ weight }, , by] = query;
        const waits = weight === 'heavy' && by.caller.id === call.caller.id;
        return waits ? [statement('heavy', `select ${gate.wait}`), [], by] : query;
      };
      const weights = documented(calls === TABLES ? "The gateway's tables" : 'A mapped table');
      const heavy = Object.entries(calls).filter(([name]) => weights[name]?.includes('heavy'));
      const walks = heavy.flatMap(([, run]) => Array.from({ length: 8 }, () => run(store, memory)));
      const ended = Promise.allSettled(walks);
      const neighbour = callBy({ id: 'neighbour' });
      for (let n = 0; n < 5; n++) {
        expect((await store.get(refTo(memory.id), neighbour))?.id).toBe(memory.id);
        expect(await store.list(listOf('big', { limit: 1 }), neighbour)).toHaveLength(1);
        const vector = await vectorOf('text');
        expect(await store.search(searchFor('big', 'text', { vector, limit: 1 }), neighbour)).toHaveLength(1);
      }
      await gate.open();
      asked.before = (...query) => query;
      await ended;
      await store.close();
    }
  },
);
