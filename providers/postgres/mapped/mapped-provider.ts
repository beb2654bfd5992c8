import { type Call, MAX_RECORD_BYTES, type Memory, type Provider, type ProviderContext, type Ref } from '#provider';
import { type Database, openConnections, statement } from '../client/connections.ts';
import { withStartupClient } from '../client/startup-client.ts';
import { PROVIDER } from '../postgres-errors.ts';
import type { Options } from '../postgres-options.ts';
import { vectorIn } from '../sql/values.ts';
import { examine } from './examine.ts';
import type { Layout } from './layout.ts';
import { describeLayout } from './library-layouts.ts';
import { createMappedStatements, type RunMapped, requireTags } from './mapped-statements.ts';
import { createTableWrites } from './mapped-writes.ts';
import type { Mapping } from './mapping.ts';
import { PRESETS } from './presets.ts';
import { createReading } from './row-reading.ts';
import { createVectorSearch } from './vector-search.ts';

/**
 * Serves a mapped table, read-only unless `writable`. Creates nothing in the database. Throws a plain `Error` for the
 * operator if the settings do not fit the table.
 */
export async function openMappedTable(
  options: Options & { readonly mapping: Mapping },
  {
    embedder,
    max_record_bytes = MAX_RECORD_BYTES,
    log,
  }: Pick<ProviderContext, 'embedder' | 'max_record_bytes' | 'log'>,
): Promise<Provider> {
  if (options.url === undefined) throw new Error('OMP_MAPPING_PRESET needs DATABASE_URL: the server with the table');
  if (!embedder) throw new Error('a mapped table is searched by vectors; set OMP_SEARCH_MODE to vector');
  const config = {
    connectionString: options.url,
    connectionTimeoutMillis: options.connect_timeout_ms,
    application_name: 'omp-gateway',
  };
  const { layout, mistakes, warnings, noMemories, table, recognised } = await withStartupClient(config, (client) =>
    examine(client, options.mapping, embedder),
  );
  if (!layout)
    throw new Error(
      `the table cannot be served (see docs/integrations/${options.mapping.preset}.md):\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`,
    );
  if (table && recognised) log.info({}, describeLayout(table, recognised));
  for (const warning of noMemories === undefined ? warnings : [noMemories, ...warnings]) log.warn({}, warning);
  const { connections, prepared_statements, max_waiting, query_timeout_ms } = options;
  const { acquire_timeout_ms = options.connect_timeout_ms } = options;
  const limits = { acquire_timeout_ms, max_waiting, query_timeout_ms };
  const db = openConnections({ config, connections, prepared_statements, ...limits });
  const readOnly = `the table is read-only: ${PRESETS[options.mapping.preset].read_only ?? 'OMP_MAPPING_WRITABLE=true lets the gateway change it'}`;
  return verbs({
    db,
    layout,
    model: embedder.model,
    readOnly,
    large_user_rows: options.large_user_rows,
    max_bytes: max_record_bytes,
  });
}

interface VerbParts {
  readonly db: Database;
  readonly layout: Layout;
  readonly model: string;
  readonly large_user_rows: number;
  readonly max_bytes: number;
  /** Why the table is read-only, if it is. */
  readonly readOnly: string;
}

/**
 * Session settings of every heavy statement. The planner knows no user's rows, least of all those of an owner in JSON, and expects a cost
 * at which JIT compiles the statement: that takes 1 to 2 s and gains nothing. In its transaction, since poolers reject startup options and
 * hand a session on with what `set` has changed.
 */
const HEAVY_SETTINGS = 'set local jit = off; ';

function verbs(parts: VerbParts): Provider {
  const { db, layout, model, readOnly, max_bytes } = parts;
  const { fields, hasTags } = layout;
  const reading = createReading(layout, model);
  const statements = createMappedStatements(layout, reading);
  const run: RunMapped = ({ statement, values }, call, settings = '') =>
    db.query(statement, values, call, statement.weight === 'heavy' ? `${HEAVY_SETTINGS}${settings}` : undefined);
  const get = async (ref: Ref, call: Call): Promise<Memory | undefined> => {
    const query = statements.select(ref);
    const [row] = query ? await run(query, call) : [];
    return row && reading.toMemory(row);
  };
  const ping = statement('small', `select from ${layout.from} limit 0`);
  return {
    name: PROVIDER,
    capabilities: {
      vector_search: true,
      keyword_search: false,
      temporal: layout.temporal,
      temporal_search: layout.temporal,
      scopes: fields.scope ? 'native' : 'none',
      tags: hasTags !== undefined,
      max_content_length: null,
      supports_supersession: fields.supersedes !== undefined,
      max_search_results: null,
      max_list_scan: null,
      consistency_tokens: false,
      etags: layout.writable && layout.versioned,
      mapped: true,
      complete_export: layout.uniqueId,
      explain: true,
    },
    get,
    async list(query, call) {
      requireTags(layout, query.tags);
      const rows = await run(statements.list(query), call);
      return rows.map(reading.toMemory).filter((memory) => memory !== undefined);
    },
    async export(query, call) {
      const rows = await run(statements.export(query), call);
      const items = rows.flatMap((row, at) => {
        // The key of a table that is not written need not be unique.
        const memory = row.id === rows[at - 1]?.id ? undefined : reading.toMemory(row);
        return memory ? [{ memory, vector: row.vector == null ? null : vectorIn(row.vector) }] : [];
      });
      return { items, next: rows.at(-1)?.id as string | undefined };
    },
    search: createVectorSearch({ ...parts, run, reading, statements }),
    ...(!layout.writable && { read_only: readOnly }),
    ...(layout.writable && createTableWrites({ layout, reading, statements, get, max_bytes, run })),
    ping: async (call) => void (await db.query(ping, [], call)),
    stats: db.stats,
    close: () => db.close(),
  };
}
