import type { FieldType, MilvusClient } from '@zilliz/milvus2-sdk-node';
import { z } from 'zod';
import {
  type Call,
  type Collection,
  type Description,
  defineCollection,
  type Failure,
  FIELDS,
  type Filter,
  type FoundPoint,
  loadPackage,
  type Match,
  type PageRequest,
  type Point,
  type PointChange,
  type QueryRequest,
  type ScanRequest,
  type Selection,
  type Traits,
} from '#provider';
import { layoutOf, measureOf } from './mapped/milvus.ts';
import { MILVUS, mappingOptions } from './mapped/presets.ts';
import {
  both,
  columnOf,
  condition,
  EXACT,
  INDEXED,
  idIn,
  OWN,
  pointOf,
  type Row,
  shown,
  TEXT,
} from './points/milvus.ts';

/** The options of a collection. `src/config/collection-settings.ts` derives the settings from them. */
export const Options = z.strictObject({
  /** With a port: gRPC has none of its own. */
  url: z
    .string()
    .regex(/^https?:\/\/(?:[\w.-]+|\[[\da-f:.]+\]):\d{1,5}$/)
    .default('http://127.0.0.1:19530'),
  /** Of Milvus: `user:password`, or an API key. */
  token: z.optional(z.string().regex(/^[\x21-\x7e]+$/)),
  collection: z
    .string()
    .regex(/^[A-Za-z_]\w{0,254}$/)
    .default('omp_memories'),
  ...mappingOptions(MILVUS),
});
type Options = z.output<typeof Options>;

/** Milvus, or Milvus Lite behind gRPC. Vectors are compared exactly. */
export default defineCollection({
  specVersion: 2,
  name: 'milvus',
  title: 'Milvus',
  options: Options,
  presets: MILVUS,
  async open(options) {
    const { url, token } = options;
    const wanted = '@zilliz/milvus2-sdk-node@3.0';
    const { MilvusClient } = await loadPackage(() => import('@zilliz/milvus2-sdk-node'), wanted);
    const client = new MilvusClient({
      ...{ address: url, ...(token !== undefined && { token }) },
      // The gateway retries. What the client would write to the console has contents in it.
      ...{ maxRetries: 0, logLevel: 'error', telemetry: { enabled: false } },
      // Nobody waits for the client's own first request: if it fails, it ends the process, and every later `getVersion` fails too.
      __SKIP_CONNECT__: true,
      // A server that is back is seen after a second, not after two minutes.
      channelOptions: { 'grpc.initial_reconnect_backoff_ms': 100, 'grpc.max_reconnect_backoff_ms': 1_000 },
    });
    return new MilvusCollection(client, options);
  },
  failure,
});

const TRAITS: Traits = {
  measure: 'cosine',
  exact: true,
  filters: ['anyOf', 'allOf', 'prefix', 'not'],
  order: 'none',
  ids: 'text',
  nested: true,
  max_batch: 1_000,
  // A request has at most 64 MiB as the server comes.
  max_batch_bytes: 32 * 1024 * 1024,
  max_point_bytes: null,
  max_limit: 16_384,
};

/** Reads see all writes. */
const STRONG = { consistency_level: 0 };
/** What makes a query go by the key: the client's own iterator does not ask for it, and skips rows of Milvus Lite. */
const BY_KEY = { iterator: true, reduce_stop_for_best: true };
interface Asked {
  readonly filter: string;
  readonly limit?: number;
  readonly params?: typeof BY_KEY;
}

class MilvusCollection implements Collection {
  readonly traits: Traits;
  readonly #client: MilvusClient;
  readonly #options: Options;
  #layout = OWN;
  constructor(client: MilvusClient, options: Options) {
    this.#client = client;
    this.#options = options;
    // The index of another application may be approximate, and no filter asks a list in an object.
    this.traits = options.preset === undefined ? TRAITS : { ...TRAITS, exact: false, filters: ['anyOf'] };
  }

