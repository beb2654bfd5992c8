import { createRequire } from 'node:module';
import { connect } from '@lancedb/lancedb';
import { QdrantClient } from '@qdrant/js-client-rest';
import { MilvusClient } from '@zilliz/milvus2-sdk-node';
import type { Table } from 'apache-arrow';
import { ChromaClient } from 'chromadb';
import type { DatabaseName, Fixture } from '../fixture.ts';
import { readPostgres } from './postgres.ts';

// LanceDB takes tables of the module that it loads itself.
const { tableToIPC } = createRequire(import.meta.url)('apache-arrow') as typeof import('apache-arrow');

/** What the program of a library says. */
export type Recorded = Pick<Fixture, 'ids' | 'searches' | 'refused'> & { readonly collection?: string };

type Read = { readonly settings: object; readonly points: readonly unknown[] };

/** The settings of a collection and its points in the order of `ids`, by the database's own client. */
export async function readCollection(
  database: DatabaseName,
  url: string,
  name: string,
  ids: Fixture['ids'],
): Promise<Read> {
  const order = Object.values(ids);
  const place = (id: unknown) => order.indexOf(String(id));
  return { qdrant, chroma, milvus, lancedb, postgres: readPostgres }[database](url, name, place);
}

type Place = (id: unknown) => number;

async function qdrant(url: string, name: string, place: Place) {
  const client = new QdrantClient({ url, checkCompatibility: false });
  const { config, payload_schema } = await client.getCollection(name);
  const { vectors, sparse_vectors } = config.params;
  const { points } = await client.scroll(name, { limit: 100, with_vector: true, with_payload: true });
  return {
    settings: { vectors, ...(sparse_vectors && { sparse_vectors }) },
    indexes: Object.fromEntries(
      Object.entries(payload_schema).map(([field, index]) => [field, index?.params ?? index?.data_type]),
    ),
    points: points
      .sort((a, b) => place(a.id) - place(b.id))
      .map(({ id, vector, payload }) => ({ id, payload, vector })),
  };
}

async function chroma(url: string, name: string, place: Place) {
  const { hostname: host, port } = new URL(url);
  const collection = await new ChromaClient({ host, port: Number(port) }).getCollection({ name });
  const found = await collection.get({ include: ['documents', 'metadatas', 'embeddings'] });
  return {
    settings: { metadata: collection.metadata, configuration: collection.configuration },
    points: found
      .rows()
      .sort((a, b) => place(a.id) - place(b.id))
      .map(({ id, document, metadata, embedding }) => ({ id, document, metadata, embedding })),
  };
}

async function milvus(url: string, name: string, place: Place) {
  const client = new MilvusClient({ address: url });
  await client.loadCollectionSync({ collection_name: name });
  const { schema } = await client.describeCollection({ collection_name: name });
  const { index_descriptions } = await client.describeIndex({ collection_name: name });
  const { data } = await client.query({ collection_name: name, filter: '', limit: 100, output_fields: ['*'] });
  const key = schema.fields.find((field) => field.is_primary_key)?.name as string;
  await client.closeConnection();
  return {
    settings: {
      fields: schema.fields.map(({ name: field, data_type, is_primary_key, autoID, nullable, type_params }) => ({
        ...{ name: field, type: data_type, primary: is_primary_key, auto_id: autoID, nullable },
        params: Object.fromEntries(type_params.map((param) => [param.key, param.value])),
      })),
      dynamic: schema.enable_dynamic_field,
      indexes: Object.fromEntries(
        index_descriptions.map(({ field_name, params }) => [
          field_name,
          Object.fromEntries(params.map((param) => [param.key, param.value])),
        ]),
      ),
    },
    points: data
      .sort((a, b) => place(a[key]) - place(b[key]))
      .map(({ $meta, ...fields }) => ({ ...fields, ...($meta as object) })),
  };
}

async function lancedb(folder: string, name: string, place: Place) {
  const table = await (await connect(folder)).openTable(name);
  const arrow = (await table.query().toArrow()) as never as Table;
  const plain = (_: string, value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
  const rows = JSON.parse(JSON.stringify(await table.query().toArray(), plain));
  return {
    settings: {
      arrow: Buffer.from(tableToIPC(arrow)).toString('base64'),
      fields: Object.fromEntries(arrow.schema.fields.map((field) => [field.name, String(field.type)])),
    },
    points: rows.sort((a: { id: unknown }, b: { id: unknown }) => place(a.id) - place(b.id)),
  };
}
