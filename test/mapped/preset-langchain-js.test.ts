import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { librarySuite } from './library-suite.ts';
import { type LangchainStore, openLangchain } from './owner-libraries.ts';
import { presetSuite } from './preset-suite.ts';

const insert = `
      INSERT INTO testlangchainjs(
        "content", "vector", "metadata", "id"
      )
      VALUES ($1, $2, $3, $4)
    `;

presetSuite({
  page: 'langchain-js',
  // PGVectorStore.ensureTableInDatabase with the names of LangChain's documentation, and addVectors with ids.
  ddl: [
    `
      CREATE TABLE IF NOT EXISTS testlangchainjs (
        "id" uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
        "content" text,
        "metadata" jsonb,
        "vector" vector(1536)
      );
    `,
  ],
  dimensions: 1536,
  async fill(db, { user, text, vector, number }) {
    const id = randomUUID();
    await db.sql(insert, [text, `[${vector.join(',')}]`, { user_id: user, loc: { line: number } }, id]);
    return id;
  },
  async hide(db, { user, text, vector }) {
    const embedding = `[${vector.join(',')}]`;
    await db.sql(insert, [text, embedding, {}, randomUUID()]);
    await db.sql(insert, [text, embedding, null, randomUUID()]);
    await db.sql(insert, [text, embedding, { user_id: null }, randomUUID()]);
    await db.sql(insert, ['', embedding, { user_id: user }, randomUUID()]);
    await db.sql(insert, [null, embedding, { user_id: user }, randomUUID()]);
  },
  shows: { created_at: '1970-01-01T00:00:00.000Z', embedding_model: 'text-embedding-3-small' },
  temporal: false,
  scopes: 'none',
  writable: true,
  // PGVectorStore.searchPostgres makes a document of these columns.
  async read(db, id) {
    const [row] = await db.sql<{ content: string; metadata: { user_id: string } }>(
      'SELECT * FROM testlangchainjs WHERE id = $1',
      [id],
    );
    return { text: row?.content ?? '', user: row?.metadata.user_id ?? '' };
  },
});

/** As LangChain's documentation configures it. */
const DOCUMENTED = {
  tableName: 'testlangchainjs',
  columns: {
    idColumnName: 'id',
    vectorColumnName: 'vector',
    contentColumnName: 'content',
    metadataColumnName: 'metadata',
  },
  distanceStrategy: 'cosine',
};
const WRITABLE = { OMP_MAPPING_WRITABLE: 'true' };

