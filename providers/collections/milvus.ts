import type { FieldType, MilvusClient } from '@zilliz/milvus2-sdk-node';
import { z } from 'zod';
import {
  type Call,
  type Collection,
  defineCollection,
  type Failure,
  FIELDS,
  type Field,
  type FieldValue,
  type Filter,
  type FoundPoint,
  loadPackage,
  type Match,
  type Point,
  type QueryRequest,
  type ScanRequest,
  type Selection,
  type Traits,
} from '#provider';

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
});

/** Milvus, or Milvus Lite behind gRPC. Vectors are compared exactly. */
export default defineCollection({
  specVersion: 2,
  name: 'milvus',
  title: 'Milvus',
  options: Options,
  async open({ url, token, collection }) {
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
    return new MilvusCollection(client, collection);
  },
  failure,
});

const TRAITS: Traits = {
  measure: 'cosine',
  exact: true,
  filters: ['anyOf', 'allOf', 'prefix', 'not'],
  order: 'none',
  ids: 'text',
  max_batch: 1_000,
  // A request has at most 64 MiB as the server comes.
  max_batch_bytes: 32 * 1024 * 1024,
  max_point_bytes: null,
  max_limit: 16_384,
};

/** How vectors are indexed: all that match are compared. */
const EXACT = { index_type: 'FLAT', metric_type: 'COSINE' };
/** Milvus Lite indexes no lists. */
const INDEXED = FIELDS.flatMap(({ name, type, filtered }) => (filtered && type !== 'texts' ? [name] : []));
/** The most characters, of up to four bytes, in the 65,535 bytes that a text may have. */
const PART = /.{1,16383}/gsu;
const TEXT = { data_type: 'VarChar', max_length: 65_535 } as const;
const LIST = { ...TEXT, data_type: 'Array', element_type: 'VarChar', max_capacity: 4_096 } as const;
/** A text that may be long is a list of its parts. */
const isLong = ({ type, filtered }: Field): boolean => type === 'text' && !filtered;
const columnOf = (field: Field): FieldType => ({
  name: field.name,
  ...(field.type === 'number' ? { data_type: 'Int64' } : field.type === 'texts' || isLong(field) ? LIST : TEXT),
});

/** Reads see all writes. */
const STRONG = { consistency_level: 0 };

class MilvusCollection implements Collection {
  readonly traits = TRAITS;
  readonly #client: MilvusClient;
  readonly #name: string;
  constructor(client: MilvusClient, collection: string) {
    this.#client = client;
    this.#name = collection;
  }

