import { rm } from 'node:fs/promises';
import pg from 'pg';
import { expect } from 'vitest';
import { startEngine } from '../../providers/postgres/embedded/engine.ts';
import { randomName } from '../postgres/store.ts';
import { eventually } from '../support/eventually.ts';
import { SERVER_URL } from '../support/postgres-server.ts';
import { makeDataDir, recordingLog } from '../support/subject.ts';

/** A database of the test's own with pgvector, where the tables of libraries have their usual names. */
export interface EmptyDatabase {
  /** As its owner. */
  readonly url: string;
  sql<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Empties it: drops every schema, and creates `public` with pgvector again. */
  reset(): Promise<void>;
  /** Drops it, once no connection is open. */
  close(): Promise<void>;
}

/** On the server, with a role. */
export interface LibraryDatabase extends EmptyDatabase {
  /** A role that may log in and, before `grant`, nothing else. */
  readonly role: string;
  readonly roleUrl: string;
  /** Grants privileges on all tables to the role: `select, insert`. */
  grant(privileges: string): Promise<void>;
  /** Every row of every table with its position and transaction, so that a rewritten one differs too. */
  rows(): Promise<Readonly<Record<string, readonly unknown[]>>>;
}

const PASSWORD = 'secret';

/** On a PostgreSQL server where there is one, else an embedded engine of its own. */
export const openEmptyDatabase = (): Promise<EmptyDatabase> =>
  SERVER_URL === '' ? openEmbedded() : openOnServer(randomName());

async function openEmbedded(): Promise<EmptyDatabase> {
  const folder = await makeDataDir(process.env.TEST_RUN_FOLDER);
  const engine = await startEngine(folder, recordingLog());
  const host = encodeURIComponent(engine.config.host as string);
  const { client, ...database } = await openClient(`postgres://postgres@localhost/postgres?host=${host}`);
  return {
    ...database,
    async close() {
      await client.end();
      await engine.close();
      await rm(folder, { recursive: true });
    },
  };
}

async function openClient(url: string): Promise<Omit<EmptyDatabase, 'close'> & { readonly client: pg.Client }> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('create extension if not exists vector');
  const sql = async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
    (await client.query<Row>(text, [...values])).rows;
  return {
    ...{ url, sql, client },
    async reset() {
      for (const { schema } of await sql<{ schema: string }>(SCHEMAS)) await sql(`drop schema ${schema} cascade`);
      await client.query(
        'reset search_path; create schema public; grant usage on schema public to public; create extension vector',
      );
    },
  };
}

async function openOnServer(name: string): Promise<EmptyDatabase> {
  const server = new pg.Client({ connectionString: SERVER_URL });
  await server.connect();
  await server.query(`create database ${name}`);
  const { client, ...database } = await openClient(Object.assign(new URL(SERVER_URL), { pathname: `/${name}` }).href);
  return {
    ...database,
    async close() {
      await client.end();
      // Pools of libraries close in the background, and report an error if the database drops them first.
      await eventually(async () => {
        const { rowCount } = await server.query('select from pg_stat_activity where datname = $1', [name]);
        expect(rowCount).toBe(0);
      });
      await server.query(`drop database ${name} with (force)`);
      await server.end();
    },
  };
}

export async function openLibraryDatabase(): Promise<LibraryDatabase> {
  const name = randomName();
  const { sql, ...database } = await openOnServer(name);
  await sql(`create role ${name} login password '${PASSWORD}'`);
  return {
    ...{ ...database, sql, role: name },
    roleUrl: Object.assign(new URL(database.url), { username: name, password: PASSWORD }).href,
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
    async close() {
      // Grants are objects of the database that keep a role.
      await sql(`drop owned by ${name}`);
      await sql(`drop role ${name}`);
      await database.close();
    },
  };
}

/** The schemas besides those of Postgres, quoted. */
const SCHEMAS = `select oid::regnamespace::text as schema from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'`;
