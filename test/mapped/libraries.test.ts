import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { register } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Query } from '../support/client.ts';
import { expectError } from '../support/expect-error.ts';
import { NO_SERVER, SERVER_URL } from '../support/postgres-server.ts';
import { documentedEnvironment, openAiServer, type RunningMapped, serveDocumented, vectorOf } from './documented.ts';
import { type LibraryDatabase, openLibraryDatabase } from './library-database.ts';

// The libraries are installed from npm. Only what the tests call is typed, since they are not installed everywhere.

const FOLDER = new URL('../mapped-libraries/node_modules/', import.meta.url);

/** Why nothing can be loaded; undefined: it can. */
const NOT_INSTALLED = existsSync(FOLDER)
  ? undefined
  : 'the libraries are not installed: npm ci --prefix test/mapped-libraries';

const load = async <Module>(path: string): Promise<Module> => await import(new URL(path, FOLDER).href);

interface LangchainDocument {
  readonly id?: string;
  readonly pageContent: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

interface LangchainStore {
  addDocuments(documents: readonly LangchainDocument[], options?: { ids: readonly string[] }): Promise<void>;
  similaritySearch(query: string, k: number, filter?: object): Promise<LangchainDocument[]>;
  delete(which: { ids: readonly string[] }): Promise<void>;
  end(): Promise<void>;
}

const embeddings = {
  embedDocuments: (texts: readonly string[]) =>
    Promise.all(texts.map(async (text) => [...(await vectorOf(text, 1536))])),
  embedQuery: async (text: string) => [...(await vectorOf(text, 1536))],
};

/** `PGVectorStore.initialize`, which makes the table; embeddings of 1536 dimensions as `vectorOf` makes them. */
async function openLangchain(url: string, config: object): Promise<LangchainStore> {
  const { PGVectorStore } = await load<{
    PGVectorStore: { initialize(from: typeof embeddings, config: object): Promise<LangchainStore> };
  }>('@langchain/community/dist/vectorstores/pgvector.js');
  return PGVectorStore.initialize(embeddings, { postgresConnectionOptions: { connectionString: url }, ...config });
}

interface LlamaNode {
  readonly id_: string;
  readonly text: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

interface LlamaStore {
  setCollection(name: string): void;
  add(nodes: readonly LlamaNode[]): Promise<string[]>;
  query(query: object): Promise<{ nodes: LlamaNode[]; ids: string[]; similarities: number[] }>;
  delete(id: string): Promise<void>;
  client(): Promise<{ close(): Promise<void> }>;
}

/** LlamaIndex' `PGVectorStore`, and what makes its nodes. */
async function openLlamaindex(url: string) {
  const core = (name: string) => `@llamaindex/core/${name}/dist/index.js`;
  const { PGVectorStore } = await load<{ PGVectorStore: new (config: object) => LlamaStore }>(
    '@llamaindex/postgres/dist/index.js',
  );
  const { TextNode } = await load<{ TextNode: new (fields: object) => LlamaNode }>(core('schema'));
  const { BaseEmbedding } = await load<{ BaseEmbedding: new () => object }>(core('embeddings'));
  class Embedding extends BaseEmbedding {
    getTextEmbedding = embeddings.embedQuery;
  }
  const embeddingModel = new Embedding();
  return {
    store: new PGVectorStore({ clientConfig: { connectionString: url }, dimensions: 1536, embeddingModel }),
    node: async (id_: string, text: string, metadata: object) =>
      new TextNode({ id_, text, metadata, embedding: await embeddings.embedQuery(text) }),
  };
}

interface LanggraphStore {
  put(namespace: readonly string[], key: string, value: object, index?: false): Promise<void>;
  delete(namespace: readonly string[], key: string): Promise<void>;
  stop(): Promise<void>;
}

/** LangGraph's `PostgresStore`, which makes its tables in the schema; without `fields` it embeds whole values. */
async function openLanggraph(url: string, schema: string, fields?: readonly string[]): Promise<LanggraphStore> {
  const { PostgresStore } = await load<{
    PostgresStore: { fromConnString(url: string, config: object): LanggraphStore & { setup(): Promise<void> } };
  }>('@langchain/langgraph-checkpoint-postgres/dist/store/index.js');
  const store = PostgresStore.fromConnString(url, { schema, index: { dims: 1536, embed: embeddings, fields } });
  await store.setup();
  return store;
}

interface Mem0 {
  add(text: string, options: object): Promise<{ results: { id: string; memory: string }[] }>;
  update(id: string, change: { text: string }): Promise<unknown>;
  delete(id: string): Promise<unknown>;
  readonly vectorStore: Closable;
  /** Created by the first text that mem0 splits. */
  readonly _entityStore?: Closable;
}

interface Closable {
  close(): Promise<void>;
}

/** Resolves to an empty class: mem0 imports SQLite, which has to be compiled, for a history that is turned off here. */
const WITHOUT_SQLITE = `data:text/javascript,${encodeURIComponent(`
  export const resolve = (specifier, context, next) =>
    specifier === 'better-sqlite3'
      ? { url: 'data:text/javascript,export default class {}', shortCircuit: true }
      : next(specifier, context);`)}`;

/** mem0's `Memory` on pgvector, with an embedding service and a language model at `base_url`; without telemetry. */
async function openMem0(url: string, base_url: string) {
  process.env.MEM0_TELEMETRY = 'false';
  const folder = await mkdtemp(join(tmpdir(), 'mem0-'));
  process.env.MEM0_DIR = folder;
  register(WITHOUT_SQLITE);
  const { Memory } = await load<{ Memory: new (config: object) => Mem0 }>('mem0ai/dist/oss/index.mjs');
  const service = { apiKey: 'key', baseURL: base_url };
  const memory = new Memory({
    disableHistory: true,
    embedder: { provider: 'openai', config: { ...service, model: 'text-embedding-3-small' } },
    llm: { provider: 'openai', config: service },
    vectorStore: { provider: 'pgvector', config: { connectionString: url, dimension: 1536, embeddingModelDims: 1536 } },
  });
  return {
    memory,
    async close() {
      await memory.vectorStore.close();
      await memory._entityStore?.close();
      await rm(folder, { recursive: true });
    },
  };
}

interface BesideLibrary {
  readonly db: LibraryDatabase;
  readonly openai: Awaited<ReturnType<typeof openAiServer>>;
  /** The gateway with the page's settings, on the tables of the library; closed with the suite. */
  serve(more?: Readonly<Record<string, string>>): Promise<RunningMapped['client']>;
  /** Closed with the suite, before the database. */
  closing(close: () => Promise<unknown>): void;
}

interface LibrarySuite {
  /** For use in tests. */
  beside(): BesideLibrary;
  /** What the library does before the first test. */
  prepare(work: (beside: BesideLibrary) => Promise<void>): void;
}

/** Tests of a library and a gateway on the same database. */
function librarySuite(title: string, page: string, tests: (suite: LibrarySuite) => void): void {
  const missing = SERVER_URL === '' ? NO_SERVER : NOT_INSTALLED;
  describe(title, () => {
    let opened: BesideLibrary | undefined;
    const preparations: ((beside: BesideLibrary) => Promise<void>)[] = [];
    const open: (() => Promise<unknown>)[] = [];
    beforeAll(async () => {
      if (missing !== undefined) return;
      const [db, openai] = await Promise.all([openLibraryDatabase(), openAiServer()]);
      const env = { ...documentedEnvironment(page), DATABASE_URL: db.url, OPENAI_BASE_URL: openai.base_url };
      open.push(db.close, openai.close);
      opened = {
        db,
        openai,
        async serve(more = {}) {
          const running = await serveDocumented(env, more);
          open.push(running.close);
          return running.client;
        },
        closing: (close) => void open.push(close),
      };
      for (const prepare of preparations) await prepare(opened);
    });
    afterAll(async () => {
      for (const close of open.reverse()) await close();
    });
    beforeEach(({ skip }) => {
      if (missing !== undefined) skip(missing);
    });
    tests({ beside: () => opened as BesideLibrary, prepare: (work) => void preparations.push(work) });
  });
}

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

librarySuite('LangChain.js and the gateway on the same table', 'langchain-js', ({ beside, prepare }) => {
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
        { pageContent: 'has no user', metadata: {} },
      ],
      { ids: [ferry, peanuts, lisbon, randomUUID()] },
    );
  });

  it('the library writes, the gateway reads', async () => {
    const client = await beside().serve();
    const [hit] = await client.search({ user_id: 'ana', q: 'allergic to peanuts', limit: 1 });
    expect(hit).toMatchObject({ memory: { id: peanuts, content: 'allergic to peanuts', user_id: 'ana' } });
    expect(hit?.score).toBeCloseTo(1, 3);
    const ids = async (user_id: string) => (await client.list({ user_id })).items.map(({ id }) => id).sort();
    expect(await ids('ana')).toEqual([ferry, peanuts].sort());
    expect(await ids('ben')).toEqual([lisbon]);
    expect(await client.get(ferry)).toMatchObject({ content: 'the ferry leaves at nine', user_id: 'ana' });
  });

  it('the gateway writes, the library reads and deletes', async () => {
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

  it('serves and writes the configured collection of several', async () => {
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
});

librarySuite('LangGraph and the gateway on the same tables', 'langgraph-store-js', ({ beside, prepare }) => {
  let store: Awaited<ReturnType<typeof openLanggraph>>;
  prepare(async ({ db, closing }) => {
    store = await openLanggraph(db.url, 'public', ['text']);
    closing(() => store.stop());
    await store.put(['memories', 'ana'], 'a', { text: 'the ferry leaves at nine' });
    await store.put(['memories', 'ana'], 'b', { text: 'allergic to peanuts', area: 'food' });
    await store.put(['memories', 'ana'], 'c', { text: 'not to be found' }, false);
    await store.put(['memories', 'ben'], 'a', { text: 'lives in Lisbon' });
    await store.put(['profiles', 'ana'], 'a', { text: 'no memory' });
  });

  it('the library writes, changes and deletes, the gateway reads', async () => {
    const client = await beside().serve();
    const [hit, ...others] = await client.search({ user_id: 'ana', q: 'allergic to peanuts' });
    expect(hit).toMatchObject({ memory: { id: 'memories:ana/b', content: 'allergic to peanuts', user_id: 'ana' } });
    expect(hit?.score).toBeCloseTo(1, 3);
    expect(others.map(({ memory }) => memory.id)).toEqual(['memories:ana/a']);
    const { items } = await client.list({ user_id: 'ana' });
    expect(items.map(({ id }) => id)).toEqual(['memories:ana/c', 'memories:ana/b', 'memories:ana/a']);
    expect((await client.list({ user_id: 'ben' })).items).toMatchObject([{ id: 'memories:ben/a' }]);

    await store.put(['memories', 'ana'], 'b', { text: 'allergic to walnuts' });
    const changed = await client.get('memories:ana/b');
    expect(changed).toMatchObject({ content: 'allergic to walnuts', created_at: hit?.memory.created_at });
    expect(changed.updated_at).not.toBe(changed.created_at);
    await store.delete(['memories', 'ana'], 'a');
    expectError(await client.ask(client.byId('memories:ana/a')), 'not_found');
  });

  it('serves another schema, by the vectors of whole values', async () => {
    const whole = await openLanggraph(beside().db.url, 'whole');
    beside().closing(() => whole.stop());
    await whole.put(['ana', 'memories'], 'a', { content: 'the ferry leaves at nine' });
    await whole.put(['ana', 'memories'], 'b', { content: 'allergic to peanuts' });
    const client = await beside().serve({
      OMP_MAPPING_SCHEMA: 'whole',
      OMP_MAPPING_USER_PATTERN: '{user}:memories',
      OMP_MAPPING_CONTENT: "value->>'content'",
      OMP_MAPPING_COLLECTION: '$',
    });
    const [hit] = await client.search({ user_id: 'ana', q: '{"content":"allergic to peanuts"}' });
    expect(hit?.memory).toMatchObject({ id: 'ana:memories/b', content: 'allergic to peanuts', user_id: 'ana' });
    expect(hit?.score).toBeCloseTo(1, 3);
  });
});

/** The page's settings for rows that the TypeScript library wrote. */
const TYPESCRIPT = {
  OMP_MAPPING_CREATED_AT: "payload->>'createdAt'",
  OMP_MAPPING_UPDATED_AT: "payload->>'updatedAt'",
};

librarySuite('mem0 for TypeScript and the gateway on the same table', 'mem0', ({ beside, prepare }) => {
  let mem0: Mem0;
  const ids: string[] = [];
  prepare(async ({ db, openai, closing }) => {
    const opened = await openMem0(db.url, openai.base_url);
    closing(opened.close);
    mem0 = opened.memory;
    for (const [userId, text] of [
      ['ana', 'the ferry leaves at nine'],
      ['ana', 'allergic to peanuts'],
      ['ben', 'lives in Lisbon'],
    ] as const) {
      const { results } = await mem0.add(text, { userId, infer: false });
      ids.push(...results.map(({ id }) => id));
    }
    await mem0.add('belongs to an agent', { agentId: 'ana', infer: false });
  });

  it('the library writes, changes and deletes, the gateway reads', async () => {
    const client = await beside().serve(TYPESCRIPT);
    const [ferry, peanuts, lisbon] = ids as [string, string, string];
    const [hit] = await client.search({ user_id: 'ana', q: 'allergic to peanuts', limit: 1 });
    expect(hit).toMatchObject({ memory: { id: peanuts, content: 'allergic to peanuts', user_id: 'ana' } });
    expect(hit?.score).toBeCloseTo(1, 3);
    const idsOf = async (query: Query) => (await client.list(query)).items.map(({ id }) => id).sort();
    expect(await idsOf({ user_id: 'ana' })).toEqual([ferry, peanuts].sort());
    expect(await idsOf({ user_id: 'ben' })).toEqual([lisbon]);
    const before = await client.get(peanuts);
    expect(before.updated_at).toBe(before.created_at);
    expect(await idsOf({ user_id: 'ana', since: before.created_at })).toContain(peanuts);
    expect(await idsOf({ user_id: 'ana', until: '2020-01-01' })).toEqual([]);

    await mem0.update(peanuts, { text: 'allergic to walnuts' });
    const after = await client.get(peanuts);
    expect(after).toMatchObject({ content: 'allergic to walnuts', created_at: before.created_at });
    expect(Date.parse(after.updated_at ?? '')).toBeGreaterThan(Date.parse(after.created_at));
    await mem0.delete(ferry);
    expectError(await client.ask(client.byId(ferry)), 'not_found');
  });
});

librarySuite('LlamaIndex.TS and the gateway on the same table', 'llamaindex-ts', ({ beside, prepare }) => {
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
      await llama.node(randomUUID(), 'has no user', {}),
    ]);
    llama.store.setCollection('drafts');
    await llama.store.add([await llama.node(randomUUID(), 'scratched', { user_id: 'ana' })]);
    llama.store.setCollection('data');
  });

  it('the library writes, the gateway reads', async () => {
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

  it('the gateway writes, the library reads and deletes', async () => {
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
