import pg from 'pg';
import type { Names } from '../tables/names.ts';

const memories = (names: Names): string => `
create table ${names.memories} (
  -- "C" collation: ids and scopes are compared byte by byte, as prefixes, ranges and cursors require.
  id          text collate "C" primary key,
  user_id     text not null,
  content     text not null,
  scope       text collate "C",
  tags        text[] not null default '{}',
  source      jsonb,
  confidence  double precision,
  created_at  timestamptz(3) not null,
  updated_at  timestamptz(3) not null,
  valid_from  timestamptz(3),
  valid_to    timestamptz(3),
  supersedes  text[] not null default '{}',
  -- The caller's x- keys.
  extensions  jsonb not null default '{}',
  -- Hashed search terms; see values.ts.
  keywords    bigint[] not null,
  -- Its dimensions are set when the first embedder is recorded.
  embedding   ${names.halfvec},
  -- Set for users with so many memories that the indexes on vectors and keywords pay. Only their rows are indexed:
  -- a vector index over all rows makes an insert ten times slower and gives small users nothing.
  large       boolean not null default false
);

-- List newest first, keyset paging, and every exact search.
create index memories_user_time on ${names.memories} (user_id, created_at desc, id desc);

-- Scope equality, prefixes and globs. User and scope together can outgrow an index entry, hence the hash.
create index memories_user_scope on ${names.memories} (hashtextextended(user_id, 0), scope) where scope is not null;

create index memories_tags on ${names.memories} using gin (tags);

create index memories_keywords on ${names.memories} using gin (keywords) where large;

-- Empty while every memory has its vector, so finding those without one is instant.
create index memories_without_vector on ${names.memories} (id) where embedding is null;

-- Users whose memories have the flag "large": new ones as soon as the row exists, all of them once "ready".
create table ${names.largeUsers} (
  user_id  text primary key,
  ready    boolean not null default false
);

-- Which analyser and embedder made the data. One row.
create table ${names.store} (
  only_row          boolean primary key default true check (only_row),
  analyser_version  integer not null,
  embedding_model   text,
  dimensions        integer
);
`;

const access = (names: Names): string => `
-- Audit entries. The statement that makes a change also writes its entry.
create table ${names.auditLog} (
  -- Order within one millisecond.
  seq         bigint generated always as identity,
  timestamp   timestamptz(3) not null,
  app         text,
  action      text not null,
  user_id     text,
  memory_id   text collate "C",
  scope       text collate "C",
  request_id  text not null,
  outcome     text not null
);

-- GET /audit: one user's entries, newest first.
create index audit_log_user_time on ${names.auditLog} (user_id, timestamp desc, seq desc);

-- Retention: the oldest entries first. (A BRIN index would be smaller, but its ranges never narrow: once the space of
-- deleted entries is reused, it would exclude nothing.)
create index audit_log_time on ${names.auditLog} (timestamp);

-- What an Idempotency-Key was used for. No contents: a retry sends them again.
create table ${names.onceKeys} (
  caller       text not null,
  key          text collate "C" not null,
  fingerprint  text not null,
  memory_id    text collate "C" not null,
  -- Of the memory, and of the key.
  created_at   timestamptz(3) not null,
  embedding_model text,
  primary key (caller, key)
);

create index once_keys_time on ${names.onceKeys} (created_at);

-- API keys. Never the secret, only its hash.
create table ${names.apiKeys} (
  id            text collate "C" primary key,
  name          text not null unique,
  hash          text not null,
  -- Null: all.
  users         text[],
  grants        text[] not null,
  created_at    timestamptz(3) not null,
  expires_at    timestamptz(3),
  revoked_at    timestamptz(3),
  last_used_at  timestamptz(3)
);

-- Request counts shared by replicas, in the layout of rate-limiter-flexible. Unlogged: counting a request must not wait
-- for the disk, and a crash loses the counts of two minutes only.
create unlogged table ${names.rateLimits} (
  key     varchar(255) primary key,
  points  integer not null default 0,
  expire  bigint
);
`;

