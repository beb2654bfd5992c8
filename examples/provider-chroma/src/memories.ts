import type { Collection, Where } from 'chromadb';
import {
  type Call,
  createKeyedMutex,
  type ExportedMemory,
  effectivePatch,
  type ImportRequest,
  type Memory,
  mergeExtensions,
  type NewVector,
  newRecord,
  type ProviderMethods,
  type Ref,
  requireFits,
  toUnit,
  type UserSummary,
} from 'omp-gateway/provider';
import { all, ask, getRows, RECORD, type Row } from './chroma.ts';
import { findAll, hasTags, MAX_RESULTS, readInOrder, readingVerbs, readPage, type Shelf } from './reading.ts';
import { changes, PLACES, placeOf, placePrefix, putRecords, recordId, toMemory, toVector } from './record.ts';

/** The verbs on the gateway's own collection. `model`: of its vectors; `max_listed`: memories of a user that a list puts in order. */
export function createMemories(
  collection: Collection,
  { model, max_listed, max_record_bytes }: { model: string; max_listed: number; max_record_bytes: number },
): ProviderMethods {
  const shelf: Shelf = {
    collection,
    user_field: 'user_id',
    toMemory: (row) => toMemory(row, model),
    toCosine: (distance) => 1 - distance,
    // Ids alone take a sixth of the time of records, and they sort as lists do.
    async inOrder({ user_id, tags, since, until, after }, call) {
      const where = all([
        { user_id },
        ...hasTags(tags),
        since === undefined ? undefined : { created: { $gte: Date.parse(since) } },
        until === undefined ? undefined : { created: { $lte: Date.parse(until) } },
        after === undefined ? undefined : { created: { $lte: Date.parse(after.created_at) } },
      ]);
      const ids = (await findAll(collection, { where, max: max_listed }, [], call)).map(({ id }) => id);
      const last = after && recordId({ ...after, user_id });
      return (last === undefined ? ids : ids.filter((id) => id < last)).sort().reverse();
    },
  };
  // Chroma has no conditional writes. Between several gateways the last change of a field wins.
  const mutex = createKeyedMutex();
  const addAll = async (items: readonly NewVector[], call: Call): Promise<Memory[]> => {
    const entries = items.map(({ input, vector }) => ({ memory: newRecord(input, model), vector }));
    await putRecords(collection, entries, call);
    return entries.map(({ memory }) => memory);
  };
  const find = async (ref: Ref, call: Call): Promise<Row | undefined> =>
    (await getRows(collection, { where: whereRef(ref), limit: 1 }, RECORD, call))[0];
  const remove = async (where: Where, call: Call) => (await ask(call, () => collection.delete({ where }))).deleted ?? 0;
  const memoryIn = (row: Row | undefined) => row && toMemory(row, model);

  return {
    capabilities: {
      vector_search: true,
      temporal: true,
      scopes: 'tags',
      tags: true,
      supports_supersession: true,
      max_search_results: MAX_RESULTS,
      max_list_scan: MAX_RESULTS,
      explain: true,
    },
    add: async (item, call) => (await addAll([item], call))[0],
    // One request stores all of them or none.
    batch: ({ items }, call) => addAll(items, call),
    get: async (ref, call) => memoryIn(await find(ref, call)),
    update: ({ ref, patch: wanted, vector }, call) =>
      mutex(ref.id, async () => {
        const row = await find(ref, call);
        const before = memoryIn(row);
        const patch = before && effectivePatch(before, wanted);
        if (!row || !patch) return before;
        requireFits(before, patch, max_record_bytes);
        const after: Memory = {
          ...before,
          ...patch,
          extensions: mergeExtensions(before.extensions, patch.extensions),
          updated_at: new Date(Math.max(Date.now(), Date.parse(before.updated_at) + 1)).toISOString(),
        };
        const content = patch.content !== undefined && {
          documents: [patch.content],
          embeddings: [[...toUnit(vector)]],
        };
        await ask(call, () => collection.update({ ids: [row.id], metadatas: [changes(before, after)], ...content }));
        // Chroma does not tell if another gateway has deleted the record.
        return memoryIn((await getRows(collection, { ids: [row.id] }, RECORD, call))[0]);
      }),
    // The condition is part of the request: a memory of another user is not deleted, whatever happens meanwhile.
    delete: (ref, call) => mutex(ref.id, async () => (await remove(whereRef(ref), call)) > 0),
    ...readingVerbs(shelf),
    erase: ({ user_id }, call) => remove({ user_id }, call),
    ...createWalks(collection, { model, max_listed }),
  };
}

/** Chroma refuses an empty list. No user has an empty name. */
const whereRef = ({ id, users }: Ref): Where =>
  all([{ memory_id: id }, users === null ? undefined : { user_id: { $in: [...users, ''] } }]);

/** Records of one part of a walk, about; of a walk that reads the metadata alone. */
const WINDOW = 500;
const COUNTED = 5_000;

