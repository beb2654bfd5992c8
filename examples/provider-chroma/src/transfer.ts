import type { Where } from 'chromadb';
import {
  type Call,
  type createKeyedMutex,
  type ExportedMemory,
  type ImportRequest,
  type ProviderMethods,
  recordBytes,
  toUnit,
  type UserSummary,
} from 'omp-gateway/provider';
import { ALL, all, RECORD, type Store } from './chroma.ts';
import { findAll, readInOrder } from './reading.ts';
import { PLACES, partsOf, placeOf, placePrefix, toMemory, toRecords, toVector } from './record.ts';

/** Records of one part of a walk, about. */
const WINDOW = 500;
/** Users of a list of users that are counted at once. */
const MAX_NAMED = 20;

interface TransferOptions {
  readonly model: string;
  /** Maximum records of one user, or of one window. */
  readonly max_listed: number;
  readonly mutex: ReturnType<typeof createKeyedMutex>;
}

/**
 * Walks over all users and memories. Pages of Chroma shift when a record before them is deleted. So a walk goes by the places of users, in
 * windows of about as many records, and meets every memory once, whatever happens meanwhile.
 */
export function createTransfer(
  store: Store,
  { model, max_listed, mutex }: TransferOptions,
): Required<Pick<ProviderMethods, 'users' | 'export' | 'import'>> {
  const windowAt = async (from: number, call: Call): Promise<{ where: Where; end: number }> => {
    const width = Math.ceil((PLACES * WINDOW) / Math.max(WINDOW, await store.count(call)));
    const end = Math.min(PLACES, from + width);
    return { where: all([{ place: { $gte: from } }, { place: { $lt: end } }]), end };
  };
  const countUsers = async (where: Where, call: Call): Promise<UserSummary[]> => {
    const users = new Map<string, UserSummary>();
    for (let offset = 0; ; offset += WINDOW) {
      const rows = await store.get({ where, limit: WINDOW, offset }, ['metadatas'], call);
      for (const { metadata } of rows) {
        const [user_id, updated] = [String(metadata?.user_id), String(metadata?.updated_at)];
        const { count, last_write } = users.get(user_id) ?? { count: 0, last_write: '' };
        users.set(user_id, { user_id, count: count + 1, last_write: updated > last_write ? updated : last_write });
      }
      if (rows.length < WINDOW) return [...users.values()];
    }
  };

  return {
    /** In the order of places; `after` and `next` are the place where a part begins. */
    async users({ users, prefix = '', after = '0', limit }, call) {
      const from = Number(after);
      const named = users && [...new Set(users)].filter((user) => user.startsWith(prefix) && placeOf(user) >= from);
      const some = named?.sort((a, b) => placeOf(a) - placeOf(b)).slice(0, MAX_NAMED);
      const last = some?.at(-1);
      if (some && last === undefined) return { items: [], next: undefined };
      const { where, end } =
        some && last !== undefined
          ? { where: { user_id: { $in: some } }, end: some.length === named?.length ? PLACES : placeOf(last) + 1 }
          : await windowAt(from, call);
      const found = (await countUsers(where, call)).filter(({ user_id }) => user_id.startsWith(prefix));
      const items = found.sort((a, b) => placeOf(a.user_id) - placeOf(b.user_id)).slice(0, limit);
      const next = items.length < found.length ? placeOf(items.at(-1)?.user_id ?? '') + 1 : end;
      return { items, next: next < PLACES ? String(next) : undefined };
    },

    /** In the order of the ids of records; `after` is one, or the prefix of those of a place. */
    async export({ after = '', user_id, since = '', vectors, limit, max_bytes }, call) {
      const { where, end } =
        user_id === undefined
          ? await windowAt(Number(`0x${after.slice(0, 12) || '0'}`), call)
          : { where: { user_id }, end: PLACES };
      const found = await findAll(store, { where, max: max_listed }, [], call);
      const ids = found.map(({ id }) => id).filter((id) => id > after).sort();
      const items: ExportedMemory[] = [];
      let bytes = 0;
      for await (const row of readInOrder(store, ids, { chunk: limit, include: vectors ? ALL : RECORD }, call)) {
        const memory = toMemory(row, model);
        if (!memory || memory.updated_at < since) continue;
        items.push({ memory, vector: vectors ? toVector(row) : null });
        bytes += recordBytes(memory);
        if (row.id !== ids.at(-1) && (items.length === limit || bytes > max_bytes)) return { items, next: row.id };
      }
      return { items, next: end < PLACES ? placePrefix(end) : undefined };
    },

    /** One after another: two of the same memory never find its id free. */
    import: (request, call) => mutex('import', () => importAll(request, call)),
  };

  async function importAll({ items, replace }: ImportRequest, call: Call): Promise<boolean[]> {
    const rows = await store.get({ where: { memory_id: { $in: items.map(({ memory }) => memory.id) } } }, ['metadatas'], call);
    const stored = new Map(rows.map((row) => [String(row.metadata?.memory_id), String(row.metadata?.user_id)]));
    const isFree = ({ memory: { id, user_id } }: ExportedMemory) =>
      !stored.has(id) || (replace && stored.get(id) === user_id);
    const free = items.filter(isFree);
    const old = free.map(({ memory }) => memory.id).filter((id) => stored.has(id));
    // An update would keep the keys of metadata that the new memory lacks.
    if (old.length > 0) await store.delete({ memory_id: { $in: old } }, call);
    const entries = free.map(({ memory, vector }) => ({
      memory: { ...memory, embedding_model: model },
      vector: toUnit(vector),
    }));
    for (const part of partsOf(entries)) await store.add(toRecords(part), call);
    return items.map(isFree);
  }
}
