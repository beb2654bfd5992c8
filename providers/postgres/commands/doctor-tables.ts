import pg from 'pg';
import type { Embedder, Finding, Freeze, MaintenanceContext } from '#provider';
import type { Options } from '../postgres-options.ts';
import { isDistributed } from '../scaling/distribute.ts';
import { checkNodes, checkReachable } from '../scaling/doctor.ts';
import { unplaced } from '../scaling/placement.ts';
import { conditions } from '../sql/conditions.ts';
import {
  analyserProblem,
  embedderProblem,
  labelOf,
  type Store,
  type StoreRow,
  toStore,
  vectorIndexes,
  WITHOUT_VECTOR,
  withoutVector,
} from '../startup/compatibility-check.ts';
import { CHANGES, INGESTION, MIGRATIONS, missingTables, partlyRestored, tooNew } from '../startup/migrations.ts';
import { heldSeconds } from '../tables/change-feed.ts';
import { freezeText, toFreeze } from '../tables/freezing.ts';
import { type Names, toNames, withVectorsIn } from '../tables/names.ts';
import {
  compareVectors,
  estimateSize,
  findHidden,
  ok,
  problem,
  type Read,
  reportSize,
  warning,
} from './doctor-common.ts';

/** The gateway's tables: whether they exist, the role may use them, and their data fits this gateway. */
export async function checkTables(
  read: Read,
  { url, schema, large_user_rows, mounts }: Options & Pick<MaintenanceContext, 'mounts'>,
  extension: { readonly schema: string } | undefined,
  embedder: Embedder | undefined,
): Promise<Finding[]> {
  const { findings, readable } = await checkPrivileges(read, schema);
  if (!readable) return findings;
  // A missing extension is reported already, and nothing below needs its types.
  const initial = toNames(schema, extension?.schema ?? 'public');
  const [{ version } = { version: 0 }] = await read<{ version: number }>(
    `select coalesce(max(version), 0) as version from ${initial.migrations}`,
  );
  if (version > MIGRATIONS.length) return [...findings, problem('privileges', tooNew(schema, version))];
  const later =
    version < MIGRATIONS.length ? `; the gateway migrates it to ${MIGRATIONS.length} at its next start` : '';
  findings.push(ok('privileges', `the schema is at version ${version}${later}`));
  const missing = await read<{ name: string }>(missingTables(initial, version));
  if (missing.length > 0) {
    const lost = missing.map(({ name }) => name);
    return [...findings, problem('privileges', partlyRestored(schema, lost))];
  }

  // As JSON, because a schema of an older version lacks some of the columns.
  const [{ row } = {}] = await read<{ row?: StoreRow }>(`select to_jsonb(s) as row from ${initial.store} s`);
  const store = row && toStore(row);
  const distributed = await isDistributed(read, initial);
  const lost = distributed ? await checkReachable(read) : [];
  // Everything below asks all nodes.
  if (lost.length > 0) return [...findings, ...lost];
  const names = {
    ...withVectorsIn(store?.column ?? 'embedding', initial),
    placement: unplaced(initial.memories, distributed),
  };
  const freeze = toFreeze((await read<{ state: string }>(freezeText(names)))[0]);
  if (freeze) findings.push(warning('freeze', frozenSince(freeze)));
  if (store) findings.push(...(await checkStore(read, names, { store, version, embedder })));
  if (version >= INGESTION) findings.push(await checkIngestion(read, names, embedder !== undefined));
  if (version >= CHANGES) findings.push(await checkChanges(read, names));
  const dimensions = store?.made_by?.dimensions ?? null;
  findings.push(...(await checkIndexes(read, { schema, names, version, dimensions })));

  if (distributed) findings.push(...(await checkNodes(read, names)));
  else {
    const size = await estimateSize(read, schema, 'memories', { relation: 'memories', attribute: 'user_id' });
    const [some] = await read(`select 1 from ${names.memories} limit 1`);
    findings.push(reportSize(size, names.memories, some === undefined || url === undefined));
  }
  const [{ large, moving } = { large: 0, moving: 0 }] = await read<{ large: number; moving: number }>(
    `select count(*) filter (where ready)::int as large, count(*) filter (where not ready)::int as moving from ${names.largeUsers}`,
  );
  const indexing = moving > 0 ? `, and ${moving} being indexed` : '';
  findings.push(ok('size', `users with more than ${large_user_rows} memories, searched by index: ${large}${indexing}`));
  const hidden = { from: names.memories, scope: 'scope', where: () => conditions() };
  return [...findings, ...(await findHidden(read, hidden, mounts))];
}

