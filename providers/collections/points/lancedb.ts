import type { Query, VectorQuery } from '@lancedb/lancedb';
import type { Field as Column, Schema } from 'apache-arrow';
import {
  FIELDS,
  type Field,
  type FieldValue,
  type Filter,
  type Match,
  OmpError,
  type Point,
  type PointChange,
  type Selection,
  setPath,
} from '#provider';

/*
 * Rows of LanceDB as points, those of other applications too: vectors have any name, and columns may be objects.
 */

type Arrow = typeof import('apache-arrow');

/** With it, two gateways that store a new id at once make one point of it. */
const KEY = new Map([['lance-schema:unenforced-primary-key', 'true']]);

/** Of the gateway's table. */
export function schemaOf({ Field, FixedSizeList, Float32, Float64, List, Schema, Utf8 }: Arrow, dimensions: number) {
  const types = {
    text: new Utf8(),
    number: new Float64(),
    texts: new List(new Field('item', new Utf8(), false)),
  } as const satisfies Record<Field['type'], unknown>;
  return new Schema([
    new Field('id', types.text, false, KEY),
    ...FIELDS.map(({ name, type }) => new Field(name, types[type], false)),
    new Field('vector', new FixedSizeList(dimensions, new Field('item', new Float32(), true)), false),
  ]);
}

/** What a table is made of. */
export interface Layout {
  /** Without ids and vectors. */
  readonly columns: readonly Column[];
  /** Names of columns of vectors: a mapped table has one. */
  readonly vectors: readonly string[];
  readonly dimensions: number;
  readonly hasIds: boolean;
}

export function layoutOf({ DataType: types }: Arrow, { fields }: Schema): Layout {
  const vectors = fields.filter(({ type }) => types.isFixedSizeList(type));
  return {
    columns: fields.filter((field) => field.name !== 'id' && !vectors.includes(field)),
    vectors: vectors.map(({ name }) => name),
    dimensions: (vectors[0]?.type as { readonly listSize?: number } | undefined)?.listSize ?? 0,
    hasIds: fields.some(({ name, type }) => name === 'id' && types.isUtf8(type)),
  };
}

/** Values of Arrow's `Type`. */
const [TIMESTAMP, STRUCT] = [10, 13];
/** The columns in an object; undefined: it is none. */
const inside = ({ type }: Column): readonly Column[] | undefined =>
  type.typeId === STRUCT ? (type.children as Column[]) : undefined;

/** The column of a name, which may be in an object. */
function columnAt(columns: readonly Column[] | undefined, [first, ...rest]: readonly string[]): Column {
  const column = columns?.find(({ name }) => name === first);
  if (!column) throw new Error('there is no such column');
  return rest.length === 0 ? column : columnAt(inside(column), rest);
}
const stepsOf = (name: string): string[] => name.split('.');

/** Reads what is selected. `more`: the measure of a search. */
export async function pointsIn(
  query: Query | VectorQuery,
  { columns, vectors: [vector = ''] }: Layout,
  select: Selection,
  more: '_distance'[] = [],
): Promise<Match[]> {
  for (const name of select.fields ?? []) columnAt(columns, stepsOf(name));
  const heads = select.fields?.map((name) => stepsOf(name)[0]);
  const read = columns.filter(({ name }) => heads?.includes(name) ?? true);
  const names = read.map(({ name }) => name);
  const rows = await query.select(['id', ...names, ...(select.vector ? [vector] : []), ...more]).toArrow();
  const [ids, vectors, measures, ...cells] = ['id', vector, '_distance', ...names].map((name) => rows.getChild(name));
  return Array.from(
    { length: rows.numRows },
    (_, at): Match => ({
      // Empty: another application gave it none.
      id: String(ids?.get(at) ?? ''),
      fields: Object.fromEntries(read.map((column, place) => [column.name, cellValue(cells[place]?.get(at), column)])),
      ...(vectors && { vector: Float32Array.from(vectors.get(at) ?? []) }),
      measure: Number(measures?.get(at)),
    }),
  );
}

