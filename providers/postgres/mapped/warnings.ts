import { isOlder, SAFE_PGVECTOR } from '../pgvector.ts';
import type { Layout } from './layout.ts';
import { type Merged, settingOf } from './mapping.ts';
import type { RowSample, VectorSample } from './samples.ts';
import type { Table } from './table.ts';
import type { VectorParts } from './vector.ts';

/** Rows from which on it is told that each search compares all vectors of a user. */
const LARGE = 100_000;

export interface Seen {
  readonly table: Table;
  readonly merged: Merged;
  readonly layout: Layout;
  readonly vector: VectorParts;
  readonly sample: VectorSample;
  readonly rows: RowSample;
  /** Whether an index leads to the rows of a user. */
  readonly indexed: boolean;
}

/** What works, but not as well as it could. */
export function warningsOf({ table, layout, vector, sample, rows, indexed }: Seen): string[] {
  const { metric, index } = layout.vector;
  const label = `${table.schema}.${table.name}`;
  const column = `"${vector.column.name}" of ${vector.table.schema}.${vector.table.name}`;
  const undeclared =
    vector.column.dimensions === null
      ? `; the column does not say how long vectors are, so that an index has to be on a cast of it to ${vector.column.base}(${vector.dimensions})`
      : '';
  const catalogued = table.kind !== 'view' && table.kind !== 'foreign';
  const warn = (condition: boolean, text: string) => (condition ? [text] : []);
  return [
    ...warn(
      catalogued && !indexed,
      `no index of ${label} is on what ${settingOf('user_id')} names: every request reads the whole table; omp-gateway doctor prints the index to make`,
    ),
    ...warn(
      index === undefined && (table.rows ?? 0) >= LARGE,
      `${label} has about ${table.rows} rows and no vector index that can be used: a search compares all vectors of its user${undeclared}`,
    ),
    ...warn(
      layout.fields.created_at !== undefined && !layout.temporal,
      `${settingOf('created_at')}: none of ${rows.memories} rows of ${label} has a time there: lists go by id, and since and until are refused; name the place where rows have it`,
    ),
    ...warn(
      layout.temporal && rows.timed < rows.memories,
      `${settingOf('created_at')}: ${rows.memories - rows.timed} of ${rows.memories} rows of ${label} have no time there, and count as made in 1970`,
    ),
    ...warn(
      sample.lengths.length > 1,
      `the vectors in ${column} have several lengths (${sample.lengths.join(', ')}): search finds only those of ${vector.dimensions}`,
    ),
    ...warn(
      metric !== 'cosine' && metric !== 'l1' && !sample.unit,
      `the index ${index?.name} orders by ${metric === 'l2' ? 'Euclidean distance' : 'the inner product'}, and the vectors in ${column} do not have length 1: scores are no cosines`,
    ),
    ...warn(metric === 'l1', `the index ${index?.name} orders by the L1 distance: scores are no cosines`),
    ...warn(
      table.rowSecurity || vector.table.rowSecurity,
      `row security applies to the role of the gateway: rows of ${label} that its policies hide are not there for anybody`,
    ),
    ...warn(
      isOlder(vector.extension.version, SAFE_PGVECTOR),
      `pgvector ${vector.extension.version} is older than ${SAFE_PGVECTOR}, which fixes CVE-2026-3172 and corruption of HNSW indexes; upgrade it`,
    ),
  ];
}

/** Rows there are, but nobody's. */
export const uselessOf = ({ table, rows }: Pick<Seen, 'table' | 'rows'>): string | undefined =>
  rows.any && rows.memories === 0
    ? `no row of ${table.schema}.${table.name} has an owner where ${settingOf('user_id')} says and a text where ${settingOf('content')} says: nobody has memories`
    : undefined;
