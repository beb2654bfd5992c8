import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@lancedb/lancedb';
import { QdrantClient } from '@qdrant/js-client-rest';
import { DataType, MilvusClient } from '@zilliz/milvus2-sdk-node';
import { ChromaClient, type Metadata } from 'chromadb';
import { openChroma } from '../chroma/start.ts';
import { openMilvus } from '../milvus/server.ts';
import { openQdrant, tell } from '../qdrant/server.ts';
import { type Fixture, type FixtureOf, loadChroma, loadLancedb, loadMilvus, loadQdrant } from './fixture.ts';

/*
 * Databases in which collections of others are served, each behind its own client.
 */

// LanceDB takes tables of the module that it loads itself.
const { Field, FixedSizeList, Float32, Float64, List, Schema, Struct, Utf8 } = createRequire(import.meta.url)(
  'apache-arrow',
) as typeof import('apache-arrow');

/** A point as the client of the database shows it. The fields of Chroma are its metadata, with the document as `#document`. */
export interface Shown {
  readonly id: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly vector: unknown;
}
/** A database in which collections are served. */
export interface Database {
  /** The options that say where it is. */
  place(collection: string): object;
  load(fixture: Fixture, collection: string): Promise<void>;
  /** A collection with Cosine. */
  put(collection: string, points: readonly Omit<Shown, 'vector'>[], vector: number[]): Promise<void>;
  all(collection: string): Promise<Shown[]>;
  /** What else a collection is, such as its indexes. */
  settings(collection: string): Promise<unknown>;
  close(): Promise<unknown>;
}

/** A change moves a row to the end. */
const byId = (a: Shown, b: Shown): number => a.id.length - b.id.length || (a.id < b.id ? -1 : 1);

export async function openedQdrant(): Promise<Database> {
  const { url, close } = await openQdrant();
  const client = new QdrantClient({ url, checkCompatibility: false });
  return {
    close,
    place: (collection) => ({ url, collection }),
    load: (fixture, name) => loadQdrant(client, fixture as FixtureOf<'qdrant'>, name),
    async put(name, points, vector) {
      await client.createCollection(name, { vectors: { size: vector.length, distance: 'Cosine' } });
      const stored = points.map(({ id, fields }) => ({
        ...{ id: /^\d+$/.test(id) ? Number(id) : id, payload: fields, vector },
      }));
      await client.upsert(name, { points: stored, wait: true });
    },
    async all(name) {
      const { points } = await client.scroll(name, { limit: 100, with_vector: true });
      return points.map(({ id, payload, vector }) => ({ id: String(id), fields: payload ?? {}, vector }));
    },
    async settings(name) {
      const { config, payload_schema } = (await tell('GET', `${url}/collections/${name}`)).body.result;
      return { config, indexes: Object.keys(payload_schema).sort() };
    },
  };
}

export async function openedChroma(): Promise<Database> {
  const { url, close } = await openChroma();
  const client = new ChromaClient({ host: '127.0.0.1', port: Number(new URL(url).port) });
  return {
    close,
    place: (collection) => ({ url, collection }),
    load: (fixture, name) => loadChroma(client, fixture as FixtureOf<'chroma'>, name),
    async put(name, points, vector) {
      const configuration = { hnsw: { space: 'cosine' as const } };
      const collection = await client.createCollection({ name, embeddingFunction: null, configuration });
      for (const { id, fields } of points) {
        const { '#document': document, ...metadata } = fields;
        await collection.add({
          ...{ ids: [id], embeddings: [vector], metadatas: [metadata as Metadata] },
          ...(typeof document === 'string' && { documents: [document] }),
        });
      }
    },
    async all(name) {
      const collection = await client.getCollection({ name });
      const found = await collection.get({ include: ['documents', 'metadatas', 'embeddings'] });
      return found.rows().map(({ id, document, metadata, embedding }) => ({
        ...{ id, fields: { ...metadata, ...(document != null && { '#document': document }) }, vector: embedding },
      }));
    },
    async settings(name) {
      const { configuration, metadata } = await client.getCollection({ name });
      return { configuration, metadata, collections: (await client.listCollections()).map((each) => each.name).sort() };
    },
  };
}

