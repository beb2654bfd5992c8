import type pg from 'pg';
import type { Log } from '#contract';
import { withStartupClient } from './client/startup-client.ts';
import { lookAtOwnPrivileges } from './doctor/own-privileges.ts';
import { reading } from './doctor/reading.ts';
import { codeOf } from './errors.ts';
import { migrate } from './migrate.ts';
import { type Names, toNames, withVectorsIn } from './names.ts';
import { ITERATIVE_PGVECTOR, isOlder, LEAST_PGVECTOR, SAFE_PGVECTOR } from './pgvector.ts';
import { columnInUse } from './store-row.ts';

export interface Boot {
  readonly names: Names;
  /** Whether this pgvector can search large users by index without returning too few rows. */
  readonly iterativeScan: boolean;
}

export interface BootOptions {
  readonly config: pg.ClientConfig;
  readonly schema: string;
  /** What else has to be right. */
  readonly check: (client: pg.Client, names: Names) => Promise<void>;
  readonly log: Log;
  /** Only look: in the end everything is as it was. */
  readonly undo?: boolean;
}

/** Everything that has to be right before the first request: extension, tables, what the caller checks. All or nothing. */
export const boot = (options: BootOptions): Promise<Boot> =>
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
  'the database takes no writes: it is a standby, or default_transaction_read_only is on; name the primary in DATABASE_URL, or turn that off';

/** As doctor says it, with what an operator may run. */
async function lackingPrivilege(client: pg.Client, schema: string): Promise<string> {
  const { findings } = await reading(client, (read) => lookAtOwnPrivileges(read, schema));
  const lacking = findings.filter(({ level, remedies }) => level !== 'ok' && remedies);
  const each = lacking.map(
    ({ message, remedies = [] }) => `${message}; run: ${remedies.map(({ sql }) => sql).join(' or ')}`,
  );
  return ['the role of the gateway lacks a privilege that the start needs', ...each].join('\n  - ');
}

async function prepare(client: pg.Client, { schema, check, log, undo = false }: BootOptions): Promise<Boot> {
  await client.query('begin');
  const extension = await requireVector(client);
  const initial = toNames(schema, extension.schema);
  await migrate(client, schema, initial);
  const names = withVectorsIn(await columnInUse(client, initial), initial);
  await check(client, names);
  await client.query(undo ? 'rollback' : 'commit');
  const { version } = extension;
  if (isOlder(version, SAFE_PGVECTOR))
    log.warn(
      { version, wanted: SAFE_PGVECTOR },
      'pgvector is older than the release that fixes CVE-2026-3172; upgrade it',
    );
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
      // Replicas that start together on a new database must not race for it.
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
