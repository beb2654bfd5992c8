import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { SERVER_URL } from '../support/postgres-server.ts';

/** An empty database, without the extension, on the server; gone after the test. */
export async function temporaryDatabase(): Promise<string> {
  const name = `omp_test_${randomBytes(6).toString('hex')}`;
  await onDatabase(SERVER_URL, `create database ${name}`);
  onTestFinished(() => onDatabase(SERVER_URL, `drop database ${name} with (force)`));
  const url = new URL(SERVER_URL);
  url.pathname = `/${name}`;
  return url.href;
}

export async function onDatabase(url: string, statements: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(statements).finally(() => client.end());
}
