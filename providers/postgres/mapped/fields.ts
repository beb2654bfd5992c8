import pg, { type ClientBase } from 'pg';
import { toTextArray } from '../sql/values.ts';
import { type Column, noColumn, type Table } from './catalogue.ts';
import { type ColumnReference, type FieldName, FORMS, type Form, settingOf } from './field-mapping.ts';
import type { Field, Layout, Mark, Write } from './layout.ts';
import type { ResolvedMapping } from './mapping.ts';
import {
  byBytes,
  columnSql,
  documentSql,
  extensionsSql,
  isInteger,
  isJson,
  isNumber,
  isText,
  jsonAt,
  jsonSql,
  READABLE_TYPES,
  SECONDS_BELOW,
} from './value-sql.ts';

/** How the mapped fields are read and written. Adds mistakes to the list. */
export async function createFields(
  client: ClientBase,
  table: Table,
  mapping: ResolvedMapping,
  mistakes: string[],
): Promise<Partial<Record<FieldName, Field>>> {
  const fields: Partial<Record<FieldName, Field>> = {};
  for (const [name, reference] of mapping.fields) {
    const unit = await unitOf(client, table, { form: FORMS[name], reference });
    const field = createField(table, name, reference, unit);
    if (typeof field === 'string') mistakes.push(field);
    else fields[name] = field;
  }
  return fields;
}

/** Returns a mistake as text. `unit` is that of a number since 1970. */
function createField(table: Table, name: FieldName, reference: ColumnReference, unit: Unit): Field | string {
  const form = FORMS[name];
  const setting = settingOf(name);
  if (reference.kind === 'constant') {
    return constantField(form, reference.value) ?? `${setting} is a constant and must be ${CONSTANTS[form]}`;
  }
  const column = table.columns.get(reference.column);
  if (column === undefined) return noColumn(setting, table, reference.column);
  const sql = byBytes(`t.${pg.escapeIdentifier(column.name)}`, column);
  const found = `${setting}: the column "${column.name}" of ${table.schema}.${table.name} is ${column.type}`;
  if (reference.kind === 'column') {
    const read = columnSql(form, sql, column.base);
    if (read === undefined) return `${found}; it must be ${READABLE_TYPES[form]}`;
    return { read: finish(name, read), write: columnWrite(name, form, column, unit), constant: undefined };
  }
  const { base } = column;
  if (!isJson(base)) return `${found}; a path needs json or jsonb (a view can convert a text column)`;
  const read = jsonSql(form, documentSql(sql, base), reference.path);
  const write = { kind: 'path', column: pg.escapeIdentifier(column.name), path: reference.path, type: base } as const;
  return { read: finish(name, read), write: column.generated ? undefined : write, constant: undefined };
}

const finish = (name: FieldName, read: string): string => (name === 'extensions' ? extensionsSql(read) : read);

/** The condition that a row carries tags, in the form that an index on the tags serves. It agrees with `Field.read`. */
export function createHasTags(table: Table, reference: ColumnReference): NonNullable<Layout['hasTags']> {
  if (reference.kind === 'constant') {
    const all: readonly unknown[] = JSON.parse(reference.value);
    return (_where, tags) => (tags.every((tag) => all.includes(tag)) ? 'true' : 'false');
  }
  const found = table.columns.get(reference.column);
  const { base = '' } = found ?? {};
  const column = byBytes(`t.${pg.escapeIdentifier(reference.column)}`, found ?? { deterministic: true });
  if (!isJson(base)) {
    const type = base === '_varchar' ? 'varchar[]' : 'text[]';
    return (where, tags) => `${column} @> ${where.bind(toTextArray(tags))}::${type} and array_ndims(${column}) = 1`;
  }
  const value = jsonAt(documentSql(column, base), reference.kind === 'path' ? reference.path : []);
  // A string is contained in itself and in a list: both count as a tag.
  return (where, tags) => tags.map((tag) => `${value} @> ${where.bind(JSON.stringify(tag))}::jsonb`).join(' and ');
}

