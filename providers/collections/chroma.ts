import type { ChromaClient, Collection as ChromaCollection, GetResult, Metadata, Where } from 'chromadb';
import { z } from 'zod';
import {
  type Collection,
  defineCollection,
  type Failure,
  type Filter,
  failureOfStatus,
  loadPackage,
  type Traits,
} from '#provider';
import { included, MEASURES, toChange, toFound, toMetadata } from './mapped/chroma.ts';
import { CHROMA, mappingOptions } from './mapped/presets.ts';

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
  ...mappingOptions(CHROMA),
});
type Options = z.output<typeof Options>;

const TITLE = 'Chroma';

/** A collection on a Chroma server. */
export default defineCollection({
  specVersion: 2,
  name: 'chroma',
  title: TITLE,
  options: Options,
  presets: CHROMA,
  async open(options) {
    const { ChromaClient } = await loadPackage(() => import('chromadb'), 'chromadb@3.5');
    const client = new ChromaClient(argumentsOf(options));
    await requireAnswer(options);
    return openCollection(client, options, Math.min(MAX_BATCH, await client.getMaxBatchSize()));
  },
  failure,
});

/** Throws if what takes connections does not answer: the client would wait five minutes, and hold the process as long. */
const requireAnswer = ({ url }: Options): Promise<unknown> =>
  fetch(new URL('/api/v2/heartbeat', url), { method: 'HEAD', signal: AbortSignal.timeout(10_000) }).catch((error) => {
    if (nameOf(error) === 'TimeoutError') throw error;
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

function openCollection(client: ChromaClient, { collection: name, preset }: Options, max_batch: number): Collection {
  const isMapped = preset !== undefined;
  /** The name of the field that the document is. No metadata have the other one: Chroma refuses its `#`. */
  const document = isMapped ? DOCUMENT : 'content';
  const rows = (result: GetResult<Metadata>, name = document) => result.rows().map((row) => toFound(row, name));
  let opened: ChromaCollection | undefined;
  const found = async () => {
    // Without a function, the client would load the package that the collection names.
    opened ??= await client.getCollection({ name, embeddingFunction: NO_FUNCTION });
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
      const space = (hnsw ?? spann)?.space ?? 'l2';
      const [points, first] = [await collection.count(), await collection.get({ limit: 1, include: ['embeddings'] })];
      const known = { empty: points === 0, points };
      // Chroma tells the length of vectors by nothing but a vector.
      if (isMapped) return { ...known, dimensions: first.embeddings[0]?.length ?? 0, measure: MEASURES[space] };
      const dimensions = Number(collection.metadata?.[DIMENSIONS] ?? 0);
      const mistake =
        dimensions === 0
          ? `the collection "${name}" was not made by the gateway; name another one by OMP_CHROMA_COLLECTION`
          : `the collection "${name}" compares vectors by ${space}, not by cosine`;
      return { ...known, dimensions, mistake: dimensions > 0 && space === 'cosine' ? undefined : mistake };
    },

    async prepare({ dimensions }) {
      // An existing one is returned as it is.
      opened = await client.getOrCreateCollection({
        ...{ name, embeddingFunction: null, metadata: { [DIMENSIONS]: dimensions } },
        configuration: { hnsw: { space: 'cosine' } },
      });
    },

    async upsert(points) {
      const documents = points.flatMap(({ fields }) => (document in fields ? [String(fields[document])] : []));
      await (await found()).upsert({
        ids: points.map(({ id }) => id),
        embeddings: points.map(({ vector }) => [...vector]),
        // A library may keep none.
        ...(documents.length > 0 && { documents }),
        // Of the gateway's, each has all fields, so that nothing stays of one that is replaced: Chroma merges.
        metadatas: points.map(({ fields }) => toMetadata(fields, document)),
      });
    },

    async fetch(ids, select) {
      return rows(await (await found()).get({ ids: [...ids], include: included(select, document) }));
    },

    async page({ filter, after = '0', limit, select }) {
      const where = filter && { where: toWhere(filter) };
      const asked = { ...where, limit, offset: Number(after), include: included(select, DOCUMENT) };
      const points = rows(await (await found()).get(asked), DOCUMENT);
      return { points, next: points.length < limit ? undefined : String(Number(after) + limit) };
    },

    async change({ id, fields, vector }) {
      const metadata = toChange(fields, document);
      await (await found()).update({
        ids: [id],
        ...(Object.keys(metadata).length > 0 && { metadatas: [metadata] }),
        ...(document in fields && { documents: [String(fields[document])] }),
        ...(vector && { embeddings: [[...vector]] }),
      });
      // Chroma does not say that the point of an update is gone.
      return (await (await found()).get({ ids: [id], include: [] })).ids.length > 0;
    },

    async remove(ids) {
      await (await found()).delete({ ids: [...ids] });
    },

    async query({ vector, filter, limit, select }) {
      const result = await (await found()).query({
        ...{ queryEmbeddings: [[...vector]], where: toWhere(filter), nResults: limit },
        include: [...included(select, document), 'distances'],
      });
      return (result.rows()[0] ?? []).map((row) => ({ ...toFound(row, document), measure: Number(row.distance) }));
    },

    async scan({ filter, limit, select }) {
      return rows(await (await found()).get({ where: toWhere(filter), limit, include: included(select, document) }));
    },

    async count(filter) {
      const { ids } = await (await found()).get({ where: toWhere(filter), include: [] });
      return ids.length;
    },

    ping: async () => void (await client.heartbeat()),
    close: async () => {},
  };
}

/** The gateway gives every vector. */
const NO_FUNCTION = { generate: () => Promise.reject(new Error('a vector is missing')) };
/** The document of a record of others, as a field. */
const DOCUMENT = '#document';
/** The key in the metadata of a collection that holds the length of its vectors: Chroma itself knows it from the first one on. */
const DIMENSIONS = 'omp_dimensions';

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
