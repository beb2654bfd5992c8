import { randomUUID } from 'node:crypto';
import { toSql } from 'pgvector';
import type { LibraryDatabase } from './library-table.ts';
import { type LibraryRow, type LibraryTable, textOf, withoutTimes } from './library-table.ts';

function langchainPy(): LibraryTable[] {
  /** What SQLAlchemy sends for `add_embeddings` of langchain_postgres/vectorstores.py. */
  const INSERT = `INSERT INTO langchain_pg_embedding (id, collection_id, embedding, document, cmetadata) VALUES ($1::VARCHAR, $2::UUID, $3, $4::VARCHAR, $5::JSONB) ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding, document = excluded.document, cmetadata = excluded.cmetadata`;

  async function insert(
    db: LibraryDatabase,
    row: LibraryRow & { readonly collection?: string },
    document: string | null,
    cmetadata: object,
  ) {
    const [collection] = await db.sql<{ uuid: string }>('SELECT uuid FROM langchain_pg_collection WHERE name = $1', [
      row.collection ?? 'my_docs',
    ]);
    const id = randomUUID();
    await db.sql(INSERT, [id, collection?.uuid, textOf(row.vector), document, cmetadata]);
    return id;
  }

  return [
    {
      page: 'langchain-py',
      // The classes CollectionStore and EmbeddingStore of langchain_postgres/vectorstores.py at 7129e2b, as SQLAlchemy makes
      // them, and two collections as create_collection() does.
      ddl: [
        `CREATE TABLE langchain_pg_collection ( uuid UUID NOT NULL, name VARCHAR NOT NULL, cmetadata JSON, PRIMARY
          KEY (uuid), UNIQUE (name) )`,
        `CREATE TABLE langchain_pg_embedding ( id VARCHAR, collection_id UUID, embedding VECTOR, document VARCHAR,
          cmetadata JSONB, PRIMARY KEY (id), FOREIGN KEY(collection_id) REFERENCES langchain_pg_collection (uuid) ON
          DELETE CASCADE )`,
        'CREATE INDEX ix_cmetadata_gin ON langchain_pg_embedding USING gin (cmetadata jsonb_path_ops)',
        'CREATE UNIQUE INDEX ix_langchain_pg_embedding_id ON langchain_pg_embedding (id)',
        `INSERT INTO langchain_pg_collection (uuid, name, cmetadata) VALUES ('${randomUUID()}', 'my_docs', 'null')`,
        `INSERT INTO langchain_pg_collection (uuid, name, cmetadata) VALUES ('${randomUUID()}', 'langchain', 'null')`,
      ],
      dimensions: 3072,
      fill: (db, row) => insert(db, row, row.text, { user_id: row.user, source: 'notes.txt', page: row.number }),
      async hide(db, row) {
        await insert(db, { ...row, collection: 'langchain' }, row.text, { user_id: row.user });
        await insert(db, row, row.text, { source: 'notes.txt' });
        await insert(db, row, row.text, { user_id: null });
        await insert(db, row, null, { user_id: row.user });
        await insert(db, row, '', { user_id: row.user });
      },
      shows: withoutTimes('text-embedding-3-large'),
      // __query_collection, filtered by the owner, without the order.
      async read(db, id) {
        const [row] = await db.sql<{ text: string; user: string }>(
          `SELECT document AS text, langchain_pg_embedding.cmetadata ->> 'user_id' AS "user" FROM
            langchain_pg_embedding JOIN langchain_pg_collection ON langchain_pg_embedding.collection_id =
            langchain_pg_collection.uuid WHERE langchain_pg_collection.name = 'my_docs' AND
            langchain_pg_embedding.id = $1 AND embedding IS NOT NULL`,
          [id],
        );
        return row as { text: string; user: string };
      },
    },
  ];
}

