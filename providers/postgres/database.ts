import type pg from 'pg';
import type { KeyContext, KeyStore } from '#contract';
import { type Boot, type BootOptions, boot } from './boot.ts';
import { type Database, openConnections } from './client/connections.ts';
import { type Engine, runningEngine, startEngine } from './embedded/engine.ts';
import { createKeyStore, remembered } from './keys.ts';
import type { Options } from './options.ts';

/** Ready for use; `close` also ends the engine. */
export interface OpenDatabase extends Boot {
  readonly db: Database;
  readonly keys: Omit<KeyStore, 'close'>;
  close(): Promise<void>;
}

/** A server, or the engine of the data folder. */
export interface Server {
  readonly config: pg.ClientConfig;
  readonly embedded: boolean;
  /** Present when this process owns the engine. */
  readonly engine?: Engine | undefined;
  close(): Promise<void>;
}

/** `join`: use the engine of a gateway that runs already. */
type OpenContext = KeyContext & { readonly join?: boolean };

/** Starts the engine in the data folder unless there is a server, or another process owns one; connects to none. */
export async function startServer(
  { url, connect_timeout_ms }: Options,
  { data_dir, log, join }: OpenContext,
): Promise<Server> {
  const embedded = url === undefined;
  const reached = embedded && join ? runningEngine(data_dir) : undefined;
  const engine = embedded && !reached ? await startEngine(data_dir, log) : undefined;
  return {
    config: {
      ...(reached ?? engine?.config ?? { connectionString: url }),
      connectionTimeoutMillis: connect_timeout_ms,
      application_name: 'omp-gateway',
    },
    embedded,
    engine,
    close: async () => engine?.close(),
  };
}

/** Connects to the server, or starts the engine in the data folder, and brings the schema up to date. */
export async function openDatabase(
  options: Options,
  context: OpenContext,
  check: BootOptions['check'],
): Promise<OpenDatabase> {
  const { config, embedded, engine, close: stop } = await startServer(options, context);
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
      engine,
    });
    const keys = createKeyStore({ db, names: booted.names });
    const close = async () => {
      // Or connections would wait for an engine that does not start.
      engine?.letEnd();
      await db.close();
      await stop();
    };
    return { ...booted, db, keys: embedded ? remembered(keys, context) : keys, close };
  } catch (error) {
    await stop();
    throw error;
  }
}
