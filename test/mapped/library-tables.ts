import { createHash, randomUUID } from 'node:crypto';
import { toSql } from 'pgvector';
import type { LibraryDatabase } from './library-table.ts';
import { type LibraryRow, type LibraryTable, textOf, withoutTimes } from './library-table.ts';

function llamaindexPy(): LibraryTable[] {
  /** What SQLAlchemy sends for `add` of llama_index/vector_stores/postgres/base.py. */
  const INSERT = `INSERT INTO public.data_paul_graham_essay (text, metadata_, node_id, embedding) VALUES ($1::VARCHAR, $2::JSON, $3::VARCHAR, $4) RETURNING public.data_paul_graham_essay.id`;

  /** `node_to_metadata_dict` of llama_index/core/vector_stores/utils.py: the node without its text, and its metadata beside it. */
  async function insert(db: LibraryDatabase, { vector }: LibraryRow, text: string, metadata: object) {
    const [id_, document] = [randomUUID(), randomUUID()];
    const node = { id_, embedding: null, metadata, relationships: {}, text: '', class_name: 'TextNode' };
    const kept = { ...metadata, _node_content: JSON.stringify(node), _node_type: 'TextNode' };
    const whole = { ...kept, document_id: document, doc_id: document, ref_doc_id: document };
    await db.sql(INSERT, [text, JSON.stringify(whole), id_, textOf(vector)]);
    return id_;
  }

  return [
    {
      page: 'llamaindex-py',
      // get_data_model of llama_index/vector_stores/postgres/base.py, as SQLAlchemy makes it.
      ddl: [
        `CREATE TABLE public.data_paul_graham_essay ( id BIGSERIAL NOT NULL, text VARCHAR NOT NULL, metadata_ JSON,
          node_id VARCHAR, embedding VECTOR(1536), PRIMARY KEY (id) )`,
        `CREATE INDEX paul_graham_essay_idx_1 ON public.data_paul_graham_essay USING btree ((metadata_ ->> 'ref_doc_id'))`,
      ],
      fill: (db, row) => insert(db, row, row.text, { user_id: row.user, file_name: 'essay.txt' }),
      async hide(db, row) {
        await insert(db, row, row.text, { file_name: 'essay.txt' });
        await insert(db, row, '', { user_id: row.user });
        await db.sql(INSERT, [row.text, null, randomUUID(), textOf(row.vector)]);
      },
      shows: withoutTimes('text-embedding-ada-002'),
    },
  ];
}

function llamaindexTs(): LibraryTable[] {
  /** PGVectorStore.add */
  async function add(db: LibraryDatabase, row: LibraryRow, collection: string, metadata: object): Promise<string> {
    const [added] = await db.sql<{ id: string }>(
      `INSERT INTO public.llamaindex_embedding (id, external_id, collection, document, metadata, embeddings) VALUES
        ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO UPDATE SET external_id = EXCLUDED.external_id, collection =
        EXCLUDED.collection, document = EXCLUDED.document, metadata = EXCLUDED.metadata, embeddings =
        EXCLUDED.embeddings RETURNING id`,
      [randomUUID(), '', collection, row.text, metadata, toSql([...row.vector])],
    );
    return added?.id ?? '';
  }

  const create_date = new Date('2026-03-01T10:00:00.250Z');

  return [
    {
      page: 'llamaindex-ts',
      // PGVectorStore.checkSchema
      ddl: [
        'CREATE SCHEMA IF NOT EXISTS public',
        `CREATE TABLE IF NOT EXISTS public.llamaindex_embedding( id uuid DEFAULT gen_random_uuid() PRIMARY KEY,
          external_id VARCHAR, collection VARCHAR, document TEXT, metadata JSONB DEFAULT '{}', embeddings
          VECTOR(1536) )`,
        'CREATE INDEX IF NOT EXISTS idx_llamaindex_embedding_external_id ON public.llamaindex_embedding (external_id);',
        'CREATE INDEX IF NOT EXISTS idx_llamaindex_embedding_collection ON public.llamaindex_embedding (collection);',
      ],
      fill: (db, row) => add(db, row, 'data', { user_id: row.user, create_date }),
      async hide(db, row) {
        await add(db, row, '', { user_id: row.user, create_date });
        await add(db, row, 'other', { user_id: row.user, create_date });
        await add(db, row, 'data', { create_date });
      },
      shows: { created_at: '2026-03-01T10:00:00.250Z', embedding_model: 'text-embedding-3-small' },
      temporal: true,
      // PGVectorStore.query
      async read(db, id) {
        const rows = await db.sql<{ id: string; document: string; metadata: { user_id: string } }>(
          `SELECT v.*, embeddings <=> $1 s FROM public.llamaindex_embedding v WHERE collection = $2 ORDER BY s
            LIMIT 100`,
          [toSql(Array(1536).fill(1)), 'data'],
        );
        const row = rows.find((candidate) => candidate.id === id);
        return { text: row?.document ?? '', user: row?.metadata.user_id ?? '' };
      },
    },
  ];
}

