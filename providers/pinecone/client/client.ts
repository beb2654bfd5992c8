import type { RecordMetadata } from '@pinecone-database/pinecone';
import type { Call } from '#provider';
import type { Failure } from './pinecone-errors.ts';
import { createConcurrencyLimit, createSendRequest, type SendRequest } from './retry.ts';
import { type Answer, openIndex } from './transport.ts';

/** Maximum ids of a page of `list` that Pinecone is known to accept. */
export const MAX_LISTED = 99;
/** Pinecone rejects a query for more. */
export const MAX_TOP_K = 10_000;
/** Maximum ids of one fetch; they are in the URL. */
const MAX_FETCHED = 100;
/** Maximum characters of a URL: servers and proxies cut it off at 8 KB. */
const MAX_URL = 8_000;
/** Maximum ids of one delete. */
const MAX_DELETED = 1_000;
/**
 * Maximum bytes of metadata, as JSON in UTF-8. Pinecone takes 40,960 and does not document how it counts. A record with
 * concurrent changes or cleared fields needs a little more than each write.
 */
export const METADATA_BUDGET = 38_000;

/** Maximum bytes of one upsert. Pinecone takes 2 MB and 1,000 records. */
export const MAX_UPSERT_BYTES = 1_900_000;
/** Pinecone rejects a larger answer. */
export const MAX_ANSWER_BYTES = 4_000_000;

/** Maximum code points. At four bytes each they leave room for the longest `user_id` and the times. */
export const MAX_CONTENT_LENGTH = 9_000;

/** Maximum concurrent requests of one method. */
const CONCURRENT_CHUNKS = 4;

/** Metadata of a record. Flat; no null, no nested objects, no lists of numbers. */
export type Metadata = Record<string, MetadataValue>;
export type MetadataValue = string | number | boolean | readonly string[];

/** Pinecone's filter language. Only `filter.ts` makes filters. */
export type Filter = Readonly<Record<string, unknown>>;

export interface StoredRecord {
  readonly id: string;
  readonly values: readonly number[];
  readonly metadata: Metadata;
}

/** A record to be stored. */
export interface NewRecord extends Omit<StoredRecord, 'values'> {
  readonly values: readonly number[] | Float32Array;
}

interface Match {
  readonly id: string;
  /** The score in the index's metric. */
  readonly score: number;
  /** Undefined unless the query asked for it. */
  readonly metadata: Metadata | undefined;
}

/** Log sequence number: the position of a write in its namespace's log. Undefined: the index sends none. */
export type Lsn = number | undefined;

interface QueryRequest {
  readonly vector: readonly number[] | Float32Array;
  /** 1 to `MAX_TOP_K`. */
  readonly topK: number;
  readonly filter: Filter;
  readonly includeMetadata: boolean;
}

interface RecordChange {
  readonly id: string;
  readonly values?: Float32Array;
  /** Merged into the stored metadata; keys cannot be removed. */
  readonly metadata: Metadata;
}

/**
 * The index: one method per kind of request. Every request has a deadline, ends when the call's signal fires, is retried
 * where that is safe (`retry.ts`), and fails with an `OmpError`. Every method names the namespace.
 */
export interface Service {
  /** Replaces whole records: at most 1,000 and 2 MB. */
  upsert(namespace: string, records: readonly NewRecord[], call: Call): Promise<Lsn>;
  /** Does nothing if the record does not exist. */
  update(namespace: string, change: RecordChange, call: Call): Promise<Lsn>;
  /** Ignores missing ids and namespaces. */
  remove(namespace: string, ids: readonly string[], call: Call): Promise<Lsn>;
  /** Takes any number of ids and leaves out missing ones. */
  fetch(namespace: string, ids: readonly string[], call: Call): Promise<Map<string, StoredRecord>>;
  query(namespace: string, request: QueryRequest, call: Call): Promise<{ matches: Match[]; indexedLsn: Lsn }>;
  /** Ids in byte order, none of a missing namespace. `limit` at most `MAX_LISTED`. `next` is undefined after the last page. */
  list(
    namespace: string,
    page: { prefix: string; limit: number; token?: string | undefined },
    call: Call,
  ): Promise<IdPage>;
  /** Returns records in no order. Undefined: the index does not support this request (API before 2025-10). */
  fetchByMetadata(
    namespace: string,
    page: { filter: Filter; limit: number; token?: string | undefined },
    call: Call,
  ): Promise<RecordPage | undefined>;
  stats(call: Call): Promise<{ dimension: number | undefined; metric: string | undefined; namespaces: string[] }>;
  /** Number of requests that wait for a free slot. */
  queueLength(): number;
}

interface IdPage {
  readonly ids: string[];
  readonly next: string | undefined;
}

