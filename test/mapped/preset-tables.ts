import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { fixturesOf } from '../mapped-collections/fixture.ts';
import type { WireMemory } from '../support/wire.ts';
import { documentedSql } from './documented.ts';

/** A row as an application writes it: the parameters of `insert`. */
export interface PresetRow {
  readonly id: string;
  readonly user: string;
  readonly text: string | null;
  readonly vector: string;
  /** A vector that no query is near to. */
  readonly opposite: string;
  readonly metadata: object | null;
  readonly collection: string | null;
}

interface Written {
  readonly user: string;
  readonly text: string | null;
  /** Counts up from 0. */
  readonly number: number;
}

/** A table of the library that a page of `docs/integrations` describes. */
export interface PresetTable {
  readonly page: string;
  /** The heading of one of several configurations on the page. */
  readonly heading?: string;
  /** Users to write for. Default: `ana` and `ben`. */
  readonly users?: readonly [string, string];
  /** All rows belong to the first user. */
  readonly sharedByAll?: true;
  /** The library's own statements; a comment names their source. Pages call the role of the test `gateway`. */
  readonly ddl: readonly string[];
  /** Default: 1536. */
  readonly dimensions?: number;
  /** The id that the gateway shows. Default: what `insert` returns, or the id of the row. */
  id?(row: Written): string;
  /** Inserts a row; `:id` and so on are its fields. Extra columns of the library that the gateway never reads are left out. */
  readonly insert: string;
  /** Default: `user_id` and a key that the gateway ignores. */
  metadata?(row: Written): object;
  readonly collection?: string;
  /** Rows that no user may see: of other collections, without an owner, without a text. */
  readonly hidden?: readonly Partial<PresetRow>[];
  /** What every record shows besides id, content and user. Default: `withoutTimes('text-embedding-3-small')`. */
  readonly shows?: Partial<WireMemory>;
  readonly temporal?: true;
  /** Default: `none`. */
  readonly scopes?: 'native';
  /** Whether `OMP_MAPPING_WRITABLE=true` is allowed. Default: what the preset says. */
  readonly writable?: false;
  /** Further settings that the page requires for that. */
  readonly writing?: Readonly<Record<string, string>>;
  /** Fields that a memory can have there besides text and user. */
  readonly carries?: Partial<WireMemory>;
  /** Reads `text` and `user` of a row by its id, under the conditions of the library's own query. Of writable tables. */
  readonly read?: string;
}

const EPOCH = '1970-01-01T00:00:00.000Z';
const NO_TIMES = { created_at: EPOCH, updated_at: EPOCH };

/** What records show if the table has only the fields that a memory must have. */
export const withoutTimes = (embedding_model: string) =>
  ({
    ...NO_TIMES,
    embedding_model,
    scope: null,
    tags: [],
    source: null,
    confidence: null,
    valid_from: null,
    valid_to: null,
    supersedes: [],
    status: null,
  }) satisfies Partial<WireMemory>;

const NO_TEXT = [{ text: '' }, { text: null }];
const NO_OWNER = [{ metadata: {} }, { metadata: { user_id: null } }];

const WRITTEN = '2026-03-04T05:06:07.089Z';
const AT_WRITTEN = { created_at: WRITTEN, updated_at: WRITTEN };

/** The statements of the page that create the table; its indexes come later. */
const createdBy = (heading: string): string[] =>
  documentedSql('custom', heading).filter((statement) => !statement.startsWith('create index'));

const N8N = {
  page: 'n8n',
  // PGVectorStore.ensureTableInDatabase without dimensions, with the names of n8n.
  ddl: [
    `CREATE TABLE IF NOT EXISTS n8n_vectors ( "id" uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY, "text" text,
      "metadata" jsonb, "embedding" vector );`,
  ],
  // PGVectorStore.addVectors without ids: the database makes them.
  insert: 'INSERT INTO n8n_vectors( "text", "embedding", "metadata" ) VALUES (:text, :vector, :metadata) RETURNING id',
  hidden: NO_OWNER,
  read: `SELECT "text", metadata->>'user_id' AS "user" FROM n8n_vectors WHERE id = $1 AND embedding IS NOT NULL`,
} as const satisfies PresetTable;

