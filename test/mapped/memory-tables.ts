import { createHash, randomUUID } from 'node:crypto';
import { toSql } from 'pgvector';
import { expect } from 'vitest';
import { documentedSql } from './documented.ts';
import type { LibraryDatabase } from './library-table.ts';
import { type LibraryRow, type LibraryTable, textOf, withoutTimes } from './library-table.ts';

function langgraphStore(): LibraryTable[] {
  interface Item {
    readonly prefix: string;
    readonly key: string;
    readonly value: object;
    /** By the name of the field that they were made of. */
    readonly vectors: Readonly<Record<string, Float32Array>>;
  }

  /** BasePostgresStore._prepare_batch_PUT_queries */
  async function put(db: LibraryDatabase, { prefix, key, value, vectors }: Item): Promise<void> {
    await db.sql(
      `INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes) VALUES ($1, $2, $3,
        CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, NOW() + $4::interval, $5) ON CONFLICT (prefix, key) DO UPDATE SET
        value = EXCLUDED.value, updated_at = CURRENT_TIMESTAMP, expires_at = EXCLUDED.expires_at, ttl_minutes =
        EXCLUDED.ttl_minutes`,
      [prefix, key, value, '3600.0 seconds', 60],
    );
    for (const [name, vector] of Object.entries(vectors)) {
      await db.sql(
        `INSERT INTO store_vectors (prefix, key, field_name, embedding, created_at, updated_at) VALUES ($1, $2, $3,
          $4, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP) ON CONFLICT (prefix, key, field_name) DO UPDATE SET embedding =
          EXCLUDED.embedding, updated_at = CURRENT_TIMESTAMP`,
        [prefix, key, name, toSql([...vector])],
      );
    }
  }

  return [
    {
      page: 'langgraph-store',
      // MIGRATIONS and VECTOR_MIGRATIONS of BasePostgresStore; `vector(1536)` and the default index.
      ddl: [
        `
CREATE TABLE IF NOT EXISTS store (
    -- 'prefix' represents the doc's 'namespace'
    prefix text NOT NULL,
    key text NOT NULL,
    value jsonb NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (prefix, key)
);
`,
        `
-- For faster lookups by prefix
CREATE INDEX CONCURRENTLY IF NOT EXISTS store_prefix_idx ON store USING btree (prefix text_pattern_ops);
`,
        `
-- Add expires_at column to store table
ALTER TABLE store
ADD COLUMN IF NOT EXISTS expires_at TIMESTAMP WITH TIME ZONE,
ADD COLUMN IF NOT EXISTS ttl_minutes INT;
`,
        `
-- Add indexes for efficient TTL sweeping
CREATE INDEX IF NOT EXISTS idx_store_expires_at ON store (expires_at)
WHERE expires_at IS NOT NULL;
`,
        `CREATE TABLE IF NOT EXISTS store_vectors ( prefix text NOT NULL, key text NOT NULL, field_name text NOT
          NULL, embedding vector(1536), created_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP, updated_at
          TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (prefix, key, field_name), FOREIGN KEY
          (prefix, key) REFERENCES store(prefix, key) ON DELETE CASCADE );`,
        `CREATE INDEX CONCURRENTLY IF NOT EXISTS store_vectors_embedding_idx ON store_vectors USING hnsw (embedding
          vector_cosine_ops);`,
      ],
      async fill(db, { user, text, vector, number }) {
        // A second vector of the same item, which is nearer to nothing, must not make a second hit.
        const vectors = { text: vector, title: vector.map((part) => -part) };
        await put(db, { prefix: `memories.${user}`, key: `note/${number}`, value: { text, title: 'x' }, vectors });
        return `memories.${user}/note/${number}`;
      },
      async hide(db, { user, text, vector }) {
        const vectors = { text: vector };
        // Of the user in another namespace, of a namespace beneath, of the namespace of all, without the field.
        await put(db, { prefix: `profiles.${user}`, key: 'a', value: { text }, vectors });
        await put(db, { prefix: 'memories', key: 'a', value: { text }, vectors });
        await put(db, { prefix: `memories.${user}`, key: 'b', value: { other: text }, vectors });
      },
      shows: { valid_to: expect.any(String), embedding_model: 'text-embedding-3-small' },
      temporal: true,
    },
  ];
}

