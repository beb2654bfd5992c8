import type { QdrantClient, Schemas } from '@qdrant/js-client-rest';
import { z } from 'zod';
import {
  type Call,
  type Collection,
  type CollectionSpec,
  defineCollection,
  type Failure,
  FIELDS,
  type Filter,
  type Finding,
  failureOfConnection,
  failureOfStatus,
  loadPackage,
  stoppable,
} from '#provider';
import { mappingOptions, QDRANT } from './mapped/presets.ts';
import { fromKey, operationsOf, shown, toFound, toId, toKey, toVector, vectorIn } from './mapped/qdrant.ts';

const TITLE = 'Qdrant';
/** The client sends neither a user nor a query. */
const Address = z.url({ protocol: /^https?$/ }).regex(/^[^@?#]+$/);
/** The options of a collection. */
export const Options = z.strictObject({
  /** Address of the server. Without a port it is 6333, as in every client of Qdrant; a path is put before those of the interface. */
  url: Address.default('http://127.0.0.1:6333'),
  api_key: z
    .string()
    .regex(/^[\x21-\x7e]+$/)
    .optional(),
  collection: z
    .string()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what the server refuses
    .regex(/^[^<>:"/\\|?*\0\x1f]{1,255}$/)
    .default('omp-memories'),
  /** Whether a search compares all vectors of the user; false: those of a user with very many are searched by the index, approximately. */
  exact: z.boolean().default(true),
  ...mappingOptions(QDRANT),
});
export type Options = z.output<typeof Options>;

export const qdrant: CollectionSpec<Options> = {
  specVersion: 2,
  name: 'qdrant',
  title: TITLE,
  options: Options,
  presets: QDRANT,
  async open(options) {
    const { QdrantClient } = await loadPackage(() => import('@qdrant/js-client-rest'), '@qdrant/js-client-rest@1.18');
    return openCollection(new QdrantClient(clientParams(options)), options);
  },
  failure,
  diagnose: async (collection, _context, call) => (collection as QdrantCollection).findings(call),
};
export default defineCollection(qdrant);

/** What the client is made with. */
function clientParams({ url, api_key }: Options): ConstructorParameters<typeof QdrantClient>[0] {
  const { protocol, hostname, pathname } = new URL(url);
  // The client ignores a port that is the scheme's own, and takes 6333.
  const port = Number(/^\w+:\/\/[^/]*:(\d+)(?:\/|$)/.exec(url)?.[1] ?? 6333);
  return {
    host: hostname,
    port,
    https: protocol === 'https:',
    prefix: pathname.endsWith('/') ? pathname.slice(0, -1) : pathname,
    // Given as `apiKey`, the client writes a warning to the console where it goes over http.
    ...(api_key !== undefined && { headers: { 'api-key': api_key } }),
    // Calls carry the deadline; with a timer of its own the client drops their signal.
    timeout: Number.POSITIVE_INFINITY,
    // It writes to the console too. `doctor` tells the version.
    checkCompatibility: false,
  };
}

type QdrantCollection = Collection & { findings(call: Call): Promise<Finding[]> };

function openCollection(client: QdrantClient, options: Options): QdrantCollection {
  const { collection: collection_name, exact, preset } = options;
  const api = client.api();
  /** The vector of points, which a library may have named. */
  let using = '';
  const found = (point: Schemas['Record']) => toFound(point, using);
  /** Undefined: there is no such collection. */
  const info = (call: Call) =>
    ask(call, (init) => api.getCollection({ collection_name }, init)).catch((error) => {
      if (statusOf(error) !== 404) throw error;
    });
  /** Of a write: with `wait` it answers once it can be read, unless that takes the server too long. */
  const write = async (call: Call, request: Request<Schemas['UpdateResult']>) => {
    const { status } = await ask(call, request);
    if (status !== 'completed') throw new NotYet(status);
  };

  return {
    traits: {
      measure: 'cosine',
      exact,
      filters: ['anyOf', 'allOf', 'not'],
      order: 'number',
      ids: 'uuid',
      nested: true,
      max_batch: 1_000,
      // A request has at most 32 MiB as the server comes, and a component of a vector up to 24 bytes as JSON.
      max_batch_bytes: 4 * 1024 * 1024,
      max_point_bytes: null,
      max_limit: 10_000,
    },

    async describe(call) {
      const found = await info(call);
      if (!found) return undefined;
      const { config, payload_schema } = found;
      const unindexed = FIELDS.flatMap(({ name, filtered }) => (filtered && !(name in payload_schema) ? [name] : []));
      const points = (await ask(call, (init) => api.countPoints({ collection_name, exact: true }, init))).count;
      const { using: name, ...vector } = vectorIn(config.params.vectors, preset !== undefined);
      using = name;
      return { ...vector, empty: points === 0, points, unindexed, indexed: Object.keys(payload_schema).map(fromKey) };
    },

    async prepare({ dimensions, fields }, call) {
      const found = await info(call);
      if (!found) {
        const vectors = { size: dimensions, distance: 'Cosine' as const };
        // A graph for each user with many memories, and none for all together: every search is one of a user.
        const hnsw_config = { m: 0, payload_m: 16 };
        const made = ask(call, (init) => api.createCollection({ collection_name, vectors, hnsw_config }, init));
        await made.catch((error) => {
          // Another gateway was faster.
          if (statusOf(error) !== 409) throw error;
        });
      }
      for (const { name: field_name, type, filtered } of fields) {
        if (!filtered || field_name in (found?.payload_schema ?? {})) continue;
        const field_schema =
          type === 'number'
            ? // An index of integers would not find fractions.
              ({ type: 'float' } as const)
            : ({ type: 'keyword', is_tenant: field_name === 'user_id' } as const);
        const asked = { collection_name, wait: true, field_name, field_schema };
        await write(call, (init) => api.createFieldIndex(asked, init));
      }
    },

    async upsert(points, call) {
      const stored = points.map(({ id, vector, fields }) => ({ id, vector: toVector(vector, using), payload: fields }));
      await write(call, (init) => api.upsertPoints({ collection_name, wait: true, points: stored }, init));
    },

    async fetch(ids, select, call) {
      const asked = { collection_name, ids: ids.map(toId), ...shown(select, using) };
      return (await ask(call, (init) => api.getPoints(asked, init))).map(found);
    },

    async page({ filter, after, limit, select }, call) {
      const asked = { collection_name, limit, ...shown(select, using), filter: filter && toFilter(filter) };
      const request = after === undefined ? asked : { ...asked, offset: toId(after) };
      const { points, next_page_offset: next } = await ask(call, (init) => api.scrollPoints(request, init));
      return { points: points.map(found), next: next == null ? undefined : String(next) };
    },

    async change(change, call) {
      const asked = { collection_name, wait: true, operations: operationsOf(change, using) };
      const done = await ask(call, (init) => api.batchUpdate(asked, init)).catch((error) => {
        if (statusOf(error) !== 404 || !messageIn(error).includes('No point')) throw error;
      });
      if (done?.some(({ status }) => status !== 'completed')) throw new NotYet();
      return done !== undefined;
    },

    remove: (ids, call) =>
      write(call, (init) => api.deletePoints({ collection_name, wait: true, points: ids.map(toId) }, init)),

    async query({ vector, filter, limit, select }, call) {
      const asked = { collection_name, query: [...vector], filter: toFilter(filter), limit, params: { exact } };
      const { points } = await ask(call, (init) =>
        api.queryPoints({ ...asked, ...shown(select, using), ...(using !== '' && { using }) }, init),
      );
      return points.map((point) => ({ ...found(point), measure: point.score }));
    },

    async scan({ filter, order, limit, select }, call) {
      const order_by = order && { key: order.by, direction: order.descending ? ('desc' as const) : ('asc' as const) };
      const wanted = { filter: toFilter(filter), limit, ...(order_by && { order_by }) };
      const asked = { collection_name, ...wanted, ...shown(select, using) };
      return (await ask(call, (init) => api.scrollPoints(asked, init))).points.map(found);
    },

    async count(filter, call) {
      const asked = { collection_name, filter: toFilter(filter), exact: true };
      return (await ask(call, (init) => api.countPoints(asked, init))).count;
    },

    ping: async (call) => void (await ask(call, (init) => api.collectionExists({ collection_name }, init))),
    close: async () => {},

    async findings(call) {
      const { data } = await api.root({}, { signal: call.signal });
      const findings: Finding[] = [{ area: 'connection', level: 'ok', message: `${TITLE} ${data.version} answers` }];
      const found = await info(call);
      if (!found) return findings;
      const { status, optimizer_status, config } = found;
      const { replication_factor = 1, write_consistency_factor = 1 } = config.params;
      if (status === 'red' || optimizer_status !== 'ok') {
        const message = `the collection "${collection_name}" is ${status}: its optimizer failed; the log of ${TITLE} says why`;
        findings.push({ area: 'connection', level: 'problem', message });
      }
      if (write_consistency_factor < replication_factor) {
        const message =
          `a write is answered when ${write_consistency_factor} of ${replication_factor} replicas have it, so that a read from another one may ` +
          `miss it; set write_consistency_factor to ${replication_factor}`;
        findings.push({ area: 'configuration', level: 'warning', message });
      }
      if (config.strict_mode_config?.enabled) {
        const message = `the collection "${collection_name}" has strict mode, which may refuse large pages and exact searches`;
        findings.push({ area: 'configuration', level: 'warning', message });
      }
      return findings;
    },
  };
}

const toFilter = (filter: Filter): Schemas['Filter'] => ({ must: [toCondition(filter)] });

function toCondition(filter: Filter): Schemas['Condition'] {
  if (filter.op === 'and') return { must: filter.filters.map(toCondition) };
  if (filter.op === 'not') return { must_not: [toCondition(filter.filter)] };
  const key = toKey(filter.field);
  switch (filter.op) {
    case 'equals':
      return typeof filter.value === 'string'
        ? { key, match: { value: filter.value } }
        : { key, range: { gte: filter.value, lte: filter.value } };
    case 'anyOf':
      return { key, match: { any: [...filter.values] } };
    case 'allOf':
      return { must: filter.values.map((value) => ({ key, match: { value } })) };
    case 'range':
      return { key, range: { gte: filter.from ?? null, lte: filter.to ?? null } };
    case 'prefix':
      throw new Error(`${TITLE} matches no prefixes, and says so in its traits`);
  }
}

/** An answer of the interface; without a result it is none of Qdrant's. */
interface Response<Result> {
  readonly data: { readonly result?: Result } | string | undefined;
}
class Nonsense extends Error {
  override readonly name = 'Nonsense';
}
/** The write is stored, and not to be read yet. */
class NotYet extends Error {
  override readonly name = 'NotYet';
}

type Request<Result> = (init: { readonly signal: AbortSignal }) => Promise<Response<Result>>;

async function ask<Result>(call: Call, request: Request<Result>): Promise<Result> {
  const { data } = await stoppable(call, (signal) => request({ signal }));
  const result = typeof data === 'object' ? data.result : undefined;
  if (result === undefined || result === null) throw new Nonsense('an answer without a result');
  return result;
}

const statusOf = (error: unknown): number | undefined => {
  const { status } = Object(error) as { readonly status?: unknown };
  return typeof status === 'number' ? status : undefined;
};

function failure(error: unknown): Failure | undefined {
  const { name } = Object(error) as Error;
  if (name === 'Nonsense' || name === 'SyntaxError') {
    return { message: `${TITLE}, or what stands before it, answered what cannot be read`, retry: 'reads', down: true };
  }
  if (name === 'NotYet') return { message: `${TITLE} stored the write, but is too slow to show it`, down: true };
  // The client keeps only the first digit of `Retry-After`.
  if (name === 'QdrantClientResourceExhaustedError') return failureOfStatus(TITLE, 429);
  const status = statusOf(error);
  if (status === undefined) return failureOfConnection(TITLE, error);
  // Its errors end with a hint, others do not.
  if (status === 400 && messageIn(error).includes(' Help: ')) {
    return { message: 'strict mode of the collection refuses the request; switch it off, or raise its limits' };
  }
  return failureOfStatus(TITLE, status);
}

/** What Qdrant says; it may quote the request. */
const messageIn = (error: unknown): string => {
  const { data } = Object(error) as { readonly data?: { readonly status?: { readonly error?: unknown } } };
  return String(Object(data?.status).error ?? '').slice(0, 1_000);
};
