import type { AuditEntry, AuditLog, AuditOptions, KeptEntry } from '#contract';
import { withinMatcher } from '#toolbox';
import { createTimeBuckets } from './time-buckets.ts';

const DAY_MS = 86_400_000;

/** Who did what, by user and in order of time. */
export interface MemoryAuditLog extends AuditLog {
  note(entry: AuditEntry): void;
}

export function createAuditLog({ retention_days }: AuditOptions): MemoryAuditLog {
  const lifetime = retention_days === null ? Number.POSITIVE_INFINITY : retention_days * DAY_MS;
  const buckets = createTimeBuckets(lifetime, () => new Map<string, KeptEntry[]>());
  let seq = 0;

  const note = (entry: AuditEntry) => {
    // Read by user, so nobody could ever see it again.
    if (entry.user_id === null) return;
    const bucket = buckets.at(Date.parse(entry.timestamp));
    const entries = bucket.get(entry.user_id) ?? [];
    bucket.set(entry.user_id, entries);
    // Nearly always the newest; what was recorded in a batch is a little late.
    let place = entries.length;
    while (place > 0 && (entries[place - 1] as KeptEntry).timestamp > entry.timestamp) place--;
    entries.splice(place, 0, { ...entry, seq: seq++ });
  };

  return {
    note,
    record: async (entries) => {
      for (const entry of entries) note(entry);
    },
    async read({ user_id, app, since = '', until, after, within, limit }) {
      const admits = withinMatcher(within);
      const isLater = ({ timestamp, seq: place }: KeptEntry) =>
        (until !== undefined && timestamp > until) ||
        (after && (timestamp > after.timestamp || (timestamp === after.timestamp && place >= after.seq)));
      const kept = (time: string) => time >= since && Date.parse(time) > Date.now() - lifetime;
      const found: KeptEntry[] = [];
      for (const bucket of buckets.newestFirst()) {
        const entries = bucket.get(user_id) ?? [];
        for (let i = entries.length - 1; i >= 0; i--) {
          const entry = entries[i] as KeptEntry;
          if (found.length === limit || !kept(entry.timestamp)) return found;
          if (isLater(entry) || (app !== undefined && entry.app !== app) || !admits(entry.scope)) continue;
          found.push(entry);
        }
      }
      return found;
    },
  };
}