const reembed = (names: Names): string => `
alter table ${names.store}
  -- Column of the vectors in use.
  add column embedding_column text not null default 'embedding',
  -- Vector columns created so far. Names are never reused: a gateway that knows only an older column then fails instead
  -- of mixing vectors of two models.
  add column columns_made integer not null default 1,
  -- Embedder and column of a re-embed in progress.
  add column next_model text,
  add column next_dimensions integer,
  add column next_column text,
  add constraint store_next check (num_nulls(next_model, next_dimensions, next_column) in (0, 3));
`;

const ingestion = (names: Names): string => `
-- Ingestion queue: memories without a vector yet, and those that could not be embedded. Older gateways do not know it: the
-- foreign key removes what they delete, and the queue notices what they embed.
create table ${names.ingestion} (
  memory_id  text collate "C" primary key references ${names.memories} on delete cascade,
  status     text not null default 'queued' check (status in ('queued', 'indexing', 'failed')),
  -- Failures of this text while the embedding service worked for others.
  attempts   integer not null default 0,
  -- When it may be claimed. While it is being indexed: when the claim of its gateway expires.
  due_at     timestamptz not null default now(),
  -- Claim of the gateway that is indexing it.
  claim      uuid,
  -- Why it failed.
  error      text,
  queued_at  timestamptz not null default now()
);

create index ingestion_due on ${names.ingestion} (due_at) where status <> 'failed';

create index ingestion_claim on ${names.ingestion} (claim) where claim is not null;

-- Status in the first answer, so that a retry gets the same one.
alter table ${names.onceKeys} add column status text not null default 'done';
`;

const tagsOfLargeUsers = (names: Names): string => `
-- Tags and user in one index, because the tags of one user among those of all cost as much as all rows of the user.
-- Up to ten thousand memories are read in the order of time instead. Takes a second for a million memories.
create index memories_user_tags on ${names.memories} using gin (tags, (array[user_id])) where large;

drop index if exists ${names.schema}.memories_tags;
`;

const expired = (names: Names): string => `
-- Purge: what expired first. Most memories never expire, so it is small. Takes a second for a million memories.
create index memories_valid_to on ${names.memories} (valid_to) where valid_to is not null;
`;

const buckets = (names: Names): string => `
-- The bucket of the row's user (scaling/placement.ts). Only Citus needs it, so rows that are there already hold 0, and
-- adding the columns takes no time. Moving the tables to Citus computes all of them (scaling/distribute.ts).
${[names.memories, names.largeUsers, names.auditLog, names.onceKeys, names.ingestion]
  .map((table) => `alter table ${table} add column bucket smallint not null default 0;`)
  .join('\n')}

-- Buckets depend on it, and so does the last part of ids: it never changes.
alter table ${names.store} add column bucket_secret bytea not null
  default decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex');
`;

const keysOfBatches = (names: Names): string => `
-- What a batch added, by place; null: the key is of a single add.
alter table ${names.onceKeys} add column added jsonb;
`;

const changes = (names: Names): string => `
-- The feed of changes (tables/change-feed.ts). Entries that are there already belong to no transaction, and so to no feed.
alter table ${names.auditLog}
  -- Of a change: the node of Citus that wrote it; 0: a single server.
  add column node smallint,
  -- The transaction that wrote it.
  add column xid xid8,
  -- Scopes that have no memory of the entry any more: the old one of a moved memory, those of an erased user.
  add column left_scopes text[] collate "C";

-- For what is written from now on, by gateways of older versions too.
alter table ${names.auditLog}
  alter column node set default 0,
  alter column xid set default pg_current_xact_id();

-- Null for other entries. A partial index would make an add 7 % dearer for the server: each statement prepares its condition anew.
create index audit_log_changes on ${names.auditLog} (xid);

alter table ${names.store}
  -- The server whose transactions the log names, and the last entry that is not of that server.
  add column log_origin text,
  add column log_base bigint not null default 0;

-- The last transaction of each node whose entries were deleted.
create table ${names.logStarts} (
  node  smallint primary key,
  xid   xid8 not null
);
`;

