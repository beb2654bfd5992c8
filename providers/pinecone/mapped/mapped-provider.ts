import {
  type Call,
  createKeyedMutex,
  type EmbedderIdentity,
  effectivePatch,
  invalidRequest,
  type Memory,
  newUuidIdentity,
  type Provider,
  type ProviderContext,
  toUnit,
  type Vector,
} from '#provider';
import { MAX_CONTENT_LENGTH, MAX_TOP_K, requireFits, type Service } from '../client/client.ts';
import { failureBehind, PROVIDER } from '../client/pinecone-errors.ts';
import { anyUserFilter, userFilter } from '../filter.ts';
import { createOverlay } from '../overlay.ts';
import type { Options } from '../pinecone-options.ts';
import { isZero, type Metric, toValues } from '../score.ts';
import { atStartup, checkedMetric } from '../startup.ts';
import { createMappedExport } from './mapped-export.ts';
import { createMappedList, createRateLimit, largestPage, RATE_LIMIT } from './mapped-list.ts';
import {
  changes,
  type Fields,
  type Find,
  type FoundRecord,
  fieldsOf,
  type MappedIndex,
  newMetadata,
  requireStorable,
  timeIn,
  toMemory,
  type WrittenMemory,
} from './mapped-record.ts';
import { createMappedSearch } from './mapped-search.ts';

/** Probably no record has this id; it does not matter. */
const PING_ID = 'omp-ping';

/**
 * Opens a mapped index, read-only unless `writable`. Throws a plain `Error` for operators if the settings or the index do
 * not allow it.
 */
export async function openMappedIndex(
  service: Service,
  options: Options,
  { embedder, log }: Pick<ProviderContext, 'embedder' | 'log'>,
): Promise<Provider> {
  if (!embedder) throw new Error('an index on Pinecone is searched by vectors; set OMP_SEARCH_MODE to vector');
  const { namespace, writable, settle_ms, max_listed } = options;
  const fields = fieldsOf(options);
  const { metric, lists, listsIds, temporal, warnings } = await examineIndex(service, options, embedder, fields);
  for (const warning of warnings) log.warn({}, `this Pinecone index: ${warning}`);
  // `settle_ms` alone decides how long writes are remembered: positions are not tracked here.
  const overlay = createOverlay<WrittenMemory>({ settle_ms, shows: () => true, log });
  const { dimensions } = embedder;
  const index: MappedIndex = { service, namespace, fields, dimensions, metric, overlay, max_listed };
  const find = createMappedFind(index);
  const waitForRate = createRateLimit(RATE_LIMIT);
  return {
    name: PROVIDER,
    capabilities: {
      vector_search: true,
      keyword_search: false,
      temporal,
      scopes: 'none',
      tags: fields.tags !== undefined,
      max_content_length: writable ? MAX_CONTENT_LENGTH : null,
      supports_supersession: false,
      max_search_results: MAX_TOP_K,
      // A list reads at most `max_listed` and reports more itself.
      max_list_scan: null,
      consistency_tokens: false,
      etags: false,
      mapped: true,
      explain: true,
    },
    get: async ({ id, users }, call) => (await find([id], users, call)).get(id)?.memory,
    search: createMappedSearch(index),
    ...(lists && { list: createMappedList(index, waitForRate) }),
    ...(listsIds && { export: createMappedExport(index, find, lists ? waitForRate : undefined) }),
    ...(writable
      ? createMappedWrites(index, find)
      : { read_only: 'the index is read-only: OMP_PINECONE_WRITABLE=true lets the gateway change it' }),
    // A statistics request would list every namespace.
    stats: () => ({ queue_length: service.queueLength() }),
    ping: async (call) => void (await service.fetch(namespace, [PING_ID], call)),
    close: async () => overlay.close(),
  };
}

export interface ExaminedIndex {
  readonly metric: Metric;
  /** Whether the index can list all records of one user. */
  readonly lists: boolean;
  /** Whether the index can list all ids. */
  readonly listsIds: boolean;
  /** Whether lists can be filtered by time. */
  readonly temporal: boolean;
  readonly warnings: readonly string[];
}

/**
 * Finds out at the start what the index can do, and reads one page of its records for it. Throws a plain `Error` for an
 * index that does not fit the embedder or cannot find the records of one user.
 */
export const examineIndex = (
  service: Service,
  options: Pick<Options, 'namespace' | 'metric'>,
  { dimensions }: EmbedderIdentity,
  fields: Fields,
): Promise<ExaminedIndex> =>
  atStartup(async (call) => {
    const metric = await checkedMetric(service, options, dimensions, call);
    const { namespace } = options;
    // Matches nothing: no user has an empty name.
    const filter = userFilter('', [], { user: fields.user, tags: '' });
    const { values } = toValues(new Float32Array(dimensions));
    const request = { vector: values, topK: 1, filter, includeMetadata: false };
    await service.query(namespace, request, call).catch((error: unknown) => {
      throw failureBehind(error)?.status === 400 ? cannotFilter(namespace, fields.user) : error;
    });
    const listsIds = await canListIds(service, namespace, call);
    const noIds = listsIds
      ? []
      : ['it cannot list its ids, so its memories can be neither exported nor deleted by retention'];
    const sample = { filter: anyUserFilter(fields.user), limit: largestPage(dimensions) };
    const page = await service.fetchByMetadata(namespace, sample, call);
    if (!page) {
      const warnings = ['it has an API older than 2025-10 and cannot list the memories of a user', ...noIds];
      return { metric, lists: false, listsIds, temporal: false, warnings };
    }
    if (fields.created === undefined) return { metric, lists: true, listsIds, temporal: false, warnings: noIds };
    const memories = page.records.filter(({ id, metadata }) => toMemory(fields, id, metadata) !== undefined);
    const withTime = memories.filter(({ metadata }) => timeIn(metadata, fields.created) !== undefined);
    // An empty index contradicts nothing.
    const temporal = memories.length === 0 || withTime.length > 0;
    const warning =
      `none of ${memories.length} sampled records has a time in "${fields.created}" (OMP_PINECONE_CREATED_FIELD): ` +
      'lists are sorted by id, and since and until are rejected';
    return { metric, lists: true, listsIds, temporal, warnings: temporal ? noIds : [warning, ...noIds] };
  });