function langchainPyV2(): LibraryTable[] {
  /** Of `aadd_embeddings` in langchain_postgres/v2/async_vectorstore.py. */
  const INSERT = `INSERT INTO "public"."vectorstore"("langchain_id", "content", "embedding", "langchain_metadata")VALUES ($1, $2, $3, $4) ON CONFLICT ("langchain_id") DO UPDATE SET "content" = EXCLUDED."content", "embedding" = EXCLUDED."embedding", "langchain_metadata" = EXCLUDED."langchain_metadata";`;

  async function insert(db: LibraryDatabase, { vector }: LibraryRow, content: string, extra: object) {
    const id = randomUUID();
    await db.sql(INSERT, [id, content, textOf(vector), JSON.stringify(extra)]);
    return id;
  }

  return [
    {
      page: 'langchain-py-v2',
      // _ainit_vectorstore_table of langchain_postgres/v2/engine.py at 0453818, with its defaults.
      ddl: [
        `CREATE TABLE "public"."vectorstore"( "langchain_id" UUID PRIMARY KEY, "content" TEXT NOT NULL, "embedding"
          vector(1536) NOT NULL , "langchain_metadata" JSON );`,
      ],
      fill: (db, row) => insert(db, row, row.text, { user_id: row.user, source: 'notes.txt' }),
      async hide(db, row) {
        await insert(db, row, row.text, {});
        await insert(db, row, '', { user_id: row.user });
      },
      // __query_collection of v2/async_vectorstore.py; no metadata would be an empty dict there.
      async read(db, id) {
        const [row] = await db.sql<{ content: string; langchain_metadata: { user_id: string } }>(
          `SELECT "langchain_id", "content", "embedding", "langchain_metadata" FROM "public"."vectorstore" WHERE "langchain_id" = $1`,
          [id],
        );
        return { text: row?.content as string, user: row?.langchain_metadata.user_id as string };
      },
    },
  ];
}

function langchainJs(): LibraryTable[] {
  const insert = `INSERT INTO testlangchainjs( "content", "vector", "metadata", "id" ) VALUES ($1, $2, $3, $4)`;

  return [
    {
      page: 'langchain-js',
      // PGVectorStore.ensureTableInDatabase with the names of LangChain's documentation, and addVectors with ids.
      ddl: [
        `CREATE TABLE IF NOT EXISTS testlangchainjs ( "id" uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
          "content" text, "metadata" jsonb, "vector" vector(1536) );`,
      ],
      async fill(db, { user, text, vector, number }) {
        const id = randomUUID();
        await db.sql(insert, [text, toSql([...vector]), { user_id: user, loc: { line: number } }, id]);
        return id;
      },
      async hide(db, { user, text, vector }) {
        const embedding = toSql([...vector]);
        await db.sql(insert, [text, embedding, {}, randomUUID()]);
        await db.sql(insert, [text, embedding, null, randomUUID()]);
        await db.sql(insert, [text, embedding, { user_id: null }, randomUUID()]);
        await db.sql(insert, ['', embedding, { user_id: user }, randomUUID()]);
        await db.sql(insert, [null, embedding, { user_id: user }, randomUUID()]);
      },
      shows: { created_at: '1970-01-01T00:00:00.000Z', embedding_model: 'text-embedding-3-small' },
      // PGVectorStore.searchPostgres makes a document of these columns.
      async read(db, id) {
        const [row] = await db.sql<{ content: string; metadata: { user_id: string } }>(
          'SELECT * FROM testlangchainjs WHERE id = $1',
          [id],
        );
        return { text: row?.content ?? '', user: row?.metadata.user_id ?? '' };
      },
    },
  ];
}

