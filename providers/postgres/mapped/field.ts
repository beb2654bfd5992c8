import pg, { type ClientBase } from 'pg';
import { columnWrite, type Unit } from './column-writes.ts';
import { CONSTANTS, constantField } from './constants.ts';
import { type FieldName, FORMS, type Form } from './fields.ts';
import { documentSql } from './json.ts';
import type { Field } from './layout.ts';
import { type Merged, settingOf } from './mapping.ts';
import { ownerMistake } from './owner.ts';
import type { Place } from './place.ts';
import { byBytes, columnSql, extensionsSql, isJson, isNumber, jsonSql, WANTED } from './reads.ts';
import { sampleUnit } from './samples.ts';
import type { Table } from './table.ts';

/** The fields that have a place; mistakes are added to the list. */
export async function examineFields(
  client: ClientBase,
  table: Table,
  merged: Merged,
  mistakes: string[],
): Promise<Partial<Record<FieldName, Field>>> {
  const fields: Partial<Record<FieldName, Field>> = {};
  for (const [name, place] of merged.fields) {
    const field = createField(table, name, place, await unitOf(client, table, { form: FORMS[name], place }));
    if (typeof field === 'string') mistakes.push(field);
    else fields[name] = field;
  }
  const mistake = fields.user_id && ownerMistake(table, merged);
  if (mistake !== undefined) mistakes.push(mistake);
  return fields;
}

interface Placed {
  readonly form: Form;
  readonly place: Place;
}

async function unitOf(client: ClientBase, table: Table, { form, place }: Placed): Promise<Unit> {
  const column = form === 'time' && place.kind === 'column' ? table.columns.get(place.column) : undefined;
  return column && isNumber(column.base) ? sampleUnit(client, table, column) : 'seconds';
}

/** How a field is read and written, or what is wrong with its place. `unit` is that of numbers since 1970. */
function createField(table: Table, name: FieldName, place: Place, unit: Unit): Field | string {
  const form = FORMS[name];
  const setting = settingOf(name);
  if (place.kind === 'constant') {
    return constantField(form, place.value) ?? `${setting} is a constant, and would have to be ${CONSTANTS[form]}`;
  }
  const column = table.columns.get(place.column);
  if (column === undefined) return noColumn(setting, table, place.column);
  const sql = byBytes(`t.${pg.escapeIdentifier(column.name)}`, column);
  const told = `${setting}: the column "${column.name}" of ${table.schema}.${table.name} is ${column.type}`;
  if (place.kind === 'column') {
    const read = columnSql(form, sql, column.base);
    if (read === undefined) return `${told}; it would have to be ${WANTED[form]}`;
    return { read: finish(name, read), write: columnWrite(name, form, column, unit), constant: undefined };
  }
  const { base } = column;
  if (!isJson(base)) return `${told}; a path needs json or jsonb there, which a view can turn a text into`;
  const read = jsonSql(form, documentSql(sql, base), place.path);
  const write = { kind: 'path', column: pg.escapeIdentifier(column.name), path: place.path, type: base } as const;
  return { read: finish(name, read), write: column.generated ? undefined : write, constant: undefined };
}

export const noColumn = (setting: string, table: Table, column: string): string =>
  `${setting}: ${table.schema}.${table.name} has no column "${column}"; it has ${[...table.columns.keys()].join(', ')}`;

const finish = (name: FieldName, read: string): string => (name === 'extensions' ? extensionsSql(read) : read);
