import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import pg from 'pg';
import type { FixtureOf } from '../fixture.ts';

/* Tables of Postgres: of the server at TEST_DATABASE_URL, with the `pg_dump` of TEST_POSTGRES_BIN. */

const { TEST_DATABASE_URL: SERVER = '', TEST_POSTGRES_BIN = '' } = process.env;

/** An empty database with pgvector, until it is closed. */
export async function openPostgres(): Promise<{ url: string; close(): Promise<void> }> {
  const name = `omp_record_${randomBytes(6).toString('hex')}`;
  const url = Object.assign(new URL(SERVER), { pathname: `/${name}` }).href;
  await ask(SERVER, `create database ${name}`);
  await ask(url, 'create extension vector');
  return { url, close: async () => void (await ask(SERVER, `drop database ${name} with (force)`)) };
}

async function ask(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

/** What `pg_dump` says of a part, as statements. */
const dumped = (url: string, section: 'pre-data' | 'post-data'): string[] =>
  execFileSync(
    join(TEST_POSTGRES_BIN, 'pg_dump'),
    ['--schema-only', `--section=${section}`, '--no-owner', '--no-privileges', '--no-comments', url],
    { encoding: 'utf8' },
  )
    .split('\n')
    .filter((line) => !/^(?:--|SET |SELECT pg_catalog\.set_config|\\)/.test(line))
    .join('\n')
    .split(/;\n/)
    .map((statement) => statement.trim().replaceAll(/\s*\n\s*/g, ' '))
    // Every database of a test has pgvector and a schema, and the embedded one no other extension: Spring AI's makes ids.
    .filter((statement) => statement !== '' && !/^CREATE (?:EXTENSION|SCHEMA public)/.test(statement))
    .map((statement) => statement.replace('public.uuid_generate_v4()', 'gen_random_uuid()'));

/** Every table of the database with its rows, the columns that the database computes left out. */
export async function readPostgres(url: string): Promise<Pick<FixtureOf<'postgres'>, 'settings' | 'points'>> {
  const tables = await ask(url, TABLES);
  const points = [];
  for (const { label, columns } of tables) {
    const rows = await ask(url, `select to_json(r) as row from (select ${columns} from ${label} order by ctid) as r`);
    points.push(...rows.map(({ row }) => ({ table: String(label), row: row as Record<string, unknown> })));
  }
  return { settings: { ddl: dumped(url, 'pre-data'), indexes: dumped(url, 'post-data') }, points };
}

const TABLES = `
  select format('%I.%I', n.nspname, c.relname) as label,
    (select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' order by 1`;

/** All of the first user's drinks are near to the first. */
export const SEARCHES_OF_TABLES = [
  { user_id: 'ana', text: 'drinks coffee now and then' },
  { user_id: 'ben', text: 'plays an instrument, such as the cello' },
];

const LANGCHAIN = ['langchain-openai==1.7.4', 'langchain-core==1.8.3'];
const LLAMAINDEX = ['llama-index-embeddings-openai==0.7.0', 'llama-index-core==0.14.25'];
const PSYCOPG = 'psycopg[binary,pool]==3.3.9';
const python = (packages: readonly string[], options = {}) => ({ program: 'tables.py', packages, options });

/** Two layouts of one library, or two versions with different ones, are two fixtures. */
export const RUNS_ON_POSTGRES = {
  'postgres-langchain-python': python(['langchain-postgres==0.0.19', ...LANGCHAIN, PSYCOPG]),
  'postgres-langchain-python-0.0.13': python([
    ...['langchain-postgres==0.0.13', 'langchain-openai==0.3.35', 'sqlalchemy==2.0.58', PSYCOPG],
  ]),
  'postgres-langchain-python-community': python(
    ['langchain-community==0.4.2', ...LANGCHAIN, 'pgvector==0.5.1', 'psycopg2-binary==2.9.12'],
    { community: true },
  ),
  'postgres-langchaintables-python': python(['langchain-postgres==0.0.19', ...LANGCHAIN, PSYCOPG]),
  'postgres-langchaintables-python-column': python(['langchain-postgres==0.0.19', ...LANGCHAIN, PSYCOPG], {
    column: true,
  }),
  'postgres-llamaindex-python': python(['llama-index-vector-stores-postgres==0.9.0', ...LLAMAINDEX]),
  'postgres-llamaindex-python-hybrid': python(['llama-index-vector-stores-postgres==0.9.0', ...LLAMAINDEX], {
    store: { hybrid_search: true, text_search_config: 'english', use_jsonb: true },
    hnsw: true,
  }),
  'postgres-llamaindex-python-0.4': python([
    'llama-index-vector-stores-postgres==0.4.2',
    'llama-index-embeddings-openai==0.3.1',
  ]),
  'postgres-mem0-python': python(['mem0ai==2.2.1', PSYCOPG]),
  'postgres-mem0-python-1': python(['mem0ai==1.0.11', PSYCOPG], { old: true }),
  'postgres-haystack-python': python(['pgvector-haystack==8.1.2', PSYCOPG], { hnsw: 'cosine' }),
  'postgres-haystack-python-3': python(['pgvector-haystack==3.4.1', PSYCOPG]),
  'postgres-agno-python': python(['agno==3.1.10', 'pgvector==0.5.1', 'sqlalchemy==2.1.9', PSYCOPG, 'openai==2.45.0'], {
    column: true,
  }),
  'postgres-agno-python-2': python(['agno==2.9.0', 'pgvector==0.5.1', 'sqlalchemy==2.1.9', PSYCOPG, 'openai==2.45.0']),
  'postgres-langgraph-python': python(['langgraph-checkpoint-postgres==3.2.0', PSYCOPG, ...LANGCHAIN]),
  'postgres-langgraph-python-2': python(['langgraph-checkpoint-postgres==2.0.25', PSYCOPG, 'langchain-openai==0.3.35']),
  'postgres-vecs-python': python(['vecs==0.4.5', 'sqlalchemy==2.0.58', 'httpx==0.28.1']),
  'postgres-vecs-python-0.3': python(['vecs==0.3.1', 'sqlalchemy==2.0.58', 'httpx==0.28.1']),
  'postgres-sqlalchemy-python': python(['sqlalchemy==2.1.9', 'pgvector==0.5.1', PSYCOPG, 'httpx==0.28.1']),
  'postgres-sqlalchemy-python-1.4': python(
    ['sqlalchemy==1.4.54', 'pgvector==0.3.6', 'psycopg2-binary==2.9.12', 'httpx==0.28.1'],
    { driver: 'psycopg2' },
  ),
  'postgres-django-python': python([
    'django==5.2.19',
    'pgvector==0.5.1',
    PSYCOPG,
    'sqlalchemy==2.1.9',
    'httpx==0.28.1',
  ]),
  'postgres-django-python-4.2': python([
    ...['django==4.2.20', 'pgvector==0.3.6', 'psycopg2-binary==2.9.12', 'sqlalchemy==2.1.9', 'httpx==0.28.1'],
  ]),
};
