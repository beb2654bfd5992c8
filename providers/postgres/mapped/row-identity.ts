import pg, { type ClientBase } from 'pg';
import type { Conditions } from '../sql/conditions.ts';
import { toTextArray } from '../sql/values.ts';
import { type Column, hasContainment, hasIndexOn, hasUnique, noColumn, readTable, type Table } from './catalogue.ts';
import type { ColumnReference, StoredReference } from './field-mapping.ts';
import type { Id, Owner } from './layout.ts';
import type { ResolvedMapping } from './mapping.ts';
import type { Collection } from './presets.ts';
import { byBytes, documentSql, documentWith, isJson, isText, jsonSql, textAt } from './value-sql.ts';

// Ids

/** Column types that ids may have, and the cast of a parameter to compare with. */
const ID_CASTS: Readonly<Record<string, string>> = {
  text: '::text',
  varchar: '::text',
  bpchar: '::bpchar',
  uuid: '::uuid',
  int2: '::int2',
  int4: '::int4',
  int8: '::int8',
};

/** The columns that make up an id. Adds mistakes to the list. */
export function idColumns(table: Table, names: readonly string[], mistakes: string[]): Column[] {
  return names.flatMap((name) => {
    const column = table.columns.get(name);
    if (column && column.base in ID_CASTS) return column;
    mistakes.push(
      column
        ? `OMP_MAPPING_ID: the column "${name}" of ${table.schema}.${table.name} is ${column.type}; it must be text, varchar, uuid, smallint, integer or bigint`
        : noColumn('OMP_MAPPING_ID', table, name),
    );
    return [];
  });
}

/** An id is the value of one column, or the values of several joined by slashes. */
export function createId(columns: readonly Column[], newIds: ResolvedMapping['new_ids']): Id {
  const last = columns.length - 1;
  const inRow = ({ name }: Column) => `t.${pg.escapeIdentifier(name)}`;
  const read = columns.map((column, part) => {
    const { base } = column;
    const text = `${byBytes(inRow(column), column)}${base === 'text' || base === 'varchar' ? '' : '::text'}`;
    return part < last ? `replace(replace(${text}, '%', '%25'), '/', '%2F')` : text;
  });
  return {
    read: read.join(` || '/' || `),
    columns: columns.map((column) => {
      const [indexed, cast] = [inRow(column), ID_CASTS[column.base] as string];
      const sql = byBytes(indexed, column);
      return {
        sql,
        column: pg.escapeIdentifier(column.name),
        cast,
        // The first condition uses the index; under a nondeterministic collation it matches more than one row.
        is: (parameter) => [...new Set([indexed, sql])].map((each) => `${each} = ${parameter}${cast}`).join(' and '),
      };
    }),
    parts(id) {
      const cut = id.split('/');
      if (cut.length <= last) return undefined;
      const parts = [...cut.slice(0, last).map(decode), cut.slice(last).join('/')];
      const whole = parts.filter((part) => part !== undefined);
      return whole.length === parts.length && whole.every((part, at) => fits(columns[at]?.base ?? '')(part))
        ? whole
        : undefined;
    },
    newIds: newIdsOf(newIds, columns),
  };
}

/** Whether an index makes sure that a key has one row: by itself, or within the collection that is served. */
export const isUnique = (table: Table, { id, collection }: Pick<ResolvedMapping, 'id' | 'collection'>): boolean =>
  hasUnique(table, id) ||
  (collection !== undefined && !collection.named && hasUnique(table, [...id, collection.column]));

/** The ids of new rows: as the setting says, else by the type of the column. */
export function newIdsOf(setting: ResolvedMapping['new_ids'], [column]: readonly Column[]): Id['newIds'] {
  if (setting !== undefined) return setting;
  if (column === undefined || isText(column.base)) return 'text';
  return column.base === 'uuid' ? 'uuid' : 'database';
}

/** Undefined for a text that encoding never produces. */
const decode = (part: string): string | undefined =>
  /%(?!25|2F)/.test(part) ? undefined : part.replaceAll('%2F', '/').replaceAll('%25', '%');