function langgraphStoreJs(): LibraryTable[] {
  /** CrudOperations.executePut and VectorOperations.indexItemVectors */
  async function put(db: LibraryDatabase, id: string, value: object, vectors: object): Promise<void> {
    const [path, key] = id.split('|');
    await db.sql(
      `INSERT INTO "public".store (namespace_path, key, value, expires_at) VALUES ($1, $2, $3, $4) ON CONFLICT
        (namespace_path, key) DO UPDATE SET value = $3, expires_at = $4, updated_at = CURRENT_TIMESTAMP`,
      [path, key, JSON.stringify(value), new Date('2027-01-01T00:00:00Z')],
    );
    for (const [field, vector] of Object.entries(vectors)) {
      await db.sql(
        `INSERT INTO "public".store_vectors (namespace_path, key, field_path, text_content, embedding) VALUES ($1,
          $2, $3, $4, $5)`,
        [path, key, field, 'as it was embedded', toSql([...vector])],
      );
    }
  }

  return [
    {
      page: 'langgraph-store-js',
      // getStoreMigrations
      ddl: [
        `CREATE TABLE IF NOT EXISTS "public".store ( namespace_path TEXT NOT NULL, key TEXT NOT NULL, value JSONB
          NOT NULL, created_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMPTZ DEFAULT
          CURRENT_TIMESTAMP, expires_at TIMESTAMPTZ, PRIMARY KEY (namespace_path, key) );`,
        `CREATE INDEX IF NOT EXISTS idx_store_namespace_path ON "public".store USING btree (namespace_path); CREATE
          INDEX IF NOT EXISTS idx_store_value_gin ON "public".store USING gin (value); CREATE INDEX IF NOT EXISTS
          idx_store_expires_at ON "public".store USING btree (expires_at) WHERE expires_at IS NOT NULL;`,
        `CREATE TABLE IF NOT EXISTS "public".store_vectors ( namespace_path TEXT NOT NULL, key TEXT NOT NULL,
          field_path TEXT NOT NULL, text_content TEXT NOT NULL, embedding vector(1536) NOT NULL, created_at
          TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (namespace_path, key, field_path), FOREIGN KEY
          (namespace_path, key) REFERENCES "public".store(namespace_path, key) ON DELETE CASCADE );`,
        `CREATE INDEX IF NOT EXISTS idx_store_vectors_embedding_cosine_hnsw ON "public".store_vectors USING hnsw
          (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 200);`,
      ],
      async fill(db, { user, text, vector, number }: LibraryRow) {
        const title = vector.map((part) => -part);
        await put(db, `memories:${user}|note/${number}`, { text, title: 'x' }, { text: vector, title });
        return `memories:${user}/note/${number}`;
      },
      async hide(db, { user, text, vector }) {
        await put(db, `profiles:${user}|a`, { text }, { text: vector });
        await put(db, 'memories|a', { text }, { text: vector });
        await put(db, `memories:${user}|b`, { other: text }, { text: vector });
      },
      shows: { valid_to: '2027-01-01T00:00:00.000Z', embedding_model: 'text-embedding-3-small' },
      temporal: true,
    },
  ];
}

