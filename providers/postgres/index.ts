import {
  type Call,
  defineProvider,
  effectivePatch,
  type Memory,
  newRecord,
  type Provider,
  type ProviderContext,
  type Ref,
  type SearchQuery,
} from '#contract';
import { boot } from './boot.ts';
import { type Database, openConnections } from './connections.ts';
import { startEngine } from './embedded/engine.ts';
import { PROVIDER } from './errors.ts';
import { openLargeUsers } from './large-users.ts';
import { Options } from './options.ts';
import { toMemory } from './rows.ts';
import { INDEX_SETTINGS, searchStatement, VECTOR_CANDIDATES } from './search.ts';
import { createStatements, type Query } from './statements.ts';

/** Postgres with pgvector: a server, or the embedded one in the data folder. One code path over `pg`, two engines. */
export default defineProvider({
  name: PROVIDER,
  options: Options,
  async open(options, context): Promise<Provider> {
    const engine = options.url === undefined ? await startEngine(context.data_dir, context.log) : undefined;
    try {
      return await openOn({ ...options, ...(engine && { connections: 1 }) }, engine?.config, context, async () =>
        engine?.close(),
      );
    } catch (error) {
      await engine?.close();
      throw error;
    }
  },
});

async function openOn(
  options: Options,
  embedded: object | undefined,
  context: ProviderContext,
  closeEngine: () => Promise<void>,
): Promise<Provider> {
  const { embedder, ranking, log } = context;
  const config = {
    ...(embedded ?? { connectionString: options.url }),
    connectionTimeoutMillis: options.connect_timeout_ms,
    application_name: 'omp-gateway',
  };
  const { names, iterativeScan } = await boot(config, options.schema, context);
  const db: Database = openConnections({
    config,
    connections: options.connections,
    prepared_statements: options.prepared_statements,
  });
  const statements = createStatements(names);
  const largeUsers = await openLargeUsers({
    db,
    names,
    statements,
    threshold: iterativeScan ? options.large_user_rows : Number.POSITIVE_INFINITY,
    log,
  }).catch(async (error: unknown) => {
    await db.close();
    throw error;
  });

  const model = embedder?.model ?? null;
  const run = ({ statement, values }: Query, call: Call) => db.query(statement, values, call);
  const embed = async (text: string, purpose: 'document' | 'query', call: Call) =>
    (await embedder?.embed([text], purpose, call))?.[0];
  const get = async (ref: Ref, call: Call): Promise<Memory | undefined> => {
    const [row] = await run(statements.select(ref), call);
    return row && toMemory(row, model);
  };
  const search = async (query: SearchQuery, call: Call) => {
    const vector = await embed(query.text, 'query', call);
    const large = largeUsers.has(query.user_id) && query.limit <= VECTOR_CANDIDATES;
    const { text, values } = searchStatement(names, ranking, { query, vector, how: large ? 'indexed' : 'exact' });
    const { statement } = statements.query(text, values);
    const rows = large
      ? await db.queryWith(INDEX_SETTINGS, statement, values, call)
      : await db.query(statement, values, call);
    largeUsers.observe(query.user_id, Number(rows[0]?.total ?? 0));
    return rows.map((row) => ({ memory: toMemory(row, model), score: row.score as number }));
  };

  return {
    name: PROVIDER,
    capabilities: {
      vector_search: ranking.mode !== 'keyword',
      keyword_search: ranking.mode !== 'vector',
      temporal: true,
      scopes: 'native',
      max_content_length: null,
      supports_supersession: true,
      max_search_results: null,
    },
    async add(input, call) {
      const vector = await embed(input.content, 'document', call);
      const memory = newRecord(input, model);
      await run(statements.insert(memory, vector), call);
      return memory;
    },
    get,
    async update(ref, wanted, call) {
      const current = await get(ref, call);
      const patch = current && effectivePatch(current, wanted);
      if (!patch) return current;
      const vector = patch.content === undefined ? undefined : await embed(patch.content, 'document', call);
      const [row] = await run(statements.update(ref, current.user_id, patch, vector), call);
      return row && toMemory(row, model);
    },
    delete: async (ref, call) => (await run(statements.remove(ref), call)).length > 0,
    list: async (query, call) => (await run(statements.list(query), call)).map((row) => toMemory(row, model)),
    search,
    ping: async (call) => void (await run(statements.query('select 1', []), call)),
    async close() {
      await largeUsers.close();
      await db.close();
      await closeEngine();
    },
  };
}