interface RecordPage {
  readonly records: StoredRecord[];
  readonly next: string | undefined;
}

export interface ConnectOptions {
  readonly api_key: string;
  readonly index_host: string;
  /** Deadline of one answer, in milliseconds. */
  readonly timeout_ms: number;
  /** Maximum concurrent requests and queued requests; unlimited by default. */
  readonly concurrency?: number;
  readonly max_waiting?: number;
}

/**
 * Opens an index without sending a request; the control plane is never used.
 * Throws a plain `Error` for an impossible address.
 */
export function connect({ api_key, index_host, timeout_ms, ...limits }: ConnectOptions): Service {
  const { concurrency = Number.POSITIVE_INFINITY, max_waiting = Number.POSITIVE_INFINITY } = limits;
  const limit = createConcurrencyLimit(concurrency, max_waiting);
  const requests = createRequests(openIndex(api_key, index_host), createSendRequest(timeout_ms, limit));
  return { ...requests, queueLength: limit.queueLength };
}

const createRequests = (index: ReturnType<typeof openIndex>, send: SendRequest): Omit<Service, 'queueLength'> => ({
  upsert(namespace, records, call) {
    const toSend = ({ id, values, metadata }: NewRecord) => ({
      id,
      values: [...values],
      metadata: writable(metadata),
    });
    const request = () => index.upsert({ namespace, records: records.map(toSend) });
    // Carried out late, it would undo a patch or restore a deleted record.
    return send({ send: request, read: requestLsn, idempotent: false }, call);
  },

  update(namespace, { id, values, metadata }, call) {
    const request = () =>
      index.update({ namespace, id, metadata: writable(metadata), ...(values && { values: [...values] }) });
    // Carried out late, it would undo a later change.
    return send({ send: request, read: requestLsn, idempotent: false, onFailure: ignoreMissingNamespace }, call);
  },

  async remove(namespace, ids, call) {
    const lsns = await forEachChunk(deleteChunks(validIds(ids)), (chunk) => {
      const request = () => index.deleteMany({ namespace, ids: chunk });
      return send({ send: request, read: requestLsn, idempotent: true, onFailure: ignoreMissingNamespace }, call);
    });
    const positions = lsns.filter((lsn) => lsn !== undefined);
    return positions.length > 0 ? Math.max(...positions) : undefined;
  },

  async fetch(namespace, ids, call) {
    const chunks = await forEachChunk(fetchChunks(namespace, validIds(ids)), (chunk) => {
      const request = () => index.fetch({ namespace, ids: chunk });
      return send({ send: request, read: recordsOf, idempotent: true }, call);
    });
    return new Map(chunks.flat().map((record) => [record.id, record]));
  },

  query(namespace, { vector, topK, filter, includeMetadata }, call) {
    const request = () =>
      index.query({ namespace, vector: [...vector], topK, filter: nonEmpty(filter), includeMetadata });
    return send({ send: request, read: matchesOf, idempotent: true }, call);
  },

  list(namespace, { prefix, limit, token }, call) {
    const page = { limit: Math.min(limit, MAX_LISTED), ...(token !== undefined && { paginationToken: token }) };
    const request = () => index.listPaginated({ namespace, prefix, ...page });
    return send({ send: request, read: idPageOf(token), idempotent: true, onFailure: noIds }, call);
  },

  fetchByMetadata(namespace, { filter, limit, token }, call) {
    const page = { limit, ...(token !== undefined && { paginationToken: token }) };
    const request = () => index.fetchByMetadata({ namespace, filter: nonEmpty(filter), ...page });
    return send({ send: request, read: recordPageOf(token), idempotent: true, onFailure: emptyPage }, call);
  },

  stats: (call) => send({ send: () => index.describeIndexStats(), read: statsOf, idempotent: true }, call),
});

/** The SDK's type is mutable; the SDK does not change it. */
const writable = (metadata: Metadata): RecordMetadata => metadata as RecordMetadata;

/** An empty filter would match the records of all users. */
function nonEmpty(filter: Filter): Filter {
  if (Object.keys(filter).length === 0) throw new TypeError('a filter without a condition');
  return filter;
}

/** The parts of answers that are used. Each may be missing. */
interface Body {
  readonly vectors?: Readonly<Record<string, Partial<StoredRecord>>>;
  readonly pagination?: { readonly next?: string };
}

/** Reads an answer of fetch or fetch_by_metadata. */
const recordsOf = ({ body }: Answer): StoredRecord[] =>
  Object.entries((body as Body).vectors ?? {}).map(([id, { values = [], metadata = {} }]) => ({
    id,
    values,
    metadata,
  }));

