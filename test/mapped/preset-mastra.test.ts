import { randomUUID } from 'node:crypto';
import type { OwnersDatabase } from './database.ts';
import { presetSuite } from './preset-suite.ts';

/** PgVector.upsert */
const upsert = (db: OwnersDatabase, id: string, vector: Float32Array, metadata: object) =>
  db.sql(
    `
      INSERT INTO "embeddings" (vector_id, embedding, metadata)
      VALUES ($1, $2::vector, $3::jsonb)
      ON CONFLICT (vector_id)
      DO UPDATE SET embedding = $2::vector, metadata = $3::jsonb
      RETURNING embedding::text
    `,
    [id, `[${vector.join(',')}]`, JSON.stringify(metadata)],
  );

presetSuite({
  page: 'mastra',
  // PgVector.createIndex and its default index
  ddl: [
    `
          CREATE TABLE IF NOT EXISTS "embeddings" (
            id SERIAL PRIMARY KEY,
            vector_id TEXT UNIQUE NOT NULL,
            embedding vector(1536),
            metadata JSONB DEFAULT '{}'::jsonb
          );
        `,
    `
          CREATE INDEX IF NOT EXISTS "embeddings_vector_idx"
          ON "embeddings"
          USING ivfflat (embedding vector_cosine_ops)
          WITH (lists = 100);
        `,
  ],
  dimensions: 1536,
  async fill(db, { user, text, vector, number }) {
    const id = number === 0 ? 'chunk/1' : randomUUID();
    // The keys of Mastra's guide to RAG; two users may have a first chunk.
    await upsert(db, user === 'ana' ? id : randomUUID(), vector, { text, user_id: user, nested: { number } });
    return id;
  },
  async hide(db, { user, vector }) {
    // Mastra's own memory keeps messages elsewhere: its vectors have no text.
    await upsert(db, randomUUID(), vector, { message_id: 'm', thread_id: 't', resource_id: user });
    await upsert(db, randomUUID(), vector, { text: 'hidden from everybody' });
    await upsert(db, randomUUID(), vector, { user_id: user });
  },
  shows: { created_at: '1970-01-01T00:00:00.000Z', embedding_model: 'text-embedding-3-small' },
  temporal: false,
  scopes: 'none',
  writable: true,
  // PgVector.query
  async read(db, id) {
    const rows = await db.sql<{ id: string; metadata: { text: string; user_id: string } }>(
      `
        WITH vector_scores AS (
          SELECT
            vector_id as id,
            1 - (embedding <=> '[${Array(1536).fill(1).join(',')}]'::vector) as score,
            metadata
          FROM "embeddings"
          WHERE metadata#>>'{user_id}' = $3
        )
        SELECT *
        FROM vector_scores
        WHERE score > $1
        ORDER BY score DESC
        LIMIT $2`,
      [-1, 100, 'ana'],
    );
    const row = rows.find((candidate) => candidate.id === id);
    return { text: row?.metadata.text ?? '', user: row?.metadata.user_id ?? '' };
  },
});
