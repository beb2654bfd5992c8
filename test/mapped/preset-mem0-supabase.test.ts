import { randomUUID } from 'node:crypto';
import type { OwnersDatabase } from './database.ts';
import { type OwnersRow, presetSuite } from './preset-suite.ts';

/** What PostgREST makes of `client.from('memories').insert`; the metadata is that of SupabaseDB.insert and Memory.createMemory. */
async function add(db: OwnersDatabase, { text, vector, number }: OwnersRow, who: object): Promise<string> {
  const id = randomUUID();
  const createdAt = `2026-03-01T10:00:0${number}.000Z`;
  const metadata = { ...who, data: text, hash: 'f00d', textLemmatized: text, createdAt, created_at: createdAt };
  await db.sql('insert into "memories" ("id", "embedding", "metadata") values ($1, $2, $3)', [
    id,
    `[${vector.join(',')}]`,
    metadata,
  ]);
  // SupabaseDB.update touches the metadata alone; the columns of time stay as they are.
  await db.sql('update "memories" set "metadata" = $2 where "id" = $1', [
    id,
    { ...metadata, updatedAt: '2026-04-01T10:00:00.000Z', updated_at: '2026-04-01T10:00:00.001Z' },
  ]);
  return id;
}

presetSuite({
  page: 'mem0-supabase',
  // The message of SupabaseDB.initialize
  ddl: [
    'create extension if not exists vector;',
    `create table if not exists memories (
  id text primary key,
  embedding vector(1536),
  metadata jsonb,
  created_at timestamp with time zone default timezone('utc', now()),
  updated_at timestamp with time zone default timezone('utc', now())
);`,
    `create table if not exists memory_migrations (
  user_id text primary key,
  created_at timestamp with time zone default timezone('utc', now())
);`,
    `create or replace function match_vectors(
  query_embedding vector(1536),
  match_count int,
  filter jsonb default '{}'::jsonb
)
returns table (
  id text,
  similarity float,
  metadata jsonb
)
language plpgsql
as $$
begin
  return query
  select
    t.id::text,
    1 - (t.embedding <=> query_embedding) as similarity,
    t.metadata
  from memories t
  where case
    when filter::text = '{}'::text then true
    else t.metadata @> filter
  end
  order by t.embedding <=> query_embedding
  limit match_count;
end;
$$;`,
  ],
  dimensions: 1536,
  fill: (db, row) => add(db, row, { user_id: row.user }),
  hide: async (db, row) => {
    await add(db, row, { agent_id: row.user });
    await add(db, { ...row, text: '' }, { user_id: row.user });
  },
  shows: { updated_at: '2026-04-01T10:00:00.001Z', embedding_model: 'text-embedding-3-small' },
  temporal: true,
  scopes: 'none',
  writable: false,
});
