import { type Call, type FoundPoint, notBefore, type Point, type Points, type Traits } from '#provider';
import {
  type Lsn,
  MAX_ANSWER_BYTES,
  MAX_LISTED,
  MAX_TOP_K,
  MAX_UPSERT_BYTES,
  METADATA_BUDGET,
  type Metadata,
  type NewRecord,
  recordBytes,
} from '../client/client.ts';
import { userFilter } from '../filter.ts';
import { nearest } from '../nearest.ts';
import type { WrittenPoint } from '../overlay.ts';
import { MEASURES, type Metric } from '../score.ts';
import { INDEX_RECORD } from '../startup.ts';
import { createReads, type GatewayIndex, grouped, signOf, wantedOf } from './gateway-reads.ts';
import { changes, toFields, toMetadata } from './gateway-record.ts';
import { createPage, createScan } from './gateway-scan.ts';
import { EARLIEST_MS, isIdOf, movedId, parseId } from './ids.ts';

/** Of a match: metadata, and its id with names. A query asks for metadata only if they fit into an answer in any case. */
const MAX_MATCH_BYTES = 40_960 + 240;
const MAX_WITH_METADATA = Math.floor(MAX_ANSWER_BYTES / MAX_MATCH_BYTES);

const traitsOf = (metric: Metric): Traits => ({
  measure: MEASURES[metric],
  exact: true,
  filters: ['allOf'],
  filtered: { query: ['user_id', 'tags'], scan: ['user_id', 'created'] },
  order: 'position',
  ids: 'text',
  max_batch: 1_000,
  max_batch_bytes: MAX_UPSERT_BYTES,
  max_point_bytes: METADATA_BUDGET,
  max_limit: MAX_TOP_K,
  // The last id of a listed page waits for the next page.
  scan_batch: MAX_LISTED - 1,
});

/** The points of the gateway's index, of which the kit makes memories. */
export function createGatewayCollection(index: GatewayIndex): Points {
  const { ids, namespaces, metric } = index;
  const reads = createReads(index);
  const createdAt = createClock();
  return {
    traits: traitsOf(metric),
    identify(user_id) {
      const created = createdAt();
      return { id: ids.make(user_id, created), created_at: new Date(created).toISOString() };
    },
    partOf: (user_id) => namespaces.of(ids.userPart(user_id)),
    ...createWrites(index, reads),
    fetch: (all, _, call) => reads.memories(all, call),
    find: reads.find,
    query: createQuery(index),
    scan: createScan(index, reads),
    page: createPage(index, reads),
  };
}

/**
 * The nearest points of a user that have the tags. Takes one request for at most 97 points; for more, a second one, whose points have ids
 * only; still more if many of the best were just changed or deleted.
 */
function createQuery(index: GatewayIndex): Points['query'] {
  const { ids, namespaces, consistency } = index;
  return async ({ vector, filter, limit }, call) => {
    const { user_id, tags } = wantedOf(filter);
    const owner = ids.userPart(user_id);
    const namespace = namespaces.of(owner);
    await consistency.caughtUp(namespace, call);
    const request = {
      ...{ namespace, owner, filter: userFilter(user_id, tags), vector, limit },
      ...{ with_metadata: MAX_WITH_METADATA, first: MAX_WITH_METADATA },
      toPoint(id: string, metadata: Metadata | undefined): FoundPoint | undefined {
        const parts = parseId(id);
        if (parts?.userPart !== owner) return undefined;
        const fields = metadata ? toFields(id, metadata) : { memory_id: id, created: parts.created_ms };
        return fields && { id, fields };
      },
      isWanted: ({ fields }: FoundPoint) =>
        fields.user_id === user_id && tags.every((tag) => (fields.tags as readonly string[]).includes(tag)),
      saw: (lsn: Lsn) => consistency.saw(namespace, lsn),
    };
    return nearest(index, request, call);
  };
}

type Writes = Required<Pick<Points, 'sizeOf' | 'upsert' | 'patch' | 'remove'>>;

