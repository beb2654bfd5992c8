import type { FieldType, RowData } from '@zilliz/milvus2-sdk-node';
import {
  FIELDS,
  type Field,
  type FieldValue,
  type Filter,
  type FoundPoint,
  type Point,
  type PointChange,
  type Selection,
} from '#provider';

/*
 * Rows of Milvus as points: those of the gateway's collection, and those of other applications, whose fields are columns, keys in columns of JSON,
 * or, where the collection takes any, keys beside the columns.
 */

/** How vectors are indexed: all that match are compared. */
export const EXACT = { index_type: 'FLAT', metric_type: 'COSINE' };
/** Milvus Lite indexes no lists. */
export const INDEXED = FIELDS.flatMap(({ name, type, filtered }) => (filtered && type !== 'texts' ? [name] : []));
/** The most characters, of up to four bytes, in the 65,535 bytes that a text may have. */
const PART = /.{1,16383}/gsu;
export const TEXT = { data_type: 'VarChar', max_length: 65_535 } as const;
const LIST = { ...TEXT, data_type: 'Array', element_type: 'VarChar', max_capacity: 4_096 } as const;
/** A text that may be long is a list of its parts. */
const isLong = ({ type, filtered }: Field): boolean => type === 'text' && !filtered;
export const columnOf = (field: Field): FieldType => ({
  name: field.name,
  ...(field.type === 'number' ? { data_type: 'Int64' } : field.type === 'texts' || isLong(field) ? LIST : TEXT),
});

/** Where a collection has what a point is made of. */
export interface Layout {
  readonly key: string;
  readonly vector: string;
  /** What a request names to get these fields, or all. Throws if there is no such field. */
  outputs(fields: readonly string[] | undefined): string[];
  /** A field as filters name it. Throws if there is none. */
  path(field: string): string;
  /** The filter of all ids that come after this one, or of all. */
  after(id: string | undefined): string;
  /** An id as filters have it; undefined: no point has this one. */
  keyOf(id: string): string | undefined;
  /** `before`: the whole row in whose place this one is stored. */
  rowOf(point: Omit<PointChange, 'stored'>, before?: Row): Row;
  fieldsOf(row: Row): FoundPoint['fields'];
}
/** As the client has it. */
export type Row = Readonly<RowData>;

const stored = (field: Field, value: FieldValue = ''): FieldValue =>
  typeof value === 'string' && isLong(field) ? (value.match(PART) ?? []) : value;
/** The client gives integers as texts. */
const read = (value: unknown, field: Field): FieldValue =>
  field.type === 'number' ? Number(value) : isLong(field) ? (value as string[]).join('') : (value as FieldValue);

/** Of the gateway's collection. */
export const OWN: Layout = {
  key: 'id',
  vector: 'vector',
  outputs: (fields = FIELDS.map(({ name }) => name)) => [...fields],
  path: (field) => field,
  after: (id = '') => `id > ${quoted(id)}`,
  keyOf: (id) => quoted(id),
  rowOf: ({ id, fields, vector }: Point) => ({
    ...{ id, vector: [...vector] },
    ...Object.fromEntries(FIELDS.map((field) => [field.name, stored(field, fields[field.name])])),
  }),
  fieldsOf: (row) =>
    Object.fromEntries(
      FIELDS.flatMap((field) => (field.name in row ? [[field.name, read(row[field.name], field)]] : [])),
    ),
};

/** With the key: no names at all would mean all fields. */
export const shown = ({ key, vector, outputs }: Layout, select: Selection): string[] => [
  ...new Set([key, ...outputs(select.fields), ...(select.vector ? [vector] : [])]),
];
export function pointOf({ key, vector: name, fieldsOf }: Layout, row: Row): FoundPoint {
  const vector = row[name];
  return {
    ...{ id: String(row[key]), fields: fieldsOf(row) },
    ...(Array.isArray(vector) && { vector: Float32Array.from(vector as number[]) }),
  };
}

const ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '\r': '\\r' };
/** A text in a filter: Milvus Lite knows no parameters, and of escapes only these. All other characters stand for themselves. */
export const quoted = (text: string): string =>
  `"${text.replace(/["\\\n\r]/g, (character) => String(ESCAPES[character]))}"`;
const listed = (values: readonly string[]): string => `[${values.map(quoted).join(', ')}]`;
export function idIn({ key, keyOf }: Layout, ids: readonly string[]): string {
  return `${key} in [${ids.flatMap((id) => keyOf(id) ?? []).join(', ')}]`;
}
export const both = (conditions: readonly string[]): string => `(${conditions.join(' and ')})`;
export function condition(layout: Layout, filter: Filter): string {
  if (filter.op === 'and') return both(filter.filters.map((part) => condition(layout, part)));
  if (filter.op === 'not') return `(not ${condition(layout, filter.filter)})`;
  const field = layout.path(filter.field);
  switch (filter.op) {
    case 'equals':
      return `(${field} == ${typeof filter.value === 'number' ? filter.value : quoted(filter.value)})`;
    case 'anyOf':
      return `(${field} in ${listed(filter.values)})`;
    case 'allOf':
      return `(array_contains_all(${field}, ${listed(filter.values)}))`;
    case 'prefix': {
      const end = afterAll(filter.value);
      return both([`${field} >= ${quoted(filter.value)}`, ...(end === undefined ? [] : [`${field} < ${quoted(end)}`])]);
    }
    case 'range': {
      const { from, to } = filter;
      return both(
        [from === undefined ? [] : `${field} >= ${from}`, to === undefined ? [] : `${field} <= ${to}`].flat(),
      );
    }
  }
}

/** The first text after all that begin with this one; undefined: there is none. `like` has escapes that Milvus Lite does not know. Halves of characters are none. */
function afterAll(prefix: string): string | undefined {
  const characters = Array.from(prefix, (character) => Number(character.codePointAt(0)));
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    if (last < 0x10ffff) return String.fromCodePoint(...characters, last === 0xd7ff ? 0xe000 : last + 1);
  }
  return undefined;
}
