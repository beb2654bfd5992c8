import type { Place } from './place.ts';
import type { Index, Table } from './table.ts';

type InRow = Exclude<Place, { readonly kind: 'constant' }>;

/** What the planner may use for every row. */
const usable = ({ valid, partial }: Index): boolean => valid && !partial;

/** Whether an index leads to the rows that have a value in this place: the column itself, or the path as `->>` reads it. */
export const hasIndexOn = (table: Table, place: InRow): boolean =>
  table.indexes.some(
    (index) => usable(index) && ['btree', 'hash'].includes(index.method) && isOn(index.keys[0]?.expression, place),
  );

/** Whether an index answers `@>` on a column of jsonb. */
export const hasContainment = (table: Table, column: string): boolean =>
  table.indexes.some(
    (index) =>
      usable(index) &&
      index.method === 'gin' &&
      index.keys.some((key) => key.column === column && /^jsonb_(?:path_)?ops$/.test(key.opclass)),
  );

/** Whether no two rows can have the same values in these columns. */
export const hasUnique = (table: Table, columns: readonly string[]): boolean =>
  table.indexes.some(
    (index) =>
      usable(index) &&
      index.unique &&
      index.keys.length === columns.length &&
      index.keys.every(({ column }) => column !== null && columns.includes(column)),
  );

function isOn(expression: string | undefined, place: InRow): boolean {
  const wanted =
    place.kind === 'column'
      ? place.column
      : `${place.column}${place.path.map((key, step) => `${step === place.path.length - 1 ? '->>' : '->'}'${key}'`).join('')}`;
  return expression !== undefined && bare(expression) === bare(wanted);
}

/** Without what Postgres adds when it prints an expression. */
const bare = (expression: string): string => expression.replace(/::text|[\s()"]/g, '');
