import {
  type AddRequest,
  analyseLater,
  type BatchOutcome,
  type Call,
  effectivePatch,
  MAX_RECORD_BYTES,
  type Memory,
  newIdentity,
  newRecord,
  OmpError,
  type Provider,
  type ProviderCapabilities,
  type ProviderContext,
  queryTerms,
  type Ref,
  recordTooLarge,
  requireFits,
  requireVersion,
  type SearchHit,
  type SearchQuery,
  unchangedEntry,
  weights,
} from '#provider';
import { type Database, type Query, type Row, rememberStatements, runOn } from '../client/connections.ts';
import { PROVIDER, readOnly } from '../postgres-errors.ts';
import type { Options } from '../postgres-options.ts';
import { withBucket } from '../scaling/placement.ts';
import { openReadReplica, withReadReplica } from '../scaling/read-replica.ts';
import { createById } from '../scaling/shards.ts';
import { requireHalf, toKeys } from '../sql/values.ts';
import type { OpenDatabase } from '../startup/open-database.ts';
import { createAuditLog } from './audit-log.ts';
import { createChangeFeed } from './change-feed.ts';
import { createUsageStore } from './embedding-usage.ts';
import { createErasure } from './erasure.ts';
import { createExport } from './export-statement.ts';
import { createFreezing } from './freezing.ts';
import { startHousekeeping } from './housekeeping.ts';
import { createKeyUse } from './idempotency.ts';
import { createImport } from './import-statement.ts';
import { backlogOf, createQueue } from './ingestion-queue.ts';
import type { Insert } from './insert-statement.ts';
import { createLimitedChanges } from './limited-changes.ts';
import { toMemory } from './memory-rows.ts';
import { createStatements, type Statements } from './memory-statements.ts';
import { createTableSearch, openLargeUsers, type SearchOptions } from './search-strategy.ts';
import { createUserVerbs } from './user-statements.ts';
import type { Room } from './user-usage.ts';
import { createVersions } from './versions.ts';

/** The provider of the gateway's tables. Closing it closes the database. */
export async function openTables(
  { db, replica, names, keys, webhooks, iterativeScan, embedded, close }: OpenDatabase,
  options: Options,
  {
    embedder,
    ranking,
    audit,
    versions,
    user_limits,
    max_record_bytes: max_bytes = MAX_RECORD_BYTES,
    log,
  }: ProviderContext,
): Promise<Provider> {
  const statement = rememberStatements();
  const statements = createStatements(names, audit !== undefined, versions, statement);
  const send = (query: Query, call: Call) => db.query(query.statement, query.values, call);
  const run = runOn(db, statement);
  const threshold = iterativeScan ? options.large_user_rows : Number.POSITIVE_INFINITY;
  const readReplica = replica && openReadReplica({ primary: db, replica, log });
  // The replica must show what the list of large users says.
  const beforeUse = async (call: Call) => readReplica?.wrote([], call);
  const largeUsers = await openLargeUsers({ db, names, statement, threshold, log, beforeUse });
  const { purge_expired_days } = options;
  const housekeeping = startHousekeeping({ run, names, audit, versions, purge_expired_days, log });

  const auditLog = audit && createAuditLog(names, run);
  const recordUnchanged = createRecordUnchanged(auditLog);

  const model = embedder?.model ?? null;
  const later = embedder !== undefined && options.ingestion === 'async';
  const ingestion = embedder && { deferred: later, ...createQueue(names, run) };
  const insertOf = async ({ input, vector, key }: AddRequest, call: Call): Promise<Insert> => {
    const keywords = toKeys(input.user_id, await analyseLater(input.content, call));
    const { id, created_at } = newIdentity();
    const bucket = names.placement.bucketOf(input.user_id);
    const identity = { id: withBucket(id, bucket), created_at };
    const memory = newRecord(input, model, { status: later ? 'queued' : 'done', ...identity });
    return { memory, bucket, vector, keywords, key };
  };
  const inItsShard = createById(names, run, send);
  const get = async (ref: Ref, call: Call): Promise<Memory | undefined> => {
    const [row] = await inItsShard(ref, call, statements.select);
    return row && toMemory(row, model);
  };
  const keyUse = createKeyUse(names, run);
  const limited = createLimitedChanges({ names, run, send, insertAll: statements.insertAll, insertOf, keyUse });
  const readsOn = (on: Database) => createReads(on, statements, { names, statement, ranking, largeUsers, model });

  const provider: Provider = {
    name: PROVIDER,
    capabilities: capabilitiesOf(ranking),
    check: requireHalf,
    async add(request, call) {
      const { limits, key } = request;
      if (limits) return onlyOf(await limited.batch({ items: [request], key, limits }, call));
      const insert = await insertOf(request, call);
      return (await send(statements.insert(insert, call), call)).length > 0 ? insert.memory : undefined;
    },
    async batch(request, call) {
      const { items, key, limits } = request;
      if (limits) return limited.batch({ items, key, limits }, call);
      const inserts: Insert[] = [];
      // One after the other, so that the ids have the order of the items.
      for (const item of items) inserts.push(await insertOf(item, call));
      const rows = await send(statements.insertAll(inserts, key, call), call);
      return rows.length > 0 ? inserts.map(({ memory }) => memory) : undefined;
    },
    keyUse,
    get,
    async update({ ref, vector, limits, ...request }, call) {
      const current = requireVersion(request.current ?? (await get(ref, call)), ref);
      const patch = current && effectivePatch(current, request.patch);
      if (!current || !patch) {
        if (current) await recordUnchanged(current, call);
        return current;
      }
      requireFits(current, patch, max_bytes);
      const { content } = patch;
      const keywords = content === undefined ? undefined : toKeys(current.user_id, await analyseLater(content, call));
      // Without a new content the ingestion queue stays as it is.
      const fresh = keywords ? (later ? ('later' as const) : vector) : null;
      const shard = names.placement.shardOf(current.user_id);
      const change = { patch, vector: fresh, keywords, max_bytes };
      const query = (room?: Room) => statements.update({ ...ref, shard }, { ...change, room }, call);
      const owner = limits && content !== undefined ? { ...current, content } : undefined;
      const isOpen = async () => {
        const present = requireVersion(await get(ref, call), ref);
        if (present) requireFits(present, patch, max_bytes);
        return present !== undefined;
      };
      const row =
        limits && owner
          ? await limited.change(
              owner,
              limits(owner.user_id),
              { send: (room) => send(query(room), call), isOpen },
              call,
            )
          : (await send(query(), call))[0];
      if (row) return toMemory(row, model);
      if (!(await isOpen())) return undefined;
      throw recordTooLarge(max_bytes);
    },
    async delete(ref, call) {
      const [row] = await inItsShard(ref, call, (located) => statements.remove(located, call));
      if (!row && ref.versions) requireVersion(await get(ref, call), ref);
      return row !== undefined;
    },
    ...readsOn(db),
    ...createUserVerbs(names, run),
    ...createErasure(names, run, audit),
    userUsage: limited.userUsage,
    ...createExport(names, run, { model, versions }),
    ...createImport(names, run, { later, audited: audit !== undefined, versions, counted: user_limits === true }),
    ...(versions && {
      versions: createVersions(names, { run, model, audited: audit !== undefined, statement, byId: inItsShard }),
    }),
    ...(auditLog && { audit: auditLog, ...createChangeFeed(names, run, embedded), webhooks }),
    freezing: createFreezing(names, run),
    embeddingUsage: createUsageStore(names, run),
    // Closed with the provider.
    keys: { ...keys, close: async () => {} },
    async ping(call) {
      const [row] = await run('small', `select current_setting('transaction_read_only') as read_only`, [], call);
      if (row?.read_only === 'on') throw readOnly();
    },
    stats: db.stats,
    ...(ingestion && { ingestion, backlog: (call) => backlogOf(names, run, call) }),
    async close() {
      await housekeeping.close();
      await largeUsers.close();
      await readReplica?.close();
      await close();
    },
  };
  return replica && readReplica ? withReadReplica(provider, readsOn(replica), readReplica) : provider;
}

