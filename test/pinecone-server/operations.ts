import { compileFilter } from './filter.ts';
import {
  checkId,
  checkIds,
  checkMetadata,
  checkMetadataSize,
  checkNamespaceName,
  checkNoSpaces,
  checkResultSize,
  LIMITS,
  pageSize,
  toStoredVector,
  toVector,
} from './limits.ts';
import type { Settings } from './options.ts';
import { createRecordSet, type Metadata, type Stored } from './record-set.ts';
import { check, Refusal } from './replies.ts';
import { LOWER_IS_BETTER, score } from './score.ts';
import type { Namespace, Store } from './store.ts';

/** A request that is valid by the OpenAPI file. */
export interface Asked {
  /** The JSON body; undefined if there is none. */
  readonly body: unknown;
  /** Bytes of the body. */
  readonly bytes: number;
  readonly query: URLSearchParams;
}

interface Answer {
  readonly body: object;
  /** Of a write: its log sequence number. */
  readonly written?: number;
  /** Of a query: the position of the index. */
  readonly indexed?: number;
}

export interface Index {
  readonly settings: Settings;
  readonly store: Store;
  /** Throws a 429 above the rate limit of a namespace. */
  readonly countFetchByMetadata: (namespace: string) => void;
}

/** Answers, or throws a `Refusal`. */
type Operation = (asked: Asked, index: Index) => Answer;

export interface Endpoint {
  readonly method: 'GET' | 'POST';
  /** As in the OpenAPI file. */
  readonly path: string;
  readonly run: Operation;
  /** Missing in API 2025-01, the one of Pinecone Local. */
  readonly newer?: true;
}

const DEFAULT_NAMESPACE = '__default__';

/**
 * The namespace of a request. From 2025-04 on the default one is `__default__` and '' is the same; before, it is '' and the
 * name is not allowed.
 */
export function namespaceName(given: string | null | undefined, { settings }: Index): string {
  const name = given ?? '';
  checkNamespaceName(name);
  if (settings.apiVersion === '2025-01') {
    check(name !== DEFAULT_NAMESPACE, `Use of namespace='${DEFAULT_NAMESPACE}' is not allowed`);
    return name;
  }
  return name === '' ? DEFAULT_NAMESPACE : name;
}

/** The namespace with this name. Throws the documented 404 if there is none. */
function existing(name: string, { store }: Index): Namespace {
  const namespace = store.find(name);
  if (!namespace) throw new Refusal(404, 'Namespace not found');
  return namespace;
}

const EMPTY = createRecordSet();
const fetchedFrom = (name: string, { store }: Index) => store.find(name)?.fetched() ?? EMPTY;
const usage = (readUnits: number) => ({ usage: { readUnits } });

