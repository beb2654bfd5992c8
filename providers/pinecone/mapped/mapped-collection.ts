import {
  type Call,
  type EmbedderIdentity,
  type ForeignCollection,
  type FoundPoint,
  type Log,
  type PointFields,
  providerError,
  recordTooLarge,
  type Traits,
} from '#provider';
import {
  MAX_ANSWER_BYTES,
  MAX_LISTED,
  MAX_TOP_K,
  MAX_UPSERT_BYTES,
  METADATA_BUDGET,
  type Metadata,
  recordBytes,
  type Service,
  type StoredRecord,
  validIds,
} from '../client/client.ts';
import { failureBehind, PROVIDER } from '../client/pinecone-errors.ts';
import { anyUserFilter, mappedFilter, userIn } from '../filter.ts';
import { nearest } from '../nearest.ts';
import { createOverlay, type WrittenPoint } from '../overlay.ts';
import type { Options } from '../pinecone-options.ts';
import { MEASURES, type Metric, someVector } from '../score.ts';
import { checkedMetric } from '../startup.ts';
import { createRateLimit, RATE_LIMIT } from './rate-limit.ts';

/** At most so many bytes of a record in an answer besides its vector, and of a vector's component. */
const RECORD_BYTES = 42_000;
const COMPONENT_BYTES = 24;
/** Matches that fit into an answer with at most 40 KB of metadata each. */
const MAX_WITH_METADATA = Math.floor(MAX_ANSWER_BYTES / RECORD_BYTES);
/** Maximum bytes of a user's records that are sorted at once. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Probably no record has this id; it does not matter. */
const PING_ID = 'omp-ping';

/** Keys cannot be removed from a record. No tag is empty. */
const cleared = (fields: PointFields): Metadata =>
  Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, Array.isArray(value) && value.length === 0 ? [''] : value]),
  );
const toFound = ({ id, values, metadata }: StoredRecord, vector = true): FoundPoint => ({
  id,
  fields: metadata as PointFields,
  ...(vector && { vector: Float32Array.from(values) }),
});

interface MappedCollection extends ForeignCollection {
  /** Whether the index can list all records of one user, and all ids. `sample` finds it out. */
  readonly can: { lists: boolean; listsIds: boolean };
  readonly metric: Metric;
}

/**
 * The records of a mapped index as points, with the recent writes of this gateway: the index may not show them yet. `user`: the key of the user.
 * Throws a plain `Error` for an index that cannot have the vectors of the embedder.
 */