function springAi(): LibraryTable[] {
  /** Of `insertOrUpdateBatch` in PgVectorStore.java. */
  const INSERT =
    'INSERT INTO public.vector_store (id, content, metadata, embedding) VALUES ($1, $2, $3::jsonb, $4) ON CONFLICT (id) DO UPDATE SET content = $5 , metadata = $6::jsonb , embedding = $7 ';

  async function insert(db: LibraryDatabase, { vector }: LibraryRow, content: string | null, metadata: object) {
    const id = randomUUID();
    const values = [content, JSON.stringify(metadata), textOf(vector)];
    await db.sql(INSERT, [id, ...values, ...values]);
    return id;
  }

  return [
    {
      page: 'spring-ai',
      // afterPropertiesSet() of PgVectorStore.java at 0109464, with its defaults.
      ddl: [
        'CREATE EXTENSION IF NOT EXISTS vector',
        'CREATE EXTENSION IF NOT EXISTS hstore',
        'CREATE EXTENSION IF NOT EXISTS "uuid-ossp"',
        'CREATE SCHEMA IF NOT EXISTS "public"',
        `CREATE TABLE IF NOT EXISTS public.vector_store ( id uuid DEFAULT uuid_generate_v4() PRIMARY KEY, content
          text, metadata json, embedding vector(1536) )`,
        `CREATE INDEX IF NOT EXISTS spring_ai_vector_index ON public.vector_store USING HNSW (embedding vector_cosine_ops)`,
      ],
      fill: (db, row) => insert(db, row, row.text, { userId: row.user, source: 'manual.pdf' }),
      async hide(db, row) {
        await insert(db, row, row.text, { user_id: row.user });
        await insert(db, row, row.text, { conversationId: row.user });
        await insert(db, row, null, { userId: row.user });
      },
      // doSimilaritySearch(), by the vector of the row itself; mapRow() fails where the metadata is no object.
      async read(db, id) {
        const [row] = await db.sql<{ content: string; metadata: { userId: string } }>(
          `SELECT *, embedding <=> (SELECT embedding FROM public.vector_store WHERE id = $1) AS distance FROM
            public.vector_store WHERE embedding <=> (SELECT embedding FROM public.vector_store WHERE id = $1) < 0.1
            ORDER BY distance LIMIT 1`,
          [id],
        );
        return { text: row?.content as string, user: row?.metadata.userId as string };
      },
    },
  ];
}

function haystack(): LibraryTable[] {
  /** INSERT_STATEMENT of pgvector-haystack, _base.py. */
  const INSERT = `INSERT INTO "public"."haystack_documents" (id, embedding, content, blob_data, blob_meta, blob_mime_type, meta)
    VALUES ($1, $2, $3, $4, $5, $6, $7)`;

  async function insert(db: LibraryDatabase, { vector }: LibraryRow, content: string | null, meta: object) {
    // Document._create_id() of haystack/dataclasses/document.py hashes these two among others.
    const id = createHash('sha256')
      .update(`${content}${JSON.stringify(meta)}`)
      .digest('hex');
    await db.sql(INSERT, [id, textOf(vector), content, null, null, null, meta]);
    return id;
  }

  return [
    {
      page: 'haystack',
      // CREATE_TABLE_STATEMENT and the indexes of _base.py at 19aa3de, with search_strategy="hnsw".
      ddl: [
        `CREATE TABLE "public"."haystack_documents" ( id VARCHAR(128) PRIMARY KEY, embedding vector(768), content
          TEXT, blob_data BYTEA, blob_meta JSONB, blob_mime_type VARCHAR(255), meta JSONB)`,
        `CREATE INDEX "haystack_keyword_index" ON "public"."haystack_documents" USING GIN (to_tsvector('english', content))`,
        `CREATE INDEX "haystack_hnsw_index" ON "public"."haystack_documents" USING hnsw (embedding vector_cosine_ops) `,
      ],
      dimensions: 768,
      fill: (db, row) => insert(db, row, row.text, { user_id: row.user, file_path: 'notes.md', page: row.number }),
      async hide(db, row) {
        await insert(db, row, row.text, { file_path: 'notes.md' });
        await insert(db, row, null, { user_id: row.user });
      },
      shows: withoutTimes('sentence-transformers/all-mpnet-base-v2'),
      // filter_documents(); Document.from_dict() takes the columns as they are.
      async read(db, id) {
        const [row] = await db.sql<{ content: string; meta: { user_id: string } }>(
          `SELECT * FROM "public"."haystack_documents" WHERE id = $1`,
          [id],
        );
        return { text: row?.content as string, user: row?.meta.user_id as string };
      },
    },
  ];
}

