/*
 * Parts of a `with` that one function makes and another one reads. A part says what it is called and which columns it has, so a statement that
 * reads a part without having it, or a column that it lacks, does not compile. What a single text makes and reads stays in that text.
 */

/** As text, its name; as properties, the names of its columns. */
export type WithPart<Column extends string = never> = { readonly [Name in Column]: Name } & {
  /** `name as (…)` */
  readonly definition: string;
  toString(): string;
};

type Sql<Made> = (text: readonly string[], ...values: readonly unknown[]) => Made;

const makePart =
  (how: string) =>
  <Column extends string = never>(name: string, ...columns: readonly Column[]): Sql<WithPart<Column>> =>
  (text, ...values) => {
    const sql = values.reduce((before: string, value, i) => `${before}${value}${text[i + 1]}`, text[0] as string);
    const made: Record<string, unknown> = { definition: `${name} as ${how}(${sql})`, toString: () => name };
    for (const column of columns) made[column] = column;
    return made as WithPart<Column>;
  };

/** `part('changed', 'id')` with the SQL as a template behind it. */
export const part = makePart('');

/** A part that the planner computes once, by itself. */
export const materialized = makePart('materialized ');

/** Nothing without parts. Each may read those before it. */
export function withParts(parts: readonly (WithPart | false | undefined)[]): string {
  const definitions = parts.flatMap((each) => (each ? each.definition : []));
  return definitions.length > 0 ? `with ${definitions.join(', ')}` : '';
}
