import type { Call, ExportedMemory, Memory, Provider } from '#provider';
import { analyseLater, upToBytes } from '#provider';
import type { Home, User } from './user.ts';

interface Store {
  readonly homes: Map<string, Home>;
  userOf(user_id: string): User;
  recordAudit(action: 'import', memory: Memory, call: Call, old?: Memory): void;
  requireThawed(): void;
}

/** Moves memories out of a store and into it, as they are. */
export const createExport = ({
  homes,
  userOf,
  recordAudit,
  requireThawed,
}: Store): Required<Pick<Provider, 'export' | 'import'>> => ({
  async export({ after = '', ids, user_id, since = '', vectors, limit, max_bytes }) {
    const matches = ({ entry: { memory } }: Home) =>
      memory.id > after && memory.updated_at >= since && (user_id === undefined || memory.user_id === user_id);
    const all = ids ? ids.flatMap((id) => homes.get(id) ?? []) : [...homes.values()];
    const page = all.filter(matches).sort(byId).slice(0, limit);
    const movedOf = ({ user, entry }: Home): ExportedMemory => ({
      memory: entry.memory,
      vector: (vectors && user.vector(entry)) || null,
    });
    const items = upToBytes(page.map(movedOf), max_bytes, ({ memory }) => memory);
    return { items, next: items.at(-1)?.memory.id };
  },
  async import({ items, replace }, call) {
    const terms = await Promise.all(items.map(({ memory }) => analyseLater(memory.content, call)));
    return items.map(({ memory, vector }, i) => {
      const old = homes.get(memory.id);
      if (old && !(replace && old.entry.memory.user_id === memory.user_id)) return false;
      requireThawed();
      old?.user.remove(old.entry);
      const user = userOf(memory.user_id);
      homes.set(memory.id, { user, entry: user.add(memory, { vector, terms: terms[i] as string[] }) });
      recordAudit('import', memory, call, old?.entry.memory);
      return true;
    });
  },
});

const byId = (a: Home, b: Home): number => (a.entry.memory.id < b.entry.memory.id ? -1 : 1);
