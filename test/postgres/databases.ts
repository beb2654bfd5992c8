import pg from 'pg';
import { onTestFinished } from 'vitest';
import type { Finding, MaintenanceContext } from '#contract';
import { diagnose } from '../../src/registry.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { SERVER_URL } from '../support/postgres-server.ts';
import { recordingLog } from '../support/subject.ts';
import { randomName } from './store.ts';

export interface TestDatabase {
  readonly url: string;
  sql<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** URL of a new role that may log in, and what else is granted by these statements, `ROLE` standing for it. */
  role(...statements: readonly string[]): Promise<string>;
  /** Everything that a change would change. */
  state(): Promise<unknown>;
}

/** A database of the test's own on the server, made with these options, and roles, gone after the test. */
export async function testDatabase(serverUrl = SERVER_URL, options = ''): Promise<TestDatabase> {
  const name = randomName();
  const server = new pg.Client({ connectionString: serverUrl });
  await server.connect();
  await server.query(`create database ${name} ${options}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  const roles: string[] = [];
  onTestFinished(async () => {
    await client.end();
    await server.query(`drop database ${name} with (force)`);
    for (const role of roles) await server.query(`drop role ${role}`);
    await server.end();
  });
  const sql = async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
    (await client.query<Row>(text, [...values])).rows;
  return {
    url: url.href,
    sql,
    async role(...statements) {
      const role = randomName();
      roles.push(role);
      await server.query(`create role ${role} login password 'hunter2'`);
      for (const statement of statements) await sql(statement.replaceAll('ROLE', role));
      const as = new URL(url);
      as.username = role;
      as.password = 'hunter2';
      return as.href;
    },
    async state() {
      const tables = await sql<{ name: string }>(
        `select quote_ident(schemaname) || '.' || quote_ident(relname) as name from pg_stat_user_tables order by 1`,
      );
      const rows = tables.map(({ name }) =>
        sql(
          `select $1 as name, md5(coalesce(string_agg(concat(ctid, xmin, t), ',' order by ctid), '')) from ${name} t`,
          [name],
        ),
      );
      return {
        catalogue: await sql(
          'select oid::int, relname, relfilenode::int, reltuples, relpages from pg_class order by oid',
        ),
        rows: await Promise.all(rows),
      };
    },
  };
}

/** What the doctor finds, asked as the gateway asks. */
export async function findingsOn(
  url: string | undefined,
  options: object = {},
  context: Partial<MaintenanceContext> = {},
): Promise<Finding[]> {
  const found = await diagnose(
    'postgres',
    { ...(url !== undefined && { url }), ...options },
    {
      embedder: hashingEmbedder(),
      ranking: { mode: 'hybrid', keyword_weight: 0.5 },
      audit: undefined,
      data_dir: '/nowhere',
      log: recordingLog(),
      ...context,
    },
  );
  return found as Finding[];
}

export const KEYWORD = { embedder: undefined, ranking: { mode: 'keyword', keyword_weight: 0.5 } } as const;

/** `area: message` of all findings of a level. */
export const told = (findings: readonly Finding[], ...levels: readonly Finding['level'][]): string[] =>
  findings.filter(({ level }) => levels.includes(level)).map(({ area, message }) => `${area}: ${message}`);

/** What the doctor would have an operator run. */
export const remediesOf = (findings: readonly Finding[]): string[] =>
  findings.flatMap(({ remedies = [] }) => remedies.map(({ sql }) => sql));