  async describe(call: Call) {
    const { schema, status } = await this.#client.describeCollection(this.#request(call));
    if (status.code === NO_COLLECTION) return undefined;
    checked({ status });
    const indexes = await this.#indexes(call);
    const columns = new Map(schema.fields.map((field) => [field.name, field]));
    const dimensions = Number(columns.get('vector')?.dim);
    const index = indexes.get('vector');
    const isOurs = FIELDS.every(({ name }) => columns.has(name));
    // Whoever began to create it was interrupted, or is not ready: nothing can be in it yet.
    if (isOurs && !index) return undefined;
    const isExact = index?.index_type === EXACT.index_type && index?.metric_type === EXACT.metric_type;
    const first = isOurs ? await this.#points('id != ""', { fields: [], vector: false }, 1, call) : [];
    const wrong = isOurs ? 'has another index of vectors than FLAT with COSINE' : "is not the gateway's";
    const mistake = `the collection ${this.#name} ${wrong}; name another by OMP_MILVUS_COLLECTION`;
    const unindexed = INDEXED.filter((field) => !indexes.has(field));
    return { dimensions, empty: first.length === 0, mistake: isOurs && isExact ? undefined : mistake, unindexed };
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

  async upsert(points: readonly Point[], call: Call) {
    checked(await this.#client.upsert({ ...this.#request(call), data: points.map(rowOf) }));
  }

  async remove(ids: readonly string[], call: Call) {
    // By `ids`, the client would put them into the filter as they are.
    checked(await this.#client.delete({ ...this.#request(call), filter: within('id', ids) }));
  }

  fetch = (ids: readonly string[], select: Selection, call: Call) =>
    this.#points(within('id', ids), select, ids.length, call);

  scan = ({ filter, limit, select }: ScanRequest, call: Call) => this.#points(condition(filter), select, limit, call);

  async query({ vector, filter, limit, select }: QueryRequest, call: Call): Promise<Match[]> {
    const asked = { anns_field: 'vector', data: [...vector], filter: condition(filter), limit, ...shown(select) };
    const { results } = await this.#loaded(() => this.#client.search({ ...this.#request(call), ...asked }), call);
    return results.map((row) => ({ ...pointOf(row), measure: row.score }));
  }

  async count(filter: Filter, call: Call): Promise<number> {
    const asked = { filter: condition(filter), output_fields: ['count(*)'], ...STRONG };
    const { data } = await this.#loaded(() => this.#client.query({ ...this.#request(call), ...asked }), call);
    return Number(data[0]?.['count(*)']);
  }

  ping = async (call: Call) => void checked(await this.#client.hasCollection(this.#request(call)));
  close = async () => void (await this.#client.closeConnection());

  async #points(filter: string, select: Selection, limit: number, call: Call): Promise<FoundPoint[]> {
    const asked = { filter, limit, ...shown(select) };
    return (await this.#loaded(() => this.#client.query({ ...this.#request(call), ...asked }), call)).data.map(pointOf);
  }

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
    return { collection_name: this.#name, timeout };
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

const shown = ({ fields = FIELDS.map(({ name }) => name), vector }: Selection) => ({
  // No names at all would mean all fields.
  output_fields: ['id', ...fields, ...(vector ? ['vector'] : [])],
  ...STRONG,
});

const stored = (field: Field, value: FieldValue = ''): FieldValue =>
  typeof value === 'string' && isLong(field) ? (value.match(PART) ?? []) : value;
const rowOf = ({ id, fields, vector }: Point) => ({
  ...{ id, vector: [...vector] },
  ...Object.fromEntries(FIELDS.map((field) => [field.name, stored(field, fields[field.name])])),
});

/** The client gives integers as texts. */
const read = (value: unknown, field: Field): FieldValue =>
  field.type === 'number' ? Number(value) : isLong(field) ? (value as string[]).join('') : (value as FieldValue);
function pointOf(row: Readonly<Record<string, unknown>>): FoundPoint {
  const { id, vector } = row;
  const fields = FIELDS.flatMap((field) => (field.name in row ? [[field.name, read(row[field.name], field)]] : []));
  return {
    ...{ id: String(id), fields: Object.fromEntries(fields) },
    ...(Array.isArray(vector) && { vector: Float32Array.from(vector as number[]) }),
  };
}

const ESCAPES: Readonly<Record<string, string>> = { '"': '\\"', '\\': '\\\\', '\n': '\\n', '\r': '\\r' };
/** A text in a filter: Milvus Lite knows no parameters, and of escapes only these. All other characters stand for themselves. */
const quoted = (text: string): string => `"${text.replace(/["\\\n\r]/g, (character) => String(ESCAPES[character]))}"`;
const listed = (values: readonly string[]): string => `[${values.map(quoted).join(', ')}]`;
const within = (field: string, values: readonly string[]): string => `${field} in ${listed(values)}`;
const all = (conditions: readonly string[]): string => `(${conditions.join(' and ')})`;
function condition(filter: Filter): string {
  if (filter.op === 'and') return all(filter.filters.map(condition));
  if (filter.op === 'not') return `(not ${condition(filter.filter)})`;
  const { field } = filter;
  switch (filter.op) {
    case 'equals':
      return `(${field} == ${typeof filter.value === 'number' ? filter.value : quoted(filter.value)})`;
    case 'anyOf':
      return `(${within(field, filter.values)})`;
    case 'allOf':
      return `(array_contains_all(${field}, ${listed(filter.values)}))`;
    case 'prefix': {
      const end = afterAll(filter.value);
      return all([`${field} >= ${quoted(filter.value)}`, ...(end === undefined ? [] : [`${field} < ${quoted(end)}`])]);
    }
    case 'range': {
      const { from, to } = filter;
      return all([from === undefined ? [] : `${field} >= ${from}`, to === undefined ? [] : `${field} <= ${to}`].flat());
    }
  }
}

/** The first text after all that begin with this one; undefined: there is none. `like` has escapes that Milvus Lite does not know. Halves of characters are none. */
function afterAll(prefix: string): string | undefined {
  const characters = Array.from(prefix, (character) => Number(character.codePointAt(0)));
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    if (last < 0x10ffff) return String.fromCodePoint(...characters, last === 0xd7ff ? 0xe000 : last + 1);
  }
  return undefined;
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