/** Pinecone lists ids of serverless indexes only, and does not document what others answer. The requests before it have succeeded, so a rejection is about listing. */
const canListIds = (service: Service, namespace: string, call: Call): Promise<boolean> =>
  service.list(namespace, { prefix: '', limit: 1 }, call).then(
    () => true,
    (error: unknown) => {
      const { kind, status } = failureBehind(error) ?? {};
      if (status !== undefined || kind === 'malformed') return false;
      throw error;
    },
  );

const cannotFilter = (namespace: string, userField: string): Error =>
  new Error(
    namespace === '__default__'
      ? 'Pinecone rejects the namespace "__default__" (an index with an API older than 2025-04 has no name for it), ' +
          `or cannot filter by "${userField}" (OMP_PINECONE_USER_FIELD); the records must be in a namespace with a name, and that key must be filterable`
      : `Pinecone cannot filter by "${userField}"; check OMP_PINECONE_USER_FIELD and which metadata keys of the index are filterable`,
  );

/** Finds records by id. Recent writes of this gateway win: the index may not show them yet. */
function createMappedFind({ service, namespace, fields, overlay }: MappedIndex): Find {
  return async (ids, users, call) => {
    const records = await service.fetch(namespace, ids, call);
    const hits = new Map<string, FoundRecord>();
    for (const id of ids) {
      const record = records.get(id);
      // Read after the fetch: the record may have been written meanwhile.
      const write = overlay.get(id);
      const memory = write === undefined ? record && toMemory(fields, id, record.metadata) : write?.memory;
      if (!memory || !(users === null || users.includes(memory.user_id))) continue;
      hits.set(id, {
        memory,
        vector: write?.vector ?? Float32Array.from(record?.values ?? []),
        metadata: record?.metadata ?? newMetadata(fields, memory, memory.created_at),
      });
    }
    return hits;
  };
}

const written = (memory: Memory, vector: Float32Array): WrittenMemory => {
  const { id, user_id: owner } = memory;
  return { id, owner, memory, vector };
};

/** The verbs that change a mapped index. They never touch keys that no field names. */
function createMappedWrites(
  index: MappedIndex,
  find: Find,
): Required<Pick<Provider, 'check' | 'add' | 'update' | 'delete'>> {
  const { service, namespace, fields, overlay } = index;
  const mutex = createKeyedMutex();

  const valuesOf = (vector: Vector): Float32Array => {
    const values = toUnit(vector);
    // Pinecone rejects a vector of zeros, and the application would take any other for the meaning of the text.
    if (isZero(values))
      throw invalidRequest('content: the embedding of this text is zero, so the index cannot store it');
    return values;
  };

  return {
    check: (input) => requireStorable(fields, input),

    async add({ input, vector }, call) {
      requireStorable(fields, input);
      const { id, created_at } = newUuidIdentity();
      const metadata = newMetadata(fields, input, created_at);
      requireFits(metadata);
      const values = valuesOf(vector);
      const lsn = await service.upsert(namespace, [{ id, values, metadata }], call);
      const memory = toMemory(fields, id, metadata) as Memory;
      overlay.put(written(memory, values), { namespace, lsn });
      return memory;
    },

    update: ({ ref, patch: input, vector }, call) =>
      mutex(ref.id, async () => {
        call.throwIfAborted();
        const record = (await find([ref.id], ref.users, call)).get(ref.id);
        const patch = record && effectivePatch(record.memory, input);
        if (!patch) return record?.memory;
        requireStorable(fields, patch);
        const now = new Date(Math.max(Date.now(), Date.parse(record.memory.updated_at) + 1)).toISOString();
        const updated_at = fields.updated === undefined ? record.memory.updated_at : now;
        const memory: Memory = { ...record.memory, ...patch, extensions: {}, updated_at };
        // Includes the application's other keys.
        requireFits({ ...record.metadata, ...newMetadata(fields, memory, memory.created_at) });
        const values = patch.content === undefined ? undefined : valuesOf(vector);
        const metadata = changes(fields, patch, record.metadata, now);
        const lsn = await service.update(namespace, { id: ref.id, metadata, ...(values && { values }) }, call);
        overlay.put(written(memory, values ?? record.vector), { namespace, lsn });
        return memory;
      }),

    delete: (ref, call) =>
      mutex(ref.id, async () => {
        call.throwIfAborted();
        const record = (await find([ref.id], ref.users, call)).get(ref.id);
        if (!record) return false;
        const lsn = await service.remove(namespace, [ref.id], call);
        overlay.bury(written(record.memory, record.vector), { namespace, lsn });
        return true;
      }),
  };
}