function mem0(): LibraryTable[] {
  const md5 = (text: string) => createHash('md5').update(text).digest('hex');

  // mem0 for Python: mem0/vector_stores/pgvector.py, `insert`.
  const insert = 'INSERT INTO memories (id, vector, payload) VALUES ($1, $2, $3)';

  return [
    {
      page: 'mem0',
      // `create_col` of both libraries, Python's with `hnsw`.
      ddl: [
        `CREATE TABLE IF NOT EXISTS memories ( id UUID PRIMARY KEY, vector vector(1536), payload JSONB );`,
        `CREATE INDEX IF NOT EXISTS memories_hnsw_idx ON memories USING hnsw (vector vector_cosine_ops)`,
      ],
      async fill(db, { user, text, vector, number }) {
        const id = randomUUID();
        // mem0/memory/main.py, Phase 4
        const payload = {
          user_id: user,
          data: text,
          text_lemmatized: text,
          hash: md5(text),
          created_at: `2026-03-01T10:00:0${number}.123456+00:00`,
          updated_at: `2026-03-02T10:00:0${number}.123456+00:00`,
        };
        await db.sql(insert, [id, toSql([...vector]), JSON.stringify(payload)]);
        return id;
      },
      async hide(db, { user, text, vector }) {
        for (const payload of [
          { agent_id: user, data: text },
          { user_id: user, memory: text },
          { user_id: user, data: '' },
          null,
        ]) {
          await db.sql(insert, [randomUUID(), toSql([...vector]), JSON.stringify(payload)]);
        }
      },
      shows: {
        created_at: expect.stringMatching(/^2026-03-01T10:00:0\d\.123Z$/),
        updated_at: expect.stringMatching(/^2026-03-02T10:00:0\d\.123Z$/),
        embedding_model: 'text-embedding-3-small',
      },
      temporal: true,
    },
  ];
}

function mem0Supabase(): LibraryTable[] {
  /** What PostgREST makes of `client.from('memories').insert`; the metadata is that of SupabaseDB.insert and Memory.createMemory. */
  async function add(db: LibraryDatabase, { text, vector, number }: LibraryRow, who: object): Promise<string> {
    const id = randomUUID();
    const createdAt = `2026-03-01T10:00:0${number}.000Z`;
    const metadata = { ...who, data: text, hash: 'f00d', textLemmatized: text, createdAt, created_at: createdAt };
    await db.sql('insert into "memories" ("id", "embedding", "metadata") values ($1, $2, $3)', [
      id,
      toSql([...vector]),
      metadata,
    ]);
    // SupabaseDB.update touches the metadata alone; the columns of time stay as they are.
    await db.sql('update "memories" set "metadata" = $2 where "id" = $1', [
      id,
      { ...metadata, updatedAt: '2026-04-01T10:00:00.000Z', updated_at: '2026-04-01T10:00:00.001Z' },
    ]);
    return id;
  }

  return [
    {
      page: 'mem0-supabase',
      // The message of SupabaseDB.initialize
      ddl: [
        'create extension if not exists vector;',
        `create table if not exists memories ( id text primary key, embedding vector(1536), metadata jsonb,
          created_at timestamp with time zone default timezone('utc', now()), updated_at timestamp with time zone
          default timezone('utc', now()) );`,
        `create table if not exists memory_migrations ( user_id text primary key, created_at timestamp with time
          zone default timezone('utc', now()) );`,
        `create or replace function match_vectors( query_embedding vector(1536), match_count int, filter jsonb
          default '{}'::jsonb ) returns table ( id text, similarity float, metadata jsonb ) language plpgsql as $$
          begin return query select t.id::text, 1 - (t.embedding <=> query_embedding) as similarity, t.metadata from
          memories t where case when filter::text = '{}'::text then true else t.metadata @> filter end order by
          t.embedding <=> query_embedding limit match_count; end; $$;`,
      ],
      fill: (db, row) => add(db, row, { user_id: row.user }),
      hide: async (db, row) => {
        await add(db, row, { agent_id: row.user });
        await add(db, { ...row, text: '' }, { user_id: row.user });
      },
      shows: { updated_at: '2026-04-01T10:00:00.001Z', embedding_model: 'text-embedding-3-small' },
      temporal: true,
    },
  ];
}