/**
 * Walks over all users and memories. Pages of Chroma shift when a record before them is deleted. So a walk goes by the places of users, in
 * windows of about as many records, and meets every memory once, whatever happens meanwhile.
 */
function createWalks(
  collection: Collection,
  { model, max_listed }: { readonly model: string; readonly max_listed: number },
): Pick<ProviderMethods, 'users' | 'export' | 'import'> {
  const mutex = createKeyedMutex();
  const windowAt = async (from: number, size: number, call: Call): Promise<{ where: Where; end: number }> => {
    const width = Math.ceil((PLACES * size) / Math.max(size, await ask(call, () => collection.count())));
    const end = Math.min(PLACES, from + width);
    return { where: all([{ place: { $gte: from } }, { place: { $lt: end } }]), end };
  };
  const countUsers = async (where: Where, call: Call): Promise<UserSummary[]> => {
    const users = new Map<string, UserSummary>();
    for (let offset = 0; ; offset += COUNTED) {
      const rows = await getRows(collection, { where, limit: COUNTED, offset }, ['metadatas'], call);
      for (const { metadata } of rows) {
        const [user_id, updated] = [String(metadata?.user_id), String(metadata?.updated_at)];
        const { count, last_write } = users.get(user_id) ?? { count: 0, last_write: '' };
        users.set(user_id, { user_id, count: count + 1, last_write: updated > last_write ? updated : last_write });
      }
      if (rows.length < COUNTED) return [...users.values()];
    }
  };

  return {
    /** In the order of places; `after` and `next` are the place where a part begins. */
    async users({ users, prefix = '', after = '0', limit }, call) {
      const from = Number(after);
      const named = users?.filter((user) => user.startsWith(prefix) && placeOf(user) >= from);
      if (named?.length === 0) return { items: [], next: undefined };
      const { where, end } = named
        ? { where: { user_id: { $in: named } }, end: PLACES }
        : await windowAt(from, COUNTED, call);
      const found = (await countUsers(where, call)).filter(({ user_id }) => user_id.startsWith(prefix));
      const items = found.sort((a, b) => placeOf(a.user_id) - placeOf(b.user_id)).slice(0, limit);
      const next = items.length < found.length ? placeOf(items.at(-1)?.user_id ?? '') + 1 : end;
      return { items, next: next < PLACES ? String(next) : undefined };
    },

    /** In the order of the ids of records; `after` is one, or the prefix of those of a place. */
    async export({ after = '', ids: wanted, user_id, since = '', vectors, limit, max_bytes }, call) {
      const owner = user_id === undefined ? undefined : { user_id };
      const filter = wanted ? all([{ memory_id: { $in: [...wanted] } }, owner]) : owner;
      const { where, end } = filter
        ? { where: filter, end: PLACES }
        : await windowAt(Number(`0x${after.slice(0, 12) || '0'}`), WINDOW, call);
      const found = await findAll(collection, { where, max: max_listed }, [], call);
      const ids = found.flatMap(({ id }) => (id > after ? [id] : [])).sort();
      const include = vectors ? [...RECORD, 'embeddings' as const] : RECORD;
      const rows = readInOrder(collection, ids, { chunk: limit, include }, call);
      const { items: read, full } = await readPage(rows, { limit, max_bytes }, (row) => {
        const memory = toMemory(row, model);
        return memory && memory.updated_at >= since ? memory : undefined;
      });
      const items = read.map(({ row, memory }) => ({ memory, vector: vectors ? toVector(row) : null }));
      if (full !== undefined && full !== ids.at(-1)) return { items, next: full };
      return { items, next: end < PLACES ? placePrefix(end) : undefined };
    },

    /** One after another: two of the same memory never find its id free. */
    import: (request, call) => mutex('import', () => importAll(request, call)),
  };

  async function importAll({ items, replace }: ImportRequest, call: Call): Promise<boolean[]> {
    const ids = items.map(({ memory }) => memory.id);
    const rows = await getRows(collection, { where: { memory_id: { $in: ids } } }, ['metadatas'], call);
    const stored = new Map(rows.map(({ metadata }) => [metadata?.memory_id, metadata]));
    const isFree = ({ memory: { id, user_id } }: ExportedMemory) =>
      !stored.has(id) || (replace && stored.get(id)?.user_id === user_id);
    const entries = items.filter(isFree).map(({ memory, vector }) => ({
      ...{ memory: { ...memory, embedding_model: model }, vector, before: stored.get(memory.id) },
    }));
    if (entries.length > 0) await putRecords(collection, entries, call);
    // The time of creation is part of the id of a record. The old record goes last: no failure loses the memory.
    const kept = new Map<unknown, string>(entries.map(({ memory }) => [memory.id, recordId(memory)]));
    const old = rows.filter(({ id, metadata }) => (kept.get(metadata?.memory_id) ?? id) !== id).map(({ id }) => id);
    if (old.length > 0) await ask(call, () => collection.delete({ ids: old }));
    return items.map(isFree);
  }
}
