import type pg from 'pg';
import type { EmbedderIdentity } from '#contract';
import { ANALYSER_VERSION } from '#ranking';
import type { Names } from './names.ts';

/** What the stored data was made with, and what it is being made anew with. */
export interface Store {
  readonly analyser_version: number;
  /** Null: there are no vectors. */
  readonly made_by: EmbedderIdentity | null;
  readonly column: string;
  readonly columns_made: number;
  /** A re-embedding that was begun. */
  readonly next: (EmbedderIdentity & { readonly column: string }) | null;
}

interface StoreRow {
  readonly analyser_version: number;
  readonly embedding_model: string | null;
  readonly dimensions: number | null;
  readonly embedding_column: string;
  readonly columns_made: number;
  readonly next_model: string | null;
  readonly next_dimensions: number | null;
  readonly next_column: string | null;
}

/** Reads the one row, which is made if it is missing, and keeps it for the caller's transaction. */
export async function lockStore(client: pg.Client, names: Names): Promise<Store> {
  await client.query(`insert into ${names.store} (analyser_version) values ($1) on conflict do nothing`, [
    ANALYSER_VERSION,
  ]);
  const { rows } = await client.query<StoreRow>(`select * from ${names.store} for update`);
  const row = rows[0] as StoreRow;
  const made_by = identity(row.embedding_model, row.dimensions);
  const next = identity(row.next_model, row.next_dimensions);
  return {
    analyser_version: row.analyser_version,
    made_by,
    column: row.embedding_column,
    columns_made: row.columns_made,
    next: next && row.next_column !== null ? { ...next, column: row.next_column } : null,
  };
}

/** Where the vectors in use are. */
export async function columnInUse(client: pg.Client, names: Names): Promise<string> {
  const { rows } = await client.query<{ embedding_column: string }>(`select embedding_column from ${names.store}`);
  return rows[0]?.embedding_column ?? 'embedding';
}

const identity = (model: string | null, dimensions: number | null): EmbedderIdentity | null =>
  model === null || dimensions === null ? null : { model, dimensions };

export const isSame = (a: EmbedderIdentity | null, b: EmbedderIdentity): boolean =>
  a !== null && a.model === b.model && a.dimensions === b.dimensions;
