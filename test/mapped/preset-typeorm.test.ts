import { presetSuite } from './preset-suite.ts';

// What TypeORM makes of `repository.save` for the entity that LangChain describes.
const insert =
  'INSERT INTO "documents"("id", "pageContent", "metadata", "embedding") VALUES (DEFAULT, $1, $2, $3) RETURNING "id"';

presetSuite({
  page: 'typeorm',
  // TypeORMVectorStore.ensureTableInDatabase
  ddl: [
    `
      CREATE TABLE IF NOT EXISTS documents (
        "id" uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
        "pageContent" text,
        metadata jsonb,
        embedding vector
      );
    `,
  ],
  dimensions: 1536,
  async fill(db, { user, text, vector, number }) {
    const values = [text, { user_id: user, page: number }, `[${vector.join(',')}]`];
    const [row] = await db.sql<{ id: string }>(insert, values);
    return row?.id ?? '';
  },
  async hide(db, { user, text, vector }) {
    const embedding = `[${vector.join(',')}]`;
    await db.sql(insert, [text, { owner: user }, embedding]);
    await db.sql(insert, ['', { user_id: user }, embedding]);
    await db.sql(insert, [null, { user_id: user }, embedding]);
  },
  shows: { created_at: '1970-01-01T00:00:00.000Z', embedding_model: 'text-embedding-3-small' },
  temporal: false,
  scopes: 'none',
  writable: true,
  // TypeORMVectorStore.similaritySearchVectorWithScore
  async read(db, id) {
    const rows = await db.sql<{ id: string; pageContent: string; metadata: { user_id: string } }>(
      `
      SELECT *, embedding <=> $1 as "_distance"
      FROM documents
      WHERE metadata @> $2
      ORDER BY "_distance" ASC
      LIMIT $3;`,
      [`[${Array(1536).fill(1).join(',')}]`, { user_id: 'ana' }, 100],
    );
    const row = rows.find((candidate) => candidate.id === id);
    return { text: row?.pageContent ?? '', user: row?.metadata.user_id ?? '' };
  },
});
