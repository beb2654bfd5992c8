import type { AuditEntry, AuditLog, AuditOptions, StoredEntry } from '#provider';
import { withinMatcher } from '#provider';
import { createTimeBuckets } from './time-buckets.ts';

const DAY_MS = 86_400_000;

/** The audit log of all users, in order of time. */
export interface MemoryAuditLog extends AuditLog {
  note(entry: AuditEntry): void;
  count(user_id: string): number;
  /** Moves the entries of an erased user, but those of erases, to another name. */
  hide(user_id: string, name: string): number;
}

export function createAuditLog({ retention_days }: AuditOptions): MemoryAuditLog {
  const lifetime = retention_days === null ? Number.POSITIVE_INFINITY : retention_days * DAY_MS;
  const buckets = createTimeBuckets(lifetime, () => new Map<string, StoredEntry[]>());
  let seq = 0;

  const note = (entry: AuditEntry) => {
    // The log is read by user, so this entry would never be read.
    if (entry.user_id === null) return;
    const { changed: _, left_scopes: __, ...kept } = entry;
    const bucket = buckets.at(Date.parse(entry.timestamp));
    const entries = bucket.get(entry.user_id) ?? [];
    bucket.set(entry.user_id, entries);
    // The entry is nearly always the newest; entries of `record` are slightly late.
    let position = entries.length;
    while (position > 0 && (entries[position - 1] as StoredEntry).timestamp > entry.timestamp) position--;
    entries.splice(position, 0, { ...kept, seq: seq++ });
  };

  return {
    note,
    count: (user_id) => buckets.newestFirst().reduce((sum, bucket) => sum + (bucket.get(user_id)?.length ?? 0), 0),
    hide(user_id, name) {
      let count = 0;
      for (const bucket of buckets.newestFirst()) {
        const entries = bucket.get(user_id) ?? [];
        const hidden = entries.filter(({ action }) => action !== 'erase');
        if (hidden.length === 0) continue;
        bucket.set(
          user_id,
          entries.filter(({ action }) => action === 'erase'),
        );
        const earlier = bucket.get(name) ?? [];
        const nameOf = (app: string | null) => (app === user_id ? name : app);
        const renamed = hidden.map((entry) => ({ ...entry, app: nameOf(entry.app), user_id: name, scope: null }));
        bucket.set(name, [...earlier, ...renamed]);
        count += hidden.length;
      }
      return count;
    },
    record: async (entries) => {
      for (const entry of entries) note(entry);
    },
    async read({ user_id, app, since = '', until, after, within, limit }) {
      const admits = withinMatcher(within);
      const isLater = ({ timestamp, seq }: StoredEntry) =>
        (until !== undefined && timestamp > until) ||
        (after && (timestamp > after.timestamp || (timestamp === after.timestamp && seq >= after.seq)));
      const isKept = (time: string) => time >= since && Date.parse(time) > Date.now() - lifetime;
      const page: StoredEntry[] = [];
      for (const bucket of buckets.newestFirst()) {
        const entries = bucket.get(user_id) ?? [];
        for (let i = entries.length - 1; i >= 0; i--) {
          const entry = entries[i] as StoredEntry;
          if (page.length === limit || !isKept(entry.timestamp)) return page;
          if (isLater(entry) || (app !== undefined && entry.app !== app) || !admits(entry.scope)) continue;
          page.push(entry);
        }
      }
      return page;
    },
  };
}
