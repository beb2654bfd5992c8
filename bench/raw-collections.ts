import type { Position } from '#contract';
import { pointId } from '../src/collections/points.ts';

/** What an application without the gateway would do with the client of a database, on the points that the gateway wrote. */
interface RawClient {
  get(id: string): Promise<unknown>;
  search(user: string, vector: Float32Array, limit: number): Promise<unknown>;
  /** Newest first, after a position. Left out: the database sorts nothing. */
  list?(user: string, limit: number, after?: Position): Promise<unknown>;
  close(): Promise<unknown>;
}

const must = (...conditions: object[]) => ({ filter: { must: conditions } });

/** By the name of the provider, with its options. All read every field, and no vectors. */
export const CLIENTS: Readonly<Record<string, (options: object) => Promise<RawClient>>> = {
  async libsql(options) {
    const { createClient } = await import('@libsql/client');
    const client = createClient({ ...(options as { url: string }), concurrency: 1 });
    const { rows } = await client.execute('PRAGMA table_info(omp_memories)');
    const columns = rows.flatMap(({ name }) => (name === 'vector' ? [] : [`"${name}"`])).join(', ');
    await client.execute('PRAGMA mmap_size = 4294967296');
    const select = `SELECT ${columns} FROM omp_memories WHERE`;
    return {
      get: (id) => client.execute({ sql: `${select} id = ?`, args: [id] }),
      search: (user, vector, limit) =>
        client.execute({
          sql: `${select} user_id = ? ORDER BY vector_distance_cos(vector, ?) LIMIT ?`,
          args: [user, new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength), limit],
        }),
      list: (user, limit, after) =>
        client.execute({
          sql: `${select} user_id = ? ${after ? 'AND (created, memory_id) < (?, ?)' : ''} ORDER BY created DESC, memory_id DESC LIMIT ?`,
          args: [user, ...(after ? [Date.parse(after.created_at), after.id] : []), limit],
        }),
      close: async () => client.close(),
    };
  },

  async lancedb(options) {
    const { connect } = await import('@lancedb/lancedb');
    // As the gateway opens it: a handle of an older version reads the many small parts of the fill.
    const connection = await connect((options as { folder: string }).folder, { readConsistencyInterval: 0 });
    const memories = await connection.openTable('omp_memories');
    const columns = (await memories.schema()).fields.flatMap(({ name }) => (name === 'vector' ? [] : [name]));
    return {
      get: (id) => memories.query().where(`id = '${id}'`).select(columns).toArray(),
      search: (user, vector, limit) =>
        memories
          .query()
          .nearestTo(vector)
          .distanceType('cosine')
          .bypassVectorIndex()
          .where(`user_id = '${user}'`)
          .select([...columns, '_distance'])
          .limit(limit)
          .toArray(),
      close: async () => connection.close(),
    };
  },

  async qdrant(options) {
    const { QdrantClient } = await import('@qdrant/js-client-rest');
    const client = new QdrantClient({ ...options, checkCompatibility: false });
    const name = 'omp-memories';
    const isOf = (user: string) => ({ key: 'user_id', match: { value: user } });
    return {
      get: (id) => client.retrieve(name, { ids: [pointId(id, 'uuid')], with_payload: true }),
      search: (user, vector, limit) =>
        client.query(name, {
          ...{ query: [...vector], limit, with_payload: true, params: { exact: true } },
          ...must(isOf(user)),
        }),
      list: (user, limit, after) =>
        client.scroll(name, {
          ...{ limit, with_payload: true, order_by: { key: 'created', direction: 'desc' } },
          ...must(isOf(user), ...(after ? [{ key: 'created', range: { lt: Date.parse(after.created_at) } }] : [])),
        }),
      close: async () => {},
    };
  },

  async chroma(options) {
    const { ChromaClient } = await import('chromadb');
    const { hostname: host, port } = new URL((options as { url: string }).url);
    const client = new ChromaClient({ host, port: Number(port) });
    const memories = await client.getCollection({ name: 'omp-memories' });
    return {
      get: (id) => memories.get({ ids: [id] }),
      search: (user, vector, nResults) =>
        memories.query({ queryEmbeddings: [[...vector]], nResults, where: { user_id: user } }),
      close: async () => {},
    };
  },

  async milvus(options) {
    const { MilvusClient } = await import('@zilliz/milvus2-sdk-node');
    const client = new MilvusClient({ address: (options as { url: string }).url, logLevel: 'error' });
    const collection_name = 'omp_memories';
    const { schema } = await client.describeCollection({ collection_name });
    const output_fields = schema.fields.flatMap(({ name }) => (name === 'vector' ? [] : [name]));
    const asked = { collection_name, output_fields, consistency_level: 0 };
    return {
      get: (id) => client.query({ ...asked, filter: `id in ["${id}"]` }),
      search: (user, vector, limit) =>
        client.search({ ...asked, data: [...vector], filter: `user_id == "${user}"`, limit }),
      close: () => client.closeConnection(),
    };
  },
};
