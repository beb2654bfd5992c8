import pg from 'pg';
import { toTextArray } from '../rows.ts';
import { documentSql, valueSql } from './json.ts';
import type { Layout } from './layout.ts';
import type { Place } from './place.ts';
import { byBytes, isJson } from './reads.ts';
import type { Table } from './table.ts';

/** Conditions of rows that carry tags, as `Field.read` sees them, in the form that an index on the tags serves. */
export function createHasTags(table: Table, place: Place): NonNullable<Layout['hasTags']> {
  if (place.kind === 'constant') {
    const all: readonly unknown[] = JSON.parse(place.value);
    return (_where, tags) => (tags.every((tag) => all.includes(tag)) ? 'true' : 'false');
  }
  const found = table.columns.get(place.column);
  const { base = '' } = found ?? {};
  const column = byBytes(`t.${pg.escapeIdentifier(place.column)}`, found ?? { deterministic: true });
  if (!isJson(base)) {
    const type = base === '_varchar' ? 'varchar[]' : 'text[]';
    return (where, tags) => `${column} @> ${where.place(toTextArray(tags))}::${type} and array_ndims(${column}) = 1`;
  }
  const value = valueSql(documentSql(column, base), place.kind === 'path' ? place.path : []);
  // A text is contained in itself and in a list, which is what counts as a tag.
  return (where, tags) => tags.map((tag) => `${value} @> ${where.place(JSON.stringify(tag))}::jsonb`).join(' and ');
}
