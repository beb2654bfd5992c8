import type { Collection, Where } from 'chromadb';
import {
  type Call,
  createKeyedMutex,
  effectivePatch,
  type Memory,
  mergeExtensions,
  type NewVector,
  newRecord,
  type ProviderMethods,
  type Ref,
  requireFits,
  toUnit,
} from 'omp-gateway/provider';
import { all, ask, getRows, RECORD, type Row } from './chroma.ts';
import { findAll, hasTags, MAX_RESULTS, readingVerbs, type Shelf } from './reading.ts';
import { addRecords, changes, recordId, toMemory, toVector } from './record.ts';
import { createTransfer } from './transfer.ts';

export interface MemoriesOptions {
  /** Of all vectors. */
  readonly model: string;
  /** Maximum memories of one user that a list puts in order. */
  readonly max_listed: number;
  readonly max_record_bytes: number;
}

/** The verbs on the gateway's own collection. */
export function createMemories(
  collection: Collection,
  { model, max_listed, max_record_bytes }: MemoriesOptions,
): ProviderMethods {
  const shelf: Shelf = {
    collection,
    user_field: 'user_id',
    toMemory: (row) => toMemory(row, model),
    toCosine: (distance) => 1 - distance,
    // Ids alone take a fifth of the time of records, and they sort as lists do.
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
    await addRecords(collection, entries, call);
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
    async vectorsOf({ ids, user_id }, call) {
      const where = all([{ memory_id: { $in: [...ids] } }, { user_id }]);
      const rows = await getRows(collection, { where }, ['metadatas', 'embeddings'], call);
      return new Map(rows.map((row) => [String(row.metadata?.memory_id), toVector(row)]));
    },
    erase: ({ user_id }, call) => remove({ user_id }, call),
    ...createTransfer(collection, { model, max_listed }),
  };
}

/** Chroma refuses an empty list. No user has an empty name. */
const whereRef = ({ id, users }: Ref): Where =>
  all([{ memory_id: id }, users === null ? undefined : { user_id: { $in: [...users, ''] } }]);
