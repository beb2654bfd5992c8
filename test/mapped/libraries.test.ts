import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { expectError } from '../support/expect-error.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { documentedEnvironment, openAiServer, type RunningMapped, serveDocumented, vectorOf } from './documented.ts';
import { exported } from './exported.ts';
import { type LibraryDatabase, openLibraryDatabase } from './library-database.ts';
import {
  embeddings,
  type LangchainStore,
  NOT_INSTALLED,
  openLangchain,
  openLanggraph,
  openLlamaindex,
  openMastra,
  openMem0,
  openSequelize,
  upsertMastra,
} from './library-openers.ts';

const TEXTS = { ferry: 'the ferry leaves at nine', peanuts: 'allergic to peanuts', lisbon: 'lives in Lisbon' } as const;

/** A library with the first two texts for ana, the third for ben, and rows that no user may see. */
interface Library {
  /** As the gateway shows them. */
  readonly ids: Readonly<Record<keyof typeof TEXTS, string>>;
  /** Undefined: the library only inserts and deletes. */
  change?(id: string, text: string): Promise<unknown>;
  remove(id: string): Promise<unknown>;
  /** What the library finds of a user, nearest first. Undefined: the preset is read-only. */
  find?(text: string, user: string): Promise<{ id: string | undefined; text: string; metadata: object }[]>;
  close(): Promise<unknown>;
}

interface Running {
  readonly db: LibraryDatabase;
  /** The gateway with the settings of the page, on the tables of the library. */
  serve(more?: Readonly<Record<string, string>>): Promise<RunningMapped['client']>;
  /** Before the database is dropped. */
  closing(close: () => Promise<unknown>): void;
}

interface LibrarySuite {
  readonly page: string;
  /** Of the settings on the page. */
  readonly heading?: string;
  open(url: string, base_url: string): Promise<Library>;
  /** Settings besides those of the page. */
  readonly env?: Readonly<Record<string, string>>;
  /** Metadata of the row that the gateway changes, in the library. */
  readonly metadata?: object;
  more?(running: () => Running): void;
}

/** Tests of a library and a gateway on the same tables. */
function librarySuite(name: string, { page, heading, open, env = {}, metadata, more }: LibrarySuite): void {
  const missing = SERVER_URL === '' ? NO_SERVER : NOT_INSTALLED;
  describe(`${name} and the gateway on the same tables`, () => {
    let running: Running;
    let library: Library;
    const opened: (() => Promise<unknown>)[] = [];
    beforeAll(async () => {
      if (missing !== undefined) return;
      const [db, openai] = await Promise.all([openLibraryDatabase(), openAiServer()]);
      const documented = {
        ...documentedEnvironment(page, heading),
        DATABASE_URL: db.url,
        OPENAI_BASE_URL: openai.base_url,
      };
      opened.push(db.close, openai.close);
      running = {
        db,
        async serve(settings = {}) {
          const { client, close } = await serveDocumented(documented, { ...env, ...settings });
          opened.push(close);
          return client;
        },
        closing: (close) => void opened.push(close),
      };
      library = await open(db.url, openai.base_url);
      opened.push(library.close);
    });
    afterAll(async () => {
      for (const close of opened.reverse()) await close();
    });
    beforeEach(({ skip }) => {
      if (missing !== undefined) skip(missing);
    });

    it('the library writes, the gateway reads', async () => {
      const client = await running.serve();
      const { ferry, peanuts, lisbon } = library.ids;
      const [hit, ...others] = await client.search({ user_id: 'ana', q: TEXTS.peanuts });
      expect(hit).toMatchObject({ memory: { id: peanuts, content: TEXTS.peanuts, user_id: 'ana' } });
      expect(hit?.score).toBeCloseTo(1, 3);
      expect(others.map(({ memory }) => memory.id)).toEqual([ferry]);
      const idsOf = async (user_id: string) => (await client.list({ user_id })).items.map(({ id }) => id).sort();
      expect(await idsOf('ana')).toEqual([ferry, peanuts].sort());
      expect(await idsOf('ben')).toEqual([lisbon]);
    });

    it('the library changes and deletes, the gateway reads', async ({ skip }) => {
      if (!library.change) return skip('it only inserts and deletes');
      const client = await running.serve();
      const { ferry, peanuts } = library.ids;
      const before = await client.get(peanuts);
      expect((await client.list({ user_id: 'ana', since: before.created_at })).items).toContainEqual(before);
      expect((await client.list({ user_id: 'ana', until: '2020-01-01' })).items).toEqual([]);
      await library.change(peanuts, 'allergic to walnuts');
      const after = await client.get(peanuts);
      expect(after).toMatchObject({ content: 'allergic to walnuts', created_at: before.created_at });
      expect(Date.parse(after.updated_at ?? '')).toBeGreaterThan(Date.parse(after.created_at));
      await library.remove(ferry);
      expectError(await client.ask(client.byId(ferry)), 'not_found');
    });

    it('the gateway writes, the library reads and deletes', async ({ skip }) => {
      if (!library.find) return skip('the preset is read-only');
      const client = await running.serve({ OMP_MAPPING_WRITABLE: 'true' });
      const { ferry, peanuts } = library.ids;
      const { id } = await client.add({ user_id: 'ana', content: 'plays the cello' });
      const [added] = await library.find('plays the cello', 'ana');
      expect(added).toMatchObject({ id, text: 'plays the cello', metadata: { user_id: 'ana' } });
      await client.update(peanuts, { content: 'allergic to walnuts' });
      const [changed] = await library.find('allergic to walnuts', 'ana');
      expect(changed).toMatchObject({
        id: peanuts,
        text: 'allergic to walnuts',
        metadata: { user_id: 'ana', ...metadata },
      });
      await library.remove(id);
      expectError(await client.ask(client.byId(id)), 'not_found');
      await client.remove(ferry);
      expect((await library.find(TEXTS.ferry, 'ana')).map((found) => found.id)).toEqual([peanuts]);
    });

    more?.(() => running);
  });
}