librarySuite('LangChain.js itself in front of the same table', 'langchain-js', ({ beside, prepare }) => {
  const [ferry, peanuts, lisbon] = [randomUUID(), randomUUID(), randomUUID()] as const;
  let store: LangchainStore;
  prepare(async ({ db, closing }) => {
    store = await openLangchain(db.url, { ...DOCUMENTED, dimensions: 1536 });
    closing(() => store.end());
    await store.addDocuments(
      [
        { pageContent: 'the ferry leaves at nine', metadata: { user_id: 'ana' } },
        { pageContent: 'allergic to peanuts', metadata: { user_id: 'ana', topic: { area: 'food' } } },
        { pageContent: 'lives in Lisbon', metadata: { user_id: 'ben' } },
        { pageContent: 'belongs to nobody', metadata: {} },
      ],
      { ids: [ferry, peanuts, lisbon, randomUUID()] },
    );
  });

  it('it writes, the gateway reads', async () => {
    const client = await beside().serve();
    const [hit] = await client.search({ user_id: 'ana', q: 'allergic to peanuts', limit: 1 });
    expect(hit).toMatchObject({ memory: { id: peanuts, content: 'allergic to peanuts', user_id: 'ana' } });
    expect(hit?.score).toBeCloseTo(1, 3);
    const ids = async (user_id: string) => (await client.list({ user_id })).items.map(({ id }) => id).sort();
    expect(await ids('ana')).toEqual([ferry, peanuts].sort());
    expect(await ids('ben')).toEqual([lisbon]);
    expect(await client.get(ferry)).toMatchObject({ content: 'the ferry leaves at nine', user_id: 'ana' });
  });

  it('the gateway writes, it reads and deletes', async () => {
    const client = await beside().serve(WRITABLE);
    const { id } = await client.add({ user_id: 'ana', content: 'plays the cello' });
    const [added] = await store.similaritySearch('plays the cello', 1, { user_id: 'ana' });
    expect(added).toMatchObject({ id, pageContent: 'plays the cello', metadata: { user_id: 'ana' } });
    await client.update(peanuts, { content: 'allergic to walnuts' });
    const [changed] = await store.similaritySearch('allergic to walnuts', 1);
    expect(changed).toMatchObject({
      id: peanuts,
      pageContent: 'allergic to walnuts',
      metadata: { user_id: 'ana', topic: { area: 'food' } },
    });
    await store.delete({ ids: [id] });
    expectError(await client.ask(client.byId(id)), 'not_found');
    await client.remove(ferry);
    const left = await store.similaritySearch('the ferry leaves at nine', 9, { user_id: 'ana' });
    expect(left.map((document) => document.id)).toEqual([peanuts]);
  });

  it('of several collections in one table the one that is named is served and written', async () => {
    const collection = (collectionName: string) =>
      openLangchain(beside().db.url, { tableName: 'shelves', collectionTableName: 'collections', collectionName });
    // One after the other: LangChain adds the column when it opens the first.
    const [notes, drafts] = [await collection('notes'), await collection('drafts')];
    beside().closing(() => Promise.all([notes.end(), drafts.end()]));
    await notes.addDocuments([{ pageContent: 'kept', metadata: { user_id: 'ana' } }]);
    await drafts.addDocuments([{ pageContent: 'scratched', metadata: { user_id: 'ana' } }]);
    const client = await beside().serve({
      ...WRITABLE,
      OMP_MAPPING_TABLE: 'shelves',
      OMP_MAPPING_CONTENT: 'text',
      OMP_MAPPING_EMBEDDING: 'embedding',
      OMP_MAPPING_COLLECTION: 'notes',
    });
    await client.add({ user_id: 'ana', content: 'added' });
    const { items } = await client.list({ user_id: 'ana' });
    expect(items.map(({ content }) => content).sort()).toEqual(['added', 'kept']);
    const texts = async (store: LangchainStore) =>
      (await store.similaritySearch('added', 9)).map(({ pageContent }) => pageContent).sort();
    expect([await texts(notes), await texts(drafts)]).toEqual([['added', 'kept'], ['scratched']]);
  });

  it.each(['cosine', 'innerProduct', 'euclidean'])(
    'with the index that it makes for %s the scores are the same',
    async (distanceStrategy) => {
      const tableName = `by_${distanceStrategy.toLowerCase()}`;
      const indexed = await openLangchain(beside().db.url, { tableName, distanceStrategy });
      beside().closing(() => indexed.end());
      await indexed.addDocuments([
        { pageContent: 'the ferry leaves at nine', metadata: { user_id: 'ana' } },
        { pageContent: 'the ferry leaves at ten', metadata: { user_id: 'ana' } },
      ]);
      // Without a namespace the index of the first table would count as that of the others.
      await indexed.createHnswIndex({ dimensions: 1536, namespace: tableName });
      const names = { OMP_MAPPING_TABLE: tableName, OMP_MAPPING_CONTENT: 'text', OMP_MAPPING_EMBEDDING: 'embedding' };
      const client = await beside().serve(names);
      const [first, second] = await client.search({ user_id: 'ana', q: 'the ferry leaves at nine' });
      expect(first?.memory.content).toBe('the ferry leaves at nine');
      // Vectors of the test have length 1 but for the rounding to halves.
      expect(first?.score).toBeCloseTo(1, 2);
      expect(second?.score).toBeGreaterThan(0.5);
      expect(second?.score).toBeLessThan(0.95);
    },
  );
});
