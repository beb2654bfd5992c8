import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { register } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vectorOf } from './openai.ts';

// The libraries are as npm has them. Only what the tests call is typed: they are not installed everywhere.

const FOLDER = new URL('../owner-libraries/node_modules/', import.meta.url);

/** Why nothing can be loaded; undefined: it can. */
export const NOT_INSTALLED = existsSync(FOLDER)
  ? undefined
  : 'the libraries of others are not installed: npm ci --prefix test/owner-libraries';

const load = async <Module>(path: string): Promise<Module> => await import(new URL(path, FOLDER).href);

export interface LangchainDocument {
  readonly id?: string;
  readonly pageContent: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface LangchainStore {
  addDocuments(documents: readonly LangchainDocument[], options?: { ids: readonly string[] }): Promise<void>;
  similaritySearch(query: string, k: number, filter?: object): Promise<LangchainDocument[]>;
  delete(which: { ids: readonly string[] }): Promise<void>;
  createHnswIndex(config: { dimensions: number; namespace: string }): Promise<void>;
  end(): Promise<void>;
}

const embeddings = {
  embedDocuments: (texts: readonly string[]) =>
    Promise.all(texts.map(async (text) => [...(await vectorOf(text, 1536))])),
  embedQuery: async (text: string) => [...(await vectorOf(text, 1536))],
};

/** `PGVectorStore.initialize`, which makes the table; embeddings of 1536 dimensions as `vectorOf` makes them. */
export async function openLangchain(url: string, config: object): Promise<LangchainStore> {
  const { PGVectorStore } = await load<{
    PGVectorStore: { initialize(from: typeof embeddings, config: object): Promise<LangchainStore> };
  }>('@langchain/community/dist/vectorstores/pgvector.js');
  return PGVectorStore.initialize(embeddings, { postgresConnectionOptions: { connectionString: url }, ...config });
}

export interface LlamaNode {
  readonly id_: string;
  readonly text: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface LlamaStore {
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

export interface LanggraphStore {
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

export interface Mem0 {
  add(text: string, options: object): Promise<{ results: { id: string; memory: string }[] }>;
  get(id: string): Promise<{ memory: string; hash?: string; user_id?: string } | null>;
  getAll(options: object): Promise<{ results: { id: string; memory: string }[] }>;
  update(id: string, change: { text: string }): Promise<unknown>;
  delete(id: string): Promise<unknown>;
  readonly vectorStore: Closable;
  /** Made by the first text that is taken apart. */
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

/** mem0's `Memory` on pgvector, with an embedding service and a language model at `base_url`; it reports to nobody. */
export async function openMem0(url: string, base_url: string) {
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
