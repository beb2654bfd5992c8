import { readdirSync, rmSync, statSync } from 'node:fs';
import { cp, mkdtemp } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type pg from 'pg';
import { type Finding, hiddenBy, type MaintenanceContext } from '#provider';

import { connectClient, encodingProblem } from '../client/startup-client.ts';
import { runningEngine, startEngine } from '../embedded/engine.ts';
import { databaseIn, examineFolder, type FolderLock, lockIfAny, onFolder } from '../embedded/folder.ts';
import { ITERATIVE_PGVECTOR, isOlder, LEAST_PGVECTOR, SAFE_PGVECTOR, unsafeVersion } from '../pgvector.ts';
import type { Options } from '../postgres-options.ts';
import { checkReplica } from '../scaling/doctor.ts';
import { checkFailed, ok, problem, type Read, readOnly, warning } from './doctor-common.ts';
import { checkMappedTable, findLibraryTables } from './doctor-mapped.ts';
import { checkTables } from './doctor-tables.ts';

/**
 * Checks everything that serving from this database needs, and changes nothing. Without an embedder in the context (keyword
 * mode, or the embedding service does not work) it checks what it can.
 */
export async function diagnose(options: Options, context: MaintenanceContext): Promise<Finding[]> {
  const findings = await checkAll(options, context);
  const { mounts = [] } = context;
  const isCounted = findings.some(({ area, level }) => area === 'mounts' || level === 'problem');
  // There are no tables yet, or a mapped table has no scopes.
  return isCounted ? findings : [...findings, ...mounts.map((mount) => hiddenBy(mount, 0))];
}

async function checkAll(options: Options, context: MaintenanceContext): Promise<Finding[]> {
  if (options.url !== undefined) return diagnoseServer({ connectionString: options.url }, options, context);
  const { findings, engine } = await openEmbedded(context.data_dir);
  if (!engine) return findings;
  try {
    return [...findings, ...(await diagnoseServer(engine.config, options, context))];
  } finally {
    await engine.close();
  }
}

async function diagnoseServer(
  config: pg.ClientConfig,
  options: Options,
  context: MaintenanceContext,
): Promise<Finding[]> {
  let client: pg.Client;
  try {
    const limits = { connectionTimeoutMillis: options.connect_timeout_ms, application_name: 'omp-gateway doctor' };
    client = await connectClient({ ...config, ...limits });
  } catch (error) {
    return [problem('connection', (error as Error).message)];
  }
  try {
    const findings = await checkDatabase(client, options, context);
    return options.read_url === undefined
      ? findings
      : [...findings, await checkReplica(options.read_url, options.connect_timeout_ms)];
  } finally {
    await client.end();
  }
}

async function checkDatabase(client: pg.Client, options: Options, { embedder, ranking, mounts }: MaintenanceContext) {
  const { mapping } = options;
  const findings: Finding[] = [];
  /** A check that fails does not stop the others. */
  const check = async <Result>(area: Finding['area'], what: string, work: () => Promise<Result>) => {
    try {
      return await work();
    } catch (error) {
      findings.push(checkFailed(area, what, error));
      return undefined;
    }
  };
  const connection = await check('connection', 'the connection', () =>
    checkConnection(client, options, mapping === undefined || mapping.writable),
  );
  findings.push(...(connection ?? []));
  const found = await check('extension', 'the extension', () =>
    readOnly(client, (read) => checkExtension(read, !mapping)),
  );
  if (found) findings.push(found.finding);
  const rest = mapping
    ? await check('mapping', 'the table', () => checkMappedTable(client, { ...options, mapping, mounts }, embedder))
    : await check('privileges', 'the tables', () =>
        readOnly(client, (read) =>
          checkTables(
            read,
            { ...options, mounts },
            found?.extension,
            ranking.mode === 'keyword' ? undefined : embedder,
          ),
        ),
      );
  const others =
    mapping || options.url === undefined ? [] : await check('mapping', 'other tables', () => findLibraryTables(client));
  return [...findings, ...(rest ?? []), ...(others ?? [])];
}

