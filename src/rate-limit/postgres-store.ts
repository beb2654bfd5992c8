import { RateLimiterPostgres } from 'rate-limiter-flexible';
import { type CounterStore, countersOf, counting } from './counters.ts';
import { WAIT_MS } from './outage.ts';

export interface PostgresStoreOptions {
  readonly url: string;
  /** Where the provider's migrations made the table. */
  readonly schema: string;
}

/** Measured: a second one is worth half as much again, more are worth nothing. */
const CONNECTIONS = 2;

/** Counters in the table `rate_limits`. The library removes them an hour after they are of no use any more. */
export async function postgresStore({ url, schema }: PostgresStoreOptions, wait_ms = WAIT_MS): Promise<CounterStore> {
  const { default: pg } = await import('pg');
  const pool = new pg.Pool({
    connectionString: url,
    max: CONNECTIONS,
    connectionTimeoutMillis: wait_ms,
    // Takes a connection that hangs down with it.
    query_timeout: wait_ms,
    keepAlive: true,
    application_name: 'omp-gateway',
  });
  // A connection lost while idle would end the process otherwise; the next statement gets a new one.
  pool.on('error', () => {});
  // Without the library's names for statements: a transaction pooler would mix those of several gateways up.
  const client = { query: ({ text, values }: { text: string; values: unknown[] }) => pool.query(text, values) };
  return {
    counters: (purpose) =>
      countersOf(
        new RateLimiterPostgres({
          ...counting(purpose),
          storeClient: client,
          storeType: 'client',
          tableName: 'rate_limits',
          // The library puts quotes around it but does not double those inside.
          schemaName: schema.replaceAll('"', '""'),
          tableCreated: true,
        }),
      ),
    connect: () => pool.query('select 1'),
    close: () => pool.end(),
  };
}