function vercelDrizzle(): LibraryTable[] {
  // What Drizzle makes of `createResource` in the guide: a resource, then its chunks.
  async function add(db: LibraryDatabase, { text, vector, number }: LibraryRow): Promise<string> {
    const [resource, id] = [`resource-${number}`, `chunk-${number}`];
    await db.sql(
      'insert into "resources" ("id", "content", "created_at", "updated_at") values ($1, $2, default, default) returning "id"',
      [resource, text],
    );
    await db.sql('insert into "embeddings" ("id", "resource_id", "content", "embedding") values ($1, $2, $3, $4)', [
      id,
      resource,
      text,
      JSON.stringify([...vector]),
    ]);
    return id;
  }

  return [
    {
      page: 'vercel-drizzle',
      users: ['shared', 'ben'],
      sharedByAll: true,
      // What drizzle-kit makes of `lib/db/schema/resources.ts` and `embeddings.ts`.
      ddl: [
        `CREATE TABLE IF NOT EXISTS "resources" ( "id" varchar(191) PRIMARY KEY NOT NULL, "content" text NOT NULL,
          "created_at" timestamp DEFAULT now() NOT NULL, "updated_at" timestamp DEFAULT now() NOT NULL );`,
        `CREATE TABLE IF NOT EXISTS "embeddings" ( "id" varchar(191) PRIMARY KEY NOT NULL, "resource_id"
          varchar(191), "content" text NOT NULL, "embedding" vector(1536) NOT NULL );`,
        `ALTER TABLE "embeddings" ADD CONSTRAINT "embeddings_resource_id_resources_id_fk" FOREIGN KEY
          ("resource_id") REFERENCES "resources"("id") ON DELETE cascade ON UPDATE no action;`,
        'CREATE INDEX IF NOT EXISTS "embeddingIndex" ON "embeddings" USING hnsw ("embedding" vector_cosine_ops);',
      ],
      fill: add,
      hide: async (db, row) => void (await add(db, { ...row, text: '' })),
      shows: { created_at: '1970-01-01T00:00:00.000Z', embedding_model: 'text-embedding-ada-002' },
      // `findRelevantContent`, with the id, and with a bound that lets every direction pass; its rows have no user.
      async read(db, id) {
        const rows = await db.sql<{ id: string; name: string }>(
          `select "id", "content" as "name", 1 - ("embedding" <=> $1) as "similarity" from "embeddings" where 1 -
            ("embedding" <=> $1) > $2 order by "similarity" desc limit 100`,
          [JSON.stringify(Array(1536).fill(1)), -1],
        );
        return { text: rows.find((row) => row.id === id)?.name ?? '', user: 'shared' };
      },
    },
  ];
}

function mastra(): LibraryTable[] {
  /** PgVector.upsert */
  const upsert = (db: LibraryDatabase, id: string, vector: Float32Array, metadata: object) =>
    db.sql(
      `INSERT INTO "embeddings" (vector_id, embedding, metadata) VALUES ($1, $2::vector, $3::jsonb) ON CONFLICT
        (vector_id) DO UPDATE SET embedding = $2::vector, metadata = $3::jsonb RETURNING embedding::text`,
      [id, toSql([...vector]), JSON.stringify(metadata)],
    );

  return [
    {
      page: 'mastra',
      // PgVector.createIndex and its default index
      ddl: [
        `CREATE TABLE IF NOT EXISTS "embeddings" ( id SERIAL PRIMARY KEY, vector_id TEXT UNIQUE NOT NULL, embedding
          vector(1536), metadata JSONB DEFAULT '{}'::jsonb );`,
        `CREATE INDEX IF NOT EXISTS "embeddings_vector_idx" ON "embeddings" USING ivfflat (embedding
          vector_cosine_ops) WITH (lists = 100);`,
      ],
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
      // PgVector.query
      async read(db, id) {
        const rows = await db.sql<{ id: string; metadata: { text: string; user_id: string } }>(
          `WITH vector_scores AS ( SELECT vector_id as id, 1 - (embedding <=>
            '${toSql(Array(1536).fill(1))}'::vector) as score, metadata FROM "embeddings" WHERE
            metadata#>>'{user_id}' = $3 ) SELECT * FROM vector_scores WHERE score > $1 ORDER BY score DESC LIMIT $2`,
          [-1, 100, 'ana'],
        );
        const row = rows.find((candidate) => candidate.id === id);
        return { text: row?.metadata.text ?? '', user: row?.metadata.user_id ?? '' };
      },
    },
  ];
}

export const LIBRARY_TABLES: readonly LibraryTable[] = [
  llamaindexPy(),
  llamaindexTs(),
  springAi(),
  haystack(),
  vercelDrizzle(),
  mastra(),
].flat();
