import type pg from 'pg';
import type { KeyContext, ProviderContext } from '#contract';
import { type Boot, type BootOptions, boot } from './boot.ts';
import { type Database, openConnections } from './connections.ts';
import { engineConfig, startEngine } from './embedded/engine.ts';
import type { Options } from './options.ts';

/** Ready for use; `close` also ends the engine. */
export interface OpenDatabase extends Boot {
  readonly db: Database;
  close(): Promise<void>;
}

/** A server, or the engine of the data folder. */
export interface Server {
  readonly config: pg.ClientConfig;
  readonly embedded: boolean;
  close(): Promise<void>;
}

/** `shared`: the folder of the socket of an engine that another process owns. */
type OpenContext = KeyContext & Pick<ProviderContext, 'shared'>;

/** Starts the engine in the data folder unless there is a server, or another process owns one; connects to none. */
export async function startServer(
  { url, connect_timeout_ms }: Options,
  { data_dir, log, shared }: OpenContext,
): Promise<Server> {
  const reached = typeof shared === 'string' ? engineConfig(shared) : undefined;
  const engine = url === undefined && !reached ? await startEngine(data_dir, log) : undefined;
  return {
    config: {
      ...(reached ?? engine?.config ?? { connectionString: url }),
      connectionTimeoutMillis: connect_timeout_ms,
      application_name: 'omp-gateway',
    },
    embedded: url === undefined,
    close: async () => engine?.close(),
  };
}

/** Connects to the server, or starts the engine in the data folder, and brings the schema up to date. */
export async function openDatabase(
  options: Options,
  context: OpenContext,
  check: BootOptions['check'],
): Promise<OpenDatabase> {
  const { config, embedded, close: stop } = await startServer(options, context);
  try {
    const booted = await boot({ config, schema: options.schema, check, log: context.log });
    const db = openConnections({
      config,
      connections: embedded ? 1 : options.connections,
      prepared_statements: options.prepared_statements,
      acquire_timeout_ms: options.acquire_timeout_ms,
      max_waiting: options.max_waiting,
      query_timeout_ms: options.query_timeout_ms,
      cancellable: !embedded,
    });
    const close = async () => {
      await db.close();
      await stop();
    };
    return { ...booted, db, close };
  } catch (error) {
    await stop();
    throw error;
  }
}
