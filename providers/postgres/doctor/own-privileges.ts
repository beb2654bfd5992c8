import pg from 'pg';
import type { Finding } from '#contract';
import { halfRestored } from '../migrate.ts';
import { ok, problem, warning } from './findings.ts';
import type { Read } from './reading.ts';

const NEEDED = ['select', 'insert', 'update', 'delete'] as const;

interface Schema {
  readonly exists: boolean;
  readonly role: string;
  readonly database: string;
  readonly may_make: boolean;
  readonly usage: boolean | null;
  readonly create: boolean | null;
}

interface OwnTable {
  readonly name: string;
  readonly lacking: readonly string[];
  readonly owned: boolean;
  readonly hidden: boolean;
}

/** `complete`: there are tables, and they can be read. */
export async function lookAtOwnPrivileges(
  read: Read,
  schema: string,
): Promise<{ findings: Finding[]; complete: boolean }> {
  const [about] = (await read<Schema>(
    `select n.oid is not null as exists, current_user as role, current_database() as database,
       has_database_privilege(current_database(), 'create') as may_make,
       has_schema_privilege(n.oid, 'usage') as usage, has_schema_privilege(n.oid, 'create') as create
     from (values ($1::text)) as wanted(name) left join pg_namespace n on n.nspname = wanted.name`,
    [schema],
  )) as [Schema];
  const [name, role] = [schema, about.role].map(pg.escapeIdentifier) as [string, string];
  const only = (finding: Finding) => ({ findings: [finding], complete: false });
  if (!about.exists) return only(withoutSchema(name, role, about));
  if (!about.usage) {
    const sql = `grant usage, create on schema ${name} to ${role};`;
    return only(problem('privileges', `the role may not use the schema ${name}`, { sql, reason: 'as its owner' }));
  }
  const tables = await readTables(read, schema);
  const there = (name: string) => tables.some((table) => table.name === name);
  if (!there('migrations') && there('memories'))
    return only(problem('privileges', halfRestored(schema, ['migrations'])));
  if (!there('migrations')) return only(withoutTables(name, role, about));
  return judge(tables, name, role);
}

function withoutSchema(name: string, role: string, { may_make, database }: Schema): Finding {
  if (may_make) return ok('privileges', `there is no schema ${name} yet; the gateway makes it at its first start`);
  return problem(
    'privileges',
    `there is no schema ${name}, and the role may not make it`,
    { sql: `create schema ${name} authorization ${role};`, reason: 'makes it for the gateway; or else' },
    {
      sql: `grant create on database ${pg.escapeIdentifier(database)} to ${role};`,
      reason: 'lets the gateway make it',
    },
  );
}

function withoutTables(name: string, role: string, { create }: Schema): Finding {
  if (create)
    return ok('privileges', `the schema ${name} has no tables yet; the gateway makes them at its first start`);
  const sql = `grant create on schema ${name} to ${role};`;
  return problem('privileges', `the role may not make tables in the schema ${name}`, { sql, reason: 'as its owner' });
}

const readTables = (read: Read, schema: string): Promise<OwnTable[]> =>
  read<OwnTable>(
    `select c.relname as name, pg_has_role(c.relowner, 'usage') as owned, row_security_active(c.oid) as hidden,
       array(select p from unnest($2::text[]) as p where not has_table_privilege(c.oid, p)) as lacking
     from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind = 'r'`,
    [schema, NEEDED],
  );

function judge(tables: readonly OwnTable[], name: string, role: string) {
  const findings: Finding[] = [];
  const lacking = tables.filter(({ lacking }) => lacking.length > 0);
  if (lacking.length > 0) {
    const what = lacking.map((table) => `${table.lacking.join(', ')} on ${table.name}`).join('; ');
    const sql = `grant ${NEEDED.join(', ')} on all tables in schema ${name} to ${role};`;
    findings.push(problem('privileges', `the role lacks ${what}`, { sql, reason: 'as the owner of the tables' }));
  } else findings.push(ok('privileges', 'the role may read and write all tables of the gateway'));
  const foreign = tables.filter(({ owned }) => !owned);
  if (foreign.length > 0) {
    findings.push(
      warning(
        'privileges',
        'the role does not own the tables, so it cannot migrate them, nor run "omp-gateway reembed"',
        {
          sql: foreign
            .map((table) => `alter table ${name}.${pg.escapeIdentifier(table.name)} owner to ${role};`)
            .join(' '),
          reason: 'or start new versions of the gateway once with a role that owns them',
        },
      ),
    );
  }
  const hidden = tables.filter((table) => table.hidden);
  if (hidden.length > 0) {
    findings.push(
      warning(
        'privileges',
        `row security decides what the role sees of ${hidden.map((table) => table.name).join(', ')}`,
        {
          sql: `alter role ${role} bypassrls;`,
          reason: 'the gateway has to see all rows: it filters by user itself',
        },
      ),
    );
  }
  return { findings, complete: lacking.every((table) => !table.lacking.includes('select')) };
}
