import {
  analyseLater,
  type Call,
  type ExportedMemory,
  type Memory,
  type Provider,
  recordBytes,
  upToBytes,
  type VersionOptions,
} from '#provider';
import type { User } from './user.ts';
import { type Home, importedVersions, versionsOf } from './versions.ts';

interface Store {
  readonly homes: Map<string, Home>;
  userOf(user_id: string): User;
  recordAudit(action: 'import', memory: Memory, call: Call, old?: Memory): void;
  requireThawed(): void;
  readonly versions: VersionOptions | undefined;
}

/** Moves memories out of a store and into it, as they are. */
export const createExport = ({
  homes,
  userOf,
  recordAudit,
  requireThawed,
  versions: kept,
}: Store): Required<Pick<Provider, 'export' | 'import'>> => ({
  async export({ after = '', ids, user_id, since = '', vectors, versions, limit, max_bytes }) {
    const matches = ({ entry: { memory } }: Home) =>
      memory.id > after && memory.updated_at >= since && (user_id === undefined || memory.user_id === user_id);
    const all = ids ? ids.flatMap((id) => homes.get(id) ?? []) : [...homes.values()];
    const page = all.filter(matches).sort(byId).slice(0, limit);
    const historyOf = (home: Home, options: VersionOptions) => {
      const all = versionsOf(home, options);
      const newest = upToBytes(all, max_bytes, ({ memory }) => memory);
      return { version: home.version, versions: newest, versions_left_out: all.length - newest.length };
    };
    const movedOf = (home: Home): ExportedMemory => ({
      memory: home.entry.memory,
      vector: (vectors && home.user.vector(home.entry)) || null,
      ...(versions && kept && historyOf(home, kept)),
    });
    const moved = page.map(movedOf);
    let bytes = 0;
    const end = moved.findIndex(({ memory, versions = [] }) => {
      for (const one of [memory, ...versions.map((version) => version.memory)]) bytes += recordBytes(one);
      return bytes > max_bytes;
    });
    const items = end < 0 ? moved : moved.slice(0, Math.max(1, end));
    return { items, next: items.at(-1)?.memory.id };
  },
  async import({ items, replace }, call) {
    const terms = await Promise.all(items.map(({ memory }) => analyseLater(memory.content, call)));
    return items.map((item, i) => {
      const { memory, vector } = item;
      const old = homes.get(memory.id);
      if (old && !(replace && old.entry.memory.user_id === memory.user_id)) return false;
      requireThawed();
      old?.user.remove(old.entry);
      const user = userOf(memory.user_id);
      const entry = user.add(memory, { vector, terms: terms[i] as string[] });
      homes.set(memory.id, { user, entry, ...importedVersions(item, old, kept) });
      recordAudit('import', memory, call, old?.entry.memory);
      return true;
    });
  },
});

const byId = (a: Home, b: Home): number => (a.entry.memory.id < b.entry.memory.id ? -1 : 1);