function n8n(): LibraryTable[] {
  // PGVectorStore.addVectors without ids: they are the database's, and n8n never sees them.
  const columns = '"text", "embedding", "metadata"';
  const insert = `INSERT INTO n8n_vectors( ${columns} ) VALUES ($1, $2, $3)`;
  const insertInto = `INSERT INTO n8n_vectors( ${columns}, "collection_id" ) VALUES ($1, $2, $3, $4)`;

  const valuesOf = ({ text, vector }: LibraryRow, who: object) => [
    text,
    toSql([...vector]),
    { source: 'blob', blobType: 'text/plain', ...who },
  ];

  async function idOf(db: LibraryDatabase, { user, text }: LibraryRow): Promise<string> {
    const [row] = await db.sql<{ id: string }>(
      `select id from n8n_vectors where "text" = $1 and metadata->>'user_id' = $2`,
      [text, user],
    );
    return row?.id ?? '';
  }

  /** PGVectorStore.searchPostgres with this condition. */
  async function readWhere(db: LibraryDatabase, id: string, condition: string) {
    const rows = await db.sql<{ id: string; text: string; metadata: { user_id: string } }>(
      `SELECT *, "embedding" <=> $1 as "_distance" FROM n8n_vectors ${condition} ORDER BY "_distance" ASC LIMIT $2;`,
      [toSql(Array(1536).fill(1)), 100],
    );
    const row = rows.find((candidate) => candidate.id === id);
    return { text: row?.text ?? '', user: row?.metadata.user_id ?? '' };
  }

  const table: LibraryTable = {
    page: 'n8n',
    // PGVectorStore.ensureTableInDatabase without dimensions, with the names of n8n.
    ddl: [
      `CREATE TABLE IF NOT EXISTS n8n_vectors ( "id" uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY, "text"
        text, "metadata" jsonb, "embedding" vector );`,
    ],
    async fill(db, row) {
      await db.sql(insert, valuesOf(row, { user_id: row.user }));
      return idOf(db, row);
    },
    hide: async (db, row) => void (await db.sql(insert, valuesOf(row, {}))),
    shows: { created_at: '1970-01-01T00:00:00.000Z', embedding_model: 'text-embedding-3-small' },
    read: (db, id) => readWhere(db, id, ''),
  };

  /** PGVectorStore.getOrCreateCollection */
  async function collection(db: LibraryDatabase, name: string): Promise<string> {
    const select = 'SELECT uuid from n8n_vector_collections WHERE name = $1;';
    const [found] = await db.sql<{ uuid: string }>(select, [name]);
    if (found !== undefined) return found.uuid;
    const [made] = await db.sql<{ uuid: string }>(
      `INSERT INTO n8n_vector_collections( uuid, name, cmetadata ) VALUES ( gen_random_uuid(), $1, $2 ) RETURNING
        uuid;`,
      [name, null],
    );
    return made?.uuid ?? '';
  }

  return [
    table,
    {
      ...table,
      heading: 'With collections',
      ddl: [
        ...table.ddl,
        // PGVectorStore.ensureCollectionTableInDatabase
        `CREATE TABLE IF NOT EXISTS n8n_vector_collections ( uuid uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY
          KEY, name character varying, cmetadata jsonb ); CREATE INDEX IF NOT EXISTS idx_n8n_vector_collections_name
          ON n8n_vector_collections(name); ALTER TABLE n8n_vectors ADD COLUMN collection_id uuid; ALTER TABLE
          n8n_vectors ADD CONSTRAINT n8n_vectors_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES
          n8n_vector_collections(uuid) ON DELETE CASCADE;`,
        // The index that the page advises further down.
        "create index n8n_vectors_user on n8n_vectors ((metadata->>'user_id'), id)",
      ],
      async fill(db, row) {
        await db.sql(insertInto, [...valuesOf(row, { user_id: row.user }), await collection(db, 'n8n')]);
        return idOf(db, row);
      },
      async hide(db, row) {
        await db.sql(insertInto, [...valuesOf(row, { user_id: row.user }), await collection(db, 'other')]);
        await db.sql(insert, valuesOf(row, { user_id: row.user }));
        await db.sql(insertInto, [...valuesOf(row, {}), await collection(db, 'n8n')]);
      },
      read: async (db, id) => readWhere(db, id, `WHERE collection_id = '${await collection(db, 'n8n')}'`),
    },
  ];
}

