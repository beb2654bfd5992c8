import type { FieldName } from './field-mapping.ts';

/** Where a library stores the fields of a memory, unless settings say otherwise. Texts are written as in settings. */
export interface Preset {
  /** The library's default table. Unset: the library has no default, so the settings must name one. */
  readonly table?: string;
  readonly schema?: string;
  /** Columns that together identify a row. Unset: the settings must name one. */
  readonly id?: readonly string[];
  readonly new_ids?: 'text' | 'uuid' | 'database';
  /** Column of the vector. */
  readonly embedding?: string;
  readonly fields: Readonly<Partial<Record<FieldName, string>>>;
  /** How the library keeps several collections in one table. */
  readonly collection?: Collection;
  /** The table of the vectors, where they are stored apart from the rows. It is joined. */
  readonly vectors?: VectorTable;
  /** Why the gateway must not write into such a table. Unset: it may. */
  readonly read_only?: string;
}

export interface Collection {
  /** Column that identifies the collection of a row. */
  readonly column: string;
  /** The table, in the same schema, that maps the column's key to a name. Unset: the column holds the name. */
  readonly named?: { readonly table: string; readonly key: string; readonly name: string };
  /** The library's default. Unset: there is none, and all collections are served unless the settings name one. */
  readonly default?: string;
  /** Older versions of the library make no such column: their table is the default collection. */
  readonly added?: true;
}

export interface VectorTable {
  /** In the same schema. */
  readonly table: string;
  /** Columns to join by; both tables have them. */
  readonly on: readonly string[];
  /** Selects one of several vectors of a row: a column, and its value unless `collection` is set. */
  readonly which?: { readonly column: string; readonly value: string };
}

/**
 * LangChain.js: @langchain/community 1.1.29, src/vectorstores/pgvector.ts. Its successor in the repository, langchain-pgvector, has the same class. The
 * application sets the user as a key of the metadata. Collections are an option without a default; their table has the
 * name of LangChain's own examples.
 */
const langchainJs: Preset = {
  id: ['id'],
  new_ids: 'uuid',
  embedding: 'embedding',
  fields: { content: 'text', user_id: "metadata->>'user_id'" },
  collection: { column: 'collection_id', named: { table: 'collections', key: 'uuid', name: 'name' } },
};

/** What the stores of LangChain for Python and LangChainGo share: rows of several collections in one table. */
const langchain: Preset = {
  table: 'langchain_pg_embedding',
  embedding: 'embedding',
  fields: { content: 'document', user_id: "cmetadata->>'user_id'" },
  collection: {
    column: 'collection_id',
    named: { table: 'langchain_pg_collection', key: 'uuid', name: 'name' },
    default: 'langchain',
  },
};

/**
 * mem0ai 3.3.1, for TypeScript src/oss/src/vector_stores/pgvector.ts and memory/index.ts; mem0ai 2.2.1 and 1.0.11 for Python, recorded. Both write the same table and payload, except that Python
 * writes `created_at` and `updated_at`, TypeScript `createdAt` and `updatedAt`. The table is the default of TypeScript
 * and of mem0's server.
 */
const mem0: Preset = {
  table: 'memories',
  id: ['id'],
  new_ids: 'uuid',
  embedding: 'vector',
  fields: {
    content: "payload->>'data'",
    user_id: "payload->>'user_id'",
    created_at: "payload->>'created_at'",
    updated_at: "payload->>'updated_at'",
  },
  read_only:
    'mem0 stores a hash with each text and skips texts whose hash it knows; after a change here it would still know the old text',
};

/**
 * LangGraph for Python: langgraph-checkpoint-postgres 3.2.0 and 2.0.25, recorded. `prefix` is the namespace, its parts
 * joined by dots. An item has one vector for each indexed field.
 */
const langgraphStore: Preset = {
  table: 'store',
  id: ['prefix', 'key'],
  embedding: 'embedding',
  fields: {
    content: "value->>'text'",
    user_id: 'prefix',
    created_at: 'created_at',
    updated_at: 'updated_at',
    valid_to: 'expires_at',
  },
  vectors: { table: 'store_vectors', on: ['prefix', 'key'], which: { column: 'field_name', value: 'text' } },
  read_only: 'LangGraph stores an item in two tables, and a write would have to keep them in step',
};