/** The statements of a table that the library itself made, with other names and vectors of 1,536 dimensions. */
function recorded(name: string, names: Readonly<Record<string, string>> = {}, dimensions = 1536): string[] {
  const fixture = fixturesOf('postgres').find((each) => each.name === `postgres-${name}`);
  if (!fixture) throw new Error(`no fixture is called postgres-${name}`);
  return [...fixture.settings.ddl, ...fixture.settings.indexes].map((statement) =>
    Object.entries(names).reduce(
      (text, [from, to]) => text.replaceAll(from, to),
      statement.replaceAll('vector(8)', `vector(${dimensions})`),
    ),
  );
}

export const PRESET_TABLES: readonly PresetTable[] = [
  {
    page: 'langchain-py',
    ddl: [
      ...recorded('langchain-python'),
      `INSERT INTO langchain_pg_collection (uuid, name, cmetadata) VALUES ('${randomUUID()}', 'my_docs', 'null')`,
      `INSERT INTO langchain_pg_collection (uuid, name, cmetadata) VALUES ('${randomUUID()}', 'langchain', 'null')`,
    ],
    dimensions: 3072,
    // add_embeddings
    insert: `INSERT INTO langchain_pg_embedding (id, collection_id, embedding, document, cmetadata) VALUES (:id,
      (SELECT uuid FROM langchain_pg_collection WHERE name = :collection), :vector, :text, :metadata)`,
    collection: 'my_docs',
    hidden: [{ collection: 'langchain' }, ...NO_OWNER, ...NO_TEXT],
    shows: withoutTimes('text-embedding-3-large'),
    // __query_collection
    read: `SELECT document AS text, e.cmetadata ->> 'user_id' AS "user" FROM langchain_pg_embedding e JOIN
      langchain_pg_collection c ON e.collection_id = c.uuid WHERE c.name = 'my_docs' AND e.id = $1 AND embedding IS NOT NULL`,
  },
  {
    page: 'langchain-py-v2',
    ddl: recorded('langchaintables-python', { notes: 'vectorstore' }),
    insert: `INSERT INTO "public"."vectorstore"("langchain_id", "content", "embedding", "langchain_metadata")
      VALUES (:id, :text, :vector, :metadata)`,
    hidden: [...NO_OWNER, { text: '' }],
    read: `SELECT "content" AS text, "langchain_metadata"->>'user_id' AS "user" FROM "public"."vectorstore" WHERE "langchain_id" = $1`,
  },
  {
    page: 'langchain-js',
    // PGVectorStore.ensureTableInDatabase with the names of LangChain's documentation, and addVectors with ids.
    ddl: [
      `CREATE TABLE IF NOT EXISTS testlangchainjs ( "id" uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY, "content"
        text, "metadata" jsonb, "vector" vector(1536) );`,
    ],
    insert:
      'INSERT INTO testlangchainjs( "content", "vector", "metadata", "id" ) VALUES (:text, :vector, :metadata, :id)',
    hidden: [...NO_OWNER, { metadata: null }, ...NO_TEXT],
    read: `SELECT content AS text, metadata->>'user_id' AS "user" FROM testlangchainjs WHERE id = $1`,
  },
  N8N,
  {
    ...N8N,
    heading: 'With collections',
    ddl: [
      ...N8N.ddl,
      // PGVectorStore.ensureCollectionTableInDatabase
      `CREATE TABLE IF NOT EXISTS n8n_vector_collections ( uuid uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY, name
        character varying, cmetadata jsonb ); CREATE INDEX IF NOT EXISTS idx_n8n_vector_collections_name ON
        n8n_vector_collections(name); ALTER TABLE n8n_vectors ADD COLUMN collection_id uuid; ALTER TABLE n8n_vectors ADD
        CONSTRAINT n8n_vectors_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES n8n_vector_collections(uuid) ON
        DELETE CASCADE;`,
      "INSERT INTO n8n_vector_collections( name ) VALUES ( 'n8n' ), ( 'other' )",
      // The index that the page advises further down.
      "create index n8n_vectors_user on n8n_vectors ((metadata->>'user_id'), id)",
    ],
    insert: `INSERT INTO n8n_vectors( "text", "embedding", "metadata", "collection_id" ) VALUES (:text, :vector, :metadata,
      (SELECT uuid FROM n8n_vector_collections WHERE name = :collection)) RETURNING id`,
    collection: 'n8n',
    hidden: [{ collection: 'other' }, { collection: null }, { metadata: {} }],
    read: `SELECT "text", metadata->>'user_id' AS "user" FROM n8n_vectors WHERE id = $1 AND collection_id =
      (SELECT uuid FROM n8n_vector_collections WHERE name = 'n8n')`,
  },
  {
    page: 'typeorm',
    // TypeORMVectorStore.ensureTableInDatabase
    ddl: [
      `CREATE TABLE IF NOT EXISTS documents ( "id" uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY, "pageContent"
        text, metadata jsonb, embedding vector );`,
    ],
    // repository.save
    insert: `INSERT INTO "documents"("id", "pageContent", "metadata", "embedding") VALUES (DEFAULT, :text, :metadata, :vector)
      RETURNING "id"`,
    hidden: [{ metadata: { owner: 'ana' } }, ...NO_TEXT],
    // similaritySearchVectorWithScore
    read: `SELECT "pageContent" AS text, metadata->>'user_id' AS "user" FROM documents WHERE id = $1 AND metadata @> '{"user_id": "ana"}'`,
  },
  {
    page: 'supabase',
    ddl: [
      // On Supabase extensions lie in a schema of their own, which is in the search path of its roles, but not of ours.
      'create schema extensions',
      'alter extension vector set schema extensions',
      'set search_path to "$user", public, extensions',
      // The SQL of langchain-ai/docs, integrations/vectorstores/supabase.mdx at 37d517f.
      'create table documents ( id bigserial primary key, content text, metadata jsonb, embedding vector(1536) );',
      `create function match_documents ( query_embedding vector(1536), match_count int DEFAULT null, filter jsonb DEFAULT
        '{}' ) returns table ( id bigint, content text, metadata jsonb, embedding jsonb, similarity float ) language
        plpgsql as $$ #variable_conflict use_column
        begin return query select id, content, metadata, (embedding::text)::jsonb as embedding, 1 - (documents.embedding
        <=> query_embedding) as similarity from documents where metadata @> filter order by documents.embedding <=>
        query_embedding limit match_count; end; $$;`,
    ],
    insert: `INSERT INTO "public"."documents"("content", "embedding", "metadata") VALUES (:text, :vector, :metadata)
      RETURNING id::text`,
    hidden: [...NO_OWNER, { metadata: null }, { text: '' }],
    // similaritySearch, by the vector of the row itself.
    read: `select found.content as text, found.metadata->>'user_id' as "user" from documents, match_documents(
      documents.embedding, 100, '{}') as found where documents.id = $1 and found.id = documents.id`,
  },
  {
    page: 'langgraph-store',
    ddl: recorded('langgraph-python'),
    id: ({ user, number }) => `memories.${user}/note/${number}`,
    // _prepare_batch_PUT_queries. The second vector of an item must not make a second hit.
    insert: `with named as (select split_part(:id, '/', 1) as prefix, substr(:id, strpos(:id, '/') + 1) as key),
      item as (INSERT INTO store (prefix, key, value, expires_at, ttl_minutes)
        select prefix, key, :metadata::jsonb, NOW() + interval '1 hour', 60 from named)
      INSERT INTO store_vectors (prefix, key, field_name, embedding)
        select prefix, key, name, embedding from named, (VALUES ('text', :vector::vector), ('title', :opposite)) as v(name, embedding)`,
    metadata: ({ text }) => ({ text, title: 'x' }),
    // Of the user in another namespace, of the namespace of all users, without the field.
    hidden: [{ id: 'profiles.ana/a' }, { id: 'memories/a' }, { id: 'memories.ana/b', metadata: { other: 'x' } }],
    shows: { valid_to: expect.any(String), embedding_model: 'text-embedding-3-small' },
    temporal: true,
  },
  {
    page: 'langgraph-store-js',
    // getStoreMigrations
    ddl: [
      `CREATE TABLE IF NOT EXISTS "public".store ( namespace_path TEXT NOT NULL, key TEXT NOT NULL, value JSONB NOT NULL,
        created_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP, expires_at
        TIMESTAMPTZ, PRIMARY KEY (namespace_path, key) );`,
      `CREATE INDEX IF NOT EXISTS idx_store_namespace_path ON "public".store USING btree (namespace_path); CREATE INDEX IF
        NOT EXISTS idx_store_value_gin ON "public".store USING gin (value); CREATE INDEX IF NOT EXISTS
        idx_store_expires_at ON "public".store USING btree (expires_at) WHERE expires_at IS NOT NULL;`,
      `CREATE TABLE IF NOT EXISTS "public".store_vectors ( namespace_path TEXT NOT NULL, key TEXT NOT NULL, field_path
        TEXT NOT NULL, text_content TEXT NOT NULL, embedding vector(1536) NOT NULL, created_at TIMESTAMPTZ DEFAULT
        CURRENT_TIMESTAMP, PRIMARY KEY (namespace_path, key, field_path), FOREIGN KEY (namespace_path, key) REFERENCES
        "public".store(namespace_path, key) ON DELETE CASCADE );`,
      `CREATE INDEX IF NOT EXISTS idx_store_vectors_embedding_cosine_hnsw ON "public".store_vectors USING hnsw (embedding
        vector_cosine_ops) WITH (m = 16, ef_construction = 200);`,
    ],
    id: ({ user, number }) => `memories:${user}/note/${number}`,
    // CrudOperations.executePut and VectorOperations.indexItemVectors
    insert: `with named as (select split_part(:id, '/', 1) as path, substr(:id, strpos(:id, '/') + 1) as key),
      item as (INSERT INTO "public".store (namespace_path, key, value, expires_at)
        select path, key, :metadata::jsonb, '2027-01-01T00:00:00Z' from named)
      INSERT INTO "public".store_vectors (namespace_path, key, field_path, text_content, embedding)
        select path, key, name, 'as embedded', embedding
        from named, (VALUES ('text', :vector::vector), ('title', :opposite)) as v(name, embedding)`,
    metadata: ({ text }) => ({ text, title: 'x' }),
    hidden: [{ id: 'profiles:ana/a' }, { id: 'memories/a' }, { id: 'memories:ana/b', metadata: { other: 'x' } }],
    shows: { valid_to: '2027-01-01T00:00:00.000Z', embedding_model: 'text-embedding-3-small' },
    temporal: true,
  },
  {
    page: 'mem0',
    ddl: recorded('mem0-python-1', { mem0: 'memories' }),
    // mem0 for Python: the payload of mem0/memory/main.py, and `insert` of mem0/vector_stores/pgvector.py.
    insert: 'INSERT INTO memories (id, vector, payload) VALUES (:id, :vector, :metadata)',
    metadata: ({ user, text, number }) => ({
      user_id: user,
      data: text,
      hash: 'f00d',
      created_at: `2026-03-01T10:00:0${number}.123456+00:00`,
      updated_at: `2026-03-02T10:00:0${number}.123456+00:00`,
    }),
    hidden: [
      { metadata: { agent_id: 'ana', data: 'x' } },
      { metadata: { user_id: 'ana', memory: 'x' } },
      { metadata: null },
      { text: '' },
    ],
    shows: {
      created_at: expect.stringMatching(/^2026-03-01T10:00:0\d\.123Z$/),
      updated_at: expect.stringMatching(/^2026-03-02T10:00:0\d\.123Z$/),
      embedding_model: 'text-embedding-3-small',
    },
    temporal: true,
  },
  {
    page: 'mem0-supabase',
    // The message of SupabaseDB.initialize
    ddl: [
      'create extension if not exists vector;',
      `create table if not exists memories ( id text primary key, embedding vector(1536), metadata jsonb, created_at
        timestamp with time zone default timezone('utc', now()), updated_at timestamp with time zone default
        timezone('utc', now()) );`,
    ],
    // The metadata of SupabaseDB.update, which leaves the columns as they were.
    insert: 'insert into "memories" ("id", "embedding", "metadata") values (:id, :vector, :metadata)',
    metadata: ({ user, text }) => ({
      user_id: user,
      data: text,
      created_at: '2026-03-01T10:00:00.000Z',
      updatedAt: '2026-04-01T10:00:00.000Z',
      updated_at: '2026-04-01T10:00:00.001Z',
    }),
    hidden: [{ metadata: { agent_id: 'ana', data: 'x' } }, { text: '' }],
    shows: { updated_at: '2026-04-01T10:00:00.001Z', embedding_model: 'text-embedding-3-small' },
    temporal: true,
  },
  {
    page: 'vecs',
    ddl: recorded('vecs-python', { notes: 'docs' }),
    insert: 'INSERT INTO vecs.docs (id, vec, metadata) VALUES (:id, :vector, :metadata)',
    metadata: ({ user, text }) => ({ user_id: user, text, year: 2012 }),
    hidden: [{ metadata: { text: 'x' } }, { metadata: { user_id: 'ana', data: 'x' } }, { metadata: {} }],
    read: `SELECT metadata->>'text' AS text, metadata->>'user_id' AS "user" FROM vecs.docs WHERE vecs.docs.id IN ($1)`,
  },
  {
    page: 'vecs',
    heading: 'mem0 on Supabase',
    ddl: [
      ...recorded('vecs-python', { notes: 'memories' }),
      // `create_index`, which mem0 calls on a new collection: mem0/vector_stores/supabase.py at 1336364.
      'create index ix_vector_cosine_ops_hnsw_m16_efc64_1a2b3c4 on vecs."memories" using hnsw (vec vector_cosine_ops) WITH (m=16, ef_construction=64);',
      // The index that the page advises, on this collection.
      ...documentedSql('vecs').map((statement) => statement.replaceAll('docs', 'memories')),
    ],
    insert: 'INSERT INTO vecs.memories (id, vec, metadata) VALUES (:id, :vector, :metadata)',
    metadata: ({ user, text }) => ({
      user_id: user,
      data: text,
      created_at: '2026-01-02T03:04:05.678901-08:00',
      updated_at: null,
    }),
    hidden: [{ metadata: { agent_id: 'a', data: 'x' } }],
    shows: {
      ...withoutTimes('text-embedding-3-small'),
      created_at: '2026-01-02T11:04:05.678Z',
      updated_at: '2026-01-02T11:04:05.678Z',
    },
    temporal: true,
    read: `SELECT metadata->>'data' AS text, metadata->>'user_id' AS "user" FROM vecs.memories WHERE id IN ($1)`,
  },
  {
    page: 'llamaindex-py',
    ddl: recorded('llamaindex-python', { data_notes: 'data_paul_graham_essay' }),
    insert: `INSERT INTO public.data_paul_graham_essay (text, metadata_, node_id, embedding)
      VALUES (:text, :metadata, :id, :vector)`,
    hidden: [...NO_OWNER, { metadata: null }, { text: '' }],
    shows: withoutTimes('text-embedding-ada-002'),
  },
  {
    page: 'llamaindex-ts',
    // PGVectorStore.checkSchema
    ddl: [
      'CREATE SCHEMA IF NOT EXISTS public',
      `CREATE TABLE IF NOT EXISTS public.llamaindex_embedding( id uuid DEFAULT gen_random_uuid() PRIMARY KEY, external_id
        VARCHAR, collection VARCHAR, document TEXT, metadata JSONB DEFAULT '{}', embeddings VECTOR(1536) )`,
      'CREATE INDEX IF NOT EXISTS idx_llamaindex_embedding_external_id ON public.llamaindex_embedding (external_id);',
      'CREATE INDEX IF NOT EXISTS idx_llamaindex_embedding_collection ON public.llamaindex_embedding (collection);',
    ],
    // PGVectorStore.add
    insert: `INSERT INTO public.llamaindex_embedding (id, external_id, collection, document, metadata, embeddings)
      VALUES (:id, '', :collection, :text, :metadata, :vector)`,
    collection: 'data',
    metadata: ({ user }) => ({ user_id: user, create_date: WRITTEN }),
    hidden: [{ text: '' }, { collection: 'other' }, { metadata: { create_date: WRITTEN } }],
    shows: { created_at: WRITTEN, embedding_model: 'text-embedding-3-small' },
    temporal: true,
    // PGVectorStore.query
    read: `SELECT document AS text, metadata->>'user_id' AS "user" FROM public.llamaindex_embedding WHERE collection = 'data' AND id = $1`,
  },
  {
    page: 'spring-ai',
    // afterPropertiesSet() of Spring AI 1.0.4, 1.1.8 and 2.0.1, with its defaults.
    ddl: [
      'CREATE EXTENSION IF NOT EXISTS vector',
      'CREATE EXTENSION IF NOT EXISTS hstore',
      'CREATE EXTENSION IF NOT EXISTS "uuid-ossp"',
      'CREATE SCHEMA IF NOT EXISTS "public"',
      `CREATE TABLE IF NOT EXISTS public.vector_store ( id uuid DEFAULT uuid_generate_v4() PRIMARY KEY, content text,
        metadata json, embedding vector(1536) )`,
      'CREATE INDEX IF NOT EXISTS spring_ai_vector_index ON public.vector_store USING HNSW (embedding vector_cosine_ops)',
    ],
    insert:
      'INSERT INTO public.vector_store (id, content, metadata, embedding) VALUES (:id, :text, :metadata, :vector)',
    metadata: ({ user }) => ({ userId: user, source: 'manual.pdf' }),
    hidden: [{ metadata: { user_id: 'ana' } }, { metadata: { conversationId: 'ana' } }, { text: null }],
    // mapRow() fails if the metadata is no object.
    read: `SELECT content AS text, metadata->>'userId' AS "user" FROM public.vector_store WHERE id = $1 AND
      json_typeof(metadata) = 'object' AND embedding IS NOT NULL`,
  },
  {
    page: 'langchain4j',
    // initTable and upsert of PgVectorEmbeddingStore, as langchain4j-pgvector 1.13.0-beta23 makes them; its numbers are texts.
    ddl: [
      'CREATE TABLE IF NOT EXISTS notes (embedding_id UUID PRIMARY KEY, embedding vector(1536), text TEXT NULL, metadata JSON NULL )',
    ],
    insert: 'INSERT INTO notes (embedding_id, embedding, text, metadata) VALUES (:id, :vector, :text, :metadata)',
    metadata: ({ user }) => ({ user_id: user, page: '12' }),
    hidden: [...NO_OWNER, { metadata: null }, ...NO_TEXT],
    read: `SELECT text, metadata->>'user_id' AS "user" FROM notes WHERE embedding_id = $1 AND metadata->>'user_id' is not null`,
  },
  {
    page: 'langchaingo',
    // init() of vectorstores/pgvector/pgvector.go, langchaingo v0.1.14, with dimensions, as pg_dump says it.
    ddl: [
      `CREATE TABLE langchain_pg_collection ( name varchar, cmetadata json, "uuid" uuid NOT NULL, UNIQUE (name), PRIMARY KEY (uuid))`,
      `CREATE TABLE langchain_pg_embedding ( collection_id uuid, embedding vector(1536), document varchar, cmetadata json,
        "uuid" uuid NOT NULL, CONSTRAINT langchain_pg_embedding_collection_id_fkey FOREIGN KEY (collection_id) REFERENCES
        langchain_pg_collection (uuid) ON DELETE CASCADE, PRIMARY KEY (uuid))`,
      'CREATE INDEX langchain_pg_embedding_collection_id ON langchain_pg_embedding (collection_id)',
      `INSERT INTO langchain_pg_collection (uuid, name) VALUES ('${randomUUID()}', 'notes'), ('${randomUUID()}', 'langchain')`,
    ],
    // AddDocuments
    insert: `INSERT INTO langchain_pg_embedding (uuid, document, embedding, cmetadata, collection_id) VALUES (:id, :text, :vector,
      :metadata, (SELECT uuid FROM langchain_pg_collection WHERE name = :collection))`,
    collection: 'notes',
    hidden: [{ collection: 'langchain' }, { collection: null }, ...NO_OWNER, { metadata: null }, ...NO_TEXT],
    // Search
    read: `SELECT e.document AS text, e.cmetadata ->> 'user_id' AS "user" FROM langchain_pg_embedding e JOIN langchain_pg_collection c
      ON e.collection_id = c.uuid WHERE c.name = 'notes' AND e.uuid = $1 AND vector_dims(embedding) = 1536`,
  },
  {
    page: 'rig',
    // The README of rig-postgres 0.44.0.
    ddl: [
      `CREATE TABLE documents ( id uuid DEFAULT gen_random_uuid(), document jsonb NOT NULL, embedded_text text NOT NULL,
        embedding vector(1536) )`,
      'CREATE INDEX IF NOT EXISTS document_embeddings_idx ON documents USING hnsw(embedding vector_cosine_ops)',
    ],
    // insert_documents
    insert: 'INSERT INTO documents (id, document, embedded_text, embedding) VALUES (:id, :metadata, :text, :vector)',
    metadata: ({ user, text }) => ({ user_id: user, text }),
    hidden: [...NO_OWNER, { text: '' }],
  },
  {
    page: 'haystack',
    ddl: recorded('haystack-python', {}, 768),
    dimensions: 768,
    insert:
      'INSERT INTO "public"."haystack_documents" (id, embedding, content, meta) VALUES (:id, :vector, :text, :metadata)',
    hidden: [...NO_OWNER, { text: null }],
    shows: withoutTimes('sentence-transformers/all-mpnet-base-v2'),
    read: `SELECT content AS text, meta->>'user_id' AS "user" FROM "public"."haystack_documents" WHERE id = $1`,
  },
  {
    page: 'agno',
    ddl: recorded('agno-python', { notes: 'recipes' }),
    insert: `INSERT INTO ai.recipes (id, name, meta_data, content, embedding, created_at, content_hash, user_id)
      VALUES (:id, 'note', :metadata, :text, :vector, '${WRITTEN}', md5(:text), :user)`,
    hidden: NO_TEXT,
    shows: { ...withoutTimes('text-embedding-3-small'), ...AT_WRITTEN },
    temporal: true,
    read: 'SELECT content AS text, user_id AS "user" FROM ai.recipes WHERE id = $1',
  },
  {
    page: 'vercel-drizzle',
    users: ['shared', 'ben'],
    sharedByAll: true,
    // What drizzle-kit makes of `lib/db/schema/resources.ts` and `embeddings.ts`.
    ddl: [
      `CREATE TABLE IF NOT EXISTS "resources" ( "id" varchar(191) PRIMARY KEY NOT NULL, "content" text NOT NULL,
        "created_at" timestamp DEFAULT now() NOT NULL, "updated_at" timestamp DEFAULT now() NOT NULL );`,
      `CREATE TABLE IF NOT EXISTS "embeddings" ( "id" varchar(191) PRIMARY KEY NOT NULL, "resource_id" varchar(191),
        "content" text NOT NULL, "embedding" vector(1536) NOT NULL );`,
      `ALTER TABLE "embeddings" ADD CONSTRAINT "embeddings_resource_id_resources_id_fk" FOREIGN KEY ("resource_id")
        REFERENCES "resources"("id") ON DELETE cascade ON UPDATE no action;`,
      'CREATE INDEX IF NOT EXISTS "embeddingIndex" ON "embeddings" USING hnsw ("embedding" vector_cosine_ops);',
    ],
    // `createResource` of the guide: a resource, then its chunks.
    insert: `with resource as (insert into "resources" ("id", "content") values ('resource of ' || :id, :text))
      insert into "embeddings" ("id", "resource_id", "content", "embedding") values (:id, 'resource of ' || :id, :text, :vector)`,
    hidden: [{ text: '' }],
    shows: { ...NO_TIMES, embedding_model: 'text-embedding-ada-002' },
    // `findRelevantContent`; its rows have no user.
    read: `select "content" as text, 'shared' as "user" from "embeddings" where "id" = $1`,
  },
  {
    page: 'mastra',
    // PgVector.createIndex and its default index
    ddl: [
      `CREATE TABLE IF NOT EXISTS "embeddings" ( id SERIAL PRIMARY KEY, vector_id TEXT UNIQUE NOT NULL, embedding
        vector(1536), metadata JSONB DEFAULT '{}'::jsonb );`,
      `CREATE INDEX IF NOT EXISTS "embeddings_vector_idx" ON "embeddings" USING ivfflat (embedding vector_cosine_ops) WITH
        (lists = 100);`,
    ],
    id: ({ number }) => (number === 0 ? 'chunk/1' : randomUUID()),
    // PgVector.upsert with the keys of Mastra's guide to RAG.
    insert: 'INSERT INTO "embeddings" (vector_id, embedding, metadata) VALUES (:id, :vector, :metadata)',
    metadata: ({ user, text, number }) => ({ text, user_id: user, nested: { number } }),
    // Mastra's memory keeps messages elsewhere: its vectors have no text.
    hidden: [
      { metadata: { message_id: 'm', resource_id: 'ana' } },
      { metadata: { text: 'x' } },
      { metadata: { user_id: 'ana' } },
    ],
    // PgVector.query
    read: `SELECT metadata->>'text' AS text, metadata->>'user_id' AS "user" FROM "embeddings" WHERE metadata#>>'{user_id}' = 'ana' AND vector_id = $1`,
  },
  {
    page: 'custom',
    heading: 'Your own table',
    ddl: createdBy('Your own table'),
    insert: `insert into notes (id, author, body, embedding, folder, labels, written, extra, pinned)
      values (:id, :user, :text, :vector, 'home/travel', '{a,b}', '${WRITTEN}', :metadata, true)`,
    metadata: () => ({
      confidence: 0.75,
      source: { app: 'editor', type: 'explicit', mood: 'good' },
      valid_to: '2030-01-01',
      supersedes: [randomUUID(), 7],
      extensions: { 'x-color': 'red', other: 1 },
    }),
    hidden: [{ text: '' }],
    shows: {
      ...AT_WRITTEN,
      scope: 'home/travel',
      tags: ['a', 'b'],
      confidence: 0.75,
      valid_to: '2030-01-01T00:00:00.000Z',
      valid_from: null,
      'x-color': 'red',
      embedding_model: 'text-embedding-3-small',
    },
    temporal: true,
    scopes: 'native',
    carries: {
      scope: 'music/strings',
      tags: ['hobby', 'evening'],
      source: { app: 'editor', type: 'explicit' },
      confidence: 0.25,
      valid_from: '2026-01-01T00:00:00.000Z',
      valid_to: '2031-01-01T00:00:00.000Z',
      supersedes: [randomUUID()],
      'x-color': 'blue',
    },
    read: 'select body as text, author as "user" from notes where id = $1',
  },
  {
    page: 'custom',
    heading: 'Prisma',
    // What `prisma migrate dev` makes of the model on the page.
    ddl: [
      `CREATE TABLE "Document" ( "id" TEXT NOT NULL, "userId" TEXT NOT NULL, "content" TEXT NOT NULL, "createdAt"
        TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP, "vector" vector, CONSTRAINT "Document_pkey" PRIMARY KEY ("id") );`,
    ],
    id: () => `c${randomBytes(12).toString('hex')}`,
    // addVectors() of langchain-community/src/vectorstores/prisma.ts sets the vector.
    insert: `INSERT INTO "public"."Document" ("id","userId","content","createdAt","vector")
      VALUES (:id, :user, :text, '${WRITTEN}'::timestamptz at time zone 'utc', :vector)`,
    shows: { ...withoutTimes('text-embedding-3-small'), ...AT_WRITTEN },
    temporal: true,
    writing: { OMP_MAPPING_NEW_IDS: 'text' },
    read: 'SELECT "content" AS text, "userId" AS "user" FROM "Document" WHERE "id" = $1 AND vector IS NOT NULL',
  },
  {
    page: 'custom',
    heading: 'Supabase, with row security',
    users: [randomUUID(), randomUUID()],
    // As in apps/docs/content/guides/ai/rag-with-permissions.mdx of supabase/supabase at 167a2fb, in one table.
    ddl: [
      'create schema auth',
      'create table auth.users (id uuid primary key)',
      `create function auth.uid() returns uuid language sql stable as $$ select nullif(current_setting('request.jwt.claim.sub', true), '')::uuid $$`,
      `create table notes ( id bigint primary key generated always as identity, owner_id uuid not null references
        auth.users (id) default auth.uid(), content text not null, embedding vector (384), created_at timestamp with time
        zone not null default now() )`,
      'alter table notes enable row level security',
      `create policy "Users can query their own notes" on notes for select using (owner_id = (select auth.uid()))`,
      ...createdBy('Supabase, with row security'),
    ],
    dimensions: 384,
    insert: `with someone as (insert into auth.users (id) values (:user) on conflict do nothing)
      insert into notes (owner_id, content, embedding, created_at) values (:user, :text, :vector, '${WRITTEN}') returning id::text`,
    shows: { ...withoutTimes('Supabase/gte-small'), ...AT_WRITTEN },
    temporal: true,
    writing: { OMP_MAPPING_NEW_IDS: 'database' },
    read: 'select content as text, owner_id::text as "user" from notes where id = $1',
  },
  {
    page: 'custom',
    heading: 'Two tables, or odd types',
    // packages/openmemory-js/src/core/db.ts of OpenMemory. Its HNSW index is left out: pgvector rejects one here.
    ddl: [
      `create table if not exists "public"."openmemory_memories"(id uuid primary key,user_id text,project_id text,segment
        integer default 0,content text not null,simhash text,primary_sector text not null,tags text,meta text,created_at
        bigint,updated_at bigint,last_seen_at bigint,salience double precision,decay_lambda double precision,version integer
        default 1,mean_dim integer,mean_vec bytea,compressed_vec bytea,feedback_score double precision default 0)`,
      'create table if not exists "public"."openmemory_vectors"(id uuid,sector text,user_id text,project_id text,v vector,dim integer not null,primary key(id,sector))',
      'create index if not exists openmemory_memories_user_idx on "public"."openmemory_memories"(user_id)',
      'create index if not exists openmemory_vectors_user_idx on "public"."openmemory_vectors"(user_id)',
      ...createdBy('Two tables, or odd types'),
    ],
    // `ins_mem`, and a vector for each of two sectors.
    insert: `with memory as (insert into "public"."openmemory_memories"(id,user_id,content,primary_sector,tags,meta,created_at,updated_at)
        values(:id,:user,:text,'semantic','["a","b"]','{}',${Date.parse(WRITTEN)},${Date.parse(WRITTEN)}))
      insert into "public"."openmemory_vectors"(id,sector,user_id,v,dim)
        values(:id,'semantic',:user,:vector::vector,1536), (:id,'episodic',:user,:opposite,1536)`,
    hidden: [{ text: '' }],
    shows: { ...withoutTimes('text-embedding-3-small'), tags: ['a', 'b'], ...AT_WRITTEN },
    temporal: true,
    writable: false,
  },
];
