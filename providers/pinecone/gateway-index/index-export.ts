import { createHash } from 'node:crypto';
import type { Call, ExportedMemory, ExportPart, ExportQuery, ImportRequest, Memory, Provider, Ref } from '#provider';
import { toUnit } from '#provider';
import { MAX_LISTED, type NewRecord, requireFits, type StoredRecord, upsertChunks } from '../client/client.ts';
import { newest } from '../overlay.ts';
import { toValues } from '../score.ts';
import { INDEX_RECORD } from '../startup.ts';
import { type GatewayIndex, type StoredMemory, toMemory, toMetadata, toVector } from './gateway-record.ts';
import { EARLIEST_MS, isIdOf, movedId, parseId, userPrefix } from './ids.ts';

/**
 * A record's id holds user and time, so a memory of another store cannot keep its id there. The record has it as a field, and
 * another record, in the base namespace, leads from it to the memory.
 */
export const signOf = (id: string): string => `moved-${createHash('sha256').update(id).digest('base64url')}`;

const outside = (memory: StoredMemory): Memory => {
  const { moved_id, ...rest } = memory;
  return moved_id === undefined ? memory : { ...rest, id: moved_id };
};

/** The records to which the ids of other stores lead. */
async function leadsOf({ service, namespaces, moved }: GatewayIndex, all: readonly string[], call: Call) {
  if (!moved) return all.map(() => undefined);
  const signs = await service.fetch(namespaces.base, all.map(signOf), call);
  return all.map((id) => {
    const leads = signs.get(signOf(id))?.metadata.leads_to;
    return typeof leads === 'string' ? leads : undefined;
  });
}

/** The verbs by the ids that memories have outside, and with those to move memories. */
export function withExport(inner: Provider, index: GatewayIndex): Provider {
  const { service, ids, namespaces } = index;
  const { update, delete: remove, list, search } = inner;
  /** Does the work on the record of this id; if there is none, on the one that the id leads to. */
  const onRecord = async <Result>(ref: Ref, call: Call, work: (ref: Ref) => Promise<Result>): Promise<Result> => {
    const result = await work(ref);
    if (result) return result;
    const [id] = await leadsOf(index, [ref.id], call);
    return id === undefined ? result : work({ ...ref, id });
  };
  const found = async (work: Promise<Memory | undefined>) => {
    const memory = await work;
    return memory && outside(memory);
  };
  return {
    ...inner,
    get: (ref, call) => found(onRecord(ref, call, (one) => inner.get(one, call))),
    ...(update && {
      update: (request, call) => found(onRecord(request.ref, call, (ref) => update({ ...request, ref }, call))),
    }),
    ...(remove && {
      delete: (ref, call) =>
        onRecord(ref, call, async (one) => {
          const removed = await remove(one, call);
          if (removed && one.id !== ref.id) await service.remove(namespaces.base, [signOf(ref.id)], call);
          return removed;
        }),
    }),
    ...(list && {
      async list({ after, ...query }, call) {
        const isOwn = after && isIdOf(after.id, ids.userPart(query.user_id));
        const position = after && {
          created_at: new Date(Math.max(EARLIEST_MS, Date.parse(after.created_at))).toISOString(),
          id: isOwn ? after.id : movedId(ids, { ...after, user_id: query.user_id }),
        };
        return (await list({ ...query, ...(position && { after: position }) }, call)).map(outside);
      },
    }),
    ...(search && {
      search: async (query, call) =>
        (await search(query, call)).map((hit) => ({ ...hit, memory: outside(hit.memory) })),
    }),
    export: (query, call) => exportPart(index, query, call),
    import: (request, call) => importAll(index, request, call),
  };
}

/** The record of each id, with its namespace. */
async function recordsOf(index: GatewayIndex, all: readonly string[], call: Call): Promise<[string, string][]> {
  const leads = await leadsOf(index, all, call);
  return all.flatMap((id, i): [string, string][] => {
    const record = leads[i] ?? (parseId(id) ? id : undefined);
    return record === undefined ? [] : [[record, index.namespaces.of(parseId(record)?.userPart ?? '')]];
  });
}

/** One page of ids of one namespace, then its records. */
async function exportPart(
  index: GatewayIndex,
  { ids: wanted, ...query }: ExportQuery,
  call: Call,
): Promise<ExportPart> {
  if (!wanted) return exportPage(index, query, call);
  const items: ExportedMemory[] = [];
  for (const [from, some] of grouped(await recordsOf(index, wanted, call), ([, namespace]) => namespace)) {
    items.push(...(await readRecords(index, { ...query, from, ids: some.map(([id]) => id) }, call)));
  }
  return { items, next: undefined };
}

interface RecordsQuery extends Pick<ExportQuery, 'user_id' | 'since' | 'vectors'> {
  /** The namespace. */
  readonly from: string;
  /** Those of records. */
  readonly ids: readonly string[];
}

