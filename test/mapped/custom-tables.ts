import { randomBytes, randomUUID } from 'node:crypto';
import { documentedSql } from './documented.ts';
import type { LibraryDatabase } from './library-table.ts';
import { type LibraryRow, type LibraryTable, textOf, withoutTimes } from './library-table.ts';

function custom(): LibraryTable[] {
  /** The page's statements that create the table; its indexes come later. */
  const madeBy = (heading: string): string[] =>
    documentedSql('custom', heading).filter((statement) => !statement.startsWith('create index'));

  const WRITTEN = '2026-03-04T05:06:07.089Z';
  const shared = { page: 'custom', temporal: true } as const satisfies Partial<LibraryTable>;
  const smallModel = withoutTimes('text-embedding-3-small');

  /** `ins_mem` of packages/openmemory-js/src/core/db.ts, and a vector for each of two sectors. */
  async function insertMemory(db: LibraryDatabase, { vector, user }: LibraryRow, content: string) {
    const id = randomUUID();
    const now = Date.parse(WRITTEN);
    const memory = [id, user, null, 0, content, 'abc', 'semantic', '["a","b"]', '{}', now, now, now, 0.5, 0.02, 1];
    await db.sql(
      'insert into "public"."openmemory_memories"(id,user_id,project_id,segment,content,simhash,primary_sector,tags,meta,created_at,updated_at,last_seen_at,salience,decay_lambda,version) values($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15)',
      memory,
    );
    for (const [sector, stored] of [
      ['semantic', vector],
      ['episodic', vector.map((value) => -value)],
    ] as const) {
      await db.sql(
        'insert into "public"."openmemory_vectors"(id,sector,user_id,project_id,v,dim) values($1,$2,$3,$4,$5::vector,$6)',
        [id, sector, user, null, textOf(stored), stored.length],
      );
    }
    return id;
  }

  return [
    {
      ...shared,
      heading: 'Your own table',
      ddl: madeBy('Your own table'),
      async fill(db, row) {
        const id = randomUUID();
        const extra = {
          confidence: 0.75,
          source: { app: 'editor', type: 'explicit', mood: 'good' },
          valid_to: '2030-01-01',
          supersedes: [randomUUID(), 7],
          extensions: { 'x-color': 'red', other: 1 },
        };
        await db.sql(
          'insert into notes (id, author, body, embedding, folder, labels, written, extra, pinned) values ($1, $2, $3, $4, $5, $6, $7, $8, true)',
          [id, row.user, row.text, textOf(row.vector), 'home/travel', ['a', 'b'], WRITTEN, extra],
        );
        return id;
      },
      async hide(db, row) {
        const values = [randomUUID(), row.user, '', textOf(row.vector), WRITTEN];
        await db.sql('insert into notes (id, author, body, embedding, written) values ($1, $2, $3, $4, $5)', values);
      },
      shows: {
        created_at: WRITTEN,
        updated_at: WRITTEN,
        scope: 'home/travel',
        tags: ['a', 'b'],
        confidence: 0.75,
        valid_to: '2030-01-01T00:00:00.000Z',
        valid_from: null,
        'x-color': 'red',
        embedding_model: 'text-embedding-3-small',
      },
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
      async read(db, id) {
        const [row] = await db.sql<{ text: string; user: string }>(
          `select body as text, author as "user" from notes where id = $1`,
          [id],
        );
        return row as { text: string; user: string };
      },
    },
    {
      ...shared,
      heading: 'Prisma',
      // What `prisma migrate dev` makes of the model on the page.
      ddl: [
        `-- CreateTable
CREATE TABLE "Document" (
    "id" TEXT NOT NULL,
    "userId" TEXT NOT NULL,
    "content" TEXT NOT NULL,
    "createdAt" TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "vector" vector,

    CONSTRAINT "Document_pkey" PRIMARY KEY ("id")
);`,
      ],
      async fill(db, row) {
        const id = `c${randomBytes(12).toString('hex')}`;
        await db.sql(
          `INSERT INTO "public"."Document" ("id","userId","content","createdAt") VALUES ($1,$2,$3,$4::timestamptz at time zone 'utc') RETURNING "public"."Document"."id"`,
          [id, row.user, row.text, WRITTEN],
        );
        // addVectors() of langchain-community/src/vectorstores/prisma.ts.
        await db.sql(`UPDATE "Document" SET "vector" = $1::vector WHERE "id" = $2`, [textOf(row.vector), id]);
        return id;
      },
      shows: { ...smallModel, created_at: WRITTEN, updated_at: WRITTEN },
      writing: { OMP_MAPPING_NEW_IDS: 'text' },
      async read(db, id) {
        const [row] = await db.sql<{ text: string; user: string }>(
          `SELECT "content" AS text, "userId" AS "user" FROM "Document" WHERE "id" = $1 AND vector IS NOT NULL`,
          [id],
        );
        return row as { text: string; user: string };
      },
    },
    {
      ...shared,
      heading: 'Supabase, with row security',
      users: [randomUUID(), randomUUID()],
      // As in apps/docs/content/guides/ai/rag-with-permissions.mdx of supabase/supabase at 167a2fb, in one table.
      ddl: [
        'create schema auth',
        'create table auth.users (id uuid primary key)',
        `create function auth.uid() returns uuid language sql stable as $$ select nullif(current_setting('request.jwt.claim.sub', true), '')::uuid $$`,
        `create table notes (
  id bigint primary key generated always as identity,
  owner_id uuid not null references auth.users (id) default auth.uid(),
  content text not null,
  embedding vector (384),
  created_at timestamp with time zone not null default now()
)`,
        'alter table notes enable row level security',
        `create policy "Users can query their own notes" on notes for select using (owner_id = (select auth.uid()))`,
        ...madeBy('Supabase, with row security'),
      ],
      dimensions: 384,
      async fill(db, row) {
        await db.sql('insert into auth.users (id) values ($1) on conflict do nothing', [row.user]);
        const [made] = await db.sql<{ id: string }>(
          'insert into notes (owner_id, content, embedding, created_at) values ($1, $2, $3, $4) returning id::text',
          [row.user, row.text, textOf(row.vector), WRITTEN],
        );
        return made?.id as string;
      },
      shows: { ...withoutTimes('Supabase/gte-small'), created_at: WRITTEN, updated_at: WRITTEN },
      writing: { OMP_MAPPING_NEW_IDS: 'database' },
      async read(db, id) {
        const [row] = await db.sql<{ text: string; user: string }>(
          `select content as text, owner_id::text as "user" from notes where id = $1`,
          [id],
        );
        return row as { text: string; user: string };
      },
    },
    {
      ...shared,
      heading: 'Two tables, or odd types',
      // packages/openmemory-js/src/core/db.ts of OpenMemory. Its HNSW index is left out: pgvector refuses one here.
      ddl: [
        'create table if not exists "public"."openmemory_memories"(id uuid primary key,user_id text,project_id text,segment integer default 0,content text not null,simhash text,primary_sector text not null,tags text,meta text,created_at bigint,updated_at bigint,last_seen_at bigint,salience double precision,decay_lambda double precision,version integer default 1,mean_dim integer,mean_vec bytea,compressed_vec bytea,feedback_score double precision default 0)',
        'create table if not exists "public"."openmemory_vectors"(id uuid,sector text,user_id text,project_id text,v vector,dim integer not null,primary key(id,sector))',
        'create index if not exists openmemory_memories_user_idx on "public"."openmemory_memories"(user_id)',
        'create index if not exists openmemory_vectors_user_idx on "public"."openmemory_vectors"(user_id)',
        ...madeBy('Two tables, or odd types'),
      ],
      fill: (db, row) => insertMemory(db, row, row.text),
      hide: async (db, row) => void (await insertMemory(db, row, '')),
      shows: { ...smallModel, tags: ['a', 'b'], created_at: WRITTEN, updated_at: WRITTEN },
      writable: false,
    },
  ];
}

export const CUSTOM_TABLES: readonly LibraryTable[] = [custom()].flat();
