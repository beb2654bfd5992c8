import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import type { OwnersDatabase } from './database.ts';
import { librarySuite } from './library-suite.ts';
import { vectorOf } from './openai.ts';
import { openLlamaindex } from './owner-libraries.ts';
import { type OwnersRow, presetSuite } from './preset-suite.ts';

/** PGVectorStore.add */
async function add(db: OwnersDatabase, row: OwnersRow, collection: string, metadata: object): Promise<string> {
  const [added] = await db.sql<{ id: string }>(
    `
        INSERT INTO public.llamaindex_embedding
          (id, external_id, collection, document, metadata, embeddings)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (id) DO UPDATE SET
          external_id = EXCLUDED.external_id,
          collection = EXCLUDED.collection,
          document = EXCLUDED.document,
          metadata = EXCLUDED.metadata,
          embeddings = EXCLUDED.embeddings
        RETURNING id
      `,
    [randomUUID(), '', collection, row.text, metadata, `[${row.vector.join(',')}]`],
  );
  return added?.id ?? '';
}

const create_date = new Date('2026-03-01T10:00:00.250Z');

presetSuite({
  page: 'llamaindex-ts',
  // PGVectorStore.checkSchema
  ddl: [
    'CREATE SCHEMA IF NOT EXISTS public',
    `CREATE TABLE IF NOT EXISTS public.llamaindex_embedding(
                                                                                  id uuid DEFAULT gen_random_uuid() PRIMARY KEY,
      external_id VARCHAR,
      collection VARCHAR,
      document TEXT,
      metadata JSONB DEFAULT '{}',
      embeddings VECTOR(1536)
      )`,
    'CREATE INDEX IF NOT EXISTS idx_llamaindex_embedding_external_id ON public.llamaindex_embedding (external_id);',
    'CREATE INDEX IF NOT EXISTS idx_llamaindex_embedding_collection ON public.llamaindex_embedding (collection);',
  ],
  dimensions: 1536,
  fill: (db, row) => add(db, row, 'data', { user_id: row.user, create_date }),
  async hide(db, row) {
    await add(db, row, '', { user_id: row.user, create_date });
    await add(db, row, 'other', { user_id: row.user, create_date });
    await add(db, row, 'data', { create_date });
  },
  shows: { created_at: '2026-03-01T10:00:00.250Z', embedding_model: 'text-embedding-3-small' },
  temporal: true,
  scopes: 'none',
  writable: true,
  // PGVectorStore.query
  async read(db, id) {
    const rows = await db.sql<{ id: string; document: string; metadata: { user_id: string } }>(
      `SELECT
        v.*,
        embeddings <=> $1 s
      FROM public.llamaindex_embedding v
      WHERE collection = $2
      ORDER BY s
      LIMIT 100
    `,
      [`[${Array(1536).fill(1).join(',')}]`, 'data'],
    );
    const row = rows.find((candidate) => candidate.id === id);
    return { text: row?.document ?? '', user: row?.metadata.user_id ?? '' };
  },
});

librarySuite('LlamaIndex.TS itself in front of the same table', 'llamaindex-ts', ({ beside, prepare }) => {
  const [ferry, peanuts, lisbon] = [randomUUID(), randomUUID(), randomUUID()] as const;
  let llama: Awaited<ReturnType<typeof openLlamaindex>>;
  const ask = async (text: string, user: string) => {
    const { nodes } = await llama.store.query({
      queryEmbedding: [...(await vectorOf(text, 1536))],
      similarityTopK: 9,
      mode: 'default',
      filters: { filters: [{ key: 'user_id', value: user, operator: '==' }] },
    });
    return nodes.map(({ id_, text, metadata }) => ({ id: id_, text, metadata }));
  };
  prepare(async ({ db, closing }) => {
    llama = await openLlamaindex(db.url);
    closing(async () => (await llama.store.client()).close());
    await llama.store.add([
      await llama.node(ferry, 'the ferry leaves at nine', { user_id: 'ana', create_date: '2020-02-01T08:00:00+02:00' }),
      await llama.node(peanuts, 'allergic to peanuts', { user_id: 'ana', area: { of: 'food' } }),
      await llama.node(lisbon, 'lives in Lisbon', { user_id: 'ben' }),
      await llama.node(randomUUID(), 'belongs to nobody', {}),
    ]);
    llama.store.setCollection('drafts');
    await llama.store.add([await llama.node(randomUUID(), 'scratched', { user_id: 'ana' })]);
    llama.store.setCollection('data');
  });

  it('it writes, the gateway reads', async () => {
    const client = await beside().serve();
    const [hit] = await client.search({ user_id: 'ana', q: 'allergic to peanuts', limit: 1 });
    expect(hit).toMatchObject({ memory: { id: peanuts, content: 'allergic to peanuts', user_id: 'ana' } });
    expect(hit?.score).toBeCloseTo(1, 3);
    const { items } = await client.list({ user_id: 'ana' });
    expect(items.map(({ id }) => id)).toEqual([peanuts, ferry]);
    const earlier = await client.list({ user_id: 'ana', until: '2020-02-01T06:00:00Z' });
    expect(earlier.items).toMatchObject([{ id: ferry, created_at: '2020-02-01T06:00:00.000Z' }]);
    expect((await client.list({ user_id: 'ben' })).items.map(({ id }) => id)).toEqual([lisbon]);
  });

  it('another collection is served by its name', async () => {
    const client = await beside().serve({ OMP_MAPPING_COLLECTION: 'drafts' });
    expect((await client.list({ user_id: 'ana' })).items.map(({ content }) => content)).toEqual(['scratched']);
  });

  it('the gateway writes, it reads and deletes', async () => {
    const client = await beside().serve({ OMP_MAPPING_WRITABLE: 'true' });
    const { id, created_at } = await client.add({ user_id: 'ana', content: 'plays the cello' });
    expect((await ask('plays the cello', 'ana'))[0]).toEqual({
      id,
      text: 'plays the cello',
      metadata: { user_id: 'ana', create_date: created_at },
    });
    await client.update(peanuts, { content: 'allergic to walnuts' });
    expect((await ask('allergic to walnuts', 'ana'))[0]).toMatchObject({
      id: peanuts,
      text: 'allergic to walnuts',
      metadata: { user_id: 'ana', area: { of: 'food' }, create_date: expect.any(String) },
    });
    await llama.store.delete(id);
    expectError(await client.ask(client.byId(id)), 'not_found');
    await client.remove(ferry);
    expect((await ask('the ferry leaves at nine', 'ana')).map((node) => node.id)).toEqual([peanuts]);
  });
});