const frozenSince = ({ since, by }: Freeze): string =>
  `the store takes no changes since ${since}: "${by}" froze it; "omp-gateway unfreeze" ends that`;

const NEEDED = ['select', 'insert', 'update', 'delete'] as const;

interface SchemaRow {
  readonly exists: boolean;
  readonly role: string;
  readonly database: string;
  readonly may_make: boolean;
  readonly usage: boolean | null;
  readonly create: boolean | null;
}

interface TableRow {
  readonly name: string;
  readonly lacking: readonly string[];
  readonly owned: boolean;
  readonly hidden: boolean;
}

/** `readable`: the tables exist and the role may read them. */
export async function checkPrivileges(read: Read, schema: string): Promise<{ findings: Finding[]; readable: boolean }> {
  const [about] = (await read<SchemaRow>(
    `select n.oid is not null as exists, current_user as role, current_database() as database,
       has_database_privilege(current_database(), 'create') as may_make,
       has_schema_privilege(n.oid, 'usage') as usage, has_schema_privilege(n.oid, 'create') as create
     from (values ($1::text)) as wanted(name) left join pg_namespace n on n.nspname = wanted.name`,
    [schema],
  )) as [SchemaRow];
  const [name, role] = [schema, about.role].map(pg.escapeIdentifier) as [string, string];
  const only = (finding: Finding) => ({ findings: [finding], readable: false });
  const asOwner = (message: string, sql: string) =>
    only(problem('privileges', message, { sql, reason: 'as the owner of the schema' }));
  if (!about.exists) return only(missingSchema(name, role, about));
  if (!about.usage)
    return asOwner(`the role may not use the schema ${name}`, `grant usage, create on schema ${name} to ${role};`);
  const tables = await read<TableRow>(
    `select c.relname as name, pg_has_role(c.relowner, 'usage') as owned, row_security_active(c.oid) as hidden,
       array(select p from unnest($2::text[]) as p where not has_table_privilege(c.oid, p)) as lacking
     from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind = 'r'`,
    [schema, NEEDED],
  );
  const exists = (name: string) => tables.some((table) => table.name === name);
  if (!exists('migrations')) {
    if (exists('memories')) return only(problem('privileges', partlyRestored(schema, ['migrations'])));
    return about.create
      ? only(ok('privileges', `the schema ${name} has no tables yet; the gateway creates them at its first start`))
      : asOwner(`the role may not create tables in the schema ${name}`, `grant create on schema ${name} to ${role};`);
  }
  return { findings: judgeTables(tables, name, role), readable: tables.every((t) => !t.lacking.includes('select')) };
}

function missingSchema(name: string, role: string, { may_make, database }: SchemaRow): Finding {
  if (may_make) return ok('privileges', `there is no schema ${name} yet; the gateway creates it at its first start`);
  return problem(
    'privileges',
    `there is no schema ${name}, and the role may not create it`,
    { sql: `create schema ${name} authorization ${role};`, reason: 'creates it for the gateway; or else' },
    {
      sql: `grant create on database ${pg.escapeIdentifier(database)} to ${role};`,
      reason: 'lets the gateway create it',
    },
  );
}

function judgeTables(tables: readonly TableRow[], name: string, role: string): Finding[] {
  const findings: Finding[] = [];
  const lacking = tables.filter(({ lacking }) => lacking.length > 0);
  if (lacking.length > 0) {
    const what = lacking.map((table) => `${table.lacking.join(', ')} on ${table.name}`).join('; ');
    const sql = `grant ${NEEDED.join(', ')} on all tables in schema ${name} to ${role};`;
    findings.push(problem('privileges', `the role lacks ${what}`, { sql, reason: 'as the owner of the tables' }));
  } else findings.push(ok('privileges', 'the role may read and write all tables of the gateway'));
  const notOwned = tables.filter(({ owned }) => !owned);
  if (notOwned.length > 0) {
    const alter = (table: TableRow) => `alter table ${name}.${pg.escapeIdentifier(table.name)} owner to ${role};`;
    findings.push(
      warning(
        'privileges',
        'the role does not own the tables, so it cannot migrate them, nor run "omp-gateway reembed"',
        {
          sql: notOwned.map(alter).join(' '),
          reason: 'or start new versions of the gateway once with a role that owns them',
        },
      ),
    );
  }
  const hidden = tables.filter((table) => table.hidden);
  if (hidden.length > 0) {
    const which = hidden.map((table) => table.name).join(', ');
    findings.push(
      warning('privileges', `row security restricts what the role sees of ${which}`, {
        sql: `alter role ${role} bypassrls;`,
        reason: 'the gateway must see all rows: it filters by user itself',
      }),
    );
  }
  return findings;
}

