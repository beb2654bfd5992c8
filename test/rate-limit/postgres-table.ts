import pg from 'pg';
import { onTestFinished } from 'vitest';
import { MIGRATIONS } from '../../providers/postgres/startup/migrations.ts';
import { toNames } from '../../providers/postgres/tables/names.ts';

/** Makes the schema and its tables as the migration does, without what needs pgvector. */
export async function createTables(url: string, schema: string): Promise<void> {
  const names = toNames(schema, 'public');
  const access = MIGRATIONS.find(({ name }) => name === 'access');
  await onServer(url, `create schema ${names.schema}`, access?.sql(names) ?? '');
}

/** The same, gone after the test. */
export async function temporaryTables(url: string, schema: string): Promise<void> {
  await createTables(url, schema);
  onTestFinished(() => onServer(url, `drop schema ${pg.escapeIdentifier(schema)} cascade`));
}

/** Runs statements on a connection of their own. */
async function onServer(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
