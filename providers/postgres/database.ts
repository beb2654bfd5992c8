import type { KeyContext } from '#contract';
import { type Boot, type BootOptions, boot } from './boot.ts';
import { type Database, openConnections } from './connections.ts';
import { startEngine } from './embedded/engine.ts';
import type { Options } from './options.ts';

/** Ready for use; `close` also ends the engine. */
export interface OpenDatabase extends Boot {
  readonly db: Database;
  close(): Promise<void>;
}

/** Connects to the server, or starts the engine in the data folder, and brings the schema up to date. */
export async function openDatabase(
  options: Options,
  { data_dir, log }: KeyContext,
  check: BootOptions['check'],
): Promise<OpenDatabase> {
  const engine = options.url === undefined ? await startEngine(data_dir, log) : undefined;
  const config = {
    ...(engine?.config ?? { connectionString: options.url }),
    connectionTimeoutMillis: options.connect_timeout_ms,
    application_name: 'omp-gateway',
  };
  try {
    const booted = await boot({ config, schema: options.schema, check, log });
    const db = openConnections({
      config,
      connections: engine ? 1 : options.connections,
      prepared_statements: options.prepared_statements,
    });
    const close = async () => {
      await db.close();
      await engine?.close();
    };
    return { ...booted, db, close };
  } catch (error) {
    await engine?.close();
    throw error;
  }
}
