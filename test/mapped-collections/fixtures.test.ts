import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@lancedb/lancedb';
import { QdrantClient } from '@qdrant/js-client-rest';
import { MilvusClient } from '@zilliz/milvus2-sdk-node';
import { ChromaClient } from 'chromadb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NO_CHROMA, openChroma } from '../chroma/start.ts';
import { vectorOf } from '../mapped/documented.ts';
import { NO_MILVUS, openMilvus } from '../milvus/server.ts';
import { openQdrant } from '../qdrant/server.ts';
import {
  type DatabaseName,
  type FixtureOf,
  fixturesOf,
  GIVEN,
  loadChroma,
  loadLancedb,
  loadMilvus,
  loadQdrant,
} from './fixture.ts';

/** An empty database with its own client. */
interface Opened<Name extends DatabaseName> {
  load(fixture: FixtureOf<Name>, collection: string): Promise<void>;
  /** Ids of all points, nearest first. */
  nearest(collection: string, vector: number[], fixture: FixtureOf<Name>): Promise<readonly unknown[]>;
  close(): Promise<unknown>;
}

function suite<Name extends DatabaseName>(database: Name, absent: string, open: () => Promise<Opened<Name>>): void {
  describe.skipIf(absent !== '')(`collections of ${database} that libraries filled`, () => {
    let opened: Opened<Name>;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());

    it.each(fixturesOf(database))('$name holds what was given, and finds what the library found', async (fixture) => {
      const { ids, points, searches, refused = [] } = fixture;
      const keys = new Map(Object.entries(ids).map(([key, id]) => [id, key]));
      const refusedKeys = refused.map((each) => each.split(':')[0] as string);
      expect([...new Set([...keys.values(), ...refusedKeys])].sort()).toEqual([...GIVEN.keys()].sort());
      expect(points).toHaveLength(keys.size);
      for (const key of keys.values()) {
        expect(JSON.stringify(points)).toContain(JSON.stringify(GIVEN.get(key)?.text).slice(1, 9));
      }
      const collection = fixture.name.replaceAll('-', '_');
      await opened.load(fixture, collection);
      for (const { text, user_id, found } of searches) {
        const nearest = await opened.nearest(collection, [...(await vectorOf(text, 8))], fixture);
        expect(nearest).toHaveLength(keys.size);
        const ofUser = nearest
          .map((id) => keys.get(String(id)) as string)
          .filter((key) => GIVEN.get(key)?.user_id === user_id);
        // Some leave out what is far away.
        expect(ofUser.slice(0, found.length)).toEqual(found);
      }
    });
  });
}

suite('qdrant', '', async () => {
  const { url, close } = await openQdrant();
  const client = new QdrantClient({ url, checkCompatibility: false });
  return {
    load: (fixture, name) => loadQdrant(client, fixture, name),
    nearest: async (name, query) => (await client.query(name, { query, limit: 100 })).points.map(({ id }) => id),
    close,
  };
});

suite('chroma', NO_CHROMA, async () => {
  const { url, close } = await openChroma();
  const client = new ChromaClient({ host: '127.0.0.1', port: Number(new URL(url).port) });
  return {
    load: (fixture, name) => loadChroma(client, fixture, name),
    async nearest(name, query) {
      const collection = await client.getCollection({ name });
      return (await collection.query({ queryEmbeddings: [query], nResults: 100 })).ids[0] as string[];
    },
    close,
  };
});

suite('milvus', NO_MILVUS, async () => {
  const { url, close } = await openMilvus();
  const client = new MilvusClient({ address: url });
  return {
    load: (fixture, name) => loadMilvus(client, fixture, name),
    async nearest(collection_name, data, { settings, points }) {
      const nameOf = (is: (field: (typeof settings.fields)[number]) => boolean) =>
        settings.fields.find(is)?.name as string;
      const [key, text] = [nameOf(({ primary }) => primary), nameOf(({ name }) => name.endsWith('text'))];
      const { results } = await client.search({ collection_name, data, limit: 100, output_fields: [text] });
      // A key that the server makes is another one here.
      return results.map((hit) => points.find((point) => point[text] === hit[text])?.[key]);
    },
    async close() {
      await client.closeConnection();
      await close();
    },
  };
});

suite('lancedb', '', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'omp-lancedb-'));
  const connection = await connect(folder);
  return {
    load: (fixture, name) => loadLancedb(connection, fixture, name),
    async nearest(name, query, { ids, points }) {
      const table = await connection.openTable(name);
      const rows: { id?: unknown; text?: unknown }[] = await table.search(query).limit(100).toArray();
      // LangChain.js gives its rows no id.
      return rows.map((row) => row.id ?? Object.values(ids)[points.findIndex(({ text }) => text === row.text)]);
    },
    close: () => rm(folder, { recursive: true }),
  };
});
