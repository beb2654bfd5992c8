import { expect } from 'vitest';
import type { OwnersDatabase } from './database.ts';
import { presetSuite } from './preset-suite.ts';

interface Item {
  readonly prefix: string;
  readonly key: string;
  readonly value: object;
  /** By the name of the field that they were made of. */
  readonly vectors: Readonly<Record<string, Float32Array>>;
}

/** BasePostgresStore._prepare_batch_PUT_queries */
async function put(db: OwnersDatabase, { prefix, key, value, vectors }: Item): Promise<void> {
  await db.sql(
    `
                INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)
                VALUES ($1, $2, $3, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, NOW() + $4::interval, $5)
                ON CONFLICT (prefix, key) DO UPDATE
                SET value = EXCLUDED.value,
                    updated_at = CURRENT_TIMESTAMP,
                    expires_at = EXCLUDED.expires_at,
                    ttl_minutes = EXCLUDED.ttl_minutes
            `,
    [prefix, key, value, '3600.0 seconds', 60],
  );
  for (const [name, vector] of Object.entries(vectors)) {
    await db.sql(
      `
                    INSERT INTO store_vectors (prefix, key, field_name, embedding, created_at, updated_at)
                    VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)
                    ON CONFLICT (prefix, key, field_name) DO UPDATE
                    SET embedding = EXCLUDED.embedding,
                        updated_at = CURRENT_TIMESTAMP
                `,
      [prefix, key, name, `[${vector.join(',')}]`],
    );
  }
}

presetSuite({
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
    `
CREATE TABLE IF NOT EXISTS store_vectors (
    prefix text NOT NULL,
    key text NOT NULL,
    field_name text NOT NULL,
    embedding vector(1536),
    created_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (prefix, key, field_name),
    FOREIGN KEY (prefix, key) REFERENCES store(prefix, key) ON DELETE CASCADE
);
`,
    `
CREATE INDEX CONCURRENTLY IF NOT EXISTS store_vectors_embedding_idx ON store_vectors
    USING hnsw (embedding vector_cosine_ops);
`,
  ],
  dimensions: 1536,
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
  scopes: 'none',
  writable: false,
});