/** Whether this gateway's analyser and embedder fit the stored data. */
async function checkStore(
  read: Read,
  names: Names,
  { store, version, embedder }: { store: Store; version: number; embedder: Embedder | undefined },
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const { made_by, next } = store;
  const [analyser, mismatch] = [analyserProblem(store), embedderProblem(store, embedder)];
  if (analyser !== undefined) findings.push(problem('embedding', analyser));
  if (mismatch !== undefined) findings.push(problem('embedding', mismatch));
  else {
    findings.push(
      ok('embedding', made_by ? `the stored vectors were made by ${labelOf(made_by)}` : 'no stored vectors'),
    );
    if (embedder && made_by) {
      const where = conditions();
      where.and(`${names.embedding} is not null`);
      const stored = { from: names.memories, content: 'content', vector: names.embedding, where };
      findings.push(...(await compareVectors(read, embedder, stored)));
    }
  }
  if (next) {
    const message = `a re-embed for ${labelOf(next)} is not finished; "omp-gateway reembed" continues it`;
    findings.push(warning('embedding', message));
  }
  if (!embedder) return findings;
  const beforeQueue = `select 1 from ${names.memories} where ${names.embedding} is null limit 1`;
  const missing = await read(version < INGESTION ? beforeQueue : withoutVector(names));
  if (missing.length > 0) findings.push(problem('embedding', WITHOUT_VECTOR));
  return findings;
}

/** Ids shown of failed memories. */
const SHOWN_IDS = 10;

/** The ingestion queue: its length, and the memories that failed. `computed`: whether this gateway computes vectors. */
async function checkIngestion(read: Read, { ingestion }: Names, computed: boolean): Promise<Finding> {
  const [{ queued, oldest, failed } = { queued: 0, oldest: null, failed: 0 }] = await read<{
    queued: number;
    /** Seconds since the first of them was queued. */
    oldest: number | null;
    failed: number;
  }>(
    `select count(*) filter (where status <> 'failed')::int as queued, count(*) filter (where status = 'failed')::int as failed,
       floor(date_part('epoch', now() - min(queued_at) filter (where status <> 'failed')))::int as oldest from ${ingestion}`,
  );
  const idle = computed ? '' : '; a gateway computes them only while OMP_SEARCH_MODE is hybrid or vector';
  const length =
    queued === 0
      ? 'no memory waits for its vector'
      : `${queued === 1 ? 'one memory waits' : `${queued} memories wait`} for a vector, the first for ${oldest} seconds${idle}`;
  if (failed === 0) return queued > 0 && !computed ? warning('ingestion', length) : ok('ingestion', length);
  const reasons = await read<{ error: string; memories: number; ids: readonly string[] }>(
    `select coalesce(error, '') as error, count(*)::int as memories, (array_agg(memory_id order by memory_id))[1:${SHOWN_IDS}] as ids
     from ${ingestion} where status = 'failed' group by 1 order by 2 desc, 1`,
  );
  const details = reasons.map(({ error, memories, ids }) => {
    const more = memories > ids.length ? ` and ${memories - ids.length} more` : '';
    return `${memories} because "${error}" (${ids.join(', ')}${more})`;
  });
  const sql = `update ${ingestion} set status = 'queued', attempts = 0, due_at = now() where status = 'failed';`;
  return warning(
    'ingestion',
    `${failed === 1 ? 'one memory has' : `${failed} memories have`} no vector, so only keywords find them: ${details.join('; ')}; ${length}`,
    { sql, reason: 'queues them again; where the content is the reason, change or delete the memory' },
  );
}

/** Seconds from which an open transaction is worth a look. */
const LONG_OPEN = 60;