  async describe(call: Call): Promise<Description | undefined> {
    const { collection, preset, writable } = this.#options;
    const { schema, status } = await this.#client.describeCollection(this.#request(call));
    if (status.code === NO_COLLECTION) return undefined;
    checked({ status });
    const indexes = await this.#indexes(call);
    const isOurs = FIELDS.every(({ name }) => schema.fields.some((field) => field.name === name));
    const { layout, dimensions, mistake: unfit } = layoutOf(schema, writable);
    const index = indexes.get(layout.vector);
    // Whoever began to create it was interrupted, or is not ready: nothing can be in it yet.
    if (isOurs && !index) return undefined;
    this.#layout = isOurs && preset === undefined ? OWN : layout;
    const points = index ? await this.#count(layout.after(undefined), call) : 0;
    const known = { dimensions, empty: points === 0, points, indexed: [...indexes.keys()] };
    if (preset !== undefined) return { ...known, ...measureOf(index?.metric_type), ...(unfit && { mistake: unfit }) };
    const isExact = index?.index_type === EXACT.index_type && index?.metric_type === EXACT.metric_type;
    const wrong = isOurs ? 'has another index of vectors than FLAT with COSINE' : 'was not made by the gateway';
    const mistake = `the collection ${collection} ${wrong}; name another one by OMP_MILVUS_COLLECTION`;
    const unindexed = INDEXED.filter((field) => !indexes.has(field));
    return { ...known, mistake: isOurs && isExact ? undefined : mistake, unindexed };
  }

