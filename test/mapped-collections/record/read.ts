import { QdrantClient } from '@qdrant/js-client-rest';
import type { DatabaseName, Fixture } from '../fixture.ts';

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
  return { qdrant }[database as 'qdrant'](url, name, place);
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
