import pg from 'pg';
import { memories } from './migrations/0001-memories.ts';
import { access } from './migrations/0002-access.ts';
import { reembed } from './migrations/0003-reembed.ts';
import { ingestion } from './migrations/0004-ingestion.ts';
import type { Names } from './names.ts';

/** Append only: a migration that was released is never edited. */
export const MIGRATIONS: readonly { name: string; sql: (names: Names) => string }[] = [
  { name: 'memories', sql: memories },
  { name: 'access', sql: access },
  { name: 'reembed', sql: reembed },
  { name: 'ingestion', sql: ingestion },
];

/** The version since which there is a queue of memories without vectors. */
export const INGESTION = 4;

/**
 * Brings the schema up to date. Safe to run by several replicas at once: the whole runs in the caller's transaction,
 * one replica at a time. Throws when the schema was made by a newer gateway.
 */
export async function migrate(client: pg.Client, schema: string, names: Names): Promise<void> {
  await client.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`omp-gateway ${schema}`]);
  const exists = await client.query('select 1 from pg_namespace where nspname = $1', [schema]);
  // Even "if not exists" asks for the right to create, which a careful operator does not grant.
  if (exists.rowCount === 0) await client.query(`create schema ${names.schema}`);
  const made = await client.query<{ table: string | null }>('select to_regclass($1) as table', [names.migrations]);
  if (made.rows[0]?.table === null) {
    await client.query(
      `create table ${names.migrations} (
         version integer primary key, name text not null, applied_at timestamptz not null default now())`,
    );
  }
  const applied = await client.query<{ version: number }>(
    `select coalesce(max(version), 0) as version from ${names.migrations}`,
  );
  const version = applied.rows[0]?.version ?? 0;
  if (version > MIGRATIONS.length) {
    throw new Error(
      `the schema "${schema}" is at version ${version}, newer than this gateway knows (${MIGRATIONS.length}); upgrade omp-gateway`,
    );
  }
  const tables = await client.query<{ memories: string | null }>('select to_regclass($1) as memories', [
    names.memories,
  ]);
  if (version === 0 && tables.rows[0]?.memories !== null) throw new Error(halfRestored(schema, [names.migrations]));
  const missing = (await client.query<{ name: string }>(missingTables(names, version))).rows;
  if (missing.length > 0)
    throw new Error(
      halfRestored(
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

/** Selects the tables of this version that are not there, or have lost their primary key. */
export function missingTables(names: Names, version: number): string {
  const made = MIGRATIONS.slice(0, version).flatMap(({ sql }) => [
    ...sql(names)
      .replace(/--[^\n]*/g, '')
      .matchAll(/create (?:unlogged )?table (.+?) \(\n([^;]*)\);/g),
  ]);
  // Names that are quoted already, of our own making.
  const wanted = made.map(
    ([, table = '', body = '']) => `(${pg.escapeLiteral(table)}, ${body.includes('primary key')})`,
  );
  return `select name from (values ${[...wanted, '(null, false)'].join(', ')}) as wanted (name, has_key)
    where to_regclass(name) is null and name is not null
      or has_key and not exists (select from pg_constraint where conrelid = to_regclass(name) and contype = 'p')`;
}

export const halfRestored = (schema: string, missing: readonly string[]): string =>
  `the schema "${schema}" was restored only in part: ${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing or without primary key; drop the schema, run "create extension vector", and restore the backup again (docs/operations.md, "Backup and restore")`;
