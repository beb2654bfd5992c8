import { z } from 'zod';
import { Options as ChromaOptions } from '../../providers/collections/chroma.ts';
import { Options as LancedbOptions } from '../../providers/collections/lancedb.ts';
import { Options as LibsqlOptions } from '../../providers/collections/libsql.ts';
import type { mappingOptions } from '../../providers/collections/mapped/presets.ts';
import { Options as MilvusOptions } from '../../providers/collections/milvus.ts';
import { Options as QdrantOptions } from '../../providers/collections/qdrant.ts';
import { Options as WeaviateOptions } from '../../providers/collections/weaviate.ts';
import { settingFacts } from './facts.ts';

/*
 * Settings of the vector databases whose adapters are in `providers/collections`, each under its name. The adapters' schemas decide what is allowed.
 */

const FIELDS = {
  text: ['the text', 'page_content'],
  user: ['the id of the user', 'metadata.user_id'],
  scope: ['the scope', 'metadata.scope', 'scopes are not supported'],
  created: ['the time of creation', 'metadata.created_at'],
  updated: ['the time of the last change', 'metadata.updated_at'],
  tags: ['tags, a list of strings', 'metadata.tags', 'tags are not supported'],
} as const;

type MappedShape = ReturnType<typeof mappingOptions<string>>;

/** The settings of collections that another application fills: the same for each database. */
function mappingSettings<Shape extends { [Name in keyof MappedShape]: z.ZodType }>(provider: string, shape: Shape) {
  const mapped = { only: [`${provider}.preset`] } as const;
  const env = (name: string) => `OMP_${provider}_${name}`.toUpperCase();
  for (const [name, [what, example, unset = 'that of the preset']] of Object.entries(FIELDS)) {
    shape[`${name as keyof typeof FIELDS}_field`].register(settingFacts, {
      env: env(`${name}_field`),
      description: `Field that holds ${what}; unset: ${unset}`,
      allowed: 'the name of a field of the points, without " \\ and `',
      ...{ example, ...mapped },
    });
  }
  shape.preset.register(settingFacts, {
    env: env('preset'),
    description:
      'Library that fills the mapped collection: selects its fields; custom: the other settings name them; unset: the gateway fills the collection',
    example: 'langchain',
    only: ['provider', provider],
  });
  shape.writable.register(settingFacts, {
    env: env('writable'),
    description: 'Whether the gateway may add, change and delete points',
    ...mapped,
  });
  const { preset, text_field, user_field, scope_field, created_field, updated_field, tags_field, writable } = shape;
  return { preset, text_field, user_field, scope_field, created_field, updated_field, tags_field, writable } as Pick<
    Shape,
    keyof MappedShape
  >;
}

const LANCEDB = { only: ['provider', 'lancedb'] } as const;

const lancedb = z.strictObject({
  folder: LancedbOptions.shape.folder.register(settingFacts, {
    env: 'OMP_LANCEDB_FOLDER',
    description: 'Folder of the database; unset: lancedb in data_dir',
    allowed: 'a path, no address',
    example: '/var/lib/omp/lancedb',
    ...LANCEDB,
  }),
  table: LancedbOptions.shape.table.register(settingFacts, {
    env: 'OMP_LANCEDB_TABLE',
    description: 'Table of the memories, created by the first start',
    allowed: 'letters, digits, _, . and -, at most 63, the first a letter, a digit or _',
    ...LANCEDB,
  }),
  ...mappingSettings('lancedb', LancedbOptions.shape),
});

const LIBSQL = { only: ['provider', 'libsql'] } as const;
const MILVUS = { only: ['provider', 'milvus'] } as const;
const { shape } = LibsqlOptions;

const libsql = z.strictObject({
  url: shape.url.register(settingFacts, {
    env: 'OMP_LIBSQL_URL',
    description: 'Database; unset: the file memories.db in data_dir',
    allowed:
      'an address that begins with libsql://, http:// or https://, or file: and a path; no user, password or authToken',
    example: 'libsql://memories-me.turso.io',
    ...LIBSQL,
  }),
  auth_token: shape.auth_token.register(settingFacts, {
    env: 'OMP_LIBSQL_AUTH_TOKEN',
    description: 'Token of a database on a server',
    allowed: 'printable ASCII characters without spaces',
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
    example: '${OMP_LIBSQL_AUTH_TOKEN}',
    ...LIBSQL,
  }),
  table: shape.table.register(settingFacts, {
    env: 'OMP_LIBSQL_TABLE',
    description: 'Table of the memories, created by the first start',
    allowed: 'letters, digits and _, at most 63, no digit first',
    ...LIBSQL,
  }),
});

const milvus = z.strictObject({
  url: MilvusOptions.shape.url.register(settingFacts, {
    env: 'OMP_MILVUS_URL',
    description: 'Server: Milvus, or Milvus Lite behind gRPC',
    allowed: 'an address that begins with http:// or https:// and ends with a port',
    ...MILVUS,
  }),
  token: MilvusOptions.shape.token.register(settingFacts, {
    env: 'OMP_MILVUS_TOKEN',
    description: 'User and password, joined by a colon, or an API key',
    allowed: 'printable ASCII characters without spaces',
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
    example: '${OMP_MILVUS_TOKEN}',
    ...MILVUS,
  }),
  collection: MilvusOptions.shape.collection.register(settingFacts, {
    env: 'OMP_MILVUS_COLLECTION',
    description: 'Collection of the memories, created by the first start',
    allowed: 'letters, digits and _, at most 255, no digit first',
    ...MILVUS,
  }),
  ...mappingSettings('milvus', MilvusOptions.shape),
});

