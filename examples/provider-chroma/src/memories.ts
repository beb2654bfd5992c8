import type { Where } from 'chromadb';
import {
  type BatchOutcome,
  type Call,
  createKeyedMutex,
  effectivePatch,
  type Memory,
  mergeExtensions,
  newRecord,
  type NewVector,
  OmpError,
  type ProviderMethods,
  type Ref,
  requireFits,
  toUnit,
} from 'omp-gateway/provider';
import { all, RECORD, type Row, type Store } from './chroma.ts';
import { changes, type Entry, partsOf, recordId, toMemory, toRecords, toVector } from './record.ts';
import { findAll, hasTags, list, MAX_RESULTS, type Shelf, search } from './reading.ts';
import { createTransfer } from './transfer.ts';

export interface MemoriesOptions {
  /** Of all vectors. */
  readonly model: string;
  /** Maximum memories of one user that a list puts in order. */
  readonly max_listed: number;
  readonly max_record_bytes: number;
}

/** The verbs on the gateway's own collection. */
export function createMemories(store: Store, { model, max_listed, max_record_bytes }: MemoriesOptions): ProviderMethods {
  const shelf: Shelf = {
    store,
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
      const ids = (await findAll(store, { where, max: max_listed }, [], call)).map(({ id }) => id);
      const last = after && recordId({ ...after, user_id });
      return (last === undefined ? ids : ids.filter((id) => id < last)).sort().reverse();
    },
  };
  // Chroma has no conditional writes. Between several gateways the last change of a field wins.
  const mutex = createKeyedMutex();
  const find = async (ref: Ref, call: Call): Promise<Row | undefined> =>
    (await store.get({ where: whereRef(ref), limit: 1 }, RECORD, call))[0];
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
    async add(item, call) {
      const entry = newEntry(item, model);
      await store.add(toRecords([entry]), call);
      return entry.memory;
    },
    batch: ({ items }, call) =>
      addAll(
        store,
        items.map((item) => newEntry(item, model)),
        call,
      ),
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
        const content = patch.content !== undefined && { document: patch.content, embedding: [...toUnit(vector)] };
        await store.update({ id: row.id, metadata: changes(before, after), ...content }, call);
        // Chroma does not tell if another gateway has deleted the record.
        return memoryIn((await store.get({ ids: [row.id] }, RECORD, call))[0]);
      }),
    // The condition is part of the request: a memory of another user is not deleted, whatever happens meanwhile.
    delete: (ref, call) => mutex(ref.id, async () => (await store.delete(whereRef(ref), call)) > 0),
    list: (query, call) => list(shelf, query, call),
    search: (query, call) => search(shelf, query, call),
    async vectorsOf({ ids, user_id }, call) {
      const where = all([{ memory_id: { $in: [...ids] } }, { user_id }]);
      const rows = await store.get({ where }, ['metadatas', 'embeddings'], call);
      return new Map(rows.map((row) => [String(row.metadata?.memory_id), toVector(row)]));
    },
    erase: ({ user_id }, call) => store.delete({ user_id }, call),
    ...createTransfer(store, { model, max_listed, mutex }),
    // Reads the collection, without needing anything in it.
    ping: async (call) => void (await store.get({ ids: ['ping'] }, [], call)),
    close: async () => {},
  };
}

const whereRef = ({ id, users }: Ref): Where =>
  all([{ memory_id: id }, users === null ? undefined : { user_id: { $in: [...users] } }]);

const newEntry = ({ input, vector }: NewVector, model: string): Entry => ({
  memory: newRecord(input, model),
  vector: toUnit(vector),
});

/** Each request stores all of its memories or none. After a failure no more are sent: it says which were stored. */
async function addAll(store: Store, entries: readonly Entry[], call: Call): Promise<BatchOutcome[]> {
  const outcomes: BatchOutcome[] = [];
  for (const part of partsOf(entries)) {
    try {
      await store.add(toRecords(part), call);
      outcomes.push(...part.map(({ memory }) => memory));
    } catch (error) {
      if (!(error instanceof OmpError) || outcomes.length === 0) throw error;
      return entries.map((_, i) => outcomes[i] ?? error);
    }
  }
  return outcomes;
}
