import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Connection } from '@lancedb/lancedb';
import type { QdrantClient, Schemas } from '@qdrant/js-client-rest';
import { DataType, type FieldType, type MilvusClient } from '@zilliz/milvus2-sdk-node';
import type { ChromaClient, CreateCollectionConfiguration, Metadata } from 'chromadb';

// LanceDB takes tables of the module that it loads itself.
const { tableFromIPC } = createRequire(import.meta.url)('apache-arrow') as typeof import('apache-arrow');

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
    readonly settings: { readonly metadata?: Metadata; readonly configuration: { readonly hnsw: object } };
    readonly points: readonly {
      readonly id: string;
      readonly document: string;
      readonly metadata: Metadata | null;
      readonly embedding: number[];
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
    /** The rows with their schema as a stream of Arrow in base64, and the types of the columns in words. */
    readonly settings: { readonly arrow: string; readonly fields: Readonly<Record<string, string>> };
    readonly points: readonly Readonly<Record<string, unknown>>[];
  };
  readonly postgres: {
    /** Statements that make the tables, and those that make their keys and indexes once the rows are there, as `pg_dump` says them. */
    readonly settings: { readonly ddl: readonly string[]; readonly indexes: readonly string[] };
    /** Rows of all tables, without the columns that the database computes. Vectors are texts, as Postgres reads them. */
    readonly points: readonly { readonly table: string; readonly row: Readonly<Record<string, unknown>> }[];
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
  readonly language: 'python' | 'javascript' | 'java' | 'go' | 'rust';
  /** Packages that took part, with their versions: the library first; and the server. */
  readonly versions: Readonly<Record<string, string>>;
  /** The name of the collection or table; of a table of Postgres with its schema: `public.notes`. */
  readonly collection: string;
  /**
   * The ids of points as the database has them, by the key of what was given: of several columns, as the gateway joins them. Left out: the library did not take it. LangChain.js gives rows of LanceDB no
   * id: these are then names for the fixture alone.
   */
  readonly ids: Readonly<Record<string, string>>;
  /** What it said to metadata that it did not take, with the key: it was then given the keys of the first one alone, with their types. */
  readonly refused: readonly string[];
  /** Searches by the library with its own filter of a user, nearest first: keys, and the numbers it gave with them. */
  readonly searches: readonly {
    readonly user_id: string;
    readonly text: string;
    /** Of Postgres alone: the distance that the library was told to measure. */
    readonly metric?: 'cosine' | 'l2' | 'inner product';
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

/** Drinks of ana, so that the ten nearest of hers are a choice. Tables of Postgres have these too. */
const DRINKS = ['cocoa', 'cider', 'water', 'juice', 'milk', 'broth', 'soda', 'matcha', 'lemonade', 'kefir'];
export const GIVEN_TO_TABLES: ReadonlyMap<string, Given> = new Map([
  ...GIVEN,
  ...DRINKS.map((key): [string, Given] => [
    key,
    { key, user_id: 'ana', text: `drinks ${key} now and then`, metadata: {} },
  ]),
]);

/** The preset that serves what a library filled. Presets of two languages end in the second one; n8n fills some databases as LangChain does. */
export function presetOf({ library, language }: Pick<Fixture, 'library' | 'language'>, presets: object): string {
  const own = language === 'javascript' ? [`${library}-js`, `${library}-ts`] : [];
  return [...own, library, 'langchain'].find((name) => name in presets) as string;
}

/** All fixtures of a database with the names of their files. */
export const fixturesOf = <Name extends DatabaseName>(database: Name): (FixtureOf<Name> & { name: string })[] =>
  readdirSync(new URL('fixtures/', FOLDER))
    .filter((file) => file.startsWith(`${database}-`))
    .sort()
    .map((file) => ({ ...read(`fixtures/${file}`), name: file.replace('.json', '') }));

// Each creates the collection as the library did, with its points.

export async function loadQdrant(client: QdrantClient, fixture: FixtureOf<'qdrant'>, collection = fixture.collection) {
  await client.createCollection(collection, fixture.settings);
  for (const [field_name, field_schema] of Object.entries(fixture.indexes)) {
    await client.createPayloadIndex(collection, { field_name, field_schema, wait: true });
  }
  await client.upsert(collection, { points: [...fixture.points], wait: true });
}

export async function loadChroma(client: ChromaClient, fixture: FixtureOf<'chroma'>, name = fixture.collection) {
  const { metadata, configuration } = fixture.settings;
  const created = await client.createCollection({
    ...{ name, embeddingFunction: null, configuration: { hnsw: configuration.hnsw } as CreateCollectionConfiguration },
    ...(metadata && { metadata }),
  });
  const all = <Key extends keyof (typeof fixture.points)[number]>(key: Key) =>
    fixture.points.map((point) => point[key]);
  const documents = all('document');
  await created.add({
    ...{ ids: all('id'), embeddings: all('embedding') },
    ...(documents.some((document) => document !== null) && { documents }),
    metadatas: all('metadata') as Metadata[],
  });
}

export async function loadMilvus(
  client: MilvusClient,
  fixture: FixtureOf<'milvus'>,
  collection_name = fixture.collection,
) {
  const { fields, dynamic, indexes } = fixture.settings;
  const must = (status: { readonly code?: number; readonly reason?: string }) => {
    if (status.code) throw new Error(status.reason);
  };
  must(
    await client.createCollection({
      ...{ collection_name, enable_dynamic_field: dynamic },
      fields: fields.map(
        ({ name, type, primary, auto_id, nullable, params }): FieldType => ({
          ...{ name, data_type: DataType[type as keyof typeof DataType], is_primary_key: primary, autoID: auto_id },
          ...{ nullable, ...params },
        }),
      ),
    }),
  );
  for (const [field_name, params] of Object.entries(indexes)) {
    must(await client.createIndex({ collection_name, field_name, extra_params: params as never }));
  }
  await client.loadCollectionSync({ collection_name });
  const keys = fields.filter(({ auto_id }) => auto_id).map(({ name }) => name);
  const data = fixture.points.map((point) =>
    Object.fromEntries(Object.entries(point).filter(([name]) => !keys.includes(name))),
  );
  must((await client.insert({ collection_name, data: data as never })).status);
}

export async function loadLancedb(connection: Connection, fixture: FixtureOf<'lancedb'>, name = fixture.collection) {
  await connection.createTable(name, tableFromIPC(Buffer.from(fixture.settings.arrow, 'base64')) as never);
}

/** Into an empty database with pgvector in `public`. */
export async function loadPostgres(
  sql: (text: string, values?: readonly unknown[]) => Promise<unknown>,
  { settings, points }: FixtureOf<'postgres'>,
): Promise<void> {
  for (const statement of settings.ddl) await sql(statement);
  for (const { table, row } of points) {
    const columns = Object.keys(row).map((name) => `"${name}"`);
    await sql(
      `insert into ${table} (${columns}) overriding system value select ${columns} from json_populate_record(null::${table}, $1)`,
      [JSON.stringify(row)],
    );
  }
  for (const statement of settings.indexes) await sql(statement);
}
