import type pg from 'pg';
import type { Names } from '../names.ts';
import type { PatientEmbed } from './patience.ts';
import { type Locking, withLocks } from './with-locks.ts';

export interface Row {
  readonly id: string;
  readonly content: string;
}

/** Memories without a vector, in the order of their ids. */
export async function readMissing(
  client: pg.Client,
  { memories, embedding }: Names,
  { after, limit }: { readonly after: string; readonly limit: number },
): Promise<Row[]> {
  const { rows } = await client.query<Row>(
    `select id, content from ${memories} where ${embedding} is null and id > $1 order by id limit $2`,
    [after, limit],
  );
  return rows;
}

/** Only where the content is still what was embedded. Returns how many. */
export async function writeVectors(
  client: pg.Client,
  { memories, embedding, halfvec }: Names,
  embedded: readonly { readonly row: Row; readonly vector: Float32Array }[],
): Promise<number> {
  const written = await client.query(
    `update ${memories} m set ${embedding} = v.vector
     from unnest($1::text[], $2::text[], $3::${halfvec}[]) as v (id, content, vector)
     where m.id = v.id and m.content = v.content and m.${embedding} is null`,
    [
      embedded.map(({ row }) => row.id),
      embedded.map(({ row }) => row.content),
      // Halves are told exactly by their decimal form.
      embedded.map(({ vector }) => `[${vector.join(',')}]`),
    ],
  );
  return written.rowCount ?? 0;
}

export interface Pass {
  /** Ids of memories whose content the embedder refuses. */
  readonly refused: readonly string[];
}

/** Once through all memories without a vector. Throws the signal's reason between two batches. */
export async function fill(
  locking: Locking,
  names: Names,
  work: { readonly batch_size: number; readonly embed: PatientEmbed; written(count: number): void },
): Promise<Pass> {
  const { client, signal } = locking;
  const refused: string[] = [];
  for (let after = ''; ; ) {
    signal.throwIfAborted();
    const rows = await readMissing(client, names, { after, limit: work.batch_size });
    const last = rows.at(-1);
    if (!last) return { refused };
    after = last.id;
    const vectors = await work.embed(rows.map(({ content }) => content));
    const embedded = rows.flatMap((row, i) => {
      const vector = vectors[i];
      if (!vector) refused.push(row.id);
      return vector ? [{ row, vector }] : [];
    });
    // Rows of a large user may be on their way into the indexes, in another order than ours.
    work.written((await withLocks(locking, () => writeVectors(client, names, embedded))) ?? 0);
  }
}
