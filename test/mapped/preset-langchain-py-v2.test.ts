import { randomUUID } from 'node:crypto';
import type { OwnersDatabase } from './database.ts';
import { type OwnersRow, presetSuite, textOf, withoutTimes } from './preset-suite.ts';

/** Of `aadd_embeddings` in langchain_postgres/v2/async_vectorstore.py. */
const INSERT = `INSERT INTO "public"."vectorstore"("langchain_id", "content", "embedding", "langchain_metadata")VALUES ($1, $2, $3, $4) ON CONFLICT ("langchain_id") DO UPDATE SET "content" = EXCLUDED."content", "embedding" = EXCLUDED."embedding", "langchain_metadata" = EXCLUDED."langchain_metadata";`;

async function insert(db: OwnersDatabase, { vector }: OwnersRow, content: string, extra: object) {
  const id = randomUUID();
  await db.sql(INSERT, [id, content, textOf(vector), JSON.stringify(extra)]);
  return id;
}

presetSuite({
  page: 'langchain-py-v2',
  // _ainit_vectorstore_table of langchain_postgres/v2/engine.py at 0453818, with its defaults.
  ddl: [
    `CREATE TABLE "public"."vectorstore"(
            "langchain_id" UUID PRIMARY KEY,
            "content" TEXT NOT NULL,
            "embedding" vector(1536) NOT NULL
            ,
"langchain_metadata" JSON
);`,
  ],
  dimensions: 1536,
  fill: (db, row) => insert(db, row, row.text, { user_id: row.user, source: 'notes.txt' }),
  async hide(db, row) {
    await insert(db, row, row.text, {});
    await insert(db, row, '', { user_id: row.user });
  },
  shows: withoutTimes('text-embedding-3-small'),
  temporal: false,
  scopes: 'none',
  writable: true,
  // __query_collection of v2/async_vectorstore.py; no metadata would be an empty dict there.
  async read(db, id) {
    const [row] = await db.sql<{ content: string; langchain_metadata: { user_id: string } }>(
      `SELECT "langchain_id", "content", "embedding", "langchain_metadata" FROM "public"."vectorstore" WHERE "langchain_id" = $1`,
      [id],
    );
    return { text: row?.content as string, user: row?.langchain_metadata.user_id as string };
  },
});
