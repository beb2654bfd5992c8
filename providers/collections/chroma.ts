import type { ChromaClient, Collection as ChromaCollection, Metadata, Where } from 'chromadb';
import { z } from 'zod';
import {
  type Collection,
  defineCollection,
  type Failure,
  type FieldValue,
  type Filter,
  type FoundPoint,
  failureOfStatus,
  loadPackage,
  type Point,
  type PointFields,
  type Selection,
  type Traits,
} from '#provider';

const PRINTABLE = /^[\x21-\x7e]+$/;

/** The options of a collection. `src/config/collection-settings.ts` derives the settings from them. */
export const Options = z.strictObject({
  url: z
    .string()
    .regex(/^https?:\/\/[^\s/?#@]+\/?$/)
    .default('http://127.0.0.1:8000'),
  token: z.optional(z.string().regex(PRINTABLE)),
  tenant: z.string().min(3).max(512).regex(PRINTABLE).default('default_tenant'),
  database: z.string().min(3).max(512).regex(PRINTABLE).default('default_database'),
  collection: z
    .string()
    .regex(/^[A-Za-z0-9][\w.-]{1,510}[A-Za-z0-9]$/)
    .default('omp-memories'),
});
type Options = z.output<typeof Options>;

const TITLE = 'Chroma';

/** A collection on a Chroma server. */
export default defineCollection({
  specVersion: 2,
  name: 'chroma',
  title: TITLE,
  options: Options,
  async open(options) {
    const { ChromaClient } = await loadPackage(() => import('chromadb'), 'chromadb@3.5');
    const client = new ChromaClient(argumentsOf(options));
    return openCollection(client, options.collection, Math.min(MAX_BATCH, await client.getMaxBatchSize()));
  },
  failure,
});

function argumentsOf({ url, token, tenant, database }: Options): ConstructorParameters<typeof ChromaClient>[0] {
  const { protocol, hostname, port } = new URL(url);
  const ssl = protocol === 'https:';
  return {
    ...{ host: hostname, port: Number(port || (ssl ? 443 : 80)), ssl, tenant, database },
    ...(token !== undefined && { headers: { 'x-chroma-token': token } }),
  };
}

/** So many vectors are some megabytes as JSON. */
const MAX_BATCH = 1_000;
const TRAITS: Omit<Traits, 'max_batch'> = {
  measure: 'cosine distance',
  exact: false,
  filters: ['anyOf', 'allOf', 'not'],
  // It returns what was stored first, first.
  order: 'none',
  ids: 'text',
  // A request has at most 40 MiB, and a component of a vector up to 24 bytes as JSON.
  max_batch_bytes: 6 * 1024 * 1024,
  max_point_bytes: null,
  max_limit: 10_000,
};

function openCollection(client: ChromaClient, name: string, max_batch: number): Collection {
  let opened: ChromaCollection | undefined;
  const found = async () => {
    opened ??= await client.getCollection({ name });
    return opened;
  };

  return {
    traits: { ...TRAITS, max_batch },

    async describe() {
      const collection = await found().catch((error) => {
        if (nameOf(error) !== 'ChromaNotFoundError') throw error;
      });
      if (!collection) return undefined;
      const { hnsw, spann } = collection.configuration;
      const { space = 'l2' } = hnsw ?? spann ?? {};
      const dimensions = Number(collection.metadata?.[DIMENSIONS] ?? 0);
      const empty = (await collection.get({ limit: 1, include: [] })).ids.length === 0;
      if (dimensions === 0)
        return {
          dimensions,
          empty,
          mistake: `the collection "${name}" was not made by the gateway; name another one by OMP_CHROMA_COLLECTION`,
        };
      return {
        dimensions,
        empty,
        mistake:
          space === 'cosine' ? undefined : `the collection "${name}" compares vectors by ${space}, not by cosine`,
      };
    },

    async prepare({ dimensions }) {
      // An existing one is returned as it is.
      opened = await client.getOrCreateCollection({
        ...{ name, embeddingFunction: null, metadata: { [DIMENSIONS]: dimensions } },
        configuration: { hnsw: { space: 'cosine' } },
      });
    },

    async upsert(points) {
      await (await found()).upsert({
        ids: points.map(({ id }) => id),
        embeddings: points.map(({ vector }) => [...vector]),
        documents: points.map(({ fields }) => String(fields.content)),
        metadatas: points.map(toMetadata),
      });
    },

    async fetch(ids, select) {
      return (await (await found()).get({ ids: [...ids], include: included(select) })).rows().map(toFound);
    },

    async remove(ids) {
      await (await found()).delete({ ids: [...ids] });
    },

    async query({ vector, filter, limit, select }) {
      const result = await (await found()).query({
        ...{ queryEmbeddings: [[...vector]], where: toWhere(filter), nResults: limit },
        include: [...included(select), 'distances'],
      });
      return (result.rows()[0] ?? []).map((row) => ({ ...toFound(row), measure: Number(row.distance) }));
    },

    async scan({ filter, limit, select }) {
      const result = await (await found()).get({ where: toWhere(filter), limit, include: included(select) });
      return result.rows().map(toFound);
    },

    async count(filter) {
      const { ids } = await (await found()).get({ where: toWhere(filter), include: [] });
      return ids.length;
    },

    ping: async () => void (await client.heartbeat()),
    close: async () => {},
  };
}

/** The key in the metadata of a collection that holds the length of its vectors: Chroma itself knows it from the first one on. */
const DIMENSIONS = 'omp_dimensions';

/** Chroma refuses an empty list. No list of the gateway has an empty text. */
const NOTHING = [''];
const stored = (value: FieldValue): string | number | string[] =>
  typeof value !== 'object' ? value : value.length > 0 ? [...value] : NOTHING;
const read = (value: unknown): FieldValue =>
  Array.isArray(value) ? value.filter((one) => one !== '') : (value as FieldValue);

/** All fields but the content, which is the document. A point has all of them, so that nothing stays of one that is replaced: Chroma merges. */
const toMetadata = ({ fields }: Point): Metadata =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]) => (key === 'content' ? [] : [[key, stored(value)]])),
  );