// Deleted rows

/** What a row is marked with, by the type of the column. */
const MARKS: Readonly<Record<string, string>> = {
  timestamptz: 'now()',
  timestamp: `(now() at time zone 'UTC')`,
  date: `(now() at time zone 'UTC')::date`,
  bool: 'true',
};

/** Adds mistakes to the list, and is undefined then. */
export function createMark(
  table: Table,
  { deleted_at, writable }: ResolvedMapping,
  mistakes: string[],
): Mark | undefined {
  const setting = 'OMP_MAPPING_DELETED_AT';
  if (deleted_at === undefined) return undefined;
  const found = table.columns.get(deleted_at);
  if (found === undefined) return void mistakes.push(noColumn(setting, table, deleted_at));
  const value = MARKS[found.base];
  if (value === undefined)
    return void mistakes.push(
      `${setting}: the column "${found.name}" of ${table.schema}.${table.name} is ${found.type}; it must be timestamptz, timestamp, date or boolean`,
    );
  if (writable && found.generated)
    return void mistakes.push(
      `OMP_MAPPING_WRITABLE: the database computes the column of ${setting}, so no row can be marked as deleted`,
    );
  const column = pg.escapeIdentifier(found.name);
  return { column, value, absent: `t.${column} is ${found.base === 'bool' ? 'not true' : 'null'}` };
}

/** Columns that look like a mark of deleted rows. */
export const likelyMarks = (table: Table): string[] =>
  [...table.columns.values()]
    .filter(({ name, base }) => base in MARKS && /^(?:is_?)?deleted(?:_?(?:at|on|date))?$/i.test(name))
    .map(({ name }) => name);

// Constants

/** What a constant must be, for messages. */
const CONSTANTS: Readonly<Record<Form, string>> = {
  text: 'a text',
  list: `a list in JSON such as '["notes"]'`,
  number: `a number from 0 to 1 such as '0.5'`,
  time: `a time such as '2026-01-31T12:00:00Z'`,
  json: `an object in JSON such as '{"app":"notes"}'`,
};

const CONSTANT_TYPES = { text: 'text', number: 'float8', time: 'timestamptz', json: 'jsonb' } as const;

/** A field with the same value in every row. Undefined if the text has not that form. */
function constantField(form: Form, text: string): Field | undefined {
  const value = parseConstant(form, text);
  if (value === undefined) return undefined;
  const literal = pg.escapeLiteral(value);
  const read =
    form === 'list'
      ? `array(select jsonb_array_elements_text(${literal}::jsonb))`
      : `${literal}::${CONSTANT_TYPES[form]}`;
  return { read, write: undefined, constant: value };
}

const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/;

const isoOf = (text: string): string | undefined => {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
};

function parseConstant(form: Form, text: string): string | undefined {
  if (form === 'text') return text === '' ? undefined : text;
  if (form === 'number') return /^(?:0|1|0?\.\d+)$/.test(text) ? String(Number(text)) : undefined;
  if (form === 'time') {
    const day = text.slice(0, 'yyyy-mm-dd'.length);
    // JavaScript reads the 31st of February as a day in March.
    const exists = TIME.test(text) && isoOf(day)?.startsWith(day);
    return exists ? isoOf(text) : undefined;
  }
  try {
    const value: unknown = JSON.parse(text);
    const fits =
      form === 'list'
        ? Array.isArray(value) && value.every((item) => typeof item === 'string')
        : typeof value === 'object' && value !== null && !Array.isArray(value);
    return fits ? JSON.stringify(value) : undefined;
  } catch {
    return undefined;
  }
}

// Writing into a column

/** What a number since 1970 counts. */
type Unit = 'seconds' | 'milliseconds';

/** Rows to look at. */
const SAMPLE = 200;

