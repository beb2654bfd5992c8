import { QdrantClient } from '@qdrant/js-client-rest';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { vectorOf } from '../mapped/documented.ts';
import { openQdrant, type Qdrant } from '../qdrant/server.ts';
import { type Fixture, fixturesOf, GIVEN, loadQdrant } from './fixture.ts';

/** The keys of what was given for a user among points in this order. */
const keysOf = ({ ids }: Fixture, user_id: string, points: readonly { readonly id: string | number }[]) => {
  const keys = new Map(Object.entries(ids).map(([key, id]) => [id, key]));
  return points.map(({ id }) => keys.get(String(id)) as string).filter((key) => GIVEN.get(key)?.user_id === user_id);
};

describe('collections of Qdrant that libraries filled', () => {
  let server: Qdrant;
  let client: QdrantClient;
  beforeAll(async () => {
    server = await openQdrant();
    client = new QdrantClient({ url: server.url, checkCompatibility: false });
  });
  afterAll(() => server.close());

  it.each(fixturesOf('qdrant'))('$name holds what was given, and finds what the library found', async (fixture) => {
    const { ids, points, searches, name } = fixture;
    expect(Object.keys(ids)).toEqual([...GIVEN.keys()]);
    expect(points.map(({ id }) => id)).toEqual(Object.values(ids));
    for (const [at, { text }] of [...GIVEN.values()].entries()) {
      expect(JSON.stringify(points[at]?.payload)).toContain(JSON.stringify(text).slice(1, 9));
    }
    await loadQdrant(client, fixture, name);
    const stored = await client.retrieve(name, { ids: Object.values(ids), with_vector: true });
    for (const { id, payload, vector } of stored) {
      const point = points.find((each) => each.id === id);
      expect(payload).toEqual(point?.payload);
      expect(Object.keys(vector as object).sort()).toEqual(Object.keys(point?.vector as object).sort());
    }
    for (const { text, user_id, found } of searches) {
      const query = [...(await vectorOf(text, 8))];
      const nearest = (await client.query(name, { query, limit: 100 })).points;
      // Some leave out what is far away.
      expect(keysOf(fixture, user_id, nearest).slice(0, found.length)).toEqual(found);
    }
  });
});
