import { createHash } from 'node:crypto';
import type { OwnersDatabase } from './database.ts';
import { type OwnersRow, presetSuite, textOf, withoutTimes } from './preset-suite.ts';

/** INSERT_STATEMENT of pgvector-haystack, _base.py. */
const INSERT = `
INSERT INTO "public"."haystack_documents"
(id, embedding, content, blob_data, blob_meta, blob_mime_type, meta)
VALUES ($1, $2, $3, $4, $5, $6, $7)
`;

async function insert(db: OwnersDatabase, { vector }: OwnersRow, content: string | null, meta: object) {
  // Document._create_id() of haystack/dataclasses/document.py hashes these two among others.
  const id = createHash('sha256')
    .update(`${content}${JSON.stringify(meta)}`)
    .digest('hex');
  await db.sql(INSERT, [id, textOf(vector), content, null, null, null, meta]);
  return id;
}

presetSuite({
  page: 'haystack',
  // CREATE_TABLE_STATEMENT and the indexes of _base.py at 19aa3de, with search_strategy="hnsw".
  ddl: [
    `
CREATE TABLE "public"."haystack_documents" (
id VARCHAR(128) PRIMARY KEY,
embedding vector(768),
content TEXT,
blob_data BYTEA,
blob_meta JSONB,
blob_mime_type VARCHAR(255),
meta JSONB)
`,
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
  temporal: false,
  scopes: 'none',
  writable: true,
  // filter_documents(); Document.from_dict() takes the columns as they are.
  async read(db, id) {
    const [row] = await db.sql<{ content: string; meta: { user_id: string } }>(
      `SELECT * FROM "public"."haystack_documents" WHERE id = $1`,
      [id],
    );
    return { text: row?.content as string, user: row?.meta.user_id as string };
  },
});