/** Larger embedded databases are not copied. */
const MAX_COPY_BYTES = 4 * 1024 ** 3;

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

interface OpenedEngine {
  readonly findings: Finding[];
  /** How to reach the database. Without it the findings say why. */
  readonly engine?: { readonly config: pg.ClientConfig; close(): Promise<void> };
}

/**
 * Opens the embedded Postgres of the running gateway, or else one on a copy of its files, because no engine runs without
 * writing to its folder.
 */
async function openEmbedded(dataDir: string): Promise<OpenedEngine> {
  const root = resolve(dataDir);
  let lock: FolderLock | undefined;
  try {
    const config = runningEngine(root);
    if (config)
      return {
        findings: [ok('connection', `a gateway runs on the data folder ${root}`)],
        engine: { config, close: async () => {} },
      };
    // No gateway may start while the folder is copied.
    lock = lockIfAny(root);
    if ((await onFolder(root, () => examineFolder(root))) === 'nothing') {
      const message = `no database in ${root} yet; the gateway creates an embedded one there at its first start`;
      return { findings: [ok('connection', message)] };
    }
    return await openCopy(root);
  } catch (error) {
    return { findings: [problem('connection', error instanceof Error ? error.message : String(error))] };
  } finally {
    lock?.release();
  }
}

async function openCopy(root: string): Promise<OpenedEngine> {
  const folder = databaseIn(root);
  const bytes = sizeOf(folder);
  if (bytes > MAX_COPY_BYTES) {
    const message = `the embedded database in ${root} was not checked: it would have to be copied, and has ${Math.round(bytes / 1024 ** 3)} GiB`;
    return { findings: [warning('connection', message)] };
  }
  const copy = await mkdtemp(join(tmpdir(), 'omp-doctor-'));
  const remove = () => rmSync(copy, { recursive: true, force: true });
  try {
    await cp(folder, join(copy, 'postgres'), { recursive: true });
    const engine = await startEngine(copy, SILENT);
    return {
      findings: [ok('connection', `the embedded Postgres in ${root} starts (checked on a copy)`)],
      engine: {
        config: engine.config,
        async close() {
          await engine.close();
          remove();
        },
      },
    };
  } catch (error) {
    remove();
    throw new Error(error instanceof Error ? error.message.replaceAll(copy, root) : String(error), { cause: error });
  }
}

const sizeOf = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);

/** Server version and role, encryption, pooler, encoding, and whether the database accepts writes. */
async function checkConnection(client: pg.Client, options: Options, writes: boolean): Promise<Finding[]> {
  const { rows } = await client.query<{ version: string; pid: number; role: string; read_only: string }>(
    `select current_setting('server_version') as version, pg_backend_pid() as pid, current_user as role,
       current_setting('transaction_read_only') as read_only`,
  );
  const [{ version, pid, role, read_only }] = rows as [(typeof rows)[number]];
  const findings = [ok('connection', `PostgreSQL ${version} answers, as role "${role}"`)];
  if (options.url !== undefined) findings.push(checkEncryption(client), ...checkPooler(client, pid, options));
  const encoding = await encodingProblem(client);
  if (encoding !== undefined) findings.push(problem('connection', encoding));
  if (writes && read_only === 'on') {
    const message =
      'the server is read-only: it is a standby, or default_transaction_read_only is on; connect to the primary';
    findings.push(problem('connection', message));
  }
  return findings;
}

/** Members of the driver's client that its types leave out. */
interface ClientInternals {
  readonly host: string;
  readonly processID: number | null;
  readonly connection: { readonly stream: Socket & { readonly encrypted?: boolean; readonly authorized?: boolean } };
}
const internalsOf = (client: pg.Client): ClientInternals => client as unknown as ClientInternals;

