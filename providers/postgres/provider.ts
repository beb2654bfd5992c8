import {
  type Call,
  effectivePatch,
  MAX_RECORD_BYTES,
  type Memory,
  type NewMemory,
  newIdentity,
  newRecord,
  type Provider,
  type ProviderCapabilities,
  type ProviderContext,
  type Ref,
  recordTooLarge,
  requireFits,
  type SearchQuery,
} from '#contract';
import { analyseLater } from '#ranking';
import type { Run } from './client/connections.ts';
import { PROVIDER } from './errors.ts';
import { createFind } from './find.ts';
import { openIngestion } from './ingestion/open.ts';
import type { Ways } from './ingestion/queue.ts';
import { toKeys } from './keywords.ts';
import { startHousekeeping } from './maintenance/housekeeping.ts';
import { openLargeUsers } from './maintenance/large-users.ts';
import type { OpenDatabase } from './maintenance/startup.ts';
import { createFirstAnswer } from './once.ts';
import type { Options } from './options.ts';
import { toMemory } from './rows.ts';
import { createStatements, type Insert, type Query, type Update } from './statements.ts';
import { createAuditLog } from './tables/audit-log.ts';

/** The verbs on an open database, which they close. */
export async function openProvider(
  { db, names, keys, iterativeScan, close }: OpenDatabase,
  options: Options,
  { embedder, ranking, audit, max_record_bytes: max_bytes = MAX_RECORD_BYTES, log }: ProviderContext,
): Promise<Provider> {
  const statements = createStatements(names, audit !== undefined);
  const send = ({ statement, values }: Query, call: Call) => db.query(statement, values, call);
  const run: Run = (text, values, call) => send(statements.query(text, values), call);
  const runWith: Ways['runWith'] = (settings, text, values, call) =>
    db.queryWith(settings, statements.query(text, values).statement, values, call);
  const threshold = iterativeScan ? options.large_user_rows : Number.POSITIVE_INFINITY;
  const largeUsers = await openLargeUsers({ db, names, statements, threshold, log });
  const housekeeping = startHousekeeping({ run, names, retention_days: audit?.retention_days ?? null, log });

  const auditLog = audit && createAuditLog(names, run);
  /** Of a verb that succeeded without changing anything. */
  const recordUnchanged = async (action: 'add' | 'update', { id, user_id, scope }: Memory, call: Call) => {
    const about = { app: call.caller.app, action, user_id, memory_id: id, scope, request_id: call.requestId };
    await auditLog?.record([{ timestamp: new Date().toISOString(), ...about, outcome: 'ok' }], call);
  };

  const model = embedder?.model ?? null;
  const ingestion = embedder && openIngestion({ names, run, runWith, embedder, log });
  const later = ingestion !== undefined && options.ingestion === 'async';
  const embed = async (text: string, purpose: 'document' | 'query', call: Call) =>
    (await embedder?.embed([text], purpose, call))?.[0];
  const find = async ({ user_id, content }: Pick<Memory, 'user_id' | 'content'>, call: Call) => ({
    vector: later ? undefined : await embed(content, 'document', call),
    keywords: toKeys(user_id, await analyseLater(content, call)),
  });
  const fresh = (input: NewMemory) => newRecord(input, model, { ...newIdentity(), status: later ? 'queued' : 'done' });
  const insert = async (wanted: Insert, call: Call) => {
    const inserted = (await send(statements.insert(wanted, call), call)).length > 0;
    if (inserted && later) ingestion?.kick();
    return inserted;
  };
  const firstAnswer = createFirstAnswer(names, run);
  const get = async (ref: Ref, call: Call): Promise<Memory | undefined> => {
    const [row] = await send(statements.select(ref), call);
    return row && toMemory(row, model);
  };
  const ranked = createFind({ db, names, statements, ranking, largeUsers });
  const search = async (query: SearchQuery, call: Call) => {
    const rows = await ranked(query, await embed(query.text, 'query', call), call);
    return rows.map((row) => ({ memory: toMemory(row, model), score: row.score as number }));
  };

  return {
    name: PROVIDER,
    capabilities: capabilitiesOf(ranking),
    async add(input, call) {
      const found = await find(input, call);
      const memory = fresh(input);
      await insert({ memory, ...found }, call);
      return memory;
    },
    async addOnce(input, once, call) {
      let found: Awaited<ReturnType<typeof find>> | undefined;
      for (;;) {
        const first = await firstAnswer(input, once, call);
        if (first) {
          await recordUnchanged('add', first, call);
          return first;
        }
        // Only now: a repetition costs no embedding.
        found ??= await find(input, call);
        // Whoever gave up meanwhile may come again with the same key.
        call.signal.throwIfAborted();
        const memory = fresh(input);
        if (await insert({ memory, ...found, once }, call)) return memory;
        // Somebody else was faster: what they were answered is the answer.
      }
    },
    get,
    async update(ref, wanted, call) {
      const current = await get(ref, call);
      const patch = current && effectivePatch(current, wanted);
      if (!patch) {
        if (current) await recordUnchanged('update', current, call);
        return current;
      }
      requireFits(current, patch, max_bytes);
      const { content } = patch;
      const found = content === undefined ? undefined : await find({ ...current, content }, call);
      const vector = found && later ? 'later' : found?.vector;
      const changes: Update = { patch, vector, keywords: found?.keywords, max_bytes };
      const [row] = await send(statements.update(ref, changes, call), call);
      if (row && vector === 'later') ingestion?.kick();
      if (!row && (await get(ref, call))) throw recordTooLarge(max_bytes);
      return row && toMemory(row, model);
    },
    delete: async (ref, call) => (await send(statements.remove(ref, call), call)).length > 0,
    async list(query, call) {
      let rows = await send(statements.list(query), call);
      if (rows.some(({ content }) => content === null)) rows = await send(statements.list(query, 'bytes'), call);
      return rows.map((row) => toMemory(row, model));
    },
    search,
    ...(auditLog && { audit: auditLog }),
    // Closed with the provider.
    keys: { ...keys, close: async () => {} },
    ping: async (call) => void (await run('select 1', [], call)),
    stats: db.stats,
    ...(ingestion && { backlog: ingestion.backlog }),
    async close() {
      await ingestion?.close();
      await housekeeping.close();
      await largeUsers.close();
      await close();
    },
  };
}

const capabilitiesOf = ({ mode }: ProviderContext['ranking']): ProviderCapabilities => ({
  vector_search: mode !== 'keyword',
  keyword_search: mode !== 'vector',
  temporal: true,
  scopes: 'native',
  tags: true,
  max_content_length: null,
  supports_supersession: true,
  max_search_results: null,
  max_list_scan: null,
  consistency_tokens: false,
});