/** Whether an open transaction holds the feed of changes back, and which. */
async function checkChanges(read: Read, names: Names): Promise<Finding> {
  const [{ seconds } = { seconds: 0 }] = await read<{ seconds: number }>(heldSeconds(names));
  if (seconds < LONG_OPEN) return ok('changes', 'no open transaction holds the feed of changes back');
  const [session] = await read<{ pid: number; database: string; role: string }>(
    `select pid, datname as database, usename as role from pg_stat_activity where backend_xid is not null order by xact_start limit 1`,
  );
  const message = `a transaction that has been open for ${Math.floor(seconds)} seconds holds the feed of changes back`;
  if (!session)
    return warning('changes', `${message}: it is prepared (pg_prepared_xacts), or on another node of Citus`);
  const { pid, database, role } = session;
  return warning('changes', `${message}: session ${pid} of role "${role}" in the database "${database}"`, {
    sql: `select pg_terminate_backend(${pid});`,
    reason: 'ends that session and undoes its transaction; wait for it instead if it is at work',
  });
}

/** What gets slow without an index. */
const REASONS: Readonly<Record<string, string>> = {
  memories_user_time: 'without it every list and every search reads the memories of all users',
  memories_user_scope: 'without it filters by scope read all memories of a user',
  memories_user_tags: 'without it filters by tag read all memories of a user with many',
  memories_keywords: 'without it searches of users with many memories read all of them',
  memories_embedding: 'without it searches of users with many memories compare all vectors',
  memories_without_vector: 'without it the start reads the whole table to find memories without a vector',
  memories_conversation: 'without it contexts read all memories to find those next to others',
  memories_valid_to: 'without it OMP_PURGE_EXPIRED_DAYS reads all memories every hour',
  audit_log_user_time: 'without it GET /audit reads the whole log',
  audit_log_changes: 'without it GET /changes reads the whole log',
  audit_log_time: 'without it the hourly housekeeping reads the whole log',
  ingestion_due: 'without it the ingestion reads its whole queue every second',
  ingestion_claim: 'without it writing the vectors of a batch reads the whole queue',
  once_keys_time: 'without it the hourly housekeeping reads all idempotency keys',
};

/** Indexes that were dropped or are invalid, with the SQL that creates them again. */
async function checkIndexes(
  read: Read,
  { schema, names, version, dimensions }: { schema: string; names: Names; version: number; dimensions: number | null },
): Promise<Finding[]> {
  const existing = await read<{ name: string; valid: boolean }>(
    `select c.relname as name, x.indisvalid and x.indisready as valid
     from pg_index x join pg_class c on c.oid = x.indexrelid join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = $1`,
    [schema],
  );
  const valid = new Map(existing.map((index) => [index.name, index.valid]));
  const expected = expectedIndexes(names, version);
  for (const { name, on } of dimensions === null ? [] : vectorIndexes(names, dimensions)) {
    expected.set(name, `create index ${name} on ${names.memories} ${on}`);
  }
  const findings = [...expected]
    .filter(([name]) => !valid.get(name))
    .map(([name, create]) => {
      const remedy = {
        sql: `${create.replace(/^create index /, 'create index concurrently ')};`,
        reason: REASONS[name] ?? 'the statements of the gateway rely on it',
      };
      if (!valid.has(name)) return warning('indexes', `the index ${name} is missing`, remedy);
      const drop = { sql: `drop index concurrently ${names.schema}.${name};`, reason: 'removes the invalid index' };
      return warning('indexes', `the index ${name} is invalid: building it was interrupted`, drop, remedy);
    });
  return findings.length > 0 ? findings : [ok('indexes', 'all indexes of the gateway exist and are valid')];
}

/** By name, as the migrations up to this version create them. */
function expectedIndexes(names: Names, version: number): Map<string, string> {
  const indexes = new Map<string, string>();
  for (const { sql } of MIGRATIONS.slice(0, version)) {
    const text = sql(names).replace(/--.*/g, '');
    for (const [, create, created = '', dropped = ''] of text.matchAll(
      /(create index (\w+) on [^;]+);|drop index (?:if exists )?(?:"(?:[^"]|"")+"\.)?(\w+)/g,
    )) {
      if (create) indexes.set(created, create.replaceAll(/\s+/g, ' '));
      else indexes.delete(dropped);
    }
  }
  return indexes;
}
