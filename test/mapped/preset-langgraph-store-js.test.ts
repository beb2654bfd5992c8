import { expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import type { OwnersDatabase } from './database.ts';
import { librarySuite } from './library-suite.ts';
import { openLanggraph } from './owner-libraries.ts';
import { type OwnersRow, presetSuite } from './preset-suite.ts';

/** CrudOperations.executePut and VectorOperations.indexItemVectors */
async function put(db: OwnersDatabase, id: string, value: object, vectors: object): Promise<void> {
  const [path, key] = id.split('|');
  await db.sql(
    `
        INSERT INTO "public".store (namespace_path, key, value, expires_at)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (namespace_path, key)
        DO UPDATE SET
          value = $3,
          expires_at = $4,
          updated_at = CURRENT_TIMESTAMP
      `,
    [path, key, JSON.stringify(value), new Date('2027-01-01T00:00:00Z')],
  );
  for (const [field, vector] of Object.entries(vectors)) {
    await db.sql(
      `
          INSERT INTO "public".store_vectors
          (namespace_path, key, field_path, text_content, embedding)
          VALUES ($1, $2, $3, $4, $5)
        `,
      [path, key, field, 'as it was embedded', `[${vector.join(',')}]`],
    );
  }
}

presetSuite({
  page: 'langgraph-store-js',
  // getStoreMigrations
  ddl: [
    `CREATE TABLE IF NOT EXISTS "public".store (
    namespace_path TEXT NOT NULL,
    key TEXT NOT NULL,
    value JSONB NOT NULL,
    created_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP,
    expires_at TIMESTAMPTZ,
    PRIMARY KEY (namespace_path, key)
  );`,
    `
    CREATE INDEX IF NOT EXISTS idx_store_namespace_path
    ON "public".store USING btree (namespace_path);

    CREATE INDEX IF NOT EXISTS idx_store_value_gin
    ON "public".store USING gin (value);

    CREATE INDEX IF NOT EXISTS idx_store_expires_at
    ON "public".store USING btree (expires_at)
    WHERE expires_at IS NOT NULL;
  `,
    `CREATE TABLE IF NOT EXISTS "public".store_vectors (
      namespace_path TEXT NOT NULL,
      key TEXT NOT NULL,
      field_path TEXT NOT NULL,
      text_content TEXT NOT NULL,
      embedding vector(1536) NOT NULL,
      created_at TIMESTAMPTZ DEFAULT CURRENT_TIMESTAMP,
      PRIMARY KEY (namespace_path, key, field_path),
      FOREIGN KEY (namespace_path, key) REFERENCES "public".store(namespace_path, key) ON DELETE CASCADE
    );`,
    `CREATE INDEX IF NOT EXISTS idx_store_vectors_embedding_cosine_hnsw
          ON "public".store_vectors USING hnsw (embedding vector_cosine_ops)
          WITH (m = 16, ef_construction = 200);`,
  ],
  dimensions: 1536,
  async fill(db, { user, text, vector, number }: OwnersRow) {
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
  scopes: 'none',
  writable: false,
});

librarySuite('LangGraph itself in front of the same tables', 'langgraph-store-js', ({ beside, prepare }) => {
  let store: Awaited<ReturnType<typeof openLanggraph>>;
  prepare(async ({ db, closing }) => {
    store = await openLanggraph(db.url, 'public', ['text']);
    closing(() => store.stop());
    await store.put(['memories', 'ana'], 'a', { text: 'the ferry leaves at nine' });
    await store.put(['memories', 'ana'], 'b', { text: 'allergic to peanuts', area: 'food' });
    await store.put(['memories', 'ana'], 'c', { text: 'not to be found' }, false);
    await store.put(['memories', 'ben'], 'a', { text: 'lives in Lisbon' });
    await store.put(['profiles', 'ana'], 'a', { text: 'no memory' });
  });

  it('it writes, changes and deletes, the gateway reads', async () => {
    const client = await beside().serve();
    const [hit, ...others] = await client.search({ user_id: 'ana', q: 'allergic to peanuts' });
    expect(hit).toMatchObject({ memory: { id: 'memories:ana/b', content: 'allergic to peanuts', user_id: 'ana' } });
    expect(hit?.score).toBeCloseTo(1, 3);
    expect(others.map(({ memory }) => memory.id)).toEqual(['memories:ana/a']);
    const { items } = await client.list({ user_id: 'ana' });
    expect(items.map(({ id }) => id)).toEqual(['memories:ana/c', 'memories:ana/b', 'memories:ana/a']);
    expect((await client.list({ user_id: 'ben' })).items).toMatchObject([{ id: 'memories:ben/a' }]);

    await store.put(['memories', 'ana'], 'b', { text: 'allergic to walnuts' });
    const changed = await client.get('memories:ana/b');
    expect(changed).toMatchObject({ content: 'allergic to walnuts', created_at: hit?.memory.created_at });
    expect(changed.updated_at).not.toBe(changed.created_at);
    await store.delete(['memories', 'ana'], 'a');
    expectError(await client.ask(client.byId('memories:ana/a')), 'not_found');
  });

  it('in another schema, by the vectors of whole values', async () => {
    const whole = await openLanggraph(beside().db.url, 'whole');
    beside().closing(() => whole.stop());
    await whole.put(['ana', 'memories'], 'a', { content: 'the ferry leaves at nine' });
    await whole.put(['ana', 'memories'], 'b', { content: 'allergic to peanuts' });
    const client = await beside().serve({
      OMP_MAPPING_SCHEMA: 'whole',
      OMP_MAPPING_USER_PATTERN: '{user}:memories',
      OMP_MAPPING_CONTENT: "value->>'content'",
      OMP_MAPPING_COLLECTION: '$',
    });
    const [hit] = await client.search({ user_id: 'ana', q: '{"content":"allergic to peanuts"}' });
    expect(hit?.memory).toMatchObject({ id: 'ana:memories/b', content: 'allergic to peanuts', user_id: 'ana' });
    expect(hit?.score).toBeCloseTo(1, 3);
  });
});
