import { randomUUID } from 'node:crypto';
import type { OwnersDatabase } from './database.ts';
import { type OwnersRow, presetSuite, textOf, withoutTimes } from './preset-suite.ts';

/** Of `insertOrUpdateBatch` in PgVectorStore.java. */
const INSERT =
  'INSERT INTO public.vector_store (id, content, metadata, embedding) VALUES ($1, $2, $3::jsonb, $4) ON CONFLICT (id) DO UPDATE SET content = $5 , metadata = $6::jsonb , embedding = $7 ';

async function insert(db: OwnersDatabase, { vector }: OwnersRow, content: string | null, metadata: object) {
  const id = randomUUID();
  const values = [content, JSON.stringify(metadata), textOf(vector)];
  await db.sql(INSERT, [id, ...values, ...values]);
  return id;
}

presetSuite({
  page: 'spring-ai',
  // afterPropertiesSet() of PgVectorStore.java at 0109464, with its defaults.
  ddl: [
    'CREATE EXTENSION IF NOT EXISTS vector',
    'CREATE EXTENSION IF NOT EXISTS hstore',
    'CREATE EXTENSION IF NOT EXISTS "uuid-ossp"',
    'CREATE SCHEMA IF NOT EXISTS "public"',
    `CREATE TABLE IF NOT EXISTS public.vector_store (
	id uuid DEFAULT uuid_generate_v4() PRIMARY KEY,
	content text,
	metadata json,
	embedding vector(1536)
)`,
    `CREATE INDEX IF NOT EXISTS spring_ai_vector_index ON public.vector_store USING HNSW (embedding vector_cosine_ops)`,
  ],
  dimensions: 1536,
  fill: (db, row) => insert(db, row, row.text, { userId: row.user, source: 'manual.pdf' }),
  async hide(db, row) {
    await insert(db, row, row.text, { user_id: row.user });
    await insert(db, row, row.text, { conversationId: row.user });
    await insert(db, row, null, { userId: row.user });
  },
  shows: withoutTimes('text-embedding-3-small'),
  temporal: false,
  scopes: 'none',
  writable: true,
  // doSimilaritySearch(), by the vector of the row itself; mapRow() fails where the metadata is no object.
  async read(db, id) {
    const [row] = await db.sql<{ content: string; metadata: { userId: string } }>(
      `SELECT *, embedding <=> (SELECT embedding FROM public.vector_store WHERE id = $1) AS distance FROM public.vector_store
       WHERE embedding <=> (SELECT embedding FROM public.vector_store WHERE id = $1) < 0.1 ORDER BY distance LIMIT 1`,
      [id],
    );
    return { text: row?.content as string, user: row?.metadata.userId as string };
  },
});
