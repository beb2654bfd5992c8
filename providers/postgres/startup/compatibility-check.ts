import type pg from 'pg';
import type { EmbedderIdentity, Log } from '#provider';
import { ANALYSER_VERSION } from '#provider';
import { MAX_INDEXED_DIMENSIONS } from '../pgvector.ts';
import { unplaced } from '../scaling/placement.ts';
import { type Names, withBuckets, withVectorsIn } from '../tables/names.ts';

/** The row of the `store` table: which analyser and embedder made the stored data. */
export interface Store {
  readonly analyser_version: number;
  /** Null: there are no vectors. */
  readonly made_by: EmbedderIdentity | null;
  /** Column of the vectors in use. */
  readonly column: string;
  readonly columns_made: number;
  /** A re-embed in progress. */
  readonly next: (EmbedderIdentity & { readonly column: string }) | null;
}

/** As JSON. A schema of an older version lacks the optional columns. */
export interface StoreRow {
  readonly analyser_version: number;
  readonly embedding_model: string | null;
  readonly dimensions: number | null;
  readonly embedding_column?: string;
  readonly columns_made?: number;
  readonly next_model?: string | null;
  readonly next_dimensions?: number | null;
  readonly next_column?: string | null;
}

export function toStore(row: StoreRow): Store {
  const next = identity(row.next_model, row.next_dimensions);
  return {
    analyser_version: row.analyser_version,
    made_by: identity(row.embedding_model, row.dimensions),
    column: row.embedding_column ?? 'embedding',
    columns_made: row.columns_made ?? 1,
    next: next && { ...next, column: row.next_column ?? '' },
  };
}

const identity = (model: string | null | undefined, dimensions: number | null | undefined): EmbedderIdentity | null =>
  model == null || dimensions == null ? null : { model, dimensions };

export const isSame = (a: EmbedderIdentity | null, b: EmbedderIdentity): boolean =>
  a !== null && a.model === b.model && a.dimensions === b.dimensions;

/** Creates the row if it is missing, and locks it until the caller's transaction ends. */
export async function lockStore(client: pg.Client, names: Names): Promise<Store> {
  await client.query(`insert into ${names.store} (analyser_version) values ($1) on conflict do nothing`, [
    ANALYSER_VERSION,
  ]);
  const { rows } = await client.query<StoreRow>(`select * from ${names.store} for update`);
  return toStore(rows[0] as StoreRow);
}

/** The names with the column of the vectors in use and the buckets of the store; without a row of the store, as they are. */
export async function namesInUse(client: pg.Client, names: Names, distributed: boolean): Promise<Names> {
  const { rows } = await client.query<{ embedding_column: string; bucket_secret: Buffer }>(
    `select embedding_column, bucket_secret from ${names.store}`,
  );
  const [store] = rows;
  if (!store) return { ...names, placement: unplaced(names.memories, distributed) };
  return withBuckets(withVectorsIn(store.embedding_column, names), store.bucket_secret, distributed);
}

/**
 * Checks that this embedder made the stored vectors; the first embedder of an empty store is recorded. Runs in the caller's
 * transaction. Throws an error with both embedders and the remedies: vectors of two models must never be compared.
 */
export async function checkCompatibility(
  client: pg.Client,
  names: Names,
  embedder: EmbedderIdentity | undefined,
  log: Log,
): Promise<void> {
  const store = await lockStore(client, names);
  const problem = analyserProblem(store) ?? embedderProblem(store, embedder);
  if (problem !== undefined) throw new Error(problem);
  if (!embedder) return;
  if (!store.made_by) await recordFirstEmbedder(client, names, embedder, log);
  const missing = await client.query(withoutVector(names));
  if (missing.rowCount !== 0) throw new Error(WITHOUT_VECTOR);
}

/** Undefined: no problem. */
export const analyserProblem = ({ analyser_version }: Store): string | undefined =>
  analyser_version === ANALYSER_VERSION
    ? undefined
    : `the stored keywords were made by text analyser ${analyser_version}, this gateway has ${ANALYSER_VERSION}; use the omp-gateway that made them`;