  async prepare({ dimensions }: { readonly dimensions: number }, call: Call) {
    const id = { name: 'id', is_primary_key: true, ...TEXT };
    const vector = { name: 'vector', data_type: 'FloatVector', dim: dimensions } as const;
    const fields: FieldType[] = [id, ...FIELDS.map(columnOf), vector];
    await unlessThere(
      async () => checked(await this.#client.hasCollection(this.#request(call))).value === true,
      () => this.#client.createCollection({ ...this.#request(call), fields, consistency_level: 'Strong' }),
    );
    for (const field_name of ['vector', ...INDEXED]) {
      const index = field_name === 'vector' ? EXACT : { index_type: 'INVERTED' };
      await unlessThere(
        async () => (await this.#indexes(call)).has(field_name),
        () => this.#client.createIndex({ ...this.#request(call), field_name, ...index }),
      );
    }
    await this.#load(call);
  }

  upsert = (points: readonly Point[], call: Call) =>
    this.#store(
      points.map((point) => this.#layout.rowOf(point)),
      call,
    );

  async change(change: PointChange, call: Call): Promise<boolean> {
    // Some versions replace the whole row, others keep what is not given: so all of it is.
    const [row] = await this.#rows({ filter: idIn(this.#layout, [change.id]), output_fields: ['*'] }, call);
    if (row) await this.#store([this.#layout.rowOf(change, row)], call);
    return row !== undefined;
  }

  async remove(ids: readonly string[], call: Call) {
    // By `ids`, the client would put them into the filter as they are.
    checked(await this.#client.delete({ ...this.#request(call), filter: idIn(this.#layout, ids) }));
  }

  fetch = (ids: readonly string[], select: Selection, call: Call) =>
    this.#points({ filter: idIn(this.#layout, ids), limit: ids.length }, select, call);

  scan = ({ filter, limit, select }: ScanRequest, call: Call) =>
    this.#points({ filter: condition(this.#layout, filter), limit }, select, call);

  async page({ filter, after, limit, select }: PageRequest, call: Call) {
    const place = this.#layout.after(after);
    const where = filter ? both([place, condition(this.#layout, filter)]) : place;
    const points = await this.#points({ filter: where, limit, params: BY_KEY }, select, call);
    return { points, next: points.length < limit ? undefined : points.at(-1)?.id };
  }

  async query({ vector, filter, limit, select }: QueryRequest, call: Call): Promise<Match[]> {
    const layout = this.#layout;
    const asked = {
      ...{ anns_field: layout.vector, data: [...vector], filter: condition(layout, filter), limit, ...STRONG },
      output_fields: shown(layout, select),
    };
    const { results } = await this.#loaded(() => this.#client.search({ ...this.#request(call), ...asked }), call);
    return results.map(({ score, ...row }) => ({ ...pointOf(layout, row), measure: score }));
  }

  count = (filter: Filter, call: Call) => this.#count(condition(this.#layout, filter), call);

  ping = async (call: Call) => void checked(await this.#client.hasCollection(this.#request(call)));
  close = async () => void (await this.#client.closeConnection());

  async #store(data: Row[], call: Call): Promise<void> {
    checked(await this.#client.upsert({ ...this.#request(call), data }));
  }

  async #count(filter: string, call: Call): Promise<number> {
    const [row] = await this.#rows({ filter, output_fields: ['count(*)'] }, call);
    return Number(row?.['count(*)']);
  }

  async #points(asked: Asked, select: Selection, call: Call): Promise<FoundPoint[]> {
    const rows = await this.#rows({ ...asked, output_fields: shown(this.#layout, select) }, call);
    return rows.map((row) => pointOf(this.#layout, row));
  }

  #rows = async (asked: Asked & { readonly output_fields: string[] }, call: Call): Promise<Row[]> =>
    (await this.#loaded(() => this.#client.query({ ...this.#request(call), ...asked, ...STRONG }), call)).data;

  /** The parameters of each index, by its field. */
  async #indexes(call: Call) {
    const { status, index_descriptions } = await this.#client.describeIndex(this.#request(call));
    if (status.code !== NO_INDEX) checked({ status });
    const pairs = ({ params }: (typeof index_descriptions)[number]) => params.map(({ key, value }) => [key, value]);
    return new Map(index_descriptions.map((index) => [index.field_name, Object.fromEntries(pairs(index))]));
  }

  /** What a request begins with. The client stops none before its deadline, which is in a minute if the call has none. */
  #request({ deadline }: Call) {
    const timeout = deadline === undefined ? 60_000 : Math.max(1, Math.ceil(deadline - performance.now()));
    return { collection_name: this.#options.collection, timeout };
  }

  /** A read. After its start, Milvus Lite loads a collection only when told to. */
  async #loaded<Result extends Answer>(read: () => Promise<Result>, call: Call): Promise<Result> {
    const answer = await read();
    if (answer.status.code !== NOT_LOADED) return checked(answer);
    await this.#load(call);
    return checked(await read());
  }

  #load = (call: Call) => this.#client.loadCollection(this.#request(call));
}

/** Makes what is missing. Another gateway may be faster. */
async function unlessThere(isThere: () => Promise<boolean>, make: () => Promise<Answer['status']>): Promise<void> {
  if (await isThere()) return;
  try {
    checked({ status: await make() });
  } catch (error) {
    if (!(await isThere())) throw error;
  }
}

/** Codes in statuses. */
const [NO_COLLECTION, NOT_LOADED, NO_INDEX, RATE_LIMIT] = [100, 101, 700, 8];
/** The client resolves with errors. */
interface Answer {
  readonly status: { readonly code?: number; readonly error_code: unknown; readonly retriable: boolean };
}
function checked<Result extends Answer>(answer: Result): Result {
  const { status } = answer;
  // Its reason may quote the request.
  if (status.code || status.error_code !== 'Success') throw Object.assign(new Error(`code ${status.code}`), { status });
  return answer;
}
const AWAY = { down: true, loggable: true } as const;
/** By code of gRPC. */
const FAILURES: Readonly<Record<number, Failure>> = {
  4: { message: 'Milvus did not answer in time', retry: 'reads', ...AWAY },
  7: { message: 'Milvus does not allow this to the token of the gateway' },
  8: { code: 'payload_too_large', message: 'this is too large for one request to Milvus' },
  14: { message: 'the connection to Milvus broke', retry: 'reads', ...AWAY },
  16: { message: 'Milvus rejected the token of the gateway' },
};
function failure(error: unknown): Failure | undefined {
  const { name, code, details, status } = Object(error) as Error & Partial<Answer & { code: number; details: string }>;
  // The client reads on in an answer of a search that has nothing but a status.
  if (status?.code === NO_COLLECTION || name === 'TypeError') return { message: 'Milvus has no such collection' };
  if (status?.code === RATE_LIMIT)
    return { code: 'rate_limited', message: 'Milvus accepts no more requests now', retry: 'safe' };
  if (status?.retriable) return { message: 'Milvus cannot do this now', retry: 'reads', down: true };
  if (code === undefined || details === undefined) return undefined;
  // It was not sent.
  if (details.startsWith('No connection')) return { message: 'Milvus cannot be reached', retry: 'safe', ...AWAY };
  return FAILURES[code] ?? { message: 'what answers is no Milvus', retry: 'reads', down: true };
}
