import { randomUUID } from 'node:crypto';
import type { OwnersDatabase } from './database.ts';
import { type OwnersRow, presetSuite, textOf, withoutTimes } from './preset-suite.ts';

/** What SQLAlchemy sends for `add_embeddings` of langchain_postgres/vectorstores.py. */
const INSERT = `INSERT INTO langchain_pg_embedding (id, collection_id, embedding, document, cmetadata) VALUES ($1::VARCHAR, $2::UUID, $3, $4::VARCHAR, $5::JSONB) ON CONFLICT (id) DO UPDATE SET embedding = excluded.embedding, document = excluded.document, cmetadata = excluded.cmetadata`;

async function insert(
  db: OwnersDatabase,
  row: OwnersRow & { readonly collection?: string },
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

presetSuite({
  page: 'langchain-py',
  // The classes CollectionStore and EmbeddingStore of langchain_postgres/vectorstores.py at 7129e2b, as SQLAlchemy makes
  // them, and two collections as create_collection() does.
  ddl: [
    `CREATE TABLE langchain_pg_collection (
      uuid UUID NOT NULL,
      name VARCHAR NOT NULL,
      cmetadata JSON,
      PRIMARY KEY (uuid),
      UNIQUE (name)
    )`,
    `CREATE TABLE langchain_pg_embedding (
      id VARCHAR,
      collection_id UUID,
      embedding VECTOR,
      document VARCHAR,
      cmetadata JSONB,
      PRIMARY KEY (id),
      FOREIGN KEY(collection_id) REFERENCES langchain_pg_collection (uuid) ON DELETE CASCADE
    )`,
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
  temporal: false,
  scopes: 'none',
  writable: true,
  // __query_collection, filtered by the owner, without the order.
  async read(db, id) {
    const [row] = await db.sql<{ text: string; user: string }>(
      `SELECT document AS text, langchain_pg_embedding.cmetadata ->> 'user_id' AS "user" FROM langchain_pg_embedding
       JOIN langchain_pg_collection ON langchain_pg_embedding.collection_id = langchain_pg_collection.uuid
       WHERE langchain_pg_collection.name = 'my_docs' AND langchain_pg_embedding.id = $1 AND embedding IS NOT NULL`,
      [id],
    );
    return row as { text: string; user: string };
  },
});