async function readRecords(
  { service, overlay, model }: GatewayIndex,
  { from, ids, user_id, since = '', vectors }: RecordsQuery,
  call: Call,
): Promise<ExportedMemory[]> {
  const records = ids.length > 0 ? await service.fetch(from, ids, call) : new Map<string, never>();
  return ids.flatMap((id): ExportedMemory[] => {
    const record = records.get(id);
    const written = overlay.get(id);
    const memory =
      written === null ? undefined : newest(written?.memory, record && toMemory(id, record.metadata, model));
    if (!memory || memory.updated_at < since || (user_id !== undefined && memory.user_id !== user_id)) return [];
    // Pinecone sends the values in any case.
    const vectorOf = () => (memory === written?.memory ? written.vector : record && toVector(record));
    return [{ memory: outside(memory), vector: (vectors && vectorOf()) || null }];
  });
}

async function exportPage(
  index: GatewayIndex,
  { after, user_id, limit, ...query }: ExportQuery,
  call: Call,
): Promise<ExportPart> {
  const { service, ids, namespaces } = index;
  const userPart = user_id === undefined ? '' : ids.userPart(user_id);
  const all = user_id === undefined ? await namespacesOf(index, call) : [namespaces.of(userPart)];
  const [from = all[0] ?? '', token] = after?.split('\n') ?? [];
  const prefix = userPrefix(userPart);
  const page = await service.list(from, { prefix, limit: Math.min(limit, MAX_LISTED), token }, call);
  const items = await readRecords(index, { ...query, user_id, from, ids: page.ids }, call);
  const next = page.next === undefined ? all[all.indexOf(from) + 1] : `${from}\n${page.next}`;
  return { items, next };
}

/** Compares in byte order. */
async function namespacesOf({ service, namespaces: { base } }: GatewayIndex, call: Call): Promise<string[]> {
  const { namespaces } = await service.stats(call);
  return namespaces.filter((name) => name === base || name.startsWith(`${base}-`)).sort();
}

interface ImportEntry {
  readonly memory: StoredMemory;
  readonly vector: Float32Array;
  readonly namespace: string;
  readonly record: NewRecord;
}

async function importAll(index: GatewayIndex, { items, replace }: ImportRequest, call: Call): Promise<boolean[]> {
  const { service, namespaces, overlay, consistency, model } = index;
  const all = items.map(({ memory, vector }) => toRestored(index, memory, toUnit(vector)));
  const leads = await leadsOf(
    index,
    items.map(({ memory }) => memory.id),
    call,
  );
  /** Ids that a record of this index can have. */
  const given = items.map(({ memory }) => (parseId(memory.id) ? memory.id : undefined));
  const olds = all.map(({ record }, i) => leads[i] ?? given[i] ?? record.id);
  const namespaceOf = (id: string) => namespaces.of(parseId(id)?.userPart ?? '');
  const records = new Map<string, StoredRecord>();
  for (const [namespace, some] of grouped(olds, namespaceOf)) {
    for (const [id, record] of await service.fetch(namespace, some, call)) records.set(id, record);
  }
  const stored: boolean[] = [];
  const free: ImportEntry[] = [];
  const signs: NewRecord[] = [];
  for (const [i, one] of all.entries()) {
    const old = olds[i] as string;
    const record = records.get(old);
    const present = overlay.get(old) === null ? undefined : record && toMemory(old, record.metadata, model);
    const isFree = !present || (replace && present.user_id === one.memory.user_id);
    stored.push(isFree);
    if (!isFree) continue;
    if (present && old !== one.record.id) await service.remove(namespaceOf(old), [old], call);
    free.push(one);
    const { moved_id } = one.memory;
    if (moved_id !== undefined) {
      signs.push({ ...one.record, id: signOf(moved_id), metadata: { leads_to: one.record.id } });
    }
  }
  if (signs.length > 0 && !index.moved) {
    await service.update(namespaces.base, { id: INDEX_RECORD, metadata: { moved: true } }, call);
    index.moved = true;
  }
  // First: a memory that nothing leads to could not be found by its id.
  for (const chunk of upsertChunks(signs.map((record) => ({ record })))) {
    await service.upsert(
      namespaces.base,
      chunk.map(({ record }) => record),
      call,
    );
  }
  for (const [namespace, some] of grouped(free, (one) => one.namespace)) {
    for (const chunk of upsertChunks(some)) {
      const lsn = await service.upsert(
        namespace,
        chunk.map(({ record }) => record),
        call,
      );
      for (const { memory, vector } of chunk) overlay.put({ memory, vector }, { namespace, lsn });
      consistency.wrote(namespace, lsn, call);
    }
  }
  return stored;
}

function grouped<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group) group.push(item);
    else groups.set(keyOf(item), [item]);
  }
  return groups;
}

/** Throws `payload_too_large` if the record is too large. */
function toRestored({ ids, namespaces, model }: GatewayIndex, moved: Memory, vector: Float32Array): ImportEntry {
  const userPart = ids.userPart(moved.user_id);
  const isOwn = isIdOf(moved.id, userPart);
  const id = isOwn ? moved.id : movedId(ids, moved);
  const memory: StoredMemory = { ...moved, id, embedding_model: model, ...(!isOwn && { moved_id: moved.id }) };
  const { values, embedded } = toValues(vector);
  const metadata = toMetadata(memory, embedded);
  requireFits(metadata);
  return { memory, vector, namespace: namespaces.of(userPart), record: { id, values, metadata } };
}