export async function openedMilvus(): Promise<Database> {
  const { url, close } = await openMilvus();
  const client = new MilvusClient({ address: url });
  return {
    close: async () => {
      await client.closeConnection();
      await close();
    },
    place: (collection) => ({ url, collection }),
    load: (fixture, name) => loadMilvus(client, fixture as FixtureOf<'milvus'>, name),
    async put(collection_name, points, vector) {
      const text = { data_type: DataType.VarChar, max_length: 65_535 };
      await client.createCollection({
        ...{ collection_name, enable_dynamic_field: true },
        fields: [
          { name: 'pk', is_primary_key: true, ...text },
          { name: 'vector', data_type: DataType.FloatVector, dim: vector.length },
        ],
      });
      await client.createIndex({ collection_name, field_name: 'vector', index_type: 'FLAT', metric_type: 'COSINE' });
      await client.loadCollectionSync({ collection_name });
      await client.insert({
        collection_name,
        data: points.map(({ id, fields }) => ({ pk: id, vector, ...fields })) as never,
      });
    },
    async all(collection_name) {
      const { schema } = await client.describeCollection({ collection_name });
      const [key = '', name = ''] = [
        schema.fields.find((field) => field.is_primary_key),
        schema.fields.find((field) => field.data_type === 'FloatVector'),
      ].map((field) => field?.name);
      const asked = { collection_name, filter: '', limit: 100, output_fields: ['*'], consistency_level: 0 };
      const { data } = await client.query(asked as never);
      const shown = data.map(({ $meta, [key]: id, [name]: vector, ...cells }) => ({
        ...{ id: String(id), fields: { ...cells, ...($meta as object) }, vector },
      }));
      return shown.sort(byId);
    },
    async settings(collection_name) {
      const { schema } = await client.describeCollection({ collection_name });
      const { index_descriptions } = await client.describeIndex({ collection_name });
      return { schema, indexes: index_descriptions.map(({ field_name, params }) => ({ field_name, params })) };
    },
  };
}

export async function openedLancedb(): Promise<Database> {
  const folder = await mkdtemp(join(tmpdir(), 'omp-lancedb-'));
  const connection = await connect(folder, { readConsistencyInterval: 0 });
  return {
    async close() {
      connection.close();
      await rm(folder, { recursive: true });
    },
    place: (table) => ({ folder, table }),
    load: (fixture, name) => loadLancedb(connection, fixture as FixtureOf<'lancedb'>, name),
    async put(name, points, vector) {
      const text = new Utf8();
      const schema = new Schema([
        ...[new Field('id', text), new Field('text', text, true), new Field('at', new Float64(), true)],
        new Field('owner', new Struct([new Field('id', text, true), new Field('more', text, true)]), true),
        new Field('the text', text, true),
        new Field('the owner', new Struct([new Field('the id', text, true), new Field('kept', text, true)]), true),
        new Field('the tags', new List(new Field('item', text, true)), true),
        new Field('vector', new FixedSizeList(vector.length, new Field('item', new Float32(), true))),
      ]);
      const table = await connection.createEmptyTable(name, schema as never);
      await table.add(points.map(({ id, fields }) => ({ text: null, at: null, id, ...fields, vector })));
    },
    async all(name) {
      const rows: object[] = await (await connection.openTable(name)).query().toArray();
      const plain = JSON.stringify(rows, (_, cell) => (typeof cell === 'bigint' ? Number(cell) : cell));
      const shown = (JSON.parse(plain) as Shown[]).map(
        ({ id, vector, ...fields }) => ({ id, fields, vector }) as Shown,
      );
      return shown.sort(byId);
    },
    async settings(name) {
      const table = await connection.openTable(name);
      const [version, versions] = [await table.version(), (await table.listVersions()).length];
      return { schema: String(await table.schema()), indexes: await table.listIndices(), version, versions };
    },
  };
}
