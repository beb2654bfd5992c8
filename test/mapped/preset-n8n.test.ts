import type { OwnersDatabase } from './database.ts';
import { type OwnersRow, type OwnersTable, presetSuite } from './preset-suite.ts';

// PGVectorStore.addVectors without ids: they are the database's, and n8n never sees them.
const columns = '"text", "embedding", "metadata"';
const insert = `
      INSERT INTO n8n_vectors(
        ${columns}
      )
      VALUES ($1, $2, $3)
    `;
const insertInto = `
      INSERT INTO n8n_vectors(
        ${columns}, "collection_id"
      )
      VALUES ($1, $2, $3, $4)
    `;

const valuesOf = ({ text, vector }: OwnersRow, who: object) => [
  text,
  `[${vector.join(',')}]`,
  { source: 'blob', blobType: 'text/plain', ...who },
];

async function idOf(db: OwnersDatabase, { user, text }: OwnersRow): Promise<string> {
  const [row] = await db.sql<{ id: string }>(
    `select id from n8n_vectors where "text" = $1 and metadata->>'user_id' = $2`,
    [text, user],
  );
  return row?.id ?? '';
}

/** PGVectorStore.searchPostgres with this condition. */
async function readWhere(db: OwnersDatabase, id: string, condition: string) {
  const rows = await db.sql<{ id: string; text: string; metadata: { user_id: string } }>(
    `
      SELECT *, "embedding" <=> $1 as "_distance"
      FROM n8n_vectors
      ${condition}
      ORDER BY "_distance" ASC
      LIMIT $2;
      `,
    [`[${Array(1536).fill(1).join(',')}]`, 100],
  );
  const row = rows.find((candidate) => candidate.id === id);
  return { text: row?.text ?? '', user: row?.metadata.user_id ?? '' };
}

const table: OwnersTable = {
  page: 'n8n',
  // PGVectorStore.ensureTableInDatabase without dimensions, with the names of n8n.
  ddl: [
    `
      CREATE TABLE IF NOT EXISTS n8n_vectors (
        "id" uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
        "text" text,
        "metadata" jsonb,
        "embedding" vector
      );
    `,
  ],
  dimensions: 1536,
  async fill(db, row) {
    await db.sql(insert, valuesOf(row, { user_id: row.user }));
    return idOf(db, row);
  },
  hide: async (db, row) => void (await db.sql(insert, valuesOf(row, {}))),
  shows: { created_at: '1970-01-01T00:00:00.000Z', embedding_model: 'text-embedding-3-small' },
  temporal: false,
  scopes: 'none',
  writable: true,
  read: (db, id) => readWhere(db, id, ''),
};

/** PGVectorStore.getOrCreateCollection */
async function collection(db: OwnersDatabase, name: string): Promise<string> {
  const select = 'SELECT uuid from n8n_vector_collections WHERE name = $1;';
  const [found] = await db.sql<{ uuid: string }>(select, [name]);
  if (found !== undefined) return found.uuid;
  const [made] = await db.sql<{ uuid: string }>(
    `
        INSERT INTO n8n_vector_collections(
          uuid,
          name,
          cmetadata
        )
        VALUES (
          gen_random_uuid(),
          $1,
          $2
        )
        RETURNING uuid;
      `,
    [name, null],
  );
  return made?.uuid ?? '';
}

presetSuite(table);
presetSuite({
  ...table,
  heading: 'With collections',
  ddl: [
    ...table.ddl,
    // PGVectorStore.ensureCollectionTableInDatabase
    `
        CREATE TABLE IF NOT EXISTS n8n_vector_collections (
          uuid uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
          name character varying,
          cmetadata jsonb
        );

        CREATE INDEX IF NOT EXISTS idx_n8n_vector_collections_name ON n8n_vector_collections(name);

        ALTER TABLE n8n_vectors
          ADD COLUMN collection_id uuid;

        ALTER TABLE n8n_vectors
          ADD CONSTRAINT n8n_vectors_collection_id_fkey
          FOREIGN KEY (collection_id)
          REFERENCES n8n_vector_collections(uuid)
          ON DELETE CASCADE;
      `,
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
});