/** Decides by the rows; without rows, by what the column's type is commonly used for. */
async function unitOf(
  client: ClientBase,
  table: Table,
  { form, reference }: { readonly form: Form; readonly reference: ColumnReference },
): Promise<Unit> {
  const column = form === 'time' && reference.kind === 'column' ? table.columns.get(reference.column) : undefined;
  if (!column || !isNumber(column.base)) return 'seconds';
  const name = pg.escapeIdentifier(column.name);
  const { rows } = await client.query<{ unit: Unit | null }>(
    `select case when max(abs(${name})) >= ${SECONDS_BELOW} then 'milliseconds' else 'seconds' end as unit
       from (select ${name} from ${pg.escapeIdentifier(table.schema)}.${pg.escapeIdentifier(table.name)} where ${name} is not null limit ${SAMPLE}) as s having count(*) > 0`,
  );
  return rows[0]?.unit ?? (column.base === 'int8' ? 'milliseconds' : 'seconds');
}

/**
 * How a field is written into a column. Undefined if the database computes the column, or if the value would not read back
 * as it was given. Times of creation and change may lose precision to the type, since no client sets them. Casts are to
 * types without a length: a cast to one with a length would truncate a text.
 */
function columnWrite(field: FieldName, form: Form, column: Column, unit: Unit): Write | undefined {
  const exact = field !== 'created_at' && field !== 'updated_at';
  const from = column.generated ? undefined : conversion(form, column.base, { unit, exact });
  const milliseconds = KEEPS_MILLISECONDS.test(column.type) && !(unit === 'seconds' && isInteger(column.base));
  return (
    from && { kind: 'column', column: pg.escapeIdentifier(column.name), from, notNull: column.notNull, milliseconds }
  );
}

/** Types as the database names them; a domain may round. */
const KEEPS_MILLISECONDS =
  /^(?:timestamp(?:\([3-6]\))? with(?:out)? time zone|text|character varying|jsonb?|bigint|double precision|numeric)$/;

type Conversion = ((parameter: string) => string) | undefined;

interface Times {
  readonly unit: Unit;
  /** Whether a client sets the time and must get it back unchanged. */
  readonly exact: boolean;
}

function conversion(form: Form, base: string, times: Times): Conversion {
  if (isJson(base)) return (parameter) => jsonConversion(form, base, parameter);
  switch (form) {
    case 'text':
      return (parameter) => `${parameter}::${isText(base) ? 'text' : base}`;
    case 'list':
      return (parameter) => `${parameter}::text[]`;
    case 'number':
      if (isInteger(base)) return undefined;
      // Numeric takes more digits from the text than from a double.
      return (parameter) =>
        base === 'numeric' ? `${parameter}::numeric` : `${parameter}::float8${isText(base) ? '::text' : ''}`;
    case 'time':
      return timeConversion(base, times);
    case 'json':
      return undefined;
  }
}

function jsonConversion(form: Form, base: 'json' | 'jsonb', parameter: string): string {
  if (form === 'json') return `${parameter}::${base}`;
  const type = { text: 'text', list: 'text[]', number: 'float8', time: 'text' }[form];
  return `to_${base}(${parameter}::${type})`;
}

function timeConversion(base: string, { unit, exact }: Times): Conversion {
  if (isText(base)) return (parameter) => `${parameter}::text`;
  if (base === 'timestamptz') return (parameter) => `${parameter}::timestamptz`;
  if (base === 'timestamp') return (parameter) => `(${parameter}::timestamptz at time zone 'UTC')`;
  if (base === 'date') return exact ? undefined : (parameter) => `(${parameter}::timestamptz at time zone 'UTC')::date`;
  const milliseconds = (parameter: string) => `round(date_part('epoch', ${parameter}::timestamptz) * 1000)`;
  if (unit === 'milliseconds') return (parameter) => `${milliseconds(parameter)}::${base}`;
  if (!isInteger(base)) return (parameter) => `(${milliseconds(parameter)}::numeric / 1000)::${base}`;
  return exact ? undefined : (parameter) => `floor(${milliseconds(parameter)} / 1000)::${base}`;
}