function checkEncryption(client: pg.Client): Finding {
  const { host, connection } = internalsOf(client);
  const { encrypted, authorized } = connection.stream;
  if (encrypted)
    return ok('connection', `encrypted, and the certificate of the server is ${authorized ? '' : 'not '}checked`);
  if (/^(\/|localhost$|127\.|::1$)/.test(host)) return ok('connection', 'not encrypted, and stays on this machine');
  return warning(
    'connection',
    'not encrypted: passwords and memories can be read on the network; set sslmode=verify-full in DATABASE_URL',
  );
}

/** A pooler answers with a session id of its own. */
function checkPooler(client: pg.Client, pid: number, { prepared_statements }: Options): Finding[] {
  if (internalsOf(client).processID === pid) return [];
  const message = 'a pooler such as PgBouncer is in front of the server';
  if (prepared_statements !== 'on') return [ok('connection', message)];
  return [
    warning('connection', `${message}, where named statements can fail; set OMP_POSTGRES_PREPARED_STATEMENTS to auto`),
  ];
}

export interface Extension {
  readonly schema: string;
  readonly version: string;
}

/** Whether pgvector is installed and new enough. `forTables`: for the gateway's tables, which need more than a mapped table. */
async function checkExtension(
  read: Read,
  forTables: boolean,
): Promise<{ extension: Extension | undefined; finding: Finding }> {
  const [row] = await read<Partial<Extension> & { available: string | null; may: boolean }>(
    `select n.nspname as schema, e.extversion as version, a.default_version as available,
       has_database_privilege(current_database(), 'create')
         and (select bool_or(r.rolsuper or coalesce((to_jsonb(v) ->> 'trusted')::boolean, false)) from pg_available_extension_versions v, pg_roles r
              where v.name = 'vector' and r.rolname = current_user) as may
     from (values ('vector')) as wanted(name)
     left join pg_available_extensions a using (name)
     left join pg_extension e on e.extname = wanted.name left join pg_namespace n on n.oid = e.extnamespace`,
  );
  const { schema, version, available = null, may = false } = row ?? {};
  if (schema == null || version == null)
    return { extension: undefined, finding: missingExtension(available, forTables && may) };
  return { extension: { schema, version }, finding: judgeVersion(version, available, forTables) };
}

const CREATE = { sql: 'create extension vector;', reason: 'as a superuser, in this database' };

function missingExtension(available: string | null, willBeCreated: boolean): Finding {
  if (available === null)
    return problem(
      'extension',
      'pgvector is not on this server: install its package there, then create the extension',
      CREATE,
    );
  if (willBeCreated)
    return ok('extension', `pgvector ${available} is available; the gateway creates the extension at its first start`);
  return problem('extension', `pgvector ${available} is on this server, but not created in this database`, CREATE);
}

/** `available`: the version that the server could update to. */
export function judgeVersion(version: string, available: string | null, forTables: boolean): Finding {
  if (forTables && isOlder(version, LEAST_PGVECTOR))
    return problem(
      'extension',
      `pgvector ${version} is too old: ${LEAST_PGVECTOR} or newer is needed`,
      updateTo(available, LEAST_PGVECTOR),
    );
  const unsafe = unsafeVersion(version);
  if (unsafe === undefined) return ok('extension', `pgvector ${version}`);
  const lacks = isOlder(version, ITERATIVE_PGVECTOR)
    ? `; before ${ITERATIVE_PGVECTOR} no vector index can serve the search of one user`
    : '';
  return warning('extension', `${unsafe}${lacks}`, updateTo(available, SAFE_PGVECTOR));
}

function updateTo(available: string | null, minimum: string) {
  const isThere = available !== null && !isOlder(available, minimum);
  const first = isThere ? '' : `once the package of ${minimum} or newer is on the server; `;
  return {
    sql: 'alter extension vector update;',
    reason: `${first}then rebuild HNSW indexes with "reindex index concurrently"`,
  };
}
