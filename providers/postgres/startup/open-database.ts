import type pg from 'pg';
import type { KeyContext, KeyStore, Log, WebhookStore } from '#provider';
import { type Database, openConnections } from '../client/connections.ts';
import { withStartupClient } from '../client/startup-client.ts';
import { type Engine, runningEngine, startEngine } from '../embedded/engine.ts';
import { ITERATIVE_PGVECTOR, isOlder, LEAST_PGVECTOR, unsafeVersion } from '../pgvector.ts';
import { codeOf } from '../postgres-errors.ts';
import type { Options } from '../postgres-options.ts';
import { distribute, isDistributed, stampChanges } from '../scaling/distribute.ts';
import { unplaced } from '../scaling/placement.ts';
import { createKeyStore, withKeyMarker } from '../tables/api-keys.ts';
import { type Names, toNames } from '../tables/names.ts';
import { createWebhookStore } from '../tables/webhooks.ts';
import { namesInUse } from './compatibility-check.ts';
import { migrate } from './migrations.ts';

/** A server, or the engine of the data folder. */
export interface Server {
  readonly config: pg.ClientConfig;
  readonly embedded: boolean;
  /** Set if this process owns the engine. */
  readonly engine?: Engine | undefined;
  close(): Promise<void>;
}

/** `join`: use the engine of a running gateway. */
type OpenContext = KeyContext & { readonly join?: boolean };

/** Starts the engine in the data folder unless a server is configured. Does not connect. */
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

/** Ready for use; `close` also ends the engine. */
export interface OpenDatabase extends Prepared {
  readonly db: Database;
  /** Of `read_url`. Not known to answer. */
  readonly replica?: Database | undefined;
  readonly keys: Omit<KeyStore, 'close'>;
  readonly webhooks: WebhookStore;
  /** Whether `db` is the engine of the data folder. */
  readonly embedded: boolean;
  close(): Promise<void>;
}

/** Connects to the server, or starts the engine in the data folder, and migrates the schema. */
export async function openDatabase(
  options: Options,
  context: OpenContext,
  check: PrepareOptions['check'],
): Promise<OpenDatabase> {
  const { config, embedded, engine, close: stop } = await startServer(options, context);
  try {
    const prepared = await prepareDatabase({
      config,
      schema: options.schema,
      distributed: options.distributed,
      check,
      log: context.log,
    });
    const limits = {
      prepared_statements: options.prepared_statements,
      acquire_timeout_ms: options.acquire_timeout_ms ?? options.connect_timeout_ms,
      max_waiting: options.max_waiting,
      query_timeout_ms: options.query_timeout_ms,
    };
    const connections = embedded ? 1 : options.connections;
    const db = openConnections({ ...limits, config, connections, cancellable: !embedded, engine });
    const { read_url } = options;
    const replica = read_url
      ? openConnections({ ...limits, config: { ...config, connectionString: read_url }, connections })
      : undefined;
    const keys = createKeyStore({ db, names: prepared.names });
    const webhooks = createWebhookStore({ db, names: prepared.names });
    const close = async () => {
      // Otherwise connections would wait for an engine that does not start.
      engine?.disableRestart();
      await db.close();
      await replica?.close();
      await stop();
    };
    const shared = { keys: embedded ? withKeyMarker(keys, context) : keys, webhooks, close };
    return { ...prepared, db, replica, embedded, ...shared };
  } catch (error) {
    await stop();
    throw error;
  }
}

export interface Prepared {
  readonly names: Names;
  /** Whether this pgvector can search large users by index without returning too few rows. */
  readonly iterativeScan: boolean;
}

export interface PrepareOptions {
  readonly config: pg.ClientConfig;
  readonly schema: string;
  /** `citus`: distributes the tables if they are not yet. Default: off. */
  readonly distributed?: Options['distributed'];
  /** Runs in the same transaction after the migrations. */
  readonly check: (client: pg.Client, names: Names) => Promise<void>;
  readonly log: Log;
  /** Rolls everything back in the end. */
  readonly dryRun?: boolean;
}

/** Prepares the database before the first request: extension, migrations, check. All in one transaction. */
export const prepareDatabase = (options: PrepareOptions): Promise<Prepared> =>
  withStartupClient(options.config, async (client) => {
    try {
      return await prepare(client, options);
    } catch (error) {
      if (codeOf(error) === READ_ONLY) throw new Error(NOT_WRITABLE, { cause: error });
      if (codeOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
      await client.query('rollback');
      throw new Error(await lackingPrivilege(client, options.schema), { cause: error });
    }
  });

const INSUFFICIENT_PRIVILEGE = '42501';
const READ_ONLY = '25006';
const NOT_WRITABLE =
  'the database is read-only: it is a standby, or default_transaction_read_only is on; set DATABASE_URL to the primary, or turn that off';

/** What doctor says about the privileges, with the SQL that helps. */
async function lackingPrivilege(client: pg.Client, schema: string): Promise<string> {
  const [{ readOnly }, { checkPrivileges }] = await Promise.all([
    import('../commands/doctor-common.ts'),
    import('../commands/doctor-tables.ts'),
  ]);
  const { findings } = await readOnly(client, (read) => checkPrivileges(read, schema));
  const lacking = findings.filter(({ level, remedies }) => level !== 'ok' && remedies);
  const each = lacking.map(
    ({ message, remedies = [] }) => `${message}; run: ${remedies.map(({ sql }) => sql).join(' or ')}`,
  );
  return ['the role of the gateway lacks a privilege that the start needs', ...each].join('\n  - ');
}

async function prepare(
  client: pg.Client,
  { schema, distributed, check, log, dryRun = false }: PrepareOptions,
): Promise<Prepared> {
  await client.query('begin');
  const extension = await requireVector(client);
  const initial = toNames(schema, extension.schema);
  const query = async (text: string, values: readonly unknown[] = []) => (await client.query(text, [...values])).rows;
  const before = await isDistributed(query, initial);
  await migrate(client, schema, { ...initial, placement: unplaced(initial.memories, before) });
  const found = await namesInUse(client, initial, before);
  await check(client, found);
  const toDo = distributed === 'citus' && !found.placement.distributed;
  // After the check, which may set how the vectors are stored: of distributed tables Citus does not change that.
  if (toDo) await distribute(client, found, log);
  const names = await namesInUse(client, initial, toDo || before);
  if (names.placement.distributed) await stampChanges(client, names);
  await client.query(dryRun ? 'rollback' : 'commit');
  const { version } = extension;
  const unsafe = unsafeVersion(version);
  if (unsafe !== undefined) log.warn({}, `${unsafe}; upgrade it`);
  return { names, iterativeScan: !isOlder(version, ITERATIVE_PGVECTOR) };
}

async function requireVector(client: pg.Client): Promise<{ schema: string; version: string }> {
  const find = () =>
    client.query<{ schema: string; version: string }>(
      `select n.nspname as schema, e.extversion as version from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'`,
    );
  let { rows } = await find();
  if (rows.length === 0) {
    try {
      // Replicas may start together on a new database.
      await client.query(`select pg_advisory_xact_lock(hashtextextended('omp-gateway extension', 0))`);
      await client.query('create extension if not exists vector');
    } catch (cause) {
      throw new Error(
        'the pgvector extension is missing and cannot be created; run "create extension vector" as a superuser',
        { cause },
      );
    }
    ({ rows } = await find());
  }
  const found = rows[0] as { schema: string; version: string };
  if (isOlder(found.version, LEAST_PGVECTOR))
    throw new Error(`pgvector ${found.version} is too old; ${LEAST_PGVECTOR} or newer is needed`);
  return found;
}