const webhooks = (names: Names): string => `
-- Webhooks: cursors of the change feed with an address. Their secrets are encrypted.
create table ${names.webhooks} (
  id          text collate "C" primary key,
  -- StoredWebhook of the contract.
  data        jsonb not null,
  -- The gateway that delivers.
  holder      text,
  lease       uuid,
  held_until  timestamptz
);
`;

const versions = ({ memories, versions, placement }: Names): string => `
-- Counts up with every change of the memory.
alter table ${memories} add column version integer not null default 1;

-- What changes have replaced: memories as they were, without vector and keywords. They go with their memory.
create table ${versions} (
  id           text collate "C" not null,
  version      integer not null,
  user_id      text not null,
  content      text not null,
  scope        text collate "C",
  tags         text[] not null,
  source       jsonb,
  confidence   double precision,
  created_at   timestamptz(3) not null,
  updated_at   timestamptz(3) not null,
  valid_from   timestamptz(3),
  valid_to     timestamptz(3),
  supersedes   text[] not null,
  extensions   jsonb not null,
  replaced_at  timestamptz(3) not null,
  bucket       smallint not null default 0,
  primary key (${placement.key('id, version')})
);

-- Retention: what was replaced first.
create index memory_versions_replaced on ${versions} (replaced_at);

${placement.distribute(versions)}

alter table ${versions} add foreign key (${placement.key('id')}) references ${memories} (${placement.key('id')}) on delete cascade;
`;

const origins = (names: Names): string => `
-- Whether what the key writes is marked.
alter table ${names.apiKeys} add column untrusted boolean not null default false;

-- Keys that clients gave to their memories before they were reserved. Reads every row once: a second for a million memories.
update ${names.memories} set extensions = (
    select jsonb_object_agg(case when key ilike 'x-omp-%' then 'x-client-' || substr(key, 3) else key end, value)
    from jsonb_each(extensions))
  where exists (select from jsonb_object_keys(extensions) as key where key ilike 'x-omp-%');
`;

const conversations = (names: Names): string => `
-- The memories next to others in a conversation: one user, scope, app and ref. Together they can outgrow an index entry, hence the hash. Takes a
-- second for a million memories.
create index memories_conversation on ${names.memories} (
  hashtextextended(coalesce(char_length(scope), -1)::text || '/' || coalesce(char_length(source ->> 'app'), -1)::text || '/'
    || char_length(source ->> 'ref')::text || '/' || coalesce(scope, '') || coalesce(source ->> 'app', '') || (source ->> 'ref') || user_id, 0),
  created_at, id
) where source ->> 'ref' is not null;
`;

const embeddingUsage = (names: Names): string => `
-- What embedding costs, by day and caller.
create table ${names.embeddingUsage} (
  day       date not null,
  -- Empty: anonymous, or the gateway itself.
  app       text collate "C" not null,
  model     text collate "C" not null,
  texts     bigint not null,
  -- Null: unknown.
  tokens    bigint,
  requests  bigint not null,
  primary key (day, app, model)
);
`;

const userUsage = ({ userUsage, placement }: Names): string => `
-- What users have, for their limits (tables/user-usage.ts): what was counted, and what was added since.
create table ${userUsage} (
  bucket        smallint not null default 0,
  user_id       text not null,
  -- In UTC, of the adds.
  day           date not null,
  adds_per_day  bigint not null default 0,
  memories      bigint not null default 0,
  bytes         bigint not null default 0,
  -- Null: the user is to be counted.
  counted_at    timestamptz,
  -- Counts up with every count.
  mark          bigint not null default 0,
  primary key (${placement.key('user_id')})
);

${placement.distribute(userUsage)}
`;

const erasure = (names: Names): string => `
-- The users of the memories that were added, so that erasing one of them finds the key. Keys from before go after 24 hours.
alter table ${names.onceKeys} add column users text[] not null default '{}';
`;

