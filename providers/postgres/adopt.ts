import type pg from 'pg';
import type { Embedder, EmbedderIdentity, Log } from '#contract';
import { ANALYSER_VERSION } from '#ranking';
import { MAX_INDEXED_DIMENSIONS } from './halfvec.ts';
import type { Names } from './names.ts';
import { isSame, lockStore, type Store } from './store-row.ts';
import { setStorage, vectorIndexes } from './vector-column.ts';

/**
 * Checks that this embedder made the vectors that are stored, or becomes it when there are none yet. Runs in the
 * caller's transaction. Throws with both identities and the way out: vectors of two models are never compared.
 */
export async function adoptEmbedder(
  client: pg.Client,
  names: Names,
  embedder: Embedder | undefined,
  log: Log,
): Promise<void> {
  const store = await lockStore(client, names);
  if (store.analyser_version !== ANALYSER_VERSION) {
    throw new Error(
      `the stored keywords were made by text analyser ${store.analyser_version}, this gateway has ${ANALYSER_VERSION}; use the omp-gateway that made them`,
    );
  }
  if (!embedder) return;
  if (store.made_by === null && store.next === null) await becomeFirst(client, names, embedder, log);
  else if (!isSame(store.made_by, embedder)) throw new Error(mismatch(store, embedder));
  const missing = await client.query(withoutVector(names));
  if (missing.rowCount !== 0) throw new Error(WITHOUT_VECTOR);
}

/** Selects a row if there are memories that have no vector and wait for none. */
export const withoutVector = (names: Names): string =>
  `select 1 from ${names.memories} where ${names.embedding} is null
     and not exists (select from ${names.ingestion} where memory_id = id) limit 1`;

export const WITHOUT_VECTOR =
  'some stored memories have no vector, because they were added with OMP_SEARCH_MODE=keyword; run "omp-gateway reembed", or keep that mode';

export const called = ({ model, dimensions }: EmbedderIdentity): string => `"${model}" (${dimensions} dimensions)`;

export function mismatch({ made_by, next }: Store, embedder: Embedder): string {
  const stored = made_by ? `the stored vectors were made by ${called(made_by)}` : 'the stored memories have no vectors';
  const configured = `the configured embedder is ${called(embedder)}`;
  const before = made_by
    ? 'configure that model again (OMP_EMBEDDER, OMP_EMBEDDING_MODEL, OMP_EMBEDDING_DIMENSIONS)'
    : 'keep OMP_SEARCH_MODE=keyword';
  if (isSame(next, embedder)) {
    return `${stored}, ${configured}, and embedding everything anew for it is not finished; let "omp-gateway reembed" come to its end, and until then ${before}`;
  }
  return `${stored}, ${configured}; run "omp-gateway reembed" to go over to it, or ${before}`;
}

async function becomeFirst(client: pg.Client, names: Names, { model, dimensions }: Embedder, log: Log): Promise<void> {
  // Already checked to be whole numbers; DDL takes no parameters.
  await client.query(
    `alter table ${names.memories} alter column ${names.embedding} type ${names.halfvec}(${dimensions})`,
  );
  await setStorage(client, names, dimensions);
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