const recordPageOf =
  (token: string | undefined) =>
  (answer: Answer): RecordPage => ({ records: recordsOf(answer), next: nextOf(answer, token) });

const idPageOf =
  (token: string | undefined) =>
  (answer: Answer): IdPage => {
    const { vectors = [] } = answer.body as { vectors?: { id: string }[] };
    return { ids: vectors.map(({ id }) => id), next: vectors.length > 0 ? nextOf(answer, token) : undefined };
  };

/** The token of the page after the one with this token. Throws if it is the same: the pages would never end. */
function nextOf({ body }: Answer, token: string | undefined): string | undefined {
  const next = (body as Body).pagination?.next || undefined;
  if (next !== undefined && next === token) throw new Error('a token that repeats');
  return next;
}

function matchesOf({ body, headers }: Answer): { matches: Match[]; indexedLsn: Lsn } {
  const { matches = [] } = body as { matches?: Match[] };
  return {
    matches: matches.map(({ id, score, metadata }) => ({ id, score, metadata })),
    indexedLsn: lsnOf(headers, 'x-pinecone-max-indexed-lsn'),
  };
}

/** The position of a write, from its answer. */
const requestLsn = ({ headers }: Answer): Lsn => lsnOf(headers, 'x-pinecone-request-lsn');

function statsOf({ body }: Answer): Awaited<ReturnType<Service['stats']>> {
  const { dimension, metric, namespaces = {} } = body as { dimension?: number; metric?: string; namespaces?: object };
  return { dimension, metric, namespaces: Object.keys(namespaces) };
}

/** Not every index sends these headers. */
function lsnOf(headers: Headers, name: string): Lsn {
  const value = headers.get(name);
  const lsn = value !== null && /^\d+$/.test(value) ? Number(value) : undefined;
  return Number.isSafeInteger(lsn) ? lsn : undefined;
}

function ignoreMissingNamespace(failure: Failure): undefined {
  if (!failure.namespaceMissing) throw failure;
}

function noIds(failure: Failure): IdPage {
  ignoreMissingNamespace(failure);
  return { ids: [], next: undefined };
}

/** Empty if the namespace does not exist; undefined if the index does not support the request. */
function emptyPage(failure: Failure): RecordPage | undefined {
  if (failure.namespaceMissing) return { records: [], next: undefined };
  if (failure.status !== undefined && [404, 405, 501].includes(failure.status)) return undefined;
  throw failure;
}

/** The ids that Pinecone can store and fetch, without duplicates: 1 to 512 printable ASCII characters, no spaces. */
export const validIds = (ids: readonly string[]): string[] =>
  [...new Set(ids)].filter((id) => /^[\x21-\x7e]{1,512}$/.test(id));

/** The ids in groups, each small enough for the URL of one fetch. */
function fetchChunks(namespace: string, ids: readonly string[]): string[][] {
  const room = MAX_URL - '/vectors/fetch?&namespace='.length - encodeURIComponent(namespace).length;
  const chunks: string[][] = [];
  let chunk: string[] = [];
  let total = 0;
  for (const id of ids) {
    const length = '&ids='.length + encodeURIComponent(id).length;
    if (chunk.length > 0 && (chunk.length === MAX_FETCHED || total + length > room)) {
      chunks.push(chunk);
      chunk = [];
      total = 0;
    }
    chunk.push(id);
    total += length;
  }
  return chunk.length > 0 ? [...chunks, chunk] : chunks;
}

/** The ids in groups for one delete each. */
const deleteChunks = (ids: readonly string[]): string[][] =>
  Array.from({ length: Math.ceil(ids.length / MAX_DELETED) }, (_, at) =>
    ids.slice(at * MAX_DELETED, (at + 1) * MAX_DELETED),
  );

/** Longest decimal form of a number of a vector, with its comma. */
const NUMBER_BYTES = 26;
/** Of an id and of names. */
const NAME_BYTES = 1_000;

/** Most bytes that a record takes: those of its metadata, and the whole in an upsert. */
export function recordBytes({ values, metadata }: NewRecord): { fields: number; whole: number } {
  const fields = Buffer.byteLength(JSON.stringify(metadata));
  return { fields, whole: fields + NUMBER_BYTES * values.length + NAME_BYTES };
}

/** Does the work for every chunk, a few at once, and starts no more after a failure. Results in the given order. */
async function forEachChunk<Result>(
  chunks: readonly string[][],
  work: (chunk: string[]) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const pending = [...chunks.entries()];
  const worker = async () => {
    for (let next = pending.shift(); next; next = pending.shift()) results[next[0]] = await work(next[1]);
  };
  try {
    await Promise.all(Array.from({ length: CONCURRENT_CHUNKS }, worker));
  } finally {
    pending.length = 0;
  }
  return results;
}