/** Whether a column of a type can hold a text, and reads it back in the same spelling. */
function fits(base: string): (text: string) => boolean {
  if (base === 'uuid') return (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
  const bits = { int2: 16, int4: 32, int8: 64 }[base];
  if (bits !== undefined) {
    return (text) => /^(?:0|-?[1-9]\d{0,18})$/.test(text) && BigInt.asIntN(bits, BigInt(text)) === BigInt(text);
  }
  // A char(n) drops blanks at the end.
  return (text) => !text.includes('\0') && text.isWellFormed() && !(base === 'bpchar' && text.endsWith(' '));
}

// Owners

/** Column types besides JSON that may hold the user. */
const OWNER_TYPES = ['text', 'varchar', 'bpchar', 'citext', 'uuid', 'int2', 'int4', 'int8'];

/** What is wrong with the mapping of the user, whose column reads as text. */
export function ownerMistake(table: Table, { fields, user_pattern }: ResolvedMapping): string | undefined {
  const reference = fields.get('user_id');
  if (reference?.kind === 'constant' && toUserBy(user_pattern)(reference.value) === undefined) {
    return `OMP_MAPPING_USER_ID: the constant '${reference.value}' does not match OMP_MAPPING_USER_PATTERN=${user_pattern}`;
  }
  const column = reference?.kind === 'column' ? table.columns.get(reference.column) : undefined;
  if (column === undefined || isJson(column.base)) return undefined;
  const found = `the column "${column.name}" of ${table.schema}.${table.name} is ${column.type}`;
  if (!OWNER_TYPES.includes(column.base)) {
    return `OMP_MAPPING_USER_ID: ${found}; it must be text, varchar, uuid, smallint, integer, bigint or JSON`;
  }
  return isText(column.base) || user_pattern === '{user}'
    ? undefined
    : `OMP_MAPPING_USER_PATTERN: ${found}, which holds only the id; remove the pattern`;
}

function toUserBy(pattern: string): Owner['toUser'] {
  const [before = '', after = ''] = pattern.split('{user}');
  return (stored) =>
    stored.length > before.length + after.length && stored.startsWith(before) && stored.endsWith(after)
      ? stored.slice(before.length, stored.length - after.length)
      : undefined;
}

export interface OwnerParts {
  readonly owner: Owner;
  /** The condition that a row has an owner. */
  hasOwner(where: Conditions): string;
  /** Whether an index serves a query for the rows of a user. */
  readonly indexed: boolean;
}

/** `read` is SQL of the stored owner as text. */
export function createOwner(
  table: Table,
  { fields, user_pattern: pattern }: ResolvedMapping,
  read: string,
): OwnerParts {
  const reference = fields.get('user_id') as ColumnReference;
  const [before = '', after = ''] = pattern.split('{user}');
  const column = reference.kind === 'constant' ? undefined : table.columns.get(reference.column);
  const holds = fits(column && reference.kind === 'column' ? column.base : 'text');
  const toStored = (user: string) => (holds(before + user + after) ? before + user + after : undefined);
  const { is, indexed } =
    reference.kind === 'constant' ? ofConstant(reference.value) : ofColumn(table, reference, column as Column);
  return {
    owner: {
      is: (where, users) => {
        const stored = users.flatMap((user) => toStored(user) ?? []);
        return stored.length === 0 ? 'false' : is(where, stored);
      },
      toUser: toUserBy(pattern),
      toStored,
    },
    hasOwner: (where) => (pattern === '{user}' ? `${read} <> ''` : matches(where, read, before, after)),
    indexed,
  };
}

const matches = (where: Conditions, read: string, before: string, after: string): string => {
  const literally = (text: string) => text.replace(/[\\%_]/g, '\\$&');
  return `(${read}) collate "C" like ${where.bind(`${literally(before)}_%${literally(after)}`)}::text`;
};

interface Equality {
  is(where: Conditions, stored: readonly string[]): string;
  readonly indexed: boolean;
}

const ofConstant = (value: string): Equality => ({
  is: (_where, stored) => (stored.includes(value) ? 'true' : 'false'),
  indexed: true,
});

/** In the form that the indexes of this table serve. */
function ofColumn(table: Table, reference: StoredReference, { base, name, type, deterministic }: Column): Equality {
  const column = `t.${pg.escapeIdentifier(name)}`;
  const ordered = hasIndexOn(table, reference);
  if (isJson(base)) {
    const path = reference.kind === 'path' ? reference.path : [];
    const contained = base === 'jsonb' && !ordered && hasContainment(table, name);
    // `->>` on json raises an error for some documents, unless an index on it has kept those out of the table.
    const raw = path.length > 0 && (base === 'jsonb' || ordered);
    const text = raw ? textAt(column, path) : `(${jsonSql('text', documentSql(column, base), path)})`;
    const is: Equality['is'] = (where, stored) => {
      const equal = oneOf(where, text, { stored, type: 'text' });
      return contained ? `${contains(where, column, { path, stored })} and ${equal}` : equal;
    };
    return { is, indexed: ordered || contained };
  }
  const is: Equality['is'] = (where, stored) => {
    const indexed = oneOf(where, column, {
      stored,
      type: base === 'citext' ? type : base === 'varchar' ? 'text' : base,
    });
    if (deterministic && base !== 'citext') return indexed;
    // The index also matches users that differ in case, for example.
    return `${indexed} and ${oneOf(where, `${column}::text collate "C"`, { stored, type: 'text' })}`;
  };
  return { is, indexed: ordered };
}

interface Stored {
  readonly stored: readonly string[];
}

const oneOf = (where: Conditions, sql: string, { stored, type }: Stored & { readonly type: string }): string =>
  stored.length === 1
    ? `${sql} = ${where.bind(stored[0])}::${type}`
    : `${sql} = any(${where.bind(toTextArray(stored))}::${type}[])`;

const JSON_SCALAR = /^(?:true|false|-?(?:0|[1-9]\d*)(?:\.\d+)?)$/;

/** Applications store a user as a string or, if it looks like one, as a number. */
function contains(
  where: Conditions,
  column: string,
  { path, stored }: Stored & { readonly path: readonly string[] },
): string {
  const documents = stored.flatMap((text) => [
    documentWith(path, JSON.stringify(text)),
    ...(JSON_SCALAR.test(text) ? [documentWith(path, text)] : []),
  ]);
  return `${column} @> any(${where.bind(toTextArray(documents))}::jsonb[])`;
}

// Collections

/** One of several collections in a table. */
export interface InCollection {
  /** Quoted. */
  readonly column: string;
  /** The condition that a row belongs to it. */
  is(where: Conditions): string;
  /** SQL of the column's value in its rows. */
  value(where: Conditions): string;
}

const SETTING = 'OMP_MAPPING_COLLECTION';
/** Names that a message lists at most. */
const SHOWN = 20;

/** Adds mistakes to the list, and is undefined then; also of a table from before the library had collections. */
export async function createCollection(
  client: ClientBase,
  table: Table,
  { column, named, value, added, default: ofLibrary }: NonNullable<ResolvedMapping['collection']>,
  mistakes: string[],
): Promise<InCollection | undefined> {
  const found = table.columns.get(column);
  if (found === undefined && added && value === ofLibrary) return undefined;
  if (found === undefined) return void mistakes.push(noColumn(SETTING, table, column));
  const quoted = pg.escapeIdentifier(column);
  if (named) {
    const problems = await problemsOf(client, table.schema, { named, value });
    if (problems.length > 0) return void mistakes.push(...problems);
    const { from, key, name } = quotedNames(table.schema, named);
    // Every statement looks the key up by name: an application that recreates a collection gives it another key.
    const keys = (where: Conditions) =>
      `select c.${key} from ${from} as c where c.${name}::text collate "C" = ${where.bind(value)}::text`;
    return {
      column: quoted,
      is: (where) => `t.${quoted} = any(array(${keys(where)}))`,
      value: (where) => `(${keys(where)} order by 1 limit 1)`,
    };
  }
  if (!isText(found.base)) {
    return void mistakes.push(
      `${SETTING}: the column "${column}" of ${table.schema}.${table.name} is ${found.type}; it must be text or varchar`,
    );
  }
  const collectionValue = (where: Conditions) => `${where.bind(value)}::text`;
  return {
    column: quoted,
    is: (where) => `${byBytes(`t.${quoted}`, found)} = ${collectionValue(where)}`,
    value: collectionValue,
  };
}

type Named = NonNullable<Collection['named']>;

const quotedNames = (schema: string, { table, key, name }: Named) => ({
  from: `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(table)}`,
  key: pg.escapeIdentifier(key),
  name: pg.escapeIdentifier(name),
});

async function problemsOf(
  client: ClientBase,
  schema: string,
  { named, value }: { readonly named: Named; readonly value: string },
): Promise<string[]> {
  const found = await readTable(client, schema, named.table, SETTING);
  if ('mistake' in found) return [found.mistake];
  const lacking = [named.key, named.name].filter((column) => !found.table.columns.has(column));
  if (lacking.length > 0) return lacking.map((column) => noColumn(SETTING, found.table, column));
  const { from, name } = quotedNames(schema, named);
  const { rows } = await client.query<{ name: string }>(
    `select distinct ${name}::text as name, ${name}::text = $1 as wanted from ${from} where ${name} is not null
      order by 2 desc, 1 limit ${SHOWN}`,
    [value],
  );
  if (rows[0]?.name === value) return [];
  const names = rows.length > 0 ? `it has ${rows.map((row) => row.name).join(', ')}` : 'it has none yet';
  return [`${SETTING}: ${schema}.${named.table} has no collection ${value}; ${names}`];
}