function vecs(): LibraryTable[] {
  /** `build_table` of vecs 0.4.5, src/vecs/collection.py, as SQLAlchemy makes it. */
  const ddlOf = (collection: string): string[] => [
    'create schema if not exists vecs;',
    `CREATE TABLE vecs.${collection} ( id VARCHAR NOT NULL, vec VECTOR(1536) NOT NULL, metadata JSONB DEFAULT
      '{}'::jsonb NOT NULL, PRIMARY KEY (id) )`,
  ];

  /** `upsert` of src/vecs/collection.py. */
  async function upsert(db: LibraryDatabase, collection: string, { vector }: LibraryRow, metadata: object) {
    const id = randomUUID();
    await db.sql(
      `INSERT INTO vecs.${collection} (id, vec, metadata) VALUES ($1, $2, $3::JSONB) ON CONFLICT (id) DO UPDATE SET vec = excluded.vec, metadata = excluded.metadata`,
      [id, textOf(vector), metadata],
    );
    return id;
  }

  const shared = { page: 'vecs', dimensions: 1536, scopes: 'none' } as const satisfies Partial<LibraryTable>;

  return [
    {
      ...shared,
      ddl: ddlOf('docs'),
      fill: (db, row) => upsert(db, 'docs', row, { user_id: row.user, text: row.text, year: 2012 }),
      async hide(db, row) {
        await upsert(db, 'docs', row, { text: row.text });
        await upsert(db, 'docs', row, { user_id: row.user, data: row.text });
        await upsert(db, 'docs', row, {});
      },
      // `fetch` of src/vecs/collection.py.
      async read(db, id) {
        const [row] = await db.sql<{ metadata: { text: string; user_id: string } }>(
          'SELECT vecs.docs.id, vecs.docs.vec, vecs.docs.metadata FROM vecs.docs WHERE vecs.docs.id IN ($1)',
          [id],
        );
        return { text: row?.metadata.text as string, user: row?.metadata.user_id as string };
      },
    },
    {
      ...shared,
      heading: 'mem0 on Supabase',
      ddl: [
        ...ddlOf('memories'),
        // `create_index`, which mem0 calls on a new collection: mem0/vector_stores/supabase.py at 1336364.
        'create index ix_vector_cosine_ops_hnsw_m16_efc64_1a2b3c4 on vecs."memories" using hnsw (vec vector_cosine_ops) WITH (m=16, ef_construction=64);',
        // The index that the page advises, on this collection.
        ...documentedSql('vecs').map((statement) => statement.replaceAll('docs', 'memories')),
      ],
      // The payload that `_create_memory` of mem0/memory/main.py hands to `insert`.
      fill: (db, row) =>
        upsert(db, 'memories', row, {
          user_id: row.user,
          data: row.text,
          hash: randomUUID().replaceAll('-', ''),
          created_at: '2026-01-02T03:04:05.678901-08:00',
          updated_at: null,
        }),
      hide: async (db, row) => void (await upsert(db, 'memories', row, { agent_id: 'a', data: row.text })),
      shows: {
        ...withoutTimes('text-embedding-3-small'),
        created_at: '2026-01-02T11:04:05.678Z',
        updated_at: '2026-01-02T11:04:05.678Z',
      },
      temporal: true,
      async read(db, id) {
        const [row] = await db.sql<{ metadata: { data: string; user_id: string } }>(
          'SELECT vecs.memories.id, vecs.memories.vec, vecs.memories.metadata FROM vecs.memories WHERE vecs.memories.id IN ($1)',
          [id],
        );
        return { text: row?.metadata.data as string, user: row?.metadata.user_id as string };
      },
    },
  ];
}

export const MEMORY_TABLES: readonly LibraryTable[] = [
  langgraphStore(),
  langgraphStoreJs(),
  mem0(),
  mem0Supabase(),
  vecs(),
].flat();
