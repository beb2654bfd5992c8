import type { OwnersDatabase } from './database.ts';
import { type OwnersRow, presetSuite, withoutTimes } from './preset-suite.ts';

/** What PostgREST makes of supabase-js' `from('documents').upsert(rows).select()` for rows without an id. */
const INSERT = `WITH pgrst_source AS (INSERT INTO "public"."documents"("content", "embedding", "metadata") SELECT "pgrst_body"."content", "pgrst_body"."embedding", "pgrst_body"."metadata" FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "content", "embedding", "metadata" FROM json_to_recordset(pgrst_payload.json_data) AS _("content" text, "embedding" extensions.vector(1536), "metadata" jsonb)) pgrst_body RETURNING "public"."documents".*) SELECT id::text FROM pgrst_source`;

/** Of `addVectors` in langchain-community/src/vectorstores/supabase.ts. */
async function insert(db: OwnersDatabase, { vector }: OwnersRow, content: string, metadata: object | null) {
  const [row] = await db.sql<{ id: string }>(INSERT, [JSON.stringify([{ content, embedding: [...vector], metadata }])]);
  return row?.id as string;
}

presetSuite({
  page: 'supabase',
  ddl: [
    // On Supabase extensions lie in a schema of their own, which is in the search path of its roles, but not of ours.
    'create schema extensions',
    'alter extension vector set schema extensions',
    'set search_path to "$user", public, extensions',
    // The SQL of langchain-ai/docs, integrations/vectorstores/supabase.mdx at 37d517f.
    `-- Create a table to store your documents
create table documents (
  id bigserial primary key,
  content text, -- corresponds to Document.pageContent
  metadata jsonb, -- corresponds to Document.metadata
  embedding vector(1536) -- 1536 works for OpenAI embeddings, change if needed
);`,
    `-- Create a function to search for documents
create function match_documents (
  query_embedding vector(1536),
  match_count int DEFAULT null,
  filter jsonb DEFAULT '{}'
) returns table (
  id bigint,
  content text,
  metadata jsonb,
  embedding jsonb,
  similarity float
)
language plpgsql
as $$
#variable_conflict use_column
begin
  return query
  select
    id,
    content,
    metadata,
    (embedding::text)::jsonb as embedding,
    1 - (documents.embedding <=> query_embedding) as similarity
  from documents
  where metadata @> filter
  order by documents.embedding <=> query_embedding
  limit match_count;
end;
$$;`,
  ],
  dimensions: 1536,
  fill: (db, row) => insert(db, row, row.text, { user_id: row.user, source: 'https://example.com' }),
  async hide(db, row) {
    await insert(db, row, row.text, { source: 'https://example.com' });
    await insert(db, row, row.text, null);
    await insert(db, row, '', { user_id: row.user });
  },
  shows: withoutTimes('text-embedding-3-small'),
  temporal: false,
  scopes: 'none',
  writable: true,
  // As similaritySearch() asks, by the vector of the row itself.
  async read(db, id) {
    const [row] = await db.sql<{ content: string; metadata: { user_id: string } }>(
      `select found.* from documents, match_documents(documents.embedding, 100, '{}') as found
       where documents.id = $1 and found.id = documents.id`,
      [id],
    );
    return { text: row?.content as string, user: row?.metadata.user_id as string };
  },
});