function createWrites(index: GatewayIndex, reads: ReturnType<typeof createReads>): Writes {
  const { service, ids, namespaces, overlay, consistency } = index;
  /** What leads to a memory is in the base namespace. */
  const namespaceOf = (id: string): string => {
    const owner = parseId(id)?.userPart;
    return owner === undefined ? namespaces.base : namespaces.of(owner);
  };

  const wrote = (namespace: string, lsn: number | undefined, points: readonly WrittenPoint[], call: Call) => {
    for (const point of points) overlay.put(point, { namespace, lsn });
    consistency.wrote(namespace, lsn, call);
  };

  const removeAll = async (ids: readonly string[], call: Call) => {
    for (const [namespace, some] of grouped(ids, namespaceOf)) {
      const lsn = await service.remove(namespace, some, call);
      for (const id of some) overlay.bury({ id, owner: parseId(id)?.userPart ?? '' }, { namespace, lsn });
      consistency.wrote(namespace, lsn, call);
    }
  };

  /** The point with the id of its record, and as a record. */
  const toWritten = (point: Point): WrittenPoint => {
    const [id, user_id] = [String(point.fields.memory_id), String(point.fields.user_id)];
    const owner = ids.userPart(user_id);
    const moved = () => movedId(ids, { id, user_id, created_ms: Number(point.fields.created) });
    return { ...point, owner, id: isIdOf(id, owner) ? id : moved() };
  };
  const toRecord = ({ id, fields, vector }: Point): NewRecord => ({
    id,
    values: vector,
    metadata: toMetadata(id, fields),
  });

  /** Makes the ids of other stores lead to these points. First: a memory that nothing leads to could not be found by its id. */
  const lead = async (points: readonly WrittenPoint[], call: Call): Promise<void> => {
    const moved = points.filter(({ id, fields }) => id !== fields.memory_id);
    if (moved.length === 0) return;
    const leads = await reads.leads(
      moved.map(({ fields }) => String(fields.memory_id)),
      call,
    );
    const others = moved.flatMap(({ id, fields }) => {
      const old = leads.get(String(fields.memory_id));
      return old === undefined || old === id ? [] : [old];
    });
    await removeAll(others, call);
    if (!index.moved) {
      await service.update(namespaces.base, { id: INDEX_RECORD, metadata: { moved: true } }, call);
      index.moved = true;
    }
    const signs = moved.map(({ id, vector, fields }) => ({
      ...{ id: signOf(String(fields.memory_id)), owner: '', vector, fields: { leads_to: id } },
    }));
    const records = signs.map(({ id, vector: values, fields: metadata }) => ({ id, values, metadata }));
    const lsn = await service.upsert(namespaces.base, records, call);
    wrote(namespaces.base, lsn, signs, call);
  };

  return {
    sizeOf: (point) => recordBytes(toRecord(toWritten(point))),

    async upsert(points, call) {
      const written = points.map(toWritten);
      await lead(written, call);
      for (const [namespace, some] of grouped(written, ({ id }) => namespaceOf(id)))
        wrote(namespace, await service.upsert(namespace, some.map(toRecord), call), some, call);
    },

    async patch(point, { id, fields }, call) {
      const written = { ...toWritten(point), id };
      const metadata = changes(toMetadata(id, fields), toMetadata(id, point.fields));
      const hasText = fields.content !== point.fields.content;
      const change = { id, metadata, ...(hasText && { values: point.vector }) };
      const namespace = namespaceOf(id);
      wrote(namespace, await service.update(namespace, change, call), [written], call);
    },

    async remove(all, call) {
      // Only they can say which memories are of other stores.
      const points = index.moved ? await reads.records(all, call) : [];
      const signs = points.flatMap(({ id, fields }) =>
        id === fields.memory_id ? [] : [signOf(String(fields.memory_id))],
      );
      await removeAll([...all, ...signs], call);
    },
  };
}

/** Milliseconds since 1970, growing as `notBefore` does and never the same twice: later memories are listed first. */
function createClock(): () => number {
  let latest = 0;
  return () => {
    latest = notBefore(latest + 1, Math.max(EARLIEST_MS, Date.now()));
    return latest;
  };
}
