import pg from 'pg';
import { noColumn } from './field.ts';
import type { Id } from './layout.ts';
import { fits } from './owner.ts';
import { byBytes } from './reads.ts';
import type { Column, Table } from './table.ts';

/** Types that ids may have, and what a parameter for one is cast to. */
const CASTS: Readonly<Record<string, string>> = {
  text: '::text',
  varchar: '::text',
  bpchar: '::bpchar',
  uuid: '::uuid',
  int2: '::int2',
  int4: '::int4',
  int8: '::int8',
};

/** The columns that ids consist of; mistakes are added to the list. */
export function idColumns(table: Table, names: readonly string[], mistakes: string[]): Column[] {
  return names.flatMap((name) => {
    const column = table.columns.get(name);
    if (column && column.base in CASTS) return column;
    mistakes.push(
      column
        ? `OMP_MAPPING_ID: the column "${name}" of ${table.schema}.${table.name} is ${column.type}; it would have to be text, varchar, uuid, smallint, integer or bigint`
        : noColumn('OMP_MAPPING_ID', table, name),
    );
    return [];
  });
}

/** Ids of one column, or of several as a path of their values. */
export function createId(columns: readonly Column[], fresh: Id['fresh']): Id {
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
      const [indexed, cast] = [inRow(column), CASTS[column.base] as string];
      const sql = byBytes(indexed, column);
      return {
        sql,
        column: pg.escapeIdentifier(column.name),
        cast,
        // The index of a nondeterministic collation finds more than this one row.
        is: (parameter) => [...new Set([indexed, sql])].map((each) => `${each} = ${parameter}${cast}`).join(' and '),
      };
    }),
    parts(id) {
      const cut = id.split('/');
      if (cut.length <= last) return undefined;
      const parts = [...cut.slice(0, last).map(decode), cut.slice(last).join('/')];
      const whole = parts.filter((part) => part !== undefined);
      return whole.length === parts.length && whole.every((part, place) => fits(columns[place]?.base ?? '')(part))
        ? whole
        : undefined;
    },
    fresh,
  };
}

/** Undefined for what no value turns into. */
const decode = (part: string): string | undefined =>
  /%(?!25|2F)/.test(part) ? undefined : part.replaceAll('%2F', '/').replaceAll('%25', '%');