const newIds = () => ({ ferry: randomUUID(), peanuts: randomUUID(), lisbon: randomUUID() });

librarySuite('LangChain.js', {
  page: 'langchain-js',
  metadata: { topic: { area: 'food' } },
  async open(url) {
    // As LangChain's documentation configures it.
    const store = await openLangchain(url, {
      tableName: 'testlangchainjs',
      columns: {
        idColumnName: 'id',
        vectorColumnName: 'vector',
        contentColumnName: 'content',
        metadataColumnName: 'metadata',
      },
      distanceStrategy: 'cosine',
      dimensions: 1536,
    });
    const ids = newIds();
    await store.addDocuments(
      [
        { pageContent: TEXTS.ferry, metadata: { user_id: 'ana' } },
        { pageContent: TEXTS.peanuts, metadata: { user_id: 'ana', topic: { area: 'food' } } },
        { pageContent: TEXTS.lisbon, metadata: { user_id: 'ben' } },
        { pageContent: 'has no user', metadata: {} },
      ],
      { ids: [...Object.values(ids), randomUUID()] },
    );
    return {
      ids,
      remove: (id) => store.delete({ ids: [id] }),
      find: async (text, user_id) =>
        (await store.similaritySearch(text, 9, { user_id })).map(({ id, pageContent, metadata }) => ({
          id,
          text: pageContent,
          metadata,
        })),
      close: store.end.bind(store),
    };
  },
  more(running) {
    it('serves and writes the configured collection of several', async () => {
      const collection = (collectionName: string) =>
        openLangchain(running().db.url, { tableName: 'shelves', collectionTableName: 'collections', collectionName });
      // One after the other: LangChain adds the column when it opens the first.
      const [notes, drafts] = [await collection('notes'), await collection('drafts')];
      running().closing(() => Promise.all([notes.end(), drafts.end()]));
      await notes.addDocuments([{ pageContent: 'kept', metadata: { user_id: 'ana' } }]);
      await drafts.addDocuments([{ pageContent: 'scratched', metadata: { user_id: 'ana' } }]);
      const client = await running().serve({
        OMP_MAPPING_WRITABLE: 'true',
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

    it('finds by cosine what it compares by Euclidean distance, with vectors of other lengths than 1', async () => {
      const longer = (vector: readonly number[], text: string) => vector.map((value) => value * (2 + text.length));
      const by = {
        embedDocuments: async (texts: readonly string[]) =>
          (await embeddings.embedDocuments(texts)).map((vector, at) => longer(vector, texts[at] as string)),
        embedQuery: async (text: string) => longer(await embeddings.embedQuery(text), text),
      };
      const store = await openLangchain(
        running().db.url,
        { tableName: 'longer', distanceStrategy: 'euclidean', dimensions: 1536 },
        by,
      );
      running().closing(() => store.end());
      await store.createHnswIndex({ dimensions: 1536, namespace: 'longer' });
      await store.addDocuments(
        Object.values(TEXTS).map((pageContent) => ({ pageContent, metadata: { user_id: 'ana' } })),
      );
      const client = await running().serve({
        OMP_MAPPING_TABLE: 'longer',
        OMP_MAPPING_CONTENT: 'text',
        OMP_MAPPING_EMBEDDING: 'embedding',
      });
      for (const text of Object.values(TEXTS)) {
        expect((await store.similaritySearch(text, 1))[0]).toMatchObject({ pageContent: text });
        const [hit] = await client.search({ user_id: 'ana', q: text });
        expect(hit).toMatchObject({ memory: { content: text }, score: expect.closeTo(1, 3) });
        expect((await client.context({ user_id: 'ana', query: text })).text).toContain(text);
      }
    });
  },
});

librarySuite('LangGraph', {
  page: 'langgraph-store-js',
  async open(url) {
    const store = await openLanggraph(url, 'public', ['text']);
    await store.put(['memories', 'ana'], 'a', { text: TEXTS.ferry });
    await store.put(['memories', 'ana'], 'b', { text: TEXTS.peanuts, area: 'food' });
    await store.put(['memories', 'ben'], 'a', { text: TEXTS.lisbon });
    await store.put(['profiles', 'ana'], 'a', { text: 'no memory' });
    return {
      ids: { ferry: 'memories:ana/a', peanuts: 'memories:ana/b', lisbon: 'memories:ben/a' },
      change: (id, text) => store.put(['memories', 'ana'], id.split('/')[1] as string, { text }),
      remove: (id) => store.delete(['memories', 'ana'], id.split('/')[1] as string),
      close: store.stop.bind(store),
    };
  },
  more: (running) =>
    it('serves another schema, by the vectors of whole values, and lists items without a vector', async () => {
      const whole = await openLanggraph(running().db.url, 'whole');
      running().closing(() => whole.stop());
      await whole.put(['ana', 'memories'], 'a', { content: TEXTS.ferry });
      await whole.put(['ana', 'memories'], 'b', { content: TEXTS.peanuts });
      await whole.put(['ana', 'memories'], 'c', { content: 'only in lists' }, false);
      const client = await running().serve({
        OMP_MAPPING_SCHEMA: 'whole',
        OMP_MAPPING_USER_PATTERN: '{user}:memories',
        OMP_MAPPING_CONTENT: "value->>'content'",
        OMP_MAPPING_COLLECTION: '$',
      });
      const [hit, ...others] = await client.search({ user_id: 'ana', q: '{"content":"allergic to peanuts"}' });
      expect(hit?.memory).toMatchObject({ id: 'ana:memories/b', content: TEXTS.peanuts, user_id: 'ana' });
      expect(hit?.score).toBeCloseTo(1, 3);
      expect(others.map(({ memory }) => memory.id)).toEqual(['ana:memories/a']);
      const { items } = await client.list({ user_id: 'ana' });
      expect(items.map(({ id }) => id)).toEqual(['c', 'b', 'a'].map((key) => `ana:memories/${key}`));
    }),
});

librarySuite('mem0 for TypeScript', {
  page: 'mem0',
  // The page's settings for rows of the TypeScript library.
  env: { OMP_MAPPING_CREATED_AT: "payload->>'createdAt'", OMP_MAPPING_UPDATED_AT: "payload->>'updatedAt'" },
  async open(url, base_url) {
    const { memory, close } = await openMem0(url, base_url);
    const add = async (text: string, userId: string) =>
      (await memory.add(text, { userId, infer: false })).results[0]?.id as string;
    const ids = {
      ferry: await add(TEXTS.ferry, 'ana'),
      peanuts: await add(TEXTS.peanuts, 'ana'),
      lisbon: await add(TEXTS.lisbon, 'ben'),
    };
    await memory.add('belongs to an agent', { agentId: 'ana', infer: false });
    return { ids, change: (id, text) => memory.update(id, { text }), remove: (id) => memory.delete(id), close };
  },
});

librarySuite('LlamaIndex.TS', {
  page: 'llamaindex-ts',
  metadata: { area: { of: 'food' }, create_date: expect.any(String) },
  async open(url) {
    const { store, node } = await openLlamaindex(url);
    const ids = newIds();
    await store.add([
      await node(ids.ferry, TEXTS.ferry, { user_id: 'ana', create_date: '2020-02-01T08:00:00+02:00' }),
      await node(ids.peanuts, TEXTS.peanuts, { user_id: 'ana', area: { of: 'food' } }),
      await node(ids.lisbon, TEXTS.lisbon, { user_id: 'ben' }),
      await node(randomUUID(), 'has no user', {}),
    ]);
    store.setCollection('drafts');
    await store.add([await node(randomUUID(), 'scratched', { user_id: 'ana' })]);
    store.setCollection('data');
    return {
      ids,
      remove: (id) => store.delete(id),
      async find(text, value) {
        const { nodes } = await store.query({
          queryEmbedding: [...(await vectorOf(text, 1536))],
          similarityTopK: 9,
          mode: 'default',
          filters: { filters: [{ key: 'user_id', value, operator: '==' }] },
        });
        return nodes.map(({ id_, text, metadata }) => ({ id: id_, text, metadata }));
      },
      close: async () => (await store.client()).close(),
    };
  },
  more: (running) =>
    it('the gateway reads the times of the library, and writes them', async () => {
      const client = await running().serve({ OMP_MAPPING_WRITABLE: 'true' });
      const { created_at } = await client.add({ user_id: 'cleo', content: 'sings' });
      const [row] = await running().db.sql(`select metadata from llamaindex_embedding where document = 'sings'`);
      expect(row).toEqual({ metadata: { user_id: 'cleo', create_date: created_at } });
      await running().db.sql(
        `update llamaindex_embedding set metadata = metadata || '{"create_date": "2020-02-01T08:00:00+02:00"}' where document = 'sings'`,
      );
      const { items } = await client.list({ user_id: 'cleo', until: '2020-02-01T06:00:00Z' });
      expect(items).toMatchObject([{ content: 'sings', created_at: '2020-02-01T06:00:00.000Z' }]);
    }),
});

const inMastra = { ferry: 'ferry', peanuts: 'peanuts', lisbon: 'lisbon' };

librarySuite('Mastra', {
  page: 'mastra',
  metadata: { topic: { area: 'food' } },
  async open(url) {
    const store = await openMastra(url);
    await store.createIndex({ indexName: 'embeddings', dimension: 1536 });
    await upsertMastra(store, {
      ferry: { text: TEXTS.ferry, user_id: 'ana' },
      peanuts: { text: TEXTS.peanuts, user_id: 'ana', topic: { area: 'food' } },
      lisbon: { text: TEXTS.lisbon, user_id: 'ben' },
      none: { text: 'has no user' },
    });
    // The same ids in another namespace.
    await upsertMastra(
      store,
      { ferry: { text: 'scratched', user_id: 'ana' }, more: { text: 'scratched too', user_id: 'ana' } },
      'drafts',
    );
    return {
      ids: inMastra,
      remove: (id) => store.deleteVector({ indexName: 'embeddings', id }),
      find: async (text, user_id) =>
        (
          await store.query({
            indexName: 'embeddings',
            queryVector: await embeddings.embedQuery(text),
            topK: 9,
            filter: { user_id },
          })
        ).map(({ id, metadata: { text: found, ...rest } }) => ({ id, text: String(found), metadata: rest })),
      close: store.disconnect.bind(store),
    };
  },
  more(running) {
    it('serves, exports and writes the configured namespace of several', async () => {
      const client = await running().serve({ OMP_MAPPING_WRITABLE: 'true', OMP_MAPPING_COLLECTION: 'drafts' });
      expect((await exported(client)).map(({ content }) => content).sort()).toEqual(['scratched', 'scratched too']);
      await client.update('ferry', { content: 'changed' });
      await client.remove('more');
      const { id } = await client.add({ user_id: 'ana', content: 'added' });
      const rows = await running().db.sql(
        `select vector_id, metadata->>'text' as text from embeddings where namespace = 'drafts'`,
      );
      expect(rows).toEqual(
        expect.arrayContaining([
          { vector_id: 'ferry', text: 'changed' },
          { vector_id: id, text: 'added' },
        ]),
      );
      expect(rows).toHaveLength(2);
      await client.tell('DELETE', '/users/ana/memories');
      const left = await running().db.sql('select distinct namespace from embeddings');
      expect(left).toEqual([{ namespace: 'default' }]);
    });

    it('[Decision 25] serves a table from before the namespaces, and changes none of two rows of an id once it has some', async () => {
      const { db, serve, closing } = running();
      // As @mastra/pg 1.20.0 makes it.
      await db.sql(`drop table embeddings; create table embeddings (id serial primary key, vector_id text unique not null,
        embedding vector(1536), metadata jsonb default '{}'::jsonb)`);
      const before = await serve({ OMP_MAPPING_WRITABLE: 'true' });
      const { id } = await before.add({ user_id: 'ana', content: 'plays the cello' });
      const store = await openMastra(db.url);
      closing(() => store.disconnect());
      await upsertMastra(store, { [id]: { text: 'scratched', user_id: 'ana' } }, 'drafts');
      const rows = await db.rows();
      expect(rows.embeddings).toHaveLength(2);
      const path = before.byId(id);
      for (const reply of [await before.tell('PATCH', path, { content: 'mine' }), await before.tell('DELETE', path)])
        expectError(reply, 'provider_error');
      expect(await db.rows()).toEqual(rows);
      const after = await serve({ OMP_MAPPING_WRITABLE: 'true' });
      expect((await exported(after)).map(({ content }) => content)).toEqual(['plays the cello']);
      expect(await after.update(id, { content: 'plays the violin' })).toMatchObject({ content: 'plays the violin' });
    });
  },
});

let destroyed: Awaited<ReturnType<typeof openSequelize>>['notes'];

librarySuite('Sequelize', {
  page: 'custom',
  heading: 'Sequelize, with rows that are only marked as deleted',
  async open(url) {
    const { notes, nearest, close } = await openSequelize(url);
    destroyed = notes;
    const make = async (content: string, userId: string) =>
      (await notes.create({ content, userId, embedding: await embeddings.embedQuery(content) })).id;
    const ids = {
      ferry: await make(TEXTS.ferry, 'ana'),
      peanuts: await make(TEXTS.peanuts, 'ana'),
      lisbon: await make(TEXTS.lisbon, 'ben'),
    };
    await (await notes.findByPk(await make(TEXTS.peanuts, 'ana'))).destroy();
    return {
      ids,
      remove: async (id) => (await notes.findByPk(id)).destroy(),
      find: async (text, userId) =>
        (await notes.findAll({ where: { userId }, order: [nearest(await embeddings.embedQuery(text))] })).map(
          ({ id, content }) => ({ id, text: content, metadata: { user_id: userId } }),
        ),
      close,
    };
  },
  more: (running) =>
    it('a memory that the gateway deletes can be restored, and one that the library deletes is gone', async () => {
      const client = await running().serve({ OMP_MAPPING_WRITABLE: 'true' });
      const { id } = await client.add({ user_id: 'cleo', content: 'sings' });
      await client.remove(id);
      expect(await destroyed.findByPk(id)).toBeNull();
      const note = await destroyed.findByPk(id, { paranoid: false });
      await note.restore();
      expect(await client.get(id)).toMatchObject({ content: 'sings' });
      await note.destroy();
      expectError(await client.ask(client.byId(id)), 'not_found');
      const erased = await client.tell('DELETE', '/users/cleo/memories');
      expect(erased.body).toMatchObject({ deleted: 1, receipt: { complete: true } });
      expect(await destroyed.findByPk(id, { paranoid: false })).toBeNull();
    }),
});
