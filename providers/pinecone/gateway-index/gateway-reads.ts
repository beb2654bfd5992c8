import { createHash } from 'node:crypto';
import type { Call, Filter, FoundPoint, Ref } from '#provider';
import type { Service, StoredRecord } from '../client/client.ts';
import type { Overlay } from '../overlay.ts';
import type { Metric } from '../score.ts';
import { type IndexConsistency, waitUntil } from './consistency.ts';
import { toFields } from './gateway-record.ts';
import { type Ids, type Namespaces, parseId } from './ids.ts';

/** What the gateway's index works with. */
export interface GatewayIndex {
  readonly service: Service;
  readonly ids: Ids;
  readonly namespaces: Namespaces;
  readonly overlay: Overlay;
  readonly consistency: IndexConsistency;
  readonly metric: Metric;
  /** Whether memories of other stores were moved here: only then are ids looked up that are none of the gateway. */
  moved: boolean;
  /** Every read shows records older than this. */
  readonly settle_ms: number;
  readonly consistency_wait_ms: number;
}

/**
 * A record's id holds user and time, so a memory of another store cannot keep its id there. The record has it as a field, and
 * another record, in the base namespace, leads from it to the memory.
 */
export const signOf = (id: string): string => `moved-${createHash('sha256').update(id).digest('base64url')}`;

/** Reads records by id: what Pinecone has, merged with what this process wrote. */
export interface Reads {
  /** The points of these records, in order within a namespace. */
  records(ids: readonly string[], call: Call): Promise<FoundPoint[]>;
  /** The points of the memories with these ids, which may be those of records too. */
  memories(ids: readonly string[], call: Call): Promise<FoundPoint[]>;
  /** The ids of the records to which these ids of other stores lead. */
  leads(ids: readonly string[], call: Call): Promise<ReadonlyMap<string, string>>;
  /** Waits for a memory that the call's token may name. */
  find(ref: Pick<Ref, 'id' | 'users'>, call: Call): Promise<FoundPoint | undefined>;
}

export function createReads(index: GatewayIndex): Reads {
  const { service, ids, namespaces, overlay, consistency } = index;
  const namespaceOf = (id: string): string => namespaces.of(parseId(id)?.userPart ?? '');

  /** The newer of what Pinecone has and what this process wrote: another gateway may have changed a record since. */
  const merged = (id: string, record: StoredRecord | undefined): FoundPoint | undefined => {
    // Read after the fetch: the record may have been written meanwhile.
    const write = overlay.get(id);
    if (write === null) return undefined;
    const fields = record && toFields(id, record.metadata);
    if (write && !(fields && Number(fields.updated) > Number(write.fields.updated))) return write;
    return record && fields && { id, fields, vector: Float32Array.from(record.values) };
  };
  const records = async (all: readonly string[], call: Call): Promise<FoundPoint[]> => {
    const found: FoundPoint[] = [];
    for (const [namespace, some] of grouped(all, namespaceOf)) {
      const stored = await service.fetch(namespace, some, call);
      found.push(...some.flatMap((id) => merged(id, stored.get(id)) ?? []));
    }
    return found;
  };
  const leads = async (all: readonly string[], call: Call): Promise<ReadonlyMap<string, string>> => {
    if (!index.moved || all.length === 0) return new Map();
    const signs = await service.fetch(namespaces.base, all.map(signOf), call);
    return new Map(
      all.flatMap((id): [string, string][] => {
        const write = overlay.get(signOf(id));
        const to = write === undefined ? signs.get(signOf(id))?.metadata.leads_to : write?.fields.leads_to;
        return typeof to === 'string' ? [[id, to]] : [];
      }),
    );
  };
  const memories = async (all: readonly string[], call: Call): Promise<FoundPoint[]> => {
    const found = await records(all.filter(parseId), call);
    const here = new Set(found.map(({ id }) => id));
    const rest = all.filter((id) => !here.has(id));
    return [...found, ...(await records([...(await leads(rest, call)).values()], call))];
  };

  /** Waits for a record that another gateway may have created just now. Fetch reports no position: the only way is to look again. */
  const findOwn = async ({ id, users }: Pick<Ref, 'id' | 'users'>, call: Call): Promise<FoundPoint | undefined> => {
    const parts = parseId(id);
    // The id names the user: for other users there is no request and no wait, whether the record exists or not.
    const isInReach = users === null || users.some((user) => ids.userPart(user) === parts?.userPart);
    if (!parts || !isInReach || overlay.get(id) === null) return undefined;
    const namespace = namespaces.of(parts.userPart);
    await consistency.caughtUp(namespace, call);
    let point: FoundPoint | undefined;
    const isFound = async () => {
      [point] = await records([id], call);
      return point !== undefined;
    };
    const isExpected = consistency.names(namespace, call) && Date.now() - parts.created_ms < index.settle_ms;
    if (!(await waitUntil(isFound, isExpected ? index.consistency_wait_ms : 0, call)) && isExpected)
      call.consistency?.behind();
    return point;
  };

  return {
    records,
    memories,
    leads,
    async find(ref, call) {
      const own = await findOwn(ref, call);
      if (own) return own;
      const lead = (await leads([ref.id], call)).get(ref.id);
      return lead === undefined ? undefined : findOwn({ ...ref, id: lead }, call);
    },
  };
}

/** What a filter asks for: the kit asks for nothing else (`traits.filtered`). */
export function wantedOf(filter: Filter): { user_id: string; tags: readonly string[]; from: number; to: number } {
  const parts = filter.op === 'and' ? filter.filters : [filter];
  const wanted = {
    user_id: '',
    tags: [] as readonly string[],
    from: Number.NEGATIVE_INFINITY,
    to: Number.POSITIVE_INFINITY,
  };
  for (const part of parts) {
    if (part.op === 'equals') wanted.user_id = String(part.value);
    else if (part.op === 'allOf') wanted.tags = part.values;
    else if (part.op === 'range') {
      wanted.from = part.from ?? wanted.from;
      wanted.to = part.to ?? wanted.to;
    }
  }
  return wanted;
}

/** Node 20 has no `Map.groupBy`. */
export function grouped<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