/** The outcome of a single add. */
function onlyOf(outcomes: readonly BatchOutcome[] | undefined): Memory | undefined {
  const [outcome] = outcomes ?? [];
  if (outcome instanceof OmpError) throw outcome;
  return outcome;
}

interface ReadOptions extends Omit<SearchOptions, 'db'> {
  readonly model: string | null;
}

/** What a read replica answers too. */
function createReads(db: Database, statements: Statements, { model, ...options }: ReadOptions) {
  const { largeUsers, ranking } = options;
  const list = ({ statement, values }: Query, call: Call) => db.query(statement, values, call);
  const runSearch = createTableSearch({ db, ...options });
  return {
    async list(query, call) {
      const large = largeUsers.has(query.user_id);
      let rows = await list(statements.list(query, { large }), call);
      if (rows.some(({ content }) => content === null))
        rows = await list(statements.list(query, { large, within: 'bytes' }), call);
      return rows.map((row) => toMemory(row, model));
    },
    neighbours: async (query, call) =>
      (await list(statements.neighbours(query), call)).map((row) => toMemory(row, model)),
    search: async (query, call) => toHits(await runSearch(query, call), { query, ranking, model }),
  } satisfies Pick<Provider, 'list' | 'search' | 'neighbours'>;
}

/** Writes the audit entry of an update that succeeded without a change. */
const createRecordUnchanged =
  (auditLog: Provider['audit']) =>
  async (memory: Memory, call: Call): Promise<void> =>
    auditLog?.record([unchangedEntry('update', memory, call)], call);

interface Searched {
  readonly query: SearchQuery;
  readonly ranking: ProviderContext['ranking'];
  readonly model: string | null;
}

function toHits(rows: readonly Row[], { query, ranking, model }: Searched): SearchHit[] {
  const hits = rows.map((row) => ({ memory: toMemory(row, model), score: row.score as number }));
  if (!query.explain) return hits;
  const weight = weights(ranking, queryTerms(query.text).length);
  return hits.map((hit, i) => ({
    ...hit,
    parts: { cosine: Number(rows[i]?.cosine), coverage: Number(rows[i]?.coverage), weights: weight },
  }));
}

const capabilitiesOf = ({ mode }: ProviderContext['ranking']): ProviderCapabilities => ({
  vector_search: mode !== 'keyword',
  keyword_search: mode !== 'vector',
  temporal: true,
  temporal_search: true,
  scopes: 'native',
  tags: true,
  max_content_length: null,
  supports_supersession: true,
  max_search_results: null,
  max_list_scan: null,
  consistency_tokens: false,
  etags: true,
  origins: true,
  explain: true,
});
