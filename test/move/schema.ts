import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { SERVER_URL } from '../support/postgres-server.ts';

/** Settings of a gateway in a schema of its own, dropped after the test; undefined: there is no server. */
export async function serverForSchema(): Promise<Record<string, string> | undefined> {
  if (SERVER_URL === '') return undefined;
  const schema = `omp_test_${randomBytes(6).toString('hex')}`;
  onTestFinished(async () => {
    const client = new pg.Client({ connectionString: SERVER_URL });
    await client.connect();
    await client.query(`drop schema if exists "${schema}" cascade`);
    await client.end();
  });
  return { DATABASE_URL: SERVER_URL, OMP_POSTGRES_SCHEMA: schema };
}
