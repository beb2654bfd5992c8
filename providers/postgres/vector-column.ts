import type pg from 'pg';
import { MAX_INDEXED_DIMENSIONS } from './halfvec.ts';
import type { Names } from './names.ts';

/** Up to here a vector stays in its row, where an exact scan reads it without a detour. Above, rows would outgrow a page. */
const MAX_INLINE_DIMENSIONS = 2_000;
/** Of two vectors in one row together; the rest of the page is left to the other fields, however many. */
const MAX_INLINE_TOGETHER = 3_700;
/** Texts too stay in the row as far as they fit beside the vectors: this many bytes, up to what a page holds. */
const TEXT_BYTES = 2_040;
const PAGE_BYTES = 8_160;

/**
 * How the vectors in `names.embedding` are kept from now on. `beside`: the dimensions of those that are in the same
 * rows for a while. Rows that are already there stay as they are.
 */
export async function setStorage(client: pg.Client, names: Names, dimensions: number, beside = 0): Promise<void> {
  const other = beside <= MAX_INLINE_DIMENSIONS ? beside : 0;
  const inline = dimensions <= MAX_INLINE_DIMENSIONS && dimensions + other <= MAX_INLINE_TOGETHER;
  const target = Math.min(PAGE_BYTES, TEXT_BYTES + 2 * ((inline ? dimensions : 0) + other));
  await client.query(`
    alter table ${names.memories} alter column ${names.embedding} set storage ${inline ? 'plain' : 'external'};
    alter table ${names.memories} set (toast_tuple_target = ${target});
  `);
}

export interface VectorIndex {
  /** As it is called once the column is in use. */
  readonly name: string;
  readonly on: string;
}

/** The indexes over a column of vectors. */
export const vectorIndexes = (names: Names, dimensions: number): VectorIndex[] => [
  // Empty while every memory has its vector; tells at once whether some have none.
  { name: 'memories_without_vector', on: `(id) where ${names.embedding} is null` },
  ...(dimensions <= MAX_INDEXED_DIMENSIONS
    ? [{ name: 'memories_embedding', on: `using hnsw (${names.embedding} ${names.halfvecCosine}) where large` }]
    : []),
];
