/*
 * Parts of a `with` that one function makes and another one reads. A part says what it is called and which columns it has, so a statement that
 * reads a part without having it, or a column that it lacks, does not compile. What a single text makes and reads stays in that text.
 */

/** As text, its name; as properties, the names of its columns. */
export type Part<Column extends string = never> = { readonly [Name in Column]: Name } & {
  /** `name as (…)` */
  readonly definition: string;
  toString(): string;
};

/** `sql`: what makes its rows. */
export function part<Column extends string>(
  name: string,
  columns: readonly Column[],
  sql: string,
  how = '',
): Part<Column> {
  const made = { definition: `${name} as ${how}(${sql})`, toString: () => name };
  return Object.assign(made, Object.fromEntries(columns.map((column) => [column, column]))) as Part<Column>;
}

/** A part that the planner computes once, by itself. */
export const materialized = <Column extends string>(
  name: string,
  columns: readonly Column[],
  sql: string,
): Part<Column> => part(name, columns, sql, 'materialized ');

/** Nothing without parts. Each may read those before it. */
export function withParts(parts: readonly (Part | false | undefined)[]): string {
  const definitions = parts.flatMap((each) => (each ? each.definition : []));
  return definitions.length > 0 ? `with ${definitions.join(', ')}` : '';
}
