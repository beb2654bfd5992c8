import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { randomName } from '../postgres/store.ts';
import { SERVER_URL } from '../support/postgres-server.ts';
import type { WireMemory } from '../support/wire.ts';

/** What an application writes with its own statements. */
export interface LibraryRow {
  readonly user: string;
  readonly text: string;
  readonly vector: Float32Array;
  /** Counts up. */
  readonly number: number;
}

/** The table of a library: its page in `docs/integrations`, and how the library creates and fills it. */
export interface LibraryTable {
  readonly page: string;
  /** The heading of one of several configurations on the page. */
  readonly heading?: string;
  /** Users to write for. Default: `ana` and `ben`. */
  readonly users?: readonly [string, string];
  /** All rows belong to the first user. */
  readonly sharedByAll?: true;
  /** The library's own statements; a comment names their source. The role that pages call `gateway` is that of the test. */
  readonly ddl: readonly string[];
  /** Default: 1536. */
  readonly dimensions?: number;
  /** Inserts as the library does. Returns the id that the gateway must show. */
  fill(db: LibraryDatabase, row: LibraryRow): Promise<string>;
  /** Inserts rows that no user may see: of other collections, without an owner, without a text. */
  hide?(db: LibraryDatabase, row: LibraryRow): Promise<void>;
  /** What every record of `fill` shows besides id, content and user. Default: nothing more, by text-embedding-3-small. */
  readonly shows?: Partial<WireMemory>;
  /** Default: false. */
  readonly temporal?: boolean;
  /** Default: `none`. */
  readonly scopes?: 'native' | 'none';
  /** Whether `OMP_MAPPING_WRITABLE=true` is allowed. Default: what the preset says. */
  readonly writable?: boolean;
  /** Further settings that the page requires for that. */
  readonly writing?: Readonly<Record<string, string>>;
  /** Fields that a memory can have there besides text and user. */
  readonly carries?: Partial<WireMemory>;
  /** Reads a row that the gateway wrote, by the library's own query. */
  read?(db: LibraryDatabase, id: string): Promise<{ text: string; user: string }>;
}

/** What records show if the table has no times and only the fields that a memory must have. */
export const withoutTimes = (embedding_model: string) =>
  ({
    created_at: '1970-01-01T00:00:00.000Z',
    updated_at: '1970-01-01T00:00:00.000Z',
    embedding_model,
    scope: null,
    tags: [],
    source: null,
    confidence: null,
    valid_from: null,
    valid_to: null,
    supersedes: [],
    status: null,
  }) satisfies Partial<WireMemory>;

/** A vector in the text form that libraries send. */
export const textOf = (vector: Float32Array): string => JSON.stringify([...vector]);

/** A database of the test's own on the server, with pgvector, where the tables of libraries have their usual names. */
export interface LibraryDatabase {
  /** As its owner. */
  readonly url: string;
  /** A role that may log in and, before `grant`, nothing else. */
  readonly role: string;
  readonly roleUrl: string;
  sql<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Grants privileges on all tables to the role: `select, insert`. */
  grant(privileges: string): Promise<void>;
  /** Every row of every table with its position and transaction, so that a rewritten one differs too. */
  rows(): Promise<Readonly<Record<string, readonly unknown[]>>>;
  /** Empties it: drops every schema, and creates `public` with pgvector again. */
  reset(): Promise<void>;
  /** Drops it and the role, and closes any connection that is left. */
  close(): Promise<void>;
}

const PASSWORD = 'secret';

export async function openLibraryDatabase(): Promise<LibraryDatabase> {
  const name = randomName();
  const server = new pg.Client({ connectionString: SERVER_URL });
  await server.connect();
  await server.query(`create database ${name}`);
  await server.query(`create role ${name} login password '${PASSWORD}'`);
  const url = new URL(SERVER_URL);
  url.pathname = `/${name}`;
  const roleUrl = new URL(url);
  [roleUrl.username, roleUrl.password] = [name, PASSWORD];
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  await client.query('create extension vector');
  const sql = async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
    (await client.query<Row>(text, [...values])).rows;
  return {
    url: url.href,
    role: name,
    roleUrl: roleUrl.href,
    sql,
    async grant(privileges) {
      for (const { schema } of await sql<{ schema: string }>(SCHEMAS)) {
        await sql(`grant usage on schema ${schema} to ${name}`);
        await sql(`grant ${privileges} on all tables in schema ${schema} to ${name}`);
        if (privileges.includes('insert')) await sql(`grant usage on all sequences in schema ${schema} to ${name}`);
      }
    },
    async rows() {
      const tables = await sql<{ table: string }>(
        `select c.oid::regclass::text as table from pg_class c where c.relkind = 'r'
         and c.relnamespace::regnamespace::text in (${SCHEMAS}) order by 1`,
      );
      const all: Record<string, readonly unknown[]> = {};
      for (const { table } of tables) {
        all[table] = await sql(`select ctid::text, xmin::text, md5(t::text) as row from ${table} t order by t.ctid`);
      }
      return all;
    },
    async reset() {
      for (const { schema } of await sql<{ schema: string }>(SCHEMAS)) await sql(`drop schema ${schema} cascade`);
      await sql(
        'reset search_path; create schema public; grant usage on schema public to public; create extension vector',
      );
    },
    async close() {
      await client.end();
      // Pools of libraries close in the background, and report an error if the database drops them first.
      for (let looks = 0; looks < MAX_LOOKS && (await isUsed(server, name)); looks++) await sleep(LOOK_MS);
      await server.query(`drop database ${name} with (force)`);
      await server.query(`drop role ${name}`);
      await server.end();
    },
  };
}

const LOOK_MS = 20;
const MAX_LOOKS = 500;

async function isUsed(server: pg.Client, database: string): Promise<boolean> {
  const { rowCount } = await server.query('select from pg_stat_activity where datname = $1', [database]);
  return rowCount !== 0;
}

/** All but Postgres' own, quoted. */
const SCHEMAS = `select oid::regnamespace::text as schema from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'`;