/** Undefined: this embedder made the vectors, or there are none. */
export function embedderProblem({ made_by, next }: Store, embedder: EmbedderIdentity | undefined): string | undefined {
  if (!embedder || isSame(made_by, embedder) || !(made_by || next)) return undefined;
  const stored = made_by
    ? `the stored vectors were made by ${labelOf(made_by)}`
    : 'the stored memories have no vectors';
  const configured = `the configured embedder is ${labelOf(embedder)}`;
  const back = made_by
    ? 'configure that model again (OMP_EMBEDDER, OMP_EMBEDDING_MODEL, OMP_EMBEDDING_DIMENSIONS)'
    : 'keep OMP_SEARCH_MODE=keyword';
  return isSame(next, embedder)
    ? `${stored}, ${configured}, and the re-embed for it is not finished; run "omp-gateway reembed" to finish it, and until then ${back}`
    : `${stored}, ${configured}; run "omp-gateway reembed" to change to it, or ${back}`;
}

/** Selects a row if there are memories that have no vector and are not in the ingestion queue. */
export const withoutVector = (names: Names): string =>
  `select 1 from ${names.memories} m where ${names.embedding} is null
     and not exists (select from ${names.ingestion} q where memory_id = id and ${names.placement.sameBucket('m', 'q')}) limit 1`;

export const WITHOUT_VECTOR =
  'some stored memories have no vector, because they were added with OMP_SEARCH_MODE=keyword; run "omp-gateway reembed", or keep that mode';

export const labelOf = ({ model, dimensions }: EmbedderIdentity): string => `"${model}" (${dimensions} dimensions)`;

async function recordFirstEmbedder(
  client: pg.Client,
  names: Names,
  { model, dimensions }: EmbedderIdentity,
  log: Log,
): Promise<void> {
  // DDL takes no parameters; the embedder has checked that this is a whole number.
  await client.query(
    `alter table ${names.memories} alter column ${names.embedding} type ${names.halfvec}(${dimensions})`,
  );
  await setVectorStorage(client, names, dimensions);
  for (const { name, on } of vectorIndexes(names, dimensions)) {
    await client.query(`create index if not exists ${name} on ${names.memories} ${on}`);
  }
  warnOfLength({ dimensions }, log);
  await client.query(`update ${names.store} set embedding_model = $1, dimensions = $2`, [model, dimensions]);
}

export function warnOfLength({ dimensions }: Pick<EmbedderIdentity, 'dimensions'>, log: Log): void {
  if (dimensions <= MAX_INDEXED_DIMENSIONS) return;
  log.warn(
    { dimensions, most: MAX_INDEXED_DIMENSIONS },
    'these vectors are too long for an index; every search is an exact scan of its user',
  );
}

/** Up to here a vector is stored inline, where an exact scan reads it without a detour. Longer ones would outgrow a page. */
const MAX_INLINE_DIMENSIONS = 2_000;
/** Of two vectors in one row together; the rest of the page is for the other columns. */
const MAX_INLINE_TOGETHER = 3_700;
/** Texts too stay inline if they fit beside the vectors: up to this size, and up to the size of a page. */
const TEXT_BYTES = 2_040;
const PAGE_BYTES = 8_160;

/**
 * Sets how `names.embedding` stores new vectors. `beside`: the dimensions of a second vector column in the same rows during
 * a re-embed. Existing rows stay as they are.
 */
export async function setVectorStorage(client: pg.Client, names: Names, dimensions: number, beside = 0): Promise<void> {
  const other = beside <= MAX_INLINE_DIMENSIONS ? beside : 0;
  const inline = dimensions <= MAX_INLINE_DIMENSIONS && dimensions + other <= MAX_INLINE_TOGETHER;
  const target = Math.min(PAGE_BYTES, TEXT_BYTES + 2 * ((inline ? dimensions : 0) + other));
  const storage = `alter column ${names.embedding} set storage ${inline ? 'plain' : 'external'}`;
  if (!names.placement.distributed) await client.query(`alter table ${names.memories} ${storage}`);
  await client.query(`alter table ${names.memories} set (toast_tuple_target = ${target})`);
}

export interface VectorIndex {
  /** Its name once the column is in use. */
  readonly name: string;
  readonly on: string;
}

/** The indexes over a vector column. */
export const vectorIndexes = (names: Names, dimensions: number): VectorIndex[] => [
  // Empty while every memory has its vector, so finding those without one is instant.
  { name: 'memories_without_vector', on: `(id) where ${names.embedding} is null` },
  ...(dimensions <= MAX_INDEXED_DIMENSIONS
    ? [{ name: 'memories_embedding', on: `using hnsw (${names.embedding} ${names.halfvecCosine}) where large` }]
    : []),
];
