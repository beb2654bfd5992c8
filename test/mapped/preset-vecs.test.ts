import { randomUUID } from 'node:crypto';
import type { OwnersDatabase } from './database.ts';
import { documentedSql } from './documented.ts';
import { type OwnersRow, type OwnersTable, presetSuite, textOf, withoutTimes } from './preset-suite.ts';

/** `build_table` of vecs 0.4.5, src/vecs/collection.py, as SQLAlchemy makes it. */
const ddlOf = (collection: string): string[] => [
  'create schema if not exists vecs;',
  `CREATE TABLE vecs.${collection} (
    id VARCHAR NOT NULL,
    vec VECTOR(1536) NOT NULL,
    metadata JSONB DEFAULT '{}'::jsonb NOT NULL,
    PRIMARY KEY (id)
  )`,
];

/** `upsert` of src/vecs/collection.py. */
async function upsert(db: OwnersDatabase, collection: string, { vector }: OwnersRow, metadata: object) {
  const id = randomUUID();
  await db.sql(
    `INSERT INTO vecs.${collection} (id, vec, metadata) VALUES ($1, $2, $3::JSONB) ON CONFLICT (id) DO UPDATE SET vec = excluded.vec, metadata = excluded.metadata`,
    [id, textOf(vector), metadata],
  );
  return id;
}

const shared = { page: 'vecs', dimensions: 1536, scopes: 'none' } as const satisfies Partial<OwnersTable>;

presetSuite({
  ...shared,
  ddl: ddlOf('docs'),
  fill: (db, row) => upsert(db, 'docs', row, { user_id: row.user, text: row.text, year: 2012 }),
  async hide(db, row) {
    await upsert(db, 'docs', row, { text: row.text });
    await upsert(db, 'docs', row, { user_id: row.user, data: row.text });
    await upsert(db, 'docs', row, {});
  },
  shows: withoutTimes('text-embedding-3-small'),
  temporal: false,
  writable: true,
  // `fetch` of src/vecs/collection.py.
  async read(db, id) {
    const [row] = await db.sql<{ metadata: { text: string; user_id: string } }>(
      'SELECT vecs.docs.id, vecs.docs.vec, vecs.docs.metadata FROM vecs.docs WHERE vecs.docs.id IN ($1)',
      [id],
    );
    return { text: row?.metadata.text as string, user: row?.metadata.user_id as string };
  },
});

presetSuite({
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
  writable: true,
  async read(db, id) {
    const [row] = await db.sql<{ metadata: { data: string; user_id: string } }>(
      'SELECT vecs.memories.id, vecs.memories.vec, vecs.memories.metadata FROM vecs.memories WHERE vecs.memories.id IN ($1)',
      [id],
    );
    return { text: row?.metadata.data as string, user: row?.metadata.user_id as string };
  },
});