interface Row {
  readonly id: string;
  readonly document?: string | null | undefined;
  readonly metadata?: Metadata | null | undefined;
  readonly embedding?: number[] | null | undefined;
}

const toFound = ({ id, document, metadata, embedding }: Row): FoundPoint => {
  const fields: PointFields = Object.fromEntries(
    Object.entries(metadata ?? {}).map(([key, value]) => [key, read(value)]),
  );
  return {
    id,
    fields: { ...fields, ...(typeof document === 'string' && { content: document }) },
    ...(embedding && { vector: Float32Array.from(embedding) }),
  };
};

type Include = 'documents' | 'metadatas' | 'embeddings';

/** Chroma returns all metadata or none. */
const included = ({ fields, vector }: Selection): Include[] => [
  ...(fields === undefined || fields.includes('content') ? ['documents' as const] : []),
  ...(fields === undefined || fields.some((name) => name !== 'content') ? ['metadatas' as const] : []),
  ...(vector ? ['embeddings' as const] : []),
];

/** Every point has every field: none is found because it lacks it. */
function toWhere(filter: Filter): Where {
  switch (filter.op) {
    case 'equals':
      return { [filter.field]: { $eq: filter.value } };
    case 'anyOf':
      return { [filter.field]: { $in: [...filter.values] } };
    case 'allOf':
      return every(filter.values.map((value) => ({ [filter.field]: { $contains: value } })));
    case 'range':
      // All numbers are integers. Against those, Chroma cuts a fraction off.
      return every([
        ...(filter.from === undefined ? [] : [{ [filter.field]: { $gte: Math.ceil(filter.from) } }]),
        ...(filter.to === undefined ? [] : [{ [filter.field]: { $lte: Math.floor(filter.to) } }]),
      ]);
    case 'and':
      return every(filter.filters.map(toWhere));
    case 'not':
      return opposite(filter.filter);
    case 'prefix':
      throw new Error(`${TITLE} matches no prefixes, and says so in its traits`);
  }
}

/** Chroma has no `not`. */
function opposite(filter: Filter): Where {
  switch (filter.op) {
    case 'equals':
      return { [filter.field]: { $ne: filter.value } };
    case 'anyOf':
      return { [filter.field]: { $nin: [...filter.values] } };
    case 'allOf':
      return some(filter.values.map((value) => ({ [filter.field]: { $not_contains: value } })));
    case 'range':
      return some([
        ...(filter.from === undefined ? [] : [{ [filter.field]: { $lt: Math.ceil(filter.from) } }]),
        ...(filter.to === undefined ? [] : [{ [filter.field]: { $gt: Math.floor(filter.to) } }]),
      ]);
    case 'and':
      return some(filter.filters.map(opposite));
    case 'not':
      return toWhere(filter.filter);
    case 'prefix':
      return toWhere(filter);
  }
}

/** Chroma takes `$and` and `$or` with two or more only. */
const every = (conditions: Where[]): Where =>
  conditions.length === 1 ? (conditions[0] as Where) : { $and: conditions };
const some = (conditions: Where[]): Where => (conditions.length === 1 ? (conditions[0] as Where) : { $or: conditions });

/** What a create of a collection answers. */
const NO_DATABASE = /status: Database \[[^\]]{0,512}\] does not exist$/;
const messageOf = (error: unknown): string => String((Object(error) as Error).message).slice(0, 2_000);
const nameOf = (error: unknown): string => String((Object(error) as Error).name);

/** By the name of the client's error. It does not tell a connection that broke from one that was never made. */
const FAILURES: Readonly<Record<string, Failure>> = {
  ChromaConnectionError: { message: `${TITLE} cannot be reached`, retry: 'reads', down: true, loggable: true },
  ChromaServerError: { message: `${TITLE} failed`, retry: 'reads', down: true },
  ChromaQuotaExceededError: { message: 'a quota of the account at Chroma is used up' },
  ChromaNotFoundError: { message: `${TITLE} has no such collection, database or tenant` },
};
const NONSENSE: Failure = {
  message: `${TITLE}, or what stands before it, answered what cannot be read`,
  retry: 'reads',
  down: true,
};
const STATUSES: Readonly<Record<string, number>> = {
  ChromaAuthError: 401,
  ChromaForbiddenError: 403,
  ChromaRateLimitError: 429,
};

function failure(error: unknown): Failure | undefined {
  const name = nameOf(error);
  // The client makes an error of the server of every status that it does not know.
  if (name === 'ChromaServerError' && messageOf(error).startsWith('413')) return failureOfStatus(TITLE, 413);
  if (name === 'ChromaClientError' && NO_DATABASE.test(messageOf(error))) return FAILURES.ChromaNotFoundError;
  if (name === 'TypeError' || name === 'SyntaxError') return NONSENSE;
  return FAILURES[name] ?? failureOfStatus(TITLE, STATUSES[name] ?? 0);
}
