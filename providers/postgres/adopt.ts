import type pg from 'pg';
import type { Embedder, Log } from '#contract';
import { ANALYSER_VERSION } from '#ranking';
import { MAX_INDEXED_DIMENSIONS } from './halfvec.ts';
import type { Names } from './names.ts';

interface Store {
  readonly analyser_version: number;
  readonly embedding_model: string | null;
  readonly dimensions: number | null;
}

/** Up to here a vector stays in its row, where an exact scan reads it without a detour. Above, rows would outgrow a page. */
const MAX_INLINE_DIMENSIONS = 2_000;

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
  await client.query(`insert into ${names.store} (analyser_version) values ($1) on conflict do nothing`, [
    ANALYSER_VERSION,
  ]);
  const { rows } = await client.query<Store>(`select * from ${names.store} for update`);
  const store = rows[0] as Store;
  if (store.analyser_version !== ANALYSER_VERSION) {
    throw new Error(
      `the stored keywords were made by text analyser ${store.analyser_version}, this gateway has ${ANALYSER_VERSION}; use the omp-gateway that made them`,
    );
  }
  if (!embedder) return;
  const { model, dimensions } = embedder;
  if (store.embedding_model === null || store.dimensions === null) await becomeFirst(client, names, embedder, log);
  else if (store.embedding_model !== model || store.dimensions !== dimensions) {
    throw new Error(
      `the stored vectors were made by "${store.embedding_model}" (${store.dimensions} dimensions), the configured embedder is "${model}" (${dimensions}); ` +
        'configure that model again (OMP_EMBEDDER, OMP_EMBEDDING_MODEL, OMP_EMBEDDING_DIMENSIONS), or start with an empty OMP_POSTGRES_SCHEMA or OMP_DATA_DIR',
    );
  }
  const missing = await client.query(`select 1 from ${names.memories} where embedding is null limit 1`);
  if (missing.rowCount !== 0) {
    throw new Error(
      'some stored memories have no vector, because they were added with OMP_SEARCH_MODE=keyword; keep that mode, or start with an empty OMP_POSTGRES_SCHEMA or OMP_DATA_DIR',
    );
  }
}

async function becomeFirst(client: pg.Client, names: Names, { model, dimensions }: Embedder, log: Log): Promise<void> {
  // Already checked to be whole numbers; DDL takes no parameters.
  const inline = dimensions <= MAX_INLINE_DIMENSIONS;
  await client.query(`
    alter table ${names.memories} alter column embedding type ${names.halfvec}(${dimensions});
    alter table ${names.memories} alter column embedding set storage ${inline ? 'plain' : 'external'};
    -- Texts too stay in the row as far as they fit beside the vector.
    alter table ${names.memories} set (toast_tuple_target = ${inline ? 2_040 + 2 * dimensions : 2_040});
  `);
  if (dimensions <= MAX_INDEXED_DIMENSIONS) {
    await client.query(
      `create index memories_embedding on ${names.memories} using hnsw (embedding ${names.halfvecCosine}) where large`,
    );
  } else
    log.warn(
      { dimensions, most: MAX_INDEXED_DIMENSIONS },
      'these vectors are too long for an index; every search is an exact scan of its user',
    );
  await client.query(`update ${names.store} set embedding_model = $1, dimensions = $2`, [model, dimensions]);
}