interface NewVector {
  readonly id: string;
  readonly values?: readonly number[];
  readonly sparseValues?: object;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Replaces whole records. */
const upsert: Operation = ({ body, bytes }, index) => {
  const { vectors, namespace } = body as { vectors: readonly NewVector[]; namespace?: string };
  check(bytes <= LIMITS.upsertBytes, `Request size ${bytes} exceeds the limit of ${LIMITS.upsertBytes} bytes`);
  check(vectors.length > 0, 'at least one vector is required');
  check(vectors.length <= LIMITS.upsertRecords, `at most ${LIMITS.upsertRecords} vectors are allowed`);
  const name = namespaceName(namespace, index);
  const records = vectors.map((vector) => [vector.id, toStored(vector, index.settings.dimension)] as const);
  const written = index.store.ensure(name).write((stored) => {
    for (const [id, record] of records) stored.set(id, record);
  });
  return { body: { upsertedCount: records.length }, written };
};

function toStored({ id, values = [], sparseValues, metadata }: NewVector, dimension: number): Stored {
  checkId(id);
  check(sparseValues === undefined, 'this index holds dense vectors only');
  const vector = toStoredVector(values, dimension);
  if (metadata === undefined) return { values: vector };
  checkMetadata(metadata);
  checkMetadataSize(metadata);
  return { values: vector, metadata };
}

interface Update {
  readonly id?: string;
  readonly values?: readonly number[];
  readonly setMetadata?: Readonly<Record<string, unknown>>;
  readonly namespace?: string;
}

/** Sets metadata keys and values of one record; never removes a key. */
const update: Operation = ({ body }, index) => {
  const { id, values, setMetadata, namespace, ...others } = body as Update;
  check(id !== undefined && Object.keys(others).length === 0, 'this server updates one record by its id');
  checkId(id);
  if (setMetadata) checkMetadata(setMetadata);
  const vector = values && toStoredVector(values, index.settings.dimension);
  const target = existing(namespaceName(namespace, index), index);
  const merged = (record: Stored | undefined): Stored | undefined =>
    record && {
      values: vector ?? record.values,
      ...((setMetadata || record.metadata) && { metadata: { ...record.metadata, ...(setMetadata as Metadata) } }),
    };
  const { metadata } = merged(target.whole.get(id)) ?? {};
  if (metadata) checkMetadataSize(metadata);
  const written = target.write((records) => {
    const record = merged(records.get(id));
    if (record) records.set(id, record);
  });
  return { body: {}, written };
};

/** Deletes ids in a namespace that must exist. */
const deleteRecords: Operation = ({ body }, index) => {
  const { ids, namespace, ...others } = body as { ids?: readonly string[]; namespace?: string };
  check(ids !== undefined && Object.keys(others).length === 0, 'this server deletes by ids');
  checkIds(ids);
  const written = existing(namespaceName(namespace, index), index).write((records) => {
    for (const id of ids) records.delete(id);
  });
  return { body: {}, written };
};

/** Records by id. Missing ones are left out. */
const fetchRecords: Operation = ({ query }, index) => {
  const ids = query.getAll('ids');
  checkIds(ids);
  checkNoSpaces(ids);
  const namespace = namespaceName(query.get('namespace'), index);
  const records = fetchedFrom(namespace, index);
  const found = ids.flatMap((id): Found[] => {
    const record = records.get(id);
    return record ? [[id, record]] : [];
  });
  return { body: { vectors: vectorsOf(found), namespace, ...usage(Math.ceil(ids.length / 10)) } };
};

interface FetchByMetadata {
  readonly namespace?: string;
  readonly filter?: object;
  readonly limit?: number;
  readonly paginationToken?: string;
}

/** Records by filter. The order of pages is not documented: here by the ids read backwards. */
const fetchByMetadata: Operation = ({ body }, index) => {
  const { filter, limit = 100, paginationToken, ...asked } = body as FetchByMetadata;
  check(limit <= LIMITS.fetchByMetadataPage, `limit must be between 1 and ${LIMITS.fetchByMetadataPage}`);
  const namespace = namespaceName(asked.namespace, index);
  index.countFetchByMetadata(namespace);
  const matches = compileFilter(filter, index.settings.filterable);
  const question = { namespace, filter: JSON.stringify(filter) };
  const past = backwards(skipPast(paginationToken, question));
  const found = [...fetchedFrom(namespace, index).entries()]
    .filter(([id, { metadata = {} }]) => backwards(id) > past && matches(metadata))
    .sort(([a], [b]) => (backwards(a) < backwards(b) ? -1 : 1));
  const { page, last } = cut(found, limit);
  const answer = {
    vectors: vectorsOf(page),
    namespace,
    ...usage(Math.max(1, Math.ceil(page.length / 10))),
    ...(last && { pagination: { next: pageToken({ skip_past: last[0], ...question }) } }),
  };
  checkResultSize(answer);
  return { body: answer };
};

const backwards = (text: string): string => [...text].reverse().join('');

type Found = readonly [string, Stored];

const vectorsOf = (found: readonly Found[]) =>
  Object.fromEntries(
    found.map(([id, { values, metadata }]) => [id, { id, values: [...values], ...(metadata && { metadata }) }]),
  );

interface Query {
  readonly namespace?: string;
  readonly topK: number;
  readonly filter?: object;
  readonly includeValues?: boolean;
  readonly includeMetadata?: boolean;
  readonly vector?: readonly number[];
}

/** The records nearest to a vector; the nearest first, then by id. */
const query: Operation = ({ body }, index) => {
  const { namespace: given, topK, filter, includeValues, includeMetadata, vector: values, ...others } = body as Query;
  check(values !== undefined && Object.keys(others).length === 0, 'this server queries by one dense vector');
  const { metric, dimension, filterable } = index.settings;
  const vector = toVector(values, dimension);
  const namespace = namespaceName(given, index);
  const { records, lsn } = index.store.find(namespace)?.indexed() ?? { records: EMPTY, lsn: undefined };
  const matches = filter ? compileFilter(filter, filterable) : () => true;
  const found = [...records.entries()]
    .filter(([, { metadata = {} }]) => matches(metadata))
    .map(([id, record]) => ({ id, record, score: score[metric](vector, record.values) }));
  const sign = LOWER_IS_BETTER[metric] ? 1 : -1;
  found.sort((a, b) => sign * (a.score - b.score) || (a.id < b.id ? -1 : 1));
  const top = found.slice(0, topK).map(({ id, score, record: { values, metadata } }) => ({
    id,
    score,
    ...(includeValues && { values: [...values] }),
    ...(includeMetadata && metadata && { metadata }),
  }));
  const answer = { results: [], matches: top, namespace, ...usage(1) };
  checkResultSize(answer);
  return { body: answer, indexed: lsn };
};

/** Ids with a prefix, in byte order. A page continues after the last id of the one before, whatever changed meanwhile. */
const list: Operation = ({ query }, index) => {
  const prefix = query.get('prefix') ?? '';
  checkNoSpaces([prefix]);
  const limit = pageSize(query.get('limit'));
  const namespace = namespaceName(query.get('namespace'), index);
  const past = skipPast(query.get('paginationToken'), { prefix, namespace });
  const { page, last } = cut(fetchedFrom(namespace, index).ids(prefix, past, limit + 1), limit);
  const next = last && pageToken({ skip_past: last, prefix, namespace });
  return {
    body: { vectors: page.map((id) => ({ id })), ...(next && { pagination: { next } }), namespace, ...usage(1) },
  };
};

/** Numbers of records, as far as queries see them. */
const stats: Operation = ({ body }, { settings, store }) => {
  check(!('filter' in (body as object)), 'Serverless indexes do not support describing index stats with a filter');
  const counts = store.existing().map(({ name, indexed }) => [name, indexed().records.size] as const);
  return {
    body: {
      namespaces: Object.fromEntries(counts.map(([name, vectorCount]) => [name, { vectorCount }])),
      dimension: settings.dimension,
      indexFullness: 0,
      totalVectorCount: counts.reduce((sum, [, count]) => sum + count, 0),
      metric: settings.metric,
      vectorType: 'dense',
    },
  };
};

/** What a page's successor is found by: the last key of the page, and what was asked for. */
type PageKey = Readonly<Record<string, string>> & { readonly skip_past: string };

const pageToken = (key: PageKey): string => Buffer.from(JSON.stringify(key)).toString('base64');

/** Where a page begins; '' without a token. Throws a 400 for a token this server did not give, or gave for another question. */
function skipPast(token: string | null | undefined, asked: Readonly<Record<string, string>>): string {
  if (token === null || token === undefined) return '';
  const { skip_past } = readToken(token);
  check(typeof skip_past === 'string' && pageToken({ skip_past, ...asked }) === token, 'Invalid pagination token');
  return skip_past;
}

function readToken(token: string): Partial<PageKey> {
  try {
    return Object(JSON.parse(Buffer.from(token, 'base64').toString())) as Partial<PageKey>;
  } catch {
    return {};
  }
}

/** One page of something that was read with one item more than fits; with the key to go on from, if there is more. */
function cut<Item>(items: readonly Item[], limit: number): { page: readonly Item[]; last: Item | undefined } {
  const page = items.slice(0, limit);
  return { page, last: items.length > limit ? page.at(-1) : undefined };
}

/** The requests that the gateway sends, by their names in faults and recorded calls. */
export const ENDPOINTS = {
  upsert: { method: 'POST', path: '/vectors/upsert', run: upsert },
  update: { method: 'POST', path: '/vectors/update', run: update },
  delete: { method: 'POST', path: '/vectors/delete', run: deleteRecords },
  fetch: { method: 'GET', path: '/vectors/fetch', run: fetchRecords },
  fetch_by_metadata: { method: 'POST', path: '/vectors/fetch_by_metadata', run: fetchByMetadata, newer: true },
  query: { method: 'POST', path: '/query', run: query },
  list: { method: 'GET', path: '/vectors/list', run: list },
  stats: { method: 'POST', path: '/describe_index_stats', run: stats },
} as const satisfies Record<string, Endpoint>;

export type OperationName = keyof typeof ENDPOINTS;
export const OPERATION_NAMES = Object.keys(ENDPOINTS) as OperationName[];
