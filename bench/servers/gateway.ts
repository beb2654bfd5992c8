/**
 * The gateway on Postgres, composed as in `src/serve.ts` but with an embedder that costs nothing. Listens twice: as
 * configured, and at log level `warn`. Fills the table first.
 */
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { Call, type NewMemory, type ProviderContext } from '#contract';
import type { WritableStore } from '../../src/core/store.ts';
import { type Body, initialMemories } from '../workload.ts';
import { built } from './built.ts';
import { freeEmbedder } from './free-embedder.ts';

export interface GatewayArgument {
  /** The server to use; undefined: the embedded Postgres. */
  readonly url: string | undefined;
  readonly schema: string;
  readonly folder: string;
  readonly audit: 'all' | 'off';
}

export interface GatewayReady {
  readonly ports: { readonly info: number; readonly warn: number };
  readonly ids: readonly string[];
  /** How the comparisons reach the same Postgres. */
  readonly database: pg.ClientConfig;
  readonly connections: number;
  readonly version: string;
}

await built('src/v8');
const { openAuthenticator } = await built<typeof import('../../src/auth/authenticator.ts')>('src/auth/authenticator');
const { auditOptions } = await built<typeof import('../../src/config/config-options.ts')>('src/config/config-options');
const { loadConfig } = await built<typeof import('../../src/config/load.ts')>('src/config/load');
const { openAuditQueue } = await built<typeof import('../../src/core/audit-queue.ts')>('src/core/audit-queue');
const { compose } = await built<typeof import('../../src/core/compose.ts')>('src/core/compose');
const { createGate } = await built<typeof import('../../src/verbs/gate.ts')>('src/verbs/gate');
const { createApp } = await built<typeof import('../../src/http/app.ts')>('src/http/app');
const { loopbackHosts } = await built<typeof import('../../src/http/admission.ts')>('src/http/admission');
const { listen } = await built<typeof import('../../src/http/listen.ts')>('src/http/listen');
const { createLog } = await built<typeof import('../../src/log.ts')>('src/log');
const { openProvider } = await built<typeof import('../../src/registry.ts')>('src/registry');

const { url, schema, folder, audit } = JSON.parse(process.argv[2] as string) as GatewayArgument;
// The embedded engine creates its socket in this process's temporary folder.
process.env.TMPDIR = folder;
const { config } = loadConfig({
  env: {
    OMP_AUDIT: audit,
    OMP_DATA_DIR: join(folder, 'data'),
    OMP_POSTGRES_SCHEMA: schema,
    OMP_PORT: '0',
    ...(url !== undefined && { DATABASE_URL: url }),
  },
});
const log = createLog('info');
const context: ProviderContext = {
  embedder: freeEmbedder,
  ranking: config.search,
  audit: auditOptions(config),
  data_dir: config.data_dir,
  log,
};
const backend = await openProvider('postgres', config.postgres, context);
const store = compose(backend, { embedder: freeEmbedder, log }) as WritableStore;
const ids = await fill(store, initialMemories());
const database = url === undefined ? embeddedAddress() : { connectionString: url };
const version = await settle(database);
const auditQueue = openAuditQueue({ audit: store.audit, record: 'all', log });
const authenticator = await openAuthenticator({ keys: [], store: store.keys, jwt: undefined, required: false, log });
const max_record_bytes = 2 * config.max_request_bytes;
const gate = createGate({ store, auditQueue, log, max_record_bytes, rate_limit_per_minute: null });
const serve = (level: string) => {
  const own = createLog(level);
  const app = createApp({ ...config, gate, authenticator, allowed_hosts: loopbackHosts, log: own });
  return listen(app, { ...config, log: own });
};
const listeners = [await serve('info'), await serve('warn')] as const;

process.once('disconnect', async () => {
  for (const listener of listeners) await listener.close({ graceMs: 1_000 });
  await auditQueue.close();
  await authenticator.close();
  await store.close();
  process.exit();
});
process.send?.({
  ports: { info: listeners[0].port, warn: listeners[1].port },
  ids,
  database,
  connections: url === undefined ? 1 : config.postgres.connections,
  version,
} satisfies GatewayReady);

function embeddedAddress(): pg.ClientConfig {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const socket = files.find((name) => name.endsWith('.s.PGSQL.5432'));
  if (socket === undefined) throw new Error(`the embedded Postgres has no socket in ${folder}`);
  return { host: dirname(join(folder, socket)), port: 5432, user: 'postgres', database: 'postgres' };
}

/** Adds through the provider, many at a time. Returns the ids. */
async function fill(into: WritableStore, bodies: readonly Body[]): Promise<string[]> {
  const defaults = {
    scope: null,
    tags: [],
    source: null,
    confidence: null,
    valid_from: null,
    valid_to: null,
    supersedes: [],
    extensions: {},
  } satisfies Partial<NewMemory>;
  const made: string[] = [];
  for (let start = 0; start < bodies.length; start += 64) {
    const batch = bodies
      .slice(start, start + 64)
      .map((body) => into.add({ input: { ...defaults, ...body } }, new Call('bench')));
    for (const { id } of await Promise.all(batch)) made.push(id);
  }
  return made;
}

/** Leaves the table as autovacuum would, and returns the version of Postgres. */
async function settle(config: pg.ClientConfig): Promise<string> {
  const client = new pg.Client(config);
  await client.connect();
  try {
    await client.query(`vacuum analyze ${pg.escapeIdentifier(schema)}.memories`);
    const { rows } = await client.query<{ version: string }>(
      `select 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1) || ', pgvector ' || extversion as version
       from pg_extension where extname = 'vector'`,
    );
    return (rows[0] as { version: string }).version;
  } finally {
    await client.end();
  }
}
