import pg, { type ClientBase } from 'pg';
import type { Embedder } from '#contract';
import { type Conditions, conditions } from '../tables/conditions.ts';
import type { Unit } from './column-writes.ts';
import type { Layout } from './layout.ts';
import type { Column, Table } from './table.ts';
import type { VectorParts } from './vector.ts';

/** Rows that are looked at. */
const SAMPLE = 200;
/** How far the square of a length may be from 1: half precision, and models that round. */
const UNIT_TOLERANCE = 0.02;

/** Whether a column of numbers since 1970 counts seconds or milliseconds; without rows, whatever its type is used for. */
export async function sampleUnit(client: ClientBase, table: Table, column: Column): Promise<Unit> {
  const name = pg.escapeIdentifier(column.name);
  const { rows } = await client.query<{ unit: Unit | null }>(
    `select case when max(abs(${name})) >= 100000000000 then 'milliseconds' else 'seconds' end as unit
       from (select ${name} from ${pg.escapeIdentifier(table.schema)}.${pg.escapeIdentifier(table.name)} where ${name} is not null limit ${SAMPLE}) as s having count(*) > 0`,
  );
  return rows[0]?.unit ?? (column.base === 'int8' ? 'milliseconds' : 'seconds');
}

export interface VectorSample {
  readonly lengths: readonly number[];
  /** Whether all have length 1, as far as they were looked at. */
  readonly unit: boolean;
}

/** What vectors there are in rows that are memories. */
export async function sampleVectors(
  client: ClientBase,
  layout: Pick<Layout, 'from' | 'always'>,
  { extension, alias, column }: VectorParts,
): Promise<VectorSample> {
  const where = conditions();
  const schema = pg.escapeIdentifier(extension.schema);
  const vector = `${alias}.${pg.escapeIdentifier(column.name)}`;
  where.and(layout.always(where));
  where.and(`${vector} is not null`);
  const { rows } = await client.query<{ dimensions: number; unit: boolean }>(
    `select ${schema}.vector_dims(s.vector) as dimensions,
        bool_and(abs(1 + (s.vector operator(${schema}.<#>) s.vector)) < ${UNIT_TOLERANCE}) as unit
       from (select ${vector} as vector from ${layout.from} where ${where} limit ${SAMPLE}) as s group by 1 order by count(*) desc, 1`,
    where.values,
  );
  return { lengths: rows.map(({ dimensions }) => dimensions), unit: rows.every(({ unit }) => unit) };
}

export interface RowSample {
  /** Whether the table has rows at all, in its collection. */
  readonly any: boolean;
  /** Rows that are memories, of those that were looked at. */
  readonly memories: number;
  /** How many of these have a time of creation. */
  readonly timed: number;
}

/** `made`: SQL of the time of creation; undefined: there is no place for one. `rows` are those of the collection. */
export async function sampleRows(
  client: ClientBase,
  { from, always }: Pick<Layout, 'from' | 'always'>,
  { made = 'null', rows }: { readonly made: string | undefined; readonly rows: (where: Conditions) => string },
): Promise<RowSample> {
  const where = conditions();
  const { rows: found } = await client.query<RowSample>(
    `select exists (select from ${from} where ${rows(where)}) as any, count(*)::int as memories, count(s.made)::int as timed
       from (select ${made} as made from ${from} where ${always(where)} limit ${SAMPLE}) as s`,
    where.values,
  );
  return found[0] as RowSample;
}

/** What is wrong with the length of the vectors, for this embedder. */
export function lengthMistake(
  { column, table }: Pick<VectorParts, 'column' | 'table'>,
  { model, dimensions }: Embedder,
  lengths: readonly number[],
): string | undefined {
  if (lengths.length === 0 || lengths.includes(dimensions)) return undefined;
  return `OMP_MAPPING_EMBEDDING: the vectors in "${column.name}" of ${table.schema}.${table.name} have ${lengths.join(' or ')} dimensions, and those of the embedder ${model} ${dimensions}; set OMP_EMBEDDING_MODEL or OMP_EMBEDDING_DIMENSIONS to what made them, or OMP_MAPPING_EMBEDDING to another column`;
}