/** Append only: never edit a released migration. */
export const MIGRATIONS: readonly { name: string; sql: (names: Names) => string }[] = [
  { name: 'memories', sql: memories },
  { name: 'access', sql: access },
  { name: 'reembed', sql: reembed },
  { name: 'ingestion', sql: ingestion },
  { name: 'tags of large users', sql: tagsOfLargeUsers },
  { name: 'expired memories', sql: expired },
  { name: 'buckets', sql: buckets },
  { name: 'keys of batches', sql: keysOfBatches },
  { name: 'changes', sql: changes },
  { name: 'webhooks', sql: webhooks },
  { name: 'versions', sql: versions },
  { name: 'origins', sql: origins },
  { name: 'conversations', sql: conversations },
  { name: 'embedding usage', sql: embeddingUsage },
  { name: 'user usage', sql: userUsage },
  { name: 'erasure', sql: erasure },
];

/** The version that added the ingestion queue. */
export const INGESTION = 4;
/** The version that added the feed of changes. */
export const CHANGES = 9;

/**
 * Migrates the schema to the current version, in the caller's transaction. Replicas may do so at the same time: an advisory
 * lock lets one pass after the other. `names`: whether the tables are distributed as they are. Throws if a newer gateway made the
 * schema, or if a backup was restored only in part.
 */
export async function migrate(client: pg.Client, schema: string, names: Names): Promise<void> {
  await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`omp-gateway ${schema}`]);
  const exists = await client.query('select 1 from pg_namespace where nspname = $1', [schema]);
  // Even "if not exists" needs the privilege to create, which the role may lack.
  if (exists.rowCount === 0) await client.query(`create schema ${names.schema}`);
  const isMissing = async (table: string) => {
    const { rows } = await client.query<{ oid: string | null }>('select to_regclass($1) as oid', [table]);
    return rows[0]?.oid === null;
  };
  if (await isMissing(names.migrations)) {
    await client.query(
      `create table ${names.migrations} (
         version integer primary key, name text not null, applied_at timestamptz not null default now())`,
    );
  }
  const applied = await client.query<{ version: number }>(
    `select coalesce(max(version), 0) as version from ${names.migrations}`,
  );
  const version = applied.rows[0]?.version ?? 0;
  if (version > MIGRATIONS.length) throw new Error(tooNew(schema, version));
  if (version === 0 && !(await isMissing(names.memories))) throw new Error(partlyRestored(schema, [names.migrations]));
  const { rows: missing } = await client.query<{ name: string }>(missingTables(names, version));
  if (missing.length > 0)
    throw new Error(
      partlyRestored(
        schema,
        missing.map(({ name }) => name),
      ),
    );
  for (const [index, { name, sql }] of MIGRATIONS.entries()) {
    if (index < version) continue;
    await client.query(sql(names));
    await client.query(`insert into ${names.migrations} (version, name) values ($1, $2)`, [index + 1, name]);
  }
}

/** The tables that the migrations between two versions make: their quoted names and what is in the brackets. */
export const tablesMade = (names: Names, after: number, version: number) =>
  MIGRATIONS.slice(after, version).flatMap(({ sql }) => [
    ...sql(names)
      .replace(/--[^\n]*/g, '')
      .matchAll(/create (?:unlogged )?table (.+?) \(\n([^;]*)\);/g),
  ]);

/** Selects the tables of this version that are missing or have lost their primary key. */
export function missingTables(names: Names, version: number): string {
  const wanted = tablesMade(names, 0, version).map(
    ([, table = '', body = '']) => `(${pg.escapeLiteral(table)}, ${body.includes('primary key')})`,
  );
  return `select name from (values ${[...wanted, '(null, false)'].join(', ')}) as wanted (name, has_key)
    where to_regclass(name) is null and name is not null
      or has_key and not exists (select from pg_constraint where conrelid = to_regclass(name) and contype = 'p')`;
}

export const partlyRestored = (schema: string, missing: readonly string[]): string =>
  `the schema "${schema}" was restored only in part: ${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing or without primary key; drop the schema, run "create extension vector", and restore the backup again (docs/operations.md, "Backup and restore")`;

export const tooNew = (schema: string, version: number): string =>
  `the schema "${schema}" is at version ${version}, newer than this gateway knows (${MIGRATIONS.length}); upgrade omp-gateway`;