/** What a cell holds. A time is a text, whatever its unit is. */
function cellValue(cell: unknown, column: Column): FieldValue {
  if (typeof cell === 'string') return cell;
  if (typeof cell === 'bigint') return Number(cell);
  if (typeof cell === 'number' && column.type.typeId === TIMESTAMP && Math.abs(cell) < 8e15)
    return new Date(cell).toISOString();
  if (typeof cell !== 'object' || cell === null) return cell as FieldValue;
  const columns = inside(column);
  if (!columns) return [...(cell as Iterable<string>)];
  const values = (cell as { toJSON(): Record<string, unknown> }).toJSON();
  // With `nested` there are objects.
  return Object.fromEntries(columns.map((each) => [each.name, cellValue(values[each.name], each)])) as never;
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> => Object(value);

/** What a cell is made of. Every key of an object is there: a row that lacks one makes filters on that object fail in Python. */
function cellOf(value: unknown, column: Column): unknown {
  const columns = inside(column);
  if (columns) return Object.fromEntries(columns.map((each) => [each.name, cellOf(objectOf(value)[each.name], each)]));
  if (value === undefined && !column.nullable)
    throw new OmpError('unsupported_capability', `the rows need "${column.name}", which no memory has`);
  return value !== undefined && column.type.typeId === TIMESTAMP ? new Date(String(value)) : (value ?? null);
}

export const rowOf = ({ columns, vectors: [name = ''] }: Layout, { id, fields, vector }: Point) => ({
  ...{ id, [name]: vector },
  ...Object.fromEntries(columns.map((column) => [column.name, cellOf(fields[column.name], column)])),
});

/** What sets these fields, by column. What else is in an object stays. */
export function settersOf({ columns, vectors: [name = ''] }: Layout, { fields, vector }: PointChange) {
  const changed: Record<string, unknown> = {};
  for (const [path, value] of Object.entries(fields)) {
    columnAt(columns, stepsOf(path));
    setPath(changed, path, value);
  }
  const setters = columns.flatMap((column) =>
    column.name in changed ? [[column.name, setter(changed[column.name], column, quoted(column.name))]] : [],
  );
  return Object.fromEntries(vector ? [...setters, [name, `[${Array.from(vector, fraction).join()}]`]] : setters);
}

/** An array that begins with an integer may hold nothing else. */
const fraction = (component: number): string => component.toExponential();

function setter(value: unknown, column: Column, path: string): string {
  const columns = inside(column);
  if (columns) {
    const parts = columns.map((each) => {
      const inner = `${path}.${quoted(each.name)}`;
      return `${literal(each.name)}, ${each.name in objectOf(value) ? setter(objectOf(value)[each.name], each, inner) : inner}`;
    });
    return `named_struct(${parts.join(', ')})`;
  }
  if (Array.isArray(value)) return `make_array(${value.map(literal).join(', ')})`;
  return literal(column.type.typeId === TIMESTAMP ? new Date(value as string).toISOString() : (value as string));
}

/** Double quotes would make a text of it. A dot goes into an object. */
const quoted = (name: string): string => `\`${name.replaceAll('`', '``')}\``;
const pathOf = (field: string): string => stepsOf(field).map(quoted).join('.');
const literal = (value: string | number): string =>
  typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`;
export const anyOf = (field: string, values: readonly string[]): string =>
  `${pathOf(field)} IN (${values.map(literal).join(', ')})`;
export const after = (id: string): string => `${quoted('id')} > ${literal(id)}`;

export function condition(filter: Filter): string {
  if (filter.op === 'and') return `(${filter.filters.map(condition).join(' AND ')})`;
  if (filter.op === 'not') return `(NOT ${condition(filter.filter)})`;
  const column = pathOf(filter.field);
  switch (filter.op) {
    case 'equals':
      return `(${column} = ${literal(filter.value)})`;
    case 'anyOf':
      return `(${anyOf(filter.field, filter.values)})`;
    case 'allOf':
      return `(${filter.values.map((value) => `array_has(${column}, ${literal(value)})`).join(' AND ')})`;
    case 'prefix':
      return `(starts_with(${column}, ${literal(filter.value)}))`;
    case 'range':
      return `(${column} BETWEEN ${filter.from ?? Number.MIN_SAFE_INTEGER} AND ${filter.to ?? Number.MAX_SAFE_INTEGER})`;
  }
}
