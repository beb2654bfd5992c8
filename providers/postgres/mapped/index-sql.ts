import pg from 'pg';
import type { Table } from './catalogue.ts';
import type { StoredReference } from './field-mapping.ts';
import type { ResolvedMapping } from './mapping.ts';
import { listKeys } from './time-index.ts';

/* Statements that an operator may run. The gateway creates nothing in a mapped table. */

/** What makes a gateway use a new index: it looks at the table when it starts. */
export const RESTART = 'a gateway that runs uses it after its next start';

export const quotedTable = ({ schema, name }: Pick<Table, 'schema' | 'name'>): string =>
  `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;

/** A partitioned table does not support `concurrently`. */
export const createIndex = (table: Table, keys: string, method?: string): string =>
  `create index ${table.kind === 'partitioned' ? '' : 'concurrently '}on ${quotedTable(table)} ${method ? `using ${method} ` : ''}(${keys});`;

/** SQL of a column or a JSON path, with the parentheses that an index needs. `last`: the operator of the last step. */
export function inRow(reference: StoredReference, last: '->' | '->>'): string {
  const column = pg.escapeIdentifier(reference.column);
  if (reference.kind === 'column') return column;
  const end = reference.path.length - 1;
  const step = (sql: string, key: string, at: number) =>
    `(${sql} ${at === end ? last : '->'} ${pg.escapeLiteral(key)})`;
  return `(${reference.path.reduce(step, column)})`;
}

/** Of the index that leads to the rows of a user, in the order of lists where an index can have it. Undefined if all rows are of one. */
export function createUserIndex(table: Table, mapping: Pick<ResolvedMapping, 'fields' | 'id'>): string | undefined {
  const owner = mapping.fields.get('user_id');
  const keys = listKeys(table, mapping) ?? (owner && owner.kind !== 'constant' ? [owner] : []);
  return keys.length === 0 ? undefined : createIndex(table, keys.map((key) => inRow(key, '->>')).join(', '));
}
