import pg, { type ClientBase } from 'pg';
import type { Conditions } from '../tables/conditions.ts';
import { readTable } from './catalogue.ts';
import { noColumn } from './field.ts';
import type { Merged } from './mapping.ts';
import type { Collection } from './presets/preset.ts';
import { byBytes, isText } from './reads.ts';
import type { Table } from './table.ts';

/** Rows of one of several collections that share a table. */
export interface InCollection {
  /** Quoted. */
  readonly column: string;
  is(where: Conditions): string;
  /** SQL of what the column has in the rows of the collection. */
  value(where: Conditions): string;
}

const SETTING = 'OMP_MAPPING_COLLECTION';
/** Names that a message lists. */
const SHOWN = 20;

/** Undefined when there are mistakes, which are added to the list. */
export async function createCollection(
  client: ClientBase,
  table: Table,
  { column, named, value }: NonNullable<Merged['collection']>,
  mistakes: string[],
): Promise<InCollection | undefined> {
  const found = table.columns.get(column);
  if (found === undefined) return void mistakes.push(noColumn(SETTING, table, column));
  const quoted = pg.escapeIdentifier(column);
  if (named) {
    const problems = await problemsOf(client, table.schema, { named, value });
    if (problems.length > 0) return void mistakes.push(...problems);
    const { from, key, name } = quotedNames(table.schema, named);
    // By its name in every statement: an owner that makes a collection anew gives it another key.
    const keys = (where: Conditions) =>
      `select c.${key} from ${from} as c where c.${name}::text collate "C" = ${where.place(value)}::text`;
    return {
      column: quoted,
      is: (where) => `t.${quoted} = any(array(${keys(where)}))`,
      value: (where) => `(${keys(where)} order by 1 limit 1)`,
    };
  }
  if (!isText(found.base)) {
    return void mistakes.push(
      `${SETTING}: the column "${column}" of ${table.schema}.${table.name} is ${found.type}; it would have to be text or varchar`,
    );
  }
  const own = (where: Conditions) => `${where.place(value)}::text`;
  return { column: quoted, is: (where) => `${byBytes(`t.${quoted}`, found)} = ${own(where)}`, value: own };
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
  const there = rows.length > 0 ? `it has ${rows.map((row) => row.name).join(', ')}` : 'it has none yet';
  return [`${SETTING}: ${schema}.${named.table} has no collection ${value}; ${there}`];
}
