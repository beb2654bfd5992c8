import pg from 'pg';
import { onTestFinished } from 'vitest';
import type { Finding, MaintenanceContext } from '#contract';
import { providerModule } from '../../src/registry.ts';
import { hashingEmbedder } from '../support/hashing-embedder.ts';
import { SERVER_URL } from '../support/postgres-server.ts';
import { contextOf } from '../support/requests.ts';
import { randomName } from './store.ts';

export interface TestDatabase {
  readonly url: string;
  sql<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** URL of a new role that may log in. The statements grant it more; they call it `ROLE`. */
  role(...statements: readonly string[]): Promise<string>;
  /** Everything that a change would change. */
  state(): Promise<unknown>;
}

/** A new database on the server with these options. The database and its roles are dropped after the test. */
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

const HYBRID = { mode: 'hybrid', keyword_weight: 0.5 } as const;

/** What the doctor finds with the options and the context of a gateway. */
export async function findingsOn(
  url: string | undefined,
  options: object = {},
  context: Partial<MaintenanceContext> = {},
): Promise<Finding[]> {
  const { diagnose } = await providerModule('postgres');
  const found = await diagnose?.(
    { ...(url !== undefined && { url }), ...options },
    contextOf({ embedder: hashingEmbedder(), ranking: HYBRID, audit: undefined, data_dir: '/nowhere', ...context }),
  );
  return found as Finding[];
}

export const KEYWORD = { embedder: undefined, ranking: { mode: 'keyword', keyword_weight: 0.5 } } as const;

/** `area: message` of all findings of a level. */
export const told = (findings: readonly Finding[], ...levels: readonly Finding['level'][]): string[] =>
  findings.filter(({ level }) => levels.includes(level)).map(({ area, message }) => `${area}: ${message}`);

type Asked = Parameters<typeof findingsOn>;
export const problemsOn = async (...asked: Asked): Promise<string[]> => told(await findingsOn(...asked), 'problem');
export const warningsOn = async (...asked: Asked): Promise<string[]> => told(await findingsOn(...asked), 'warning');
export const factsOn = async (...asked: Asked): Promise<string[]> => told(await findingsOn(...asked), 'ok');

/** What the doctor would have an operator run. */
export const remediesOf = (findings: readonly Finding[]): string[] =>
  findings.flatMap(({ remedies = [] }) => remedies.map(({ sql }) => sql));
