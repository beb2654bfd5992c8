import type { OwnersDatabase } from './database.ts';
import { type OwnersRow, presetSuite } from './preset-suite.ts';

// What Drizzle makes of `createResource` in the guide: a resource, then its chunks.
async function add(db: OwnersDatabase, { text, vector, number }: OwnersRow): Promise<string> {
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

presetSuite({
  page: 'vercel-drizzle',
  users: ['shared', 'ben'],
  ownerless: true,
  // What drizzle-kit makes of `lib/db/schema/resources.ts` and `embeddings.ts`.
  ddl: [
    `CREATE TABLE IF NOT EXISTS "resources" (
	"id" varchar(191) PRIMARY KEY NOT NULL,
	"content" text NOT NULL,
	"created_at" timestamp DEFAULT now() NOT NULL,
	"updated_at" timestamp DEFAULT now() NOT NULL
);`,
    `CREATE TABLE IF NOT EXISTS "embeddings" (
	"id" varchar(191) PRIMARY KEY NOT NULL,
	"resource_id" varchar(191),
	"content" text NOT NULL,
	"embedding" vector(1536) NOT NULL
);`,
    `ALTER TABLE "embeddings" ADD CONSTRAINT "embeddings_resource_id_resources_id_fk"
     FOREIGN KEY ("resource_id") REFERENCES "resources"("id") ON DELETE cascade ON UPDATE no action;`,
    'CREATE INDEX IF NOT EXISTS "embeddingIndex" ON "embeddings" USING hnsw ("embedding" vector_cosine_ops);',
  ],
  dimensions: 1536,
  fill: add,
  hide: async (db, row) => void (await add(db, { ...row, text: '' })),
  shows: { created_at: '1970-01-01T00:00:00.000Z', embedding_model: 'text-embedding-ada-002' },
  temporal: false,
  scopes: 'none',
  writable: true,
  // `findRelevantContent`, with the id, and with a bound that lets every direction pass; nobody owns what it finds.
  async read(db, id) {
    const rows = await db.sql<{ id: string; name: string }>(
      `select "id", "content" as "name", 1 - ("embedding" <=> $1) as "similarity" from "embeddings"
       where 1 - ("embedding" <=> $1) > $2 order by "similarity" desc limit 100`,
      [JSON.stringify(Array(1536).fill(1)), -1],
    );
    return { text: rows.find((row) => row.id === id)?.name ?? '', user: 'shared' };
  },
});
