import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FilterValue, Properties, Collection as WeaviateCollection } from 'weaviate-client';
import { z } from 'zod';
import {
  Call,
  type Collection,
  type CollectionSpec,
  defineCollection,
  type Failure,
  type Filter,
  type Finding,
  failureOfConnection,
  failureOfStatus,
  loadPackage,
  type Point,
  type Selection,
} from '#provider';
import {
  flush,
  MADE,
  mend,
  NOTHING,
  restore,
  schemaOf,
  shown,
  toFilter,
  toFound,
  toObject,
} from './points/weaviate.ts';

const TITLE = 'Weaviate';
const Address = z.string().regex(/^https?:\/\/[^\s/?#@]+\/?$/);
const Name = z.string().regex(/^[A-Z]\w{0,254}$/);

/** The options of a collection. `src/config/collection-settings.ts` derives the settings from them. */
export const Options = z.strictObject({
  url: Address.default('http://127.0.0.1:8080'),
  /** Unset: port 50051 of the same host. */
  grpc_url: z.optional(Address),
  api_key: z.optional(z.string().regex(/^[\x21-\x7e]+$/)),
  collection: Name.default('OmpMemories'),
});
type Options = z.output<typeof Options>;

/** A collection on a Weaviate server. Vectors are compared exactly. */
export const weaviate: CollectionSpec<Options> = {
  specVersion: 2,
  name: 'weaviate',
  title: TITLE,
  options: Options,
  async open(options) {
    return openCollection(await loadPackage(() => import('weaviate-client'), 'weaviate-client@3.12'), options);
  },
  failure,
  diagnose: (collection) => (collection as Opened).findings(),
};
export default defineCollection(weaviate);

type Library = Pick<typeof import('weaviate-client'), 'ApiKey' | 'connectToCustom' | 'Filters'>;
type Handle = WeaviateCollection<Properties>;
type Opened = Collection & { findings(): Promise<Finding[]> };

async function connect({ ApiKey, connectToCustom }: Library, { url, grpc_url, api_key, collection }: Options) {
  const rest = new URL(url);
  const grpc = new URL(grpc_url ?? `${rest.protocol}//${rest.hostname}:50051`);
  const client = await connectToCustom({
    ...{ httpHost: rest.hostname, httpPort: portOf(rest), httpSecure: isSecure(rest) },
    ...{ grpcHost: grpc.hostname, grpcPort: portOf(grpc), grpcSecure: isSecure(grpc) },
    ...(api_key !== undefined && { authCredentials: new ApiKey(api_key) }),
    // They write to the console.
    skipInitChecks: true,
  });
  // `use` asks for it too, and would end the process if nobody answers.
  await client.getWeaviateVersion();
  const handle: Handle = client.collections.use<string, Properties>(collection);
  await sendOnce(handle.query);
  return { client, handle };
}
const isSecure = ({ protocol }: URL): boolean => protocol === 'https:';
const portOf = (url: URL): number => Number(url.port || (isSecure(url) ? 443 : 80));

async function openCollection(library: Library, options: Options): Promise<Opened> {
  const name = options.collection;
  let connection: ReturnType<typeof connect> | undefined;
  let isPrepared = false;
  const connected = () => {
    connection ??= connect(library, options).then(async (made) => {
      // Weaviate may have crashed meanwhile. What it answers is for the request that follows.
      try {
        if (isPrepared) await mend(made.handle);
      } catch (error) {
        if (!isAnswered(error)) {
          made.client.close();
          throw error;
        }
      }
      return made;
    });
    return connection;
  };
  const { filter: by, sort } = (await connected()).handle;
  const collections = async () => (await connected()).client.collections;
  const where = (filter: Filter): FilterValue => toFilter(filter, by, library.Filters);

  async function ask<Answer>(call: Call, request: (handle: Handle) => Promise<Answer>): Promise<Answer> {
    const used = connected();
    try {
      const { handle } = await used;
      return await CALLS.run(call, () => request(handle));
    } catch (error) {
      const isMade = await used.then(Boolean, () => false);
      // A channel that found no server waits up to two minutes before it tries again; a new one tries at once.
      if (connection === used && (!isMade || isLost(error)))
        connection = void used.then(({ client }) => client.close()).catch(() => {});
      throw error;
    }
  }
  /** Writes whose calls ended before them. */
  const left = new Set<Promise<unknown>>();
  /**
   * Weaviate keeps the points of a write that is cancelled, and takes them out of searches. So it goes on when its call ends, and the writes that follow
   * wait for it: it never comes after them.
   */
  async function lasting(call: Call, write: () => Promise<void>): Promise<void> {
    await call.unlessAborted(Promise.all(left));
    const written = write();
    const settled = written.catch(() => {});
    const stop = call.onAbort(() => {
      left.add(settled);
      void settled.then(() => left.delete(settled));
    });
    await call.unlessAborted(written).finally(stop);
  }
  const read = async (call: Call, select: Selection, wanted: Parameters<Handle['query']['fetchObjects']>[0]) =>
    (await ask(call, ({ query }) => query.fetchObjects({ ...wanted, ...shown(select) }))).objects.map(toFound);
  const near = (call: Call, vector: Float32Array, wanted: Parameters<Handle['query']['nearVector']>[1]) =>
    ask(call, ({ query }) => query.nearVector([...vector], { ...wanted, returnMetadata: ['distance'] }));
  const put = async (points: readonly Point[]) => {
    const { hasErrors, errors } = await ask(LASTING, ({ data }) => data.insertMany(points.map(toObject)));
    if (hasErrors) throw new Error(Object.values(errors)[0]?.message);
  };
  /** Writes after which is looked whether searches show them. With ASYNC_INDEXING they do after a second; else at once, as three are. */
  let looks = 3;
  async function isHidden(points: readonly Point[], call: Call): Promise<boolean> {
    const wanted = { filters: by.byId().containsAny(points.map(({ id }) => id)), limit: points.length };
    const found = (await near(call, (points[0] as Point).vector, { ...wanted, returnProperties: [] })).objects.length;
    return found < points.length && found < (await read(call, NOTHING, wanted)).length;
  }
  async function whenShown(points: readonly Point[], call: Call): Promise<void> {
    for (let tries = 1; looks > 0 && (await isHidden(points, call)); tries++) {
      looks = Number.POSITIVE_INFINITY;
      // Not late, but lost: a crash took its vector.
      if (tries % LATE === 0) await ask(LASTING, (handle) => restore(handle, points.map(toObject)));
      await sleep(50);
    }
    looks -= 1;
  }
  const first = (call: Call) => read(call, NOTHING, { limit: 1 });

  return {
    traits: {
      measure: 'cosine distance',
      ...{ exact: true, max_batch: 1_000, max_point_bytes: null, max_limit: 10_000 },
      filters: ['anyOf', 'allOf', 'prefix', 'not'],
      order: 'number',
      ids: 'uuid',
      // A message has at most 100 MiB as the server comes.
      max_batch_bytes: 32 * 1024 * 1024,
    },

    async describe(call) {
      const { exists, use } = await collections();
      if (!(await exists(name))) return undefined;
      const dimensions = Number(MADE.exec((await use(name).config.get()).description ?? '')?.[1] ?? 0);
      if (dimensions > 0) return { dimensions, empty: (await first(call)).length === 0 };
      const mistake = `the collection ${name} was not made by the gateway; name another one by OMP_WEAVIATE_COLLECTION`;
      return { dimensions, empty: false, mistake };
    },

    async prepare({ dimensions }) {
      const { exists, createFromSchema } = await collections();
      await createFromSchema(schemaOf(name, dimensions)).catch(async (error) => {
        if (!(await exists(name))) throw error;
      });
      await mend((await connected()).handle);
      isPrepared = true;
    },

    upsert: (points, call) =>
      lasting(call, async () => {
        await put(points);
        await whenShown(points, call).finally(() => ask(LASTING, flush));
      }),

    fetch: (ids, select, call) => read(call, select, { limit: ids.length, filters: by.byId().containsAny([...ids]) }),

    remove: (ids, call) =>
      lasting(call, async () => {
        const { failed } = await ask(LASTING, ({ data }) => data.deleteMany(by.byId().containsAny([...ids])));
        if (failed > 0) throw new Error('not all were removed');
      }),

    async query({ vector, filter, limit, select }, call) {
      const { objects } = await near(call, vector, { filters: where(filter), limit, ...shown(select) });
      return objects.map((object) => ({ ...toFound(object), measure: Number(object.metadata?.distance) }));
    },

    scan({ filter, order, limit, select }, call) {
      const sorted = order && { sort: sort.byProperty(order.by, !order.descending) };
      return read(call, select, { limit, filters: where(filter), ...sorted });
    },

    count: async (filter, call) =>
      (await ask(call, ({ aggregate }) => aggregate.overAll({ filters: where(filter) }))).totalCount,

    ping: async (call) => void (await first(call).catch((error) => isAnswered(error) || Promise.reject(error))),
    close: async () => (await connection?.catch(() => undefined))?.client.close(),

    async findings() {
      const { version } = await (await connected()).client.getMeta();
      return [{ area: 'connection', level: 'ok', message: `${TITLE} ${version} answers` }];
    },
  };
}

/** Never ends. */
const LASTING = new Call('write');
/** Looks after which a point is not late, but lost: some seconds. */
const LATE = 100;
/** Whose a request over gRPC is. */
const CALLS = new AsyncLocalStorage<Call>();
type Send = (request: unknown, options: { readonly signal: AbortSignal; readonly retry?: boolean }) => Promise<unknown>;
interface Inside {
  readonly check?: { readonly connection?: { search?(name: string): Promise<{ connection?: Record<string, Send> }> } };
}
/**
 * Each request over gRPC is sent once, until its call ends. By itself the client tries for half a minute, writes that to the console, and stops for
 * no caller; no option changes it.
 */
async function sendOnce(query: object): Promise<void> {
  const stub = (await (query as Inside).check?.connection?.search?.(''))?.connection;
  for (const method of ['search', 'aggregate', 'batchObjects', 'batchDelete']) {
    const send = stub?.[method];
    if (!stub || !send) throw new Error('this weaviate-client is not known: npm install weaviate-client@3.12');
    stub[method] = async (request, options) => {
      const controller = new AbortController();
      const end = () => controller.abort();
      // The client's own, after half a minute or, for writes, one and a half.
      options.signal.addEventListener('abort', end);
      const stop = CALLS.getStore()?.onAbort(end);
      const sent = send(request, { ...options, retry: false, signal: controller.signal });
      return sent.finally(() => stop?.());
    };
  }
}

/** It may quote the request. */
const messageOf = (error: unknown): string => String((Object(error) as Error).message).slice(0, 2_000);
const isUnreached = (error: unknown): boolean => messageOf(error).includes('UNAVAILABLE: No connection established');
const isLost = (error: unknown): boolean => / UNAVAILABLE: /.test(messageOf(error)) || failure(error)?.retry === 'safe';
const isAnswered = (error: unknown): boolean => messageOf(error).includes(' UNKNOWN: ');
const isGone = (error: unknown): boolean => messageOf(error).includes('could not find class');
const AWAY = { down: true, loggable: true } as const;
/** By code of gRPC, which the client leaves in the message only, or by name. Errors of Weaviate itself are UNKNOWN. */
const FAILURES: Readonly<Record<string, Failure | undefined>> = {
  UNAVAILABLE: { message: `the connection to ${TITLE} broke`, retry: 'reads', ...AWAY },
  INTERNAL: failureOfStatus(TITLE, 500),
  UNIMPLEMENTED: { message: `what answers by gRPC is no ${TITLE}`, ...AWAY },
  RESOURCE_EXHAUSTED: failureOfStatus(TITLE, 413),
  UNAUTHENTICATED: failureOfStatus(TITLE, 401),
  WeaviateUnauthenticatedError: failureOfStatus(TITLE, 401),
  WeaviateRequestTimeoutError: { message: `${TITLE} did not answer in time`, retry: 'reads', ...AWAY },
  SyntaxError: { message: `what answers by HTTP is no ${TITLE}`, ...AWAY },
};
function failure(error: unknown): Failure | undefined {
  const { name, code } = Object(error) as Error & { readonly code?: unknown };
  const message = messageOf(error);
  if (isUnreached(error)) return { message: `${TITLE} cannot be reached by gRPC`, retry: 'safe', ...AWAY };
  if (isGone(error)) return failureOfStatus(TITLE, 404);
  if (message.includes('store is read-only')) return { message: `${TITLE} is read-only: its disk or memory is full` };
  if (typeof code === 'number') return failureOfStatus(TITLE, code === 7 ? 403 : code);
  const [, status = ''] = /\/weaviate\.v1\.Weaviate\/\w{1,30} ([A-Z_]{2,30}): /.exec(message) ?? [];
  return FAILURES[status || name] ?? failureOfConnection(TITLE, error);
}