const QDRANT = { only: ['provider', 'qdrant'] } as const;
const { shape: qdrantShape } = QdrantOptions;

const qdrant = z.strictObject({
  url: qdrantShape.url.register(settingFacts, {
    env: 'QDRANT_URL',
    description: 'Address of the server; without a port it is 6333',
    allowed: 'an http:// or https:// URL without user, password, ? and #',
    ...QDRANT,
  }),
  api_key: qdrantShape.api_key.register(settingFacts, {
    env: 'QDRANT_API_KEY',
    description: 'API key of the server; unset: it has none',
    allowed: 'printable ASCII characters without spaces',
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
    example: '${QDRANT_API_KEY}',
    ...QDRANT,
  }),
  collection: qdrantShape.collection.register(settingFacts, {
    env: 'OMP_QDRANT_COLLECTION',
    description: 'Collection of the memories; the first start creates it',
    allowed: '1 to 255 characters without < > : " / \\ | ? *',
    ...QDRANT,
  }),
  exact: qdrantShape.exact.register(settingFacts, {
    env: 'OMP_QDRANT_EXACT',
    description:
      "Whether a search compares all of a user's vectors; false: Qdrant may use its index, which is approximate",
    ...QDRANT,
  }),
  ...mappingSettings('qdrant', qdrantShape),
});

const CHROMA = { only: ['provider', 'chroma'] } as const;
const { shape: chromaShape } = ChromaOptions;

const chroma = z.strictObject({
  url: chromaShape.url.register(settingFacts, {
    env: 'OMP_CHROMA_URL',
    description: 'Address of the server',
    allowed: 'an http:// or https:// URL without a path',
    ...CHROMA,
  }),
  token: chromaShape.token.register(settingFacts, {
    env: 'OMP_CHROMA_TOKEN',
    description: "Sent as x-chroma-token, to what stands before the server; Chroma's own checks none",
    allowed: 'printable ASCII characters without spaces',
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
    example: '${CHROMA_TOKEN}',
    ...CHROMA,
  }),
  tenant: chromaShape.tenant.register(settingFacts, {
    env: 'OMP_CHROMA_TENANT',
    description: 'Tenant of the database',
    allowed: '3 to 512 printable ASCII characters without spaces',
    ...CHROMA,
  }),
  database: chromaShape.database.register(settingFacts, {
    env: 'OMP_CHROMA_DATABASE',
    description: 'Database of the collection',
    allowed: '3 to 512 printable ASCII characters without spaces',
    ...CHROMA,
  }),
  collection: chromaShape.collection.register(settingFacts, {
    env: 'OMP_CHROMA_COLLECTION',
    description: 'Collection of the memories; the first start creates it',
    allowed: '3 to 512 letters, digits, dots, - and _, of which the first and last are letters or digits',
    ...CHROMA,
  }),
  ...mappingSettings('chroma', chromaShape),
});

const WEAVIATE = { only: ['provider', 'weaviate'] } as const;
const { shape: weaviateShape } = WeaviateOptions;

const weaviate = z.strictObject({
  url: weaviateShape.url.register(settingFacts, {
    env: 'OMP_WEAVIATE_URL',
    description: 'Address of the server',
    allowed: 'an http:// or https:// URL without a path',
    ...WEAVIATE,
  }),
  grpc_url: weaviateShape.grpc_url.register(settingFacts, {
    env: 'OMP_WEAVIATE_GRPC_URL',
    description: 'Address of its gRPC interface, with https:// for TLS; unset: port 50051 of the same host',
    allowed: 'an http:// or https:// URL without a path',
    example: 'https://grpc-memories.weaviate.cloud',
    ...WEAVIATE,
  }),
  api_key: weaviateShape.api_key.register(settingFacts, {
    env: 'OMP_WEAVIATE_API_KEY',
    description: 'API key of the server; unset: it has none',
    allowed: 'printable ASCII characters without spaces',
    secret: true,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the syntax of a reference in the file
    example: '${OMP_WEAVIATE_API_KEY}',
    ...WEAVIATE,
  }),
  collection: weaviateShape.collection.register(settingFacts, {
    env: 'OMP_WEAVIATE_COLLECTION',
    description: 'Collection of the memories; the first start creates it',
    allowed: 'letters, digits and _, at most 255, a capital letter first',
    ...WEAVIATE,
  }),
});

/** By name of the provider. */
export const collections = {
  lancedb: lancedb.prefault({}),
  libsql: libsql.prefault({}),
  milvus: milvus.prefault({}),
  qdrant: qdrant.prefault({}),
  chroma: chroma.prefault({}),
  weaviate: weaviate.prefault({}),
};
/** The providers of this kind. */
export const COLLECTION_NAMES = Object.keys(collections) as (keyof typeof collections)[];