/** Infers the names from the keys. */
const define = <Name extends string>(presets: Readonly<Record<Name, Preset>>) => presets;

/** By the library that fills the table. Each entry names what it was read from: a source, or a table that the library filled (`test/mapped-collections/fixtures`). */
export const PRESETS = define({
  /** `PGVector` of langchain-postgres 0.0.19 and 0.0.13, recorded. */
  'langchain-py': {
    ...langchain,
    id: ['id'],
    new_ids: 'text',
  },
  /**
   * `PGVectorStore` of langchain-postgres 0.0.19, recorded. The user names the table. The metadata column is json, not jsonb.
   */
  'langchain-py-v2': {
    id: ['langchain_id'],
    new_ids: 'uuid',
    embedding: 'embedding',
    fields: { content: 'content', user_id: "langchain_metadata->>'user_id'" },
  },
  'langchain-js': langchainJs,
  /**
   * n8n, packages/@n8n/nodes-langchain/nodes/vector_store/VectorStorePGVector/VectorStorePGVector.node.ts: LangChain's
   * class with other names. Collections are off unless a workflow turns them on.
   */
  n8n: {
    ...langchainJs,
    table: 'n8n_vectors',
    collection: { column: 'collection_id', named: { table: 'n8n_vector_collections', key: 'uuid', name: 'name' } },
  },
  /** LangChain.js: @langchain/community 1.1.29, src/vectorstores/typeorm.ts. */
  typeorm: {
    table: 'documents',
    id: ['id'],
    new_ids: 'uuid',
    embedding: 'embedding',
    fields: { content: '"pageContent"', user_id: "metadata->>'user_id'" },
  },
  /**
   * `PGVectorStore` of llama-index-vector-stores-postgres 0.9.0 and 0.4.2, recorded. The table is `data_` and the store's name in lower case. `node_id` identifies a node; `id` only counts rows.
   */
  'llamaindex-py': {
    table: 'data_llamaindex',
    id: ['node_id'],
    new_ids: 'uuid',
    embedding: 'embedding',
    fields: { content: 'text', user_id: "metadata_->>'user_id'" },
    read_only:
      'LlamaIndex reads its nodes from _node_content in the metadata, which only LlamaIndex writes, and its table allows duplicates of a node_id',
  },
  /** LlamaIndex.TS: @llamaindex/postgres 0.0.66, src/PGVectorStore.ts; the collection's name is from @llamaindex/core. */
  'llamaindex-ts': {
    table: 'llamaindex_embedding',
    id: ['id'],
    new_ids: 'uuid',
    embedding: 'embeddings',
    fields: { content: 'document', user_id: "metadata->>'user_id'", created_at: "metadata->>'create_date'" },
    collection: { column: 'collection', default: 'data' },
  },
  mem0,
  /**
   * mem0ai 3.3.1 for TypeScript, src/oss/src/vector_stores/supabase.ts. The column `updated_at` never changes after the
   * insert; the metadata holds the time of an update.
   */
  'mem0-supabase': {
    ...mem0,
    new_ids: 'text',
    embedding: 'embedding',
    fields: {
      content: "metadata->>'data'",
      user_id: "metadata->>'user_id'",
      created_at: 'created_at',
      updated_at: "metadata->>'updated_at'",
    },
  },
  /**
   * The table of Supabase's quickstart for LangChain, which `SupabaseVectorStore` in both languages, Flowise and n8n use:
   * SQL in langchain-ai/docs `integrations/vectorstores/supabase.mdx` at 37d517f, rows in langchainjs
   * `libs/langchain-community/src/vectorstores/supabase.ts` at 529d4ee.
   */
  supabase: {
    table: 'documents',
    id: ['id'],
    new_ids: 'database',
    embedding: 'embedding',
    fields: { content: 'content', user_id: "metadata->>'user_id'" },
  },
  /**
   * A collection of vecs 0.4.5 and 0.3.1, recorded, is a table of its name. vecs stores
   * no text, only metadata of the application's choice. So `content` has no default: with a wrong one the gateway would
   * start and return nothing.
   */
  vecs: {
    schema: 'vecs',
    id: ['id'],
    new_ids: 'text',
    embedding: 'vec',
    fields: { user_id: "metadata->>'user_id'" },
  },
  /**
   * `PgVectorStore` of Spring AI, run with 1.0.4, 1.1.8 and 2.0.1, which make one table. The metadata column is json, not jsonb. Spring AI requires an object there; the mapped user provides one.
   */
  'spring-ai': {
    table: 'vector_store',
    id: ['id'],
    new_ids: 'uuid',
    embedding: 'embedding',
    fields: { content: 'content', user_id: "metadata->>'user_id'" },
  },
  /**
   * `PgVectorEmbeddingStore` of LangChain4j, run with langchain4j-pgvector 0.36.2 and 1.13.0-beta23. The metadata column is json, or jsonb where the
   * application says so; numbers in it are texts. The user names the table.
   */
  langchain4j: {
    id: ['embedding_id'],
    new_ids: 'uuid',
    embedding: 'embedding',
    fields: { content: 'text', user_id: "metadata->>'user_id'" },
  },
  /**
   * The pgvector store of langchaingo, run with v0.1.7 and v0.1.14. The tables have the names of LangChain for Python, but rows are identified by `uuid`,
   * and the metadata column is json.
   */
  langchaingo: {
    ...langchain,
    id: ['uuid'],
    new_ids: 'uuid',
  },
  /**
   * rig-postgres 0.44.0 for Rust, with the table of its README. A document has a row for each of its embedded texts, all with one id; the row
   * that is nearest stands for it.
   */
  rig: {
    table: 'documents',
    id: ['id'],
    new_ids: 'uuid',
    embedding: 'embedding',
    fields: { content: 'embedded_text', user_id: "document->>'user_id'" },
    read_only:
      'rig returns the document that is stored beside the text, leaves out those without the fields that the application expects, and gives several rows one id',
  },
  /**
   * `PgvectorDocumentStore` of pgvector-haystack 8.1.2 and 3.4.1, recorded. Haystack's ids are hashes of the documents, but it reads rows with any id.
   */
  haystack: {
    table: 'haystack_documents',
    id: ['id'],
    new_ids: 'text',
    embedding: 'embedding',
    fields: { content: 'content', user_id: "meta->>'user_id'" },
  },
  /**
   * `PgVector` of agno 3.1.10 and 2.9.0, recorded. Before 3.0 there is no column of the user, and the metadata may hold one. Rows without a user, which agno shows to all, have
   * no owner here.
   */
  agno: {
    schema: 'ai',
    id: ['id'],
    new_ids: 'text',
    embedding: 'embedding',
    fields: { content: 'content', user_id: 'user_id', created_at: 'created_at', updated_at: 'updated_at' },
  },
  /**
   * The guide "RAG Agent" of Vercel's AI SDK, content/cookbook/00-guides/01-rag-chatbot.mdx: `lib/db/schema/embeddings.ts`.
   * Its rows have no user, so the settings must name one.
   */
  'vercel-drizzle': {
    table: 'embeddings',
    id: ['id'],
    new_ids: 'text',
    embedding: 'embedding',
    fields: { content: 'content' },
  },
  'langgraph-store': langgraphStore,
  /**
   * LangGraph for TypeScript: @langchain/langgraph-checkpoint-postgres 1.0.5, src/store/store-migrations.ts. The same
   * tables with other names; colons join the parts of a namespace.
   */
  'langgraph-store-js': {
    ...langgraphStore,
    id: ['namespace_path', 'key'],
    fields: { ...langgraphStore.fields, user_id: 'namespace_path' },
    vectors: {
      table: 'store_vectors',
      on: ['namespace_path', 'key'],
      which: { column: 'field_path', value: 'text' },
    },
  },
  /**
   * @mastra/pg, stores/pg/src/vector/index.ts: one table for each index, since 1.22 with a namespace, within which an id is
   * unique. The application decides what the metadata holds; `text` is the key of Mastra's guides.
   */
  mastra: {
    id: ['vector_id'],
    new_ids: 'text',
    embedding: 'embedding',
    fields: { content: "metadata->>'text'", user_id: "metadata->>'user_id'" },
    collection: { column: 'namespace', default: 'default', added: true },
  },
  /** Any other table: the settings name its columns. */
  custom: { fields: {} },
});

export type PresetName = keyof typeof PRESETS;
export const PRESET_NAMES = Object.keys(PRESETS) as [PresetName, ...PresetName[]];
