import { readdirSync, readFileSync } from 'node:fs';
import type { QdrantClient, Schemas } from '@qdrant/js-client-rest';

/*
 * Collections that libraries filled, as the database's own client showed them (`record/main.ts`). Names: database, library, language, and the version
 * where there are several.
 */

/** What was given to every library: two users, a record without one, and metadata of every kind. */
export interface Given {
  readonly key: string;
  readonly user_id?: string;
  readonly text: string;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** How a database keeps a collection: what creates an equal one, and its points as they are written. */
interface Stored {
  readonly qdrant: {
    /** The body of `PUT /collections/{name}`. */
    readonly settings: Schemas['CreateCollection'];
    /** Indexes of payload fields, by field. */
    readonly indexes: Readonly<Record<string, Schemas['PayloadFieldSchema']>>;
    readonly points: readonly Schemas['PointStruct'][];
  };
  readonly chroma: {
    readonly settings: { readonly metadata: Readonly<Record<string, unknown>> | null; readonly configuration: object };
    readonly points: readonly {
      readonly id: string;
      readonly document: string | null;
      readonly metadata: Readonly<Record<string, unknown>> | null;
      readonly embedding: readonly number[];
    }[];
  };
  readonly milvus: {
    /** Of `describe_collection` and `describe_index`: fields by name with their type, the key, dynamic fields, the metric of each vector. */
    readonly settings: {
      readonly fields: readonly MilvusField[];
      readonly dynamic: boolean;
      readonly indexes: Readonly<Record<string, Readonly<Record<string, string>>>>;
    };
    /** Dynamic fields stand beside the others. */
    readonly points: readonly Readonly<Record<string, unknown>>[];
  };
  readonly lancedb: {
    /** The Arrow schema as an empty stream in base64, and readable. */
    readonly settings: { readonly arrow: string; readonly fields: Readonly<Record<string, string>> };
    readonly points: readonly Readonly<Record<string, unknown>>[];
  };
}
export type DatabaseName = keyof Stored;

interface MilvusField {
  readonly name: string;
  readonly type: string;
  readonly primary: boolean;
  readonly auto_id: boolean;
  readonly nullable: boolean;
  /** Such as `dim` and `max_length`. */
  readonly params: Readonly<Record<string, string>>;
}

export type Fixture = { readonly [Name in DatabaseName]: FixtureOf<Name> }[DatabaseName];
export type FixtureOf<Name extends DatabaseName> = {
  readonly database: Name;
  readonly library: string;
  readonly language: 'python' | 'javascript';
  /** Packages that took part, with their versions: the library first; and the server. */
  readonly versions: Readonly<Record<string, string>>;
  /** The name of the collection or table. */
  readonly collection: string;
  /** The ids of points as the database has them, by the key of what was given. Left out: the library did not take it. */
  readonly ids: Readonly<Record<string, string>>;
  /** What it said to what it did not take, by key. */
  readonly refused?: readonly string[];
  /** Searches by the library with its own filter of a user, nearest first: keys, and the numbers it gave with them. */
  readonly searches: readonly {
    readonly user_id: string;
    readonly text: string;
    readonly found: readonly string[];
    readonly scores: readonly number[];
  }[];
} & Stored[Name];

const FOLDER = new URL('./', import.meta.url);
const read = (path: string) => JSON.parse(readFileSync(new URL(path, FOLDER), 'utf8'));

/** What was given to every library, by key. */
export const GIVEN: ReadonlyMap<string, Given> = new Map(
  (read('record/memories.json') as Given[]).map((given) => [given.key, given]),
);

/** All fixtures of a database with the names of their files. */
export const fixturesOf = <Name extends DatabaseName>(database: Name): (FixtureOf<Name> & { name: string })[] =>
  readdirSync(new URL('fixtures/', FOLDER))
    .filter((file) => file.startsWith(`${database}-`))
    .sort()
    .map((file) => ({ ...read(`fixtures/${file}`), name: file.replace('.json', '') }));

/** Creates the collection as the library did, with its points. */
export async function loadQdrant(client: QdrantClient, fixture: FixtureOf<'qdrant'>, collection = fixture.collection) {
  await client.createCollection(collection, fixture.settings);
  for (const [field_name, field_schema] of Object.entries(fixture.indexes)) {
    await client.createPayloadIndex(collection, { field_name, field_schema, wait: true });
  }
  await client.upsert(collection, { points: [...fixture.points], wait: true });
}