export async function createMappedCollection(
  service: Service,
  options: Options,
  { user, embedder: { dimensions }, log }: { user: string; embedder: EmbedderIdentity; log: Log },
  call: Call,
): Promise<MappedCollection> {
  const { namespace, settle_ms, max_listed } = options;
  const metric = await checkedMetric(service, options, dimensions, call);
  // `settle_ms` alone decides how long writes are remembered: positions are not tracked here.
  const overlay = createOverlay({ settle_ms, shows: () => true, log });
  const waitForRate = createRateLimit(RATE_LIMIT);
  /** Maximum records, vectors included, that fit into one answer. */
  const largestPage = Math.max(1, Math.floor(MAX_ANSWER_BYTES / (RECORD_BYTES + COMPONENT_BYTES * dimensions)));
  const can = { lists: true, listsIds: true };

  const fetch = async (ids: readonly string[], call: Call): Promise<FoundPoint[]> => {
    const records = await service.fetch(namespace, ids, call);
    return ids.flatMap((id) => {
      const record = records.get(id);
      // Read after the fetch: the record may have been written meanwhile.
      const write = overlay.get(id);
      return write === undefined ? (record ? [toFound(record)] : []) : (write ?? []);
    });
  };
  const put = (point: Omit<WrittenPoint, 'owner'>, lsn: number | undefined) =>
    overlay.put({ ...point, owner: String(point.fields[user]) }, { namespace, lsn });

  return {
    ...{ can, metric },
    traits: {
      ...TRAITS,
      measure: MEASURES[metric],
      slow_pages: { points: max_listed, bytes: MAX_BYTES },
    },
    describe: async () => ({ dimensions, empty: false, measure: MEASURES[metric] }),
    sizeOf: ({ id, fields, vector }) => recordBytes({ id, metadata: cleared(fields), values: vector }),

    async sample(field, limit, call) {
      // Matches nothing: no user has an empty name.
      const filter = mappedFilter({ op: 'equals', field, value: '' });
      const request = { vector: someVector(dimensions), topK: 1, filter, includeMetadata: false };
      await service.query(namespace, request, call).catch((error: unknown) => {
        throw failureBehind(error)?.status === 400 ? cannotFilter(namespace, field) : error;
      });
      can.listsIds = await canListIds(service, namespace, call);
      const page = { filter: anyUserFilter(field), limit: Math.min(limit, largestPage) };
      const found = await service.fetchByMetadata(namespace, page, call);
      can.lists = found !== undefined;
      return (found?.records ?? []).map((record) => toFound(record));
    },

    async upsert(points, call) {
      const records = points.map(({ id, vector, fields }) => ({ id, values: vector, metadata: cleared(fields) }));
      const lsn = await service.upsert(namespace, records, call);
      for (const point of points) put(point, lsn);
    },

    fetch: (ids, _, call) => fetch(ids, call),

    async change({ id, fields, vector, stored }, call) {
      const metadata = cleared(fields);
      // With the application's other keys.
      const after = { ...stored.fields, ...metadata } as PointFields;
      const values = vector ?? stored.vector ?? new Float32Array(0);
      if (recordBytes({ id, values, metadata: after as Metadata }).fields > METADATA_BUDGET)
        throw recordTooLarge(METADATA_BUDGET);
      const lsn = await service.update(namespace, { id, metadata, ...(vector && { values: vector }) }, call);
      put({ id, fields: after, vector: values }, lsn);
      return true;
    },

    async remove(ids, call) {
      const lsn = await service.remove(namespace, ids, call);
      for (const id of ids) overlay.bury({ id, owner: overlay.get(id)?.owner ?? '' }, { namespace, lsn });
    },

    /** All ids, or the records of one user: a file of a person must not read everybody's. An index with an old API has the first alone. */
    async page({ filter, after: token, limit, select: { vector } }, call) {
      if (!filter || !can.lists) {
        const page = { prefix: '', limit: Math.min(limit, MAX_LISTED), token };
        const { ids, next } = await service.list(namespace, page, call);
        return { points: await fetch(ids, call), next };
      }
      await waitForRate(call);
      const page = { filter: mappedFilter(filter), limit: Math.min(limit, largestPage), token };
      const found = await service.fetchByMetadata(namespace, page, call);
      // The index supported it at the start.
      if (!found) throw providerError(PROVIDER, 'Pinecone does not list by metadata any more');
      const { next } = found;
      // Each where it is: until the last page is asked for, a write may have been forgotten.
      const points = found.records.flatMap((record) => {
        const write = overlay.get(record.id);
        return write === undefined ? [toFound(record, vector)] : (write ?? []);
      });
      if (next !== undefined) return { points, next };
      const shown = new Set(points.map(({ id }) => id));
      const recent = overlay.of(userIn(filter, user)).live.filter(({ id }) => !shown.has(id));
      return { points: [...points, ...recent], next };
    },

    async query({ vector, filter, limit }, call) {
      const request = {
        ...{ namespace, owner: userIn(filter, user), filter: mappedFilter(filter), vector, limit, first: MAX_TOP_K },
        toPoint: (id: string, metadata?: Metadata): FoundPoint | undefined =>
          overlay.get(id) === null ? undefined : { id, fields: (metadata ?? {}) as PointFields },
        isWanted: () => true,
      };
      const index = { service, overlay, metric };
      const found = await nearest(index, { ...request, with_metadata: MAX_WITH_METADATA }, call);
      const unread = found.filter(({ fields }) => fields[user] === undefined).map(({ id }) => id);
      if (unread.length === 0) return found;
      const points = await fetch(unread, call);
      // Ids that cannot be fetched, such as those with spaces, need a query with metadata, which may fail.
      if (validIds(unread).length < unread.length)
        points.push(...(await nearest(index, { ...request, with_metadata: MAX_TOP_K }, call)));
      const read = new Map(points.map(({ id, fields }) => [id, fields]));
      return found.map((match) => ({ ...match, fields: read.get(match.id) ?? match.fields }));
    },

    ping: async (call) => void (await service.fetch(namespace, [PING_ID], call)),
    close: async () => overlay.close(),
  };
}

const TRAITS: Omit<Traits, 'measure'> = {
  exact: true,
  // Which `mappedFilter` knows.
  filters: ['allOf', 'not'],
  order: 'none',
  ids: 'text',
  max_batch: 1_000,
  max_batch_bytes: MAX_UPSERT_BYTES,
  max_point_bytes: METADATA_BUDGET,
  max_limit: MAX_TOP_K,
};

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