function typeorm(): LibraryTable[] {
  // What TypeORM makes of `repository.save` for the entity that LangChain describes.
  const insert =
    'INSERT INTO "documents"("id", "pageContent", "metadata", "embedding") VALUES (DEFAULT, $1, $2, $3) RETURNING "id"';

  return [
    {
      page: 'typeorm',
      // TypeORMVectorStore.ensureTableInDatabase
      ddl: [
        `CREATE TABLE IF NOT EXISTS documents ( "id" uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
          "pageContent" text, metadata jsonb, embedding vector );`,
      ],
      async fill(db, { user, text, vector, number }) {
        const values = [text, { user_id: user, page: number }, toSql([...vector])];
        const [row] = await db.sql<{ id: string }>(insert, values);
        return row?.id ?? '';
      },
      async hide(db, { user, text, vector }) {
        const embedding = toSql([...vector]);
        await db.sql(insert, [text, { owner: user }, embedding]);
        await db.sql(insert, ['', { user_id: user }, embedding]);
        await db.sql(insert, [null, { user_id: user }, embedding]);
      },
      shows: { created_at: '1970-01-01T00:00:00.000Z', embedding_model: 'text-embedding-3-small' },
      // TypeORMVectorStore.similaritySearchVectorWithScore
      async read(db, id) {
        const rows = await db.sql<{ id: string; pageContent: string; metadata: { user_id: string } }>(
          `SELECT *, embedding <=> $1 as "_distance" FROM documents WHERE metadata @> $2 ORDER BY "_distance" ASC
            LIMIT $3;`,
          [toSql(Array(1536).fill(1)), { user_id: 'ana' }, 100],
        );
        const row = rows.find((candidate) => candidate.id === id);
        return { text: row?.pageContent ?? '', user: row?.metadata.user_id ?? '' };
      },
    },
  ];
}

function supabase(): LibraryTable[] {
  /** What PostgREST makes of supabase-js' `from('documents').upsert(rows).select()` for rows without an id. */
  const INSERT = `WITH pgrst_source AS (INSERT INTO "public"."documents"("content", "embedding", "metadata") SELECT "pgrst_body"."content", "pgrst_body"."embedding", "pgrst_body"."metadata" FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "content", "embedding", "metadata" FROM json_to_recordset(pgrst_payload.json_data) AS _("content" text, "embedding" extensions.vector(1536), "metadata" jsonb)) pgrst_body RETURNING "public"."documents".*) SELECT id::text FROM pgrst_source`;

  /** Of `addVectors` in langchain-community/src/vectorstores/supabase.ts. */
  async function insert(db: LibraryDatabase, { vector }: LibraryRow, content: string, metadata: object | null) {
    const [row] = await db.sql<{ id: string }>(INSERT, [
      JSON.stringify([{ content, embedding: [...vector], metadata }]),
    ]);
    return row?.id as string;
  }

  return [
    {
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
      fill: (db, row) => insert(db, row, row.text, { user_id: row.user, source: 'https://example.com' }),
      async hide(db, row) {
        await insert(db, row, row.text, { source: 'https://example.com' });
        await insert(db, row, row.text, null);
        await insert(db, row, '', { user_id: row.user });
      },
      // As similaritySearch() asks, by the vector of the row itself.
      async read(db, id) {
        const [row] = await db.sql<{ content: string; metadata: { user_id: string } }>(
          `select found.* from documents, match_documents(documents.embedding, 100, '{}') as found where
            documents.id = $1 and found.id = documents.id`,
          [id],
        );
        return { text: row?.content as string, user: row?.metadata.user_id as string };
      },
    },
  ];
}

export const LANGCHAIN_TABLES: readonly LibraryTable[] = [
  langchainPy(),
  langchainPyV2(),
  langchainJs(),
  n8n(),
  typeorm(),
  supabase(),
].flat();
