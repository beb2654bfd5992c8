import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { openSubject, type Subject, type SubjectOptions, UNHURRIED_POSTGRES } from './subject.ts';

/** A real PostgreSQL server with pgvector, for the tests that ask for one. */
export const SERVER_URL = process.env.TEST_DATABASE_URL ?? '';
export const NO_SERVER = 'TEST_DATABASE_URL is not set: no PostgreSQL server to test on';

/** TEST_DISTRIBUTED=citus: the server is the coordinator of a Citus, and the tables of every test are distributed. */
export const IS_CITUS = process.env.TEST_DISTRIBUTED === 'citus';
export const SERVER_OPTIONS = { url: SERVER_URL, ...(IS_CITUS && { distributed: 'citus' }) };

/** A schema of its own on the server, which is dropped when the backend closes. */
export function serverBackend(options: object = {}) {
  const schema = `omp_test_${randomBytes(6).toString('hex')}`;
  return {
    options: { ...UNHURRIED_POSTGRES, ...SERVER_OPTIONS, schema, ...options },
    async close(): Promise<void> {
      const client = new pg.Client({ connectionString: SERVER_URL });
      await client.connect();
      await client.query(`drop schema if exists "${schema}" cascade`);
      await client.end();
    },
  };
}

/** Opens the postgres provider on it. */
export const openServerSubject = async (
  options: object = {},
  mode?: SubjectOptions['mode'],
  more: Partial<SubjectOptions> = {},
): Promise<Subject> => {
  const backend = serverBackend(options);
  const subject = await openSubject({ ...more, provider: 'postgres', options: backend.options, ...(mode && { mode }) });
  return {
    ...subject,
    close: async () => {
      await subject.close();
      await backend.close();
    },
  };
};
