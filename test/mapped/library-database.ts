import pg from 'pg';
import { expect } from 'vitest';
import { randomName } from '../postgres/store.ts';
import { eventually } from '../support/eventually.ts';
import { SERVER_URL } from '../support/postgres-server.ts';

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
  /** Drops it and the role, once no connection is open. */
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
      await eventually(async () => {
        const { rowCount } = await server.query('select from pg_stat_activity where datname = $1', [name]);
        expect(rowCount).toBe(0);
      });
      await server.query(`drop database ${name} with (force)`);
      await server.query(`drop role ${name}`);
      await server.end();
    },
  };
}

/** The schemas besides those of Postgres, quoted. */
const SCHEMAS = `select oid::regnamespace::text as schema from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'`;
