import pg, { type ClientBase } from 'pg';
import type { StoredReference } from './field-mapping.ts';

/** A table as Postgres' catalogue describes it. Names are not quoted. */
export interface Table {
  readonly schema: string;
  readonly name: string;
  readonly kind: 'table' | 'partitioned' | 'view' | 'materialized view' | 'foreign';
  /** The planner's estimate; null if it has none. */
  readonly rows: number | null;
  readonly columns: ReadonlyMap<string, Column>;
  readonly indexes: readonly Index[];
  /** The role that the gateway connects as. */
  readonly role: string;
  /** Privileges of that role. */
  readonly may: {
    readonly select: boolean;
    readonly insert: boolean;
    readonly update: boolean;
    readonly delete: boolean;
  };
  /** Whether row security limits what this role sees. */
  readonly rowSecurity: boolean;
}

export interface Column {
  readonly name: string;
  /** As Postgres prints it: `character varying(191)`, `vector(1536)`, `jsonb`. */
  readonly type: string;
  /** The type without its length, beneath domains: `varchar`, `vector`, `jsonb`, `timestamptz`, `_text`. */
  readonly base: string;
  readonly notNull: boolean;
  readonly hasDefault: boolean;
  /** The database computes it: a generated column, or an identity column that takes no values. */
  readonly generated: boolean;
  /** Whether only equal bytes are equal: false under a nondeterministic collation. */
  readonly deterministic: boolean;
  /** Declared length of a vector; null for any other column. */
  readonly dimensions: number | null;
}

export interface Index {
  readonly name: string;
  readonly method: string;
  readonly unique: boolean;
  readonly primary: boolean;
  /** Built, and used by the planner. */
  readonly valid: boolean;
  readonly partial: boolean;
  readonly keys: readonly {
    /** Null for an expression. */
    readonly column: string | null;
    /** As Postgres prints it, without an alias: `embedding`, `((metadata ->> 'user_id'::text))`. */
    readonly expression: string;
    /** `vector_cosine_ops`, `jsonb_path_ops`, `text_ops`… */
    readonly opclass: string;
  }[];
}

/** The installed pgvector. */
export interface VectorExtension {
  readonly schema: string;
  readonly version: string;
}

export const noColumn = (setting: string, table: Table, column: string): string =>
  `${setting}: ${table.schema}.${table.name} has no column "${column}"; it has ${[...table.columns.keys()].join(', ')}`;

// Indexes

/** Whether an index serves a query by this reference: on the column itself, or on the path as `->>` reads it. */
export const hasIndexOn = (table: Table, reference: StoredReference): boolean =>
  table.indexes.some(
    (index) =>
      isUsable(index) && ['btree', 'hash'].includes(index.method) && isOn(index.keys[0]?.expression, reference),
  );

/** Whether an index serves `@>` on a column of jsonb. */
export const hasContainment = (table: Table, column: string): boolean =>
  table.indexes.some(
    (index) =>
      isUsable(index) &&
      index.method === 'gin' &&
      index.keys.some((key) => key.column === column && /^jsonb_(?:path_)?ops$/.test(key.opclass)),
  );

/** Whether these columns identify a row. */
export const hasUnique = (table: Table, columns: readonly string[]): boolean =>
  table.indexes.some(
    (index) =>
      isUsable(index) &&
      index.unique &&
      index.keys.length === columns.length &&
      index.keys.every(({ column }) => column !== null && columns.includes(column)),
  );

/** Whether these columns identify a row within each partition: a unique index over all of them has the partition key too. */
export const hasUniqueInPartitions = ({ kind, indexes }: Table, columns: readonly string[]): boolean =>
  kind === 'partitioned' &&
  indexes.some(
    (index) =>
      isUsable(index) && index.unique && columns.every((name) => index.keys.some(({ column }) => column === name)),
  );

/** Whether the planner may use an index for every row. */
const isUsable = ({ valid, partial }: Index): boolean => valid && !partial;

