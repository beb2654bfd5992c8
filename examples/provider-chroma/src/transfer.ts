import type { Collection, Where } from 'chromadb';
import {
  type Call,
  createKeyedMutex,
  type ExportedMemory,
  type ImportRequest,
  type ProviderMethods,
  type UserSummary,
} from 'omp-gateway/provider';
import { all, ask, getRows, RECORD } from './chroma.ts';
import { findAll, readInOrder, readPage } from './reading.ts';
import { addRecords, PLACES, placeOf, placePrefix, toMemory, toVector } from './record.ts';

/** Records of one part of a walk, about. */
const WINDOW = 500;
/** Users of a list of users that are counted at once. */
const MAX_NAMED = 20;

/**
 * Walks over all users and memories. Pages of Chroma shift when a record before them is deleted. So a walk goes by the places of users, in
 * windows of about as many records, and meets every memory once, whatever happens meanwhile.
 */
export function createTransfer(
  collection: Collection,
  { model, max_listed }: { readonly model: string; readonly max_listed: number },
): Required<Pick<ProviderMethods, 'users' | 'export' | 'import'>> {
  const mutex = createKeyedMutex();
  const windowAt = async (from: number, call: Call): Promise<{ where: Where; end: number }> => {
    const width = Math.ceil((PLACES * WINDOW) / Math.max(WINDOW, await ask(call, () => collection.count())));
    const end = Math.min(PLACES, from + width);
    return { where: all([{ place: { $gte: from } }, { place: { $lt: end } }]), end };
  };
  const countUsers = async (where: Where, call: Call): Promise<UserSummary[]> => {
    const users = new Map<string, UserSummary>();
    for (let offset = 0; ; offset += WINDOW) {
      const rows = await getRows(collection, { where, limit: WINDOW, offset }, ['metadatas'], call);
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
      const rest = users && [...new Set(users)].filter((user) => user.startsWith(prefix) && placeOf(user) >= from);
      const named = rest?.sort((a, b) => placeOf(a) - placeOf(b)).slice(0, MAX_NAMED);
      const last = named?.at(-1);
      if (named && last === undefined) return { items: [], next: undefined };
      const { where, end } =
        last === undefined
          ? await windowAt(from, call)
          : { where: { user_id: { $in: named ?? [] } }, end: placeOf(last) + 1 };
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
    const stored = new Map(rows.map((row) => [String(row.metadata?.memory_id), String(row.metadata?.user_id)]));
    const isFree = ({ memory: { id, user_id } }: ExportedMemory) =>
      !stored.has(id) || (replace && stored.get(id) === user_id);
    const free = items.filter(isFree);
    const old = free.map(({ memory }) => memory.id).filter((id) => stored.has(id));
    // An update would keep the keys of metadata that the new memory lacks.
    if (old.length > 0) await ask(call, () => collection.delete({ where: { memory_id: { $in: old } } }));
    const entries = free.map(({ memory, vector }) => ({ memory: { ...memory, embedding_model: model }, vector }));
    if (entries.length > 0) await addRecords(collection, entries, call);
    return items.map(isFree);
  }
}
