import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { register } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vectorOf } from './documented.ts';

// The libraries are installed from npm. Only what the tests call is typed, since they are not installed everywhere.

const FOLDER = new URL('../mapped-libraries/node_modules/', import.meta.url);

/** Why nothing can be loaded; undefined: it can. */
export const NOT_INSTALLED = existsSync(FOLDER)
  ? undefined
  : 'the libraries are not installed: npm ci --prefix test/mapped-libraries';

/**
 * How Node finds what the libraries import. mem0 imports SQLite, which has to be compiled, for a history that is turned off here: an
 * empty class. The condition `source`, with which the tests run, leads to TypeScript in a dependency of Mastra.
 */
const AS_INSTALLED = `data:text/javascript,${encodeURIComponent(`
  export const resolve = (specifier, context, next) =>
    specifier === 'better-sqlite3'
      ? { url: 'data:text/javascript,export default class {}', shortCircuit: true }
      : next(specifier, context.parentURL?.includes('/mapped-libraries/')
          ? { ...context, conditions: context.conditions.filter((condition) => condition !== 'source') }
          : context);`)}`;
register(AS_INSTALLED);

const load = async <Module>(path: string): Promise<Module> => await import(new URL(path, FOLDER).href);

interface LangchainDocument {
  readonly id?: string;
  readonly pageContent: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface LangchainStore {
  addDocuments(documents: readonly LangchainDocument[], options?: { ids: readonly string[] }): Promise<void>;
  similaritySearch(query: string, k: number, filter?: object): Promise<LangchainDocument[]>;
  delete(which: { ids: readonly string[] }): Promise<void>;
  createHnswIndex(index: { dimensions: number; namespace: string }): Promise<void>;
  end(): Promise<void>;
}

export const embeddings = {
  embedDocuments: (texts: readonly string[]) =>
    Promise.all(texts.map(async (text) => [...(await vectorOf(text, 1536))])),
  embedQuery: async (text: string) => [...(await vectorOf(text, 1536))],
};

/** `PGVectorStore.initialize`, which makes the table; embeddings of 1536 dimensions as `vectorOf` makes them. */
export async function openLangchain(url: string, config: object, by = embeddings): Promise<LangchainStore> {
  const { PGVectorStore } = await load<{
    PGVectorStore: { initialize(from: typeof embeddings, config: object): Promise<LangchainStore> };
  }>('@langchain/community/dist/vectorstores/pgvector.js');
  return PGVectorStore.initialize(by, { postgresConnectionOptions: { connectionString: url }, ...config });
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
export async function openLlamaindex(url: string) {
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
export async function openLanggraph(url: string, schema: string, fields?: readonly string[]): Promise<LanggraphStore> {
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

interface MastraStore {
  createIndex(index: { indexName: string; dimension: number }): Promise<void>;
  upsert(rows: object): Promise<string[]>;
  query(query: object): Promise<{ id: string; metadata: Readonly<Record<string, unknown>> }[]>;
  deleteVector(row: object): Promise<void>;
  disconnect(): Promise<void>;
}

export const openMastra = async (connectionString: string): Promise<MastraStore> => {
  const { PgVector } = await load<{ PgVector: new (config: object) => MastraStore }>('@mastra/pg/dist/index.js');
  return new PgVector({ id: 'vectors', connectionString });
};

/** Writes texts under ids, in a namespace if one is named. */
export const upsertMastra = async (
  store: MastraStore,
  rows: Readonly<Record<string, { text: string; user_id?: string; topic?: object }>>,
  namespace?: string,
) =>
  store.upsert({
    indexName: 'embeddings',
    ids: Object.keys(rows),
    vectors: await embeddings.embedDocuments(Object.values(rows).map(({ text }) => text)),
    metadata: Object.values(rows),
    ...(namespace !== undefined && { namespace }),
  });

interface Note {
  readonly id: string;
  readonly content: string;
  destroy(): Promise<void>;
  restore(): Promise<void>;
}

interface Notes {
  sync(): Promise<void>;
  create(note: object): Promise<Note>;
  findByPk(id: string, options?: object): Promise<Note>;
  findAll(query: object): Promise<Note[]>;
}

interface SequelizeModule {
  readonly DataTypes: Readonly<Record<'UUID' | 'UUIDV4' | 'TEXT', object>> & { VECTOR(dimensions: number): object };
  new (
    url: string,
    options: object,
  ): { define(name: string, fields: object, options: object): Notes; close(): Promise<void> };
}

/** A model of Sequelize that keeps deleted rows (`paranoid`), with the vectors of pgvector's own package. */
export async function openSequelize(url: string) {
  const { default: Sequelize } = await load<{ default: SequelizeModule }>('sequelize/lib/index.js');
  const { default: pgvector } = await load<{
    default: {
      registerTypes(sequelize: object): void;
      cosineDistance(column: string, vector: number[], sequelize: object): object;
    };
  }>('pgvector/src/sequelize/index.js');
  pgvector.registerTypes(Sequelize);
  const { UUID, UUIDV4, TEXT, VECTOR } = Sequelize.DataTypes;
  const sequelize = new Sequelize(url, { logging: false });
  const required = (type: object) => ({ type, allowNull: false });
  const notes = sequelize.define(
    'note',
    {
      id: { type: UUID, defaultValue: UUIDV4, primaryKey: true },
      userId: required(TEXT),
      content: required(TEXT),
      embedding: { type: VECTOR(1536) },
    },
    { paranoid: true },
  );
  await notes.sync();
  const nearest = (vector: number[]) => pgvector.cosineDistance('embedding', vector, sequelize);
  return { notes, nearest, close: () => sequelize.close() };
}

interface Closable {
  close(): Promise<void>;
}

/** mem0's `Memory` on pgvector, with an embedding service and a language model at `base_url`; without telemetry. */
export async function openMem0(url: string, base_url: string) {
  process.env.MEM0_TELEMETRY = 'false';
  const folder = await mkdtemp(join(tmpdir(), 'mem0-'));
  process.env.MEM0_DIR = folder;
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