function isOn(expression: string | undefined, reference: StoredReference): boolean {
  const wanted =
    reference.kind === 'column'
      ? reference.column
      : `${reference.column}${reference.path.map((key, step) => `${step === reference.path.length - 1 ? '->>' : '->'}'${key}'`).join('')}`;
  return expression !== undefined && plainExpression(expression) === plainExpression(wanted);
}

/** Removes what Postgres adds when it prints an expression. */
export const plainExpression = (expression: string): string => expression.replace(/::text|[\s()"]/g, '');

// Reading the catalogue

/** A table, or why it cannot be read. */
export type TableLookup = { readonly table: Table } | { readonly mistake: string };

const KINDS: Readonly<Record<string, Table['kind']>> = {
  r: 'table',
  p: 'partitioned',
  v: 'view',
  m: 'materialized view',
  f: 'foreign',
};

interface Relation extends Pick<Table, 'rows' | 'role' | 'may' | 'rowSecurity'> {
  readonly oid: number;
  readonly kind: string;
  readonly usage: boolean;
}

/** Reads a table or view by its exact name. `named` is the setting that a message names. */
export async function readTable(client: ClientBase, schema: string, name: string, named: string): Promise<TableLookup> {
  const { rows } = await client.query<Relation>(RELATION, [schema, name]);
  const [relation] = rows;
  if (relation === undefined) return { mistake: await missing(client, { schema, name, named }) };
  const { oid, kind, usage, ...rest } = relation;
  const label = `${schema}.${name}`;
  const lacks = (what: string, grant: string) => ({
    mistake: `${named}: the role of the gateway has no ${what}; ${grant}`,
  });
  if (!usage) return lacks(`USAGE on the schema ${schema}`, grantOf('usage', { ...rest, schema }));
  if (!rest.may.select) return lacks(`SELECT on ${label}`, grantOf('select', { ...rest, schema, name }));
  const columns = await client.query<Column>(COLUMNS, [oid]);
  const indexes = await client.query<Index>(INDEXES, [oid]);
  return {
    table: {
      schema,
      name,
      kind: KINDS[kind] as Table['kind'],
      ...rest,
      columns: new Map(columns.rows.map((column) => [column.name, column])),
      indexes: indexes.rows,
    },
  };
}

/** A statement for the operator to run; without a name, on the schema. */
export function grantOf(
  what: string,
  { schema, name, role }: Pick<Table, 'schema' | 'role'> & { name?: string },
): string {
  const [quotedSchema, quotedRole] = [schema, role].map(pg.escapeIdentifier);
  const on = name === undefined ? `schema ${quotedSchema}` : `${quotedSchema}.${pg.escapeIdentifier(name)}`;
  return `run: grant ${what} on ${on} to ${quotedRole}`;
}

/** Undefined if the database has no pgvector. */
export async function readExtension(client: ClientBase): Promise<VectorExtension | undefined> {
  const { rows } = await client.query<VectorExtension>(
    `select n.nspname as schema, e.extversion as version
       from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'`,
  );
  return rows[0];
}

/** Some views take no writes, whatever the privileges of the role. */
const RELATION = `
  select c.oid::int8::float8 as oid, c.relkind as kind,
    case when c.reltuples >= 0 and c.relkind in ('r', 'm') then c.reltuples::float8 end as rows,
    has_schema_privilege(n.oid, 'usage') as usage, current_user as role,
    json_build_object(
      'select', has_table_privilege(c.oid, 'select'),
      'insert', has_table_privilege(c.oid, 'insert') and can & 8 > 0,
      'update', has_table_privilege(c.oid, 'update') and can & 4 > 0,
      'delete', has_table_privilege(c.oid, 'delete') and can & 16 > 0) as may,
    row_security_active(c.oid) as "rowSecurity"
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace,
    lateral (select pg_relation_is_updatable(c.oid, false) as can) as u
  where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p', 'v', 'm', 'f')`;

const COLUMNS = `
  with recursive resolved as (
    select a.attnum, a.atttypid as type, a.atttypmod as modifier, a.attnotnull as strict, a.atthasdef as filled
      from pg_catalog.pg_attribute a where a.attrelid = $1 and a.attnum > 0 and not a.attisdropped
    union all
    select r.attnum, t.typbasetype, case when r.modifier >= 0 then r.modifier else t.typtypmod end,
        r.strict or t.typnotnull, r.filled or t.typdefault is not null
      from resolved r join pg_catalog.pg_type t on t.oid = r.type where t.typtype = 'd')
  select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, t.typname as base, r.strict as "notNull",
    r.filled or a.attidentity <> '' as "hasDefault", a.attgenerated <> '' or a.attidentity = 'a' as generated,
    coalesce(c.collisdeterministic, true) as deterministic,
    case when t.typname in ('vector', 'halfvec') and r.modifier > 0 then r.modifier end as dimensions
  from resolved r
    join pg_catalog.pg_type t on t.oid = r.type and t.typtype <> 'd'
    join pg_catalog.pg_attribute a on a.attrelid = $1 and a.attnum = r.attnum
    left join pg_catalog.pg_collation c on c.oid = a.attcollation
  order by a.attnum`;

const INDEXES = `
  select c.relname as name, m.amname as method, i.indisunique as "unique", i.indisprimary as "primary",
    i.indisvalid and i.indisready as valid, i.indpred is not null as partial,
    (select json_agg(json_build_object(
        'column', a.attname,
        'expression', pg_get_indexdef(i.indexrelid, k, false),
        'opclass', o.opcname) order by k)
      from generate_series(1, i.indnkeyatts) as k
        join pg_catalog.pg_opclass o on o.oid = i.indclass[k - 1]
        left join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[k - 1] and a.attnum <> 0) as keys
  from pg_catalog.pg_index i
    join pg_catalog.pg_class c on c.oid = i.indexrelid
    join pg_catalog.pg_am m on m.oid = c.relam
  where i.indrelid = $1 order by c.relname`;

/** Tables of all schemas that hold vectors, and the others of these schemas, as far as the role may read them. */
export async function tablesNearVectors(client: ClientBase): Promise<Table[]> {
  const { rows } = await client.query<{ schema: string; name: string }>(NEAR_VECTORS);
  const found: Table[] = [];
  for (const { schema, name } of rows) {
    const lookup = await readTable(client, schema, name, '');
    if ('table' in lookup) found.push(lookup.table);
  }
  return found;
}

/** So many at most: two queries describe each. */
const NEAR_VECTORS = `
  select n.nspname as schema, c.relname as name
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where c.relkind in ('r', 'p') and not c.relispartition and exists (
     select from pg_catalog.pg_attribute a join pg_catalog.pg_type t on t.oid = a.atttypid join pg_catalog.pg_class o on o.oid = a.attrelid
      where o.relnamespace = n.oid and o.relkind in ('r', 'p') and not a.attisdropped and t.typname in ('vector', 'halfvec'))
   order by 1, 2 limit 100`;

/** Suggests tables in other schemas or with similar names. */
async function missing(
  client: ClientBase,
  { schema, name, named }: { readonly schema: string; readonly name: string; readonly named: string },
): Promise<string> {
  const { rows } = await client.query<{ schema: string; name: string }>(
    `select n.nspname as schema, c.relname as name
       from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
      order by 1, 2`,
  );
  const plain = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
  const isNear = (other: string) =>
    plain(other) === plain(name) ||
    (other.length > 3 && name.length > 3 && (other.includes(name) || name.includes(other)));
  const same = rows.filter((row) => row.name === name).map((row) => `${row.schema}.${row.name}`);
  const near = rows.filter((row) => row.name !== name && isNear(row.name)).map((row) => `${row.schema}.${row.name}`);
  const others = [...same, ...near].slice(0, 5);
  const hint = others.length > 0 ? `similar names: ${others.join(', ')}` : 'no table has a similar name';
  return `${named}: there is no table ${schema}.${name}; ${hint}`;
}
