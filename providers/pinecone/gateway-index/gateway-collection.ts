import { type Call, notBefore, type Point, type Points, type Traits } from '#provider';
import { MAX_LISTED, MAX_TOP_K, METADATA_BUDGET, metadataBytes, type NewRecord } from '../client/client.ts';
import type { Metric } from '../score.ts';
import { INDEX_RECORD } from '../startup.ts';
import { createQuery } from './gateway-query.ts';
import { createReads, type GatewayIndex, grouped, signOf, type WrittenPoint } from './gateway-reads.ts';
import { changes, toMetadata } from './gateway-record.ts';
import { createPage, createScan } from './gateway-scan.ts';
import { EARLIEST_MS, isIdOf, movedId, parseId } from './ids.ts';

const MEASURES = { cosine: 'cosine', dotproduct: 'product', euclidean: 'squared distance' } as const;
/** Maximum bytes of one upsert. Pinecone takes 2 MB and 1,000 records. */
const MAX_UPSERT_BYTES = 1_900_000;
/** Longest decimal form of a number of a vector, with its comma. */
const NUMBER_BYTES = 26;
/** Of an id and of names. */
const RECORD_BYTES = 1_000;

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

type Writes = Required<Pick<Points, 'sizeOf' | 'upsert' | 'patch' | 'remove'>>;

function createWrites(index: GatewayIndex, reads: ReturnType<typeof createReads>): Writes {
  const { service, ids, namespaces, overlay, consistency } = index;
  const namespaceOf = (id: string): string => namespaces.of(parseId(id)?.userPart ?? '');

  const wrote = (namespace: string, lsn: number | undefined, points: readonly WrittenPoint[], call: Call) => {
    for (const point of points) overlay.put(point, { namespace, lsn });
    consistency.wrote(namespace, lsn, call);
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
    for (const [namespace, old] of grouped(others, namespaceOf)) await service.remove(namespace, old, call);
    if (!index.moved) {
      await service.update(namespaces.base, { id: INDEX_RECORD, metadata: { moved: true } }, call);
      index.moved = true;
    }
    const signs = moved.map(({ id, vector, fields }) => ({
      id: signOf(String(fields.memory_id)),
      values: vector,
      metadata: { leads_to: id },
    }));
    await service.upsert(namespaces.base, signs, call);
  };

  return {
    sizeOf(point) {
      const fields = metadataBytes(toRecord(toWritten(point)).metadata);
      return { fields, whole: fields + NUMBER_BYTES * point.vector.length + RECORD_BYTES };
    },

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
      const signs = points.filter(({ id, fields }) => id !== fields.memory_id);
      for (const [namespace, some] of grouped(all, namespaceOf)) {
        const lsn = await service.remove(namespace, some, call);
        for (const id of some) overlay.bury({ id, owner: parseId(id)?.userPart ?? '' }, { namespace, lsn });
        consistency.wrote(namespace, lsn, call);
      }
      if (signs.length > 0)
        await service.remove(
          namespaces.base,
          signs.map(({ fields }) => signOf(String(fields.memory_id))),
          call,
        );
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
