import type { Embedder, EmbedderIdentity } from '#contract';
import { type Names, withVectorsIn } from '../names.ts';
import { lockStore } from '../store-row.ts';
import { setStorage, vectorIndexes } from '../vector-column.ts';
import { dropTrigger, nextName } from './begin.ts';
import { readMissing, writeVectors } from './fill.ts';
import { callWith } from './patience.ts';
import { type Locking, withLocks } from './with-locks.ts';

/** Writers wait while the last few are embedded. */
const LAST_MS = 5_000;

export interface Switching {
  readonly names: Names;
  readonly column: string;
  readonly embedder: Embedder;
  /** Most memories to embed while nobody can write. */
  readonly few: number;
}

/**
 * Puts the new column into the place of the one in use, with a vector for every memory: those that were added since the
 * last pass are embedded while writers wait. Returns how many those were; undefined, changing nothing, when they were
 * too many or could not be embedded at once.
 */
export function switchOver(locking: Locking, { names, column, embedder, few }: Switching): Promise<number | undefined> {
  const { client } = locking;
  const next = withVectorsIn(column, names);
  return withLocks(locking, async () => {
    // In the order in which a starting gateway takes them.
    const store = await lockStore(client, names);
    if (store.next?.column !== column) {
      throw new Error('what this run was filling was given up or finished by another; run "omp-gateway reembed" again');
    }
    await client.query(`lock table ${names.memories} in share row exclusive mode`);
    const rows = await readMissing(client, next, { after: '', limit: few + 1 });
    if (rows.length > few) return undefined;
    const vectors = await embedAtOnce(
      embedder,
      rows.map(({ content }) => content),
    );
    if (!vectors) return undefined;
    await writeVectors(
      client,
      next,
      rows.map((row, i) => ({ row, vector: vectors[i] as Float32Array })),
    );
    await client.query(`lock table ${names.memories} in access exclusive mode`);
    await replaceColumn(locking, { names, next, to: store.next });
    return rows.length;
  });
}

async function embedAtOnce(embedder: Embedder, texts: readonly string[]): Promise<Float32Array[] | undefined> {
  if (texts.length === 0) return [];
  try {
    return await embedder.embed(texts, 'document', callWith(AbortSignal.timeout(LAST_MS)));
  } catch {
    // The next pass over what is missing tries again, with patience, and tells what is wrong.
    return undefined;
  }
}

async function replaceColumn(
  { client }: Locking,
  { names, next, to }: { names: Names; next: Names; to: EmbedderIdentity },
): Promise<void> {
  await dropTrigger(client, names);
  // Every memory has its vector now.
  await client.query(`delete from ${names.ingestion}`);
  // Its indexes go with it.
  await client.query(`alter table ${names.memories} drop column ${names.embedding}`);
  for (const { name } of vectorIndexes(next, to.dimensions)) {
    await client.query(`alter index ${names.schema}.${nextName(name)} rename to ${name}`);
  }
  await setStorage(client, next, to.dimensions);
  await client.query(
    `update ${names.store} set embedding_model = next_model, dimensions = next_dimensions, embedding_column = next_column,
       next_model = null, next_dimensions = null, next_column = null`,
  );
}
