import {
  type AuditEntry,
  type AuditOptions,
  beginAnew,
  type Change,
  changeMatcher,
  invalidRequest,
  type Provider,
} from '#provider';

export interface MemoryChangeFeed {
  note(entry: AuditEntry): void;
  /** Replaces an erased user in the changes, but for those of erases. Returns the scopes that they named. */
  hide(user_id: string, name: string): Set<string>;
  readonly changes: NonNullable<Provider['changes']>;
}

const DAY_MS = 86_400_000;
const CURSOR = /^([0-9a-f]{8})-(\d{1,15})$/;

/** The changes of all users, as they happened (Decision 51). Their number is their position. */
export function createChangeFeed({ retention_days }: AuditOptions): MemoryChangeFeed {
  const lifetime = retention_days === null ? Number.POSITIVE_INFINITY : retention_days * DAY_MS;
  // Another process has other changes.
  const origin = crypto.randomUUID().slice(0, 8);
  const cursorOf = (position: number) => `${origin}-${position}`;
  let kept: Change[] = [];
  let deleted = 0;
  /** The index of the first change that is not to be deleted yet. Entries may be slightly late, so others of them may be older. */
  const firstKept = () => {
    const time = new Date(Math.max(0, Date.now() - lifetime)).toISOString();
    const index = kept.findIndex(({ at }) => at > time);
    return index < 0 ? kept.length : index;
  };
  const evict = () => {
    const count = firstKept();
    if (count === 0) return;
    kept = kept.slice(count);
    deleted += count;
  };
  const placeOf = (after: string | undefined): number => {
    if (after === undefined) return deleted;
    const end = deleted + kept.length;
    if (after === 'now') return end;
    const [, from, position] = CURSOR.exec(after) ?? [];
    if (from === undefined) throw invalidRequest('after: malformed; pass next_cursor as it is, or now');
    const place = Number(position);
    if (from !== origin || place > end) throw beginAnew('the gateway has lost its memories since this cursor');
    if (place < deleted) throw beginAnew('changes after this cursor were deleted by the retention of the audit log');
    return place;
  };
  return {
    note({ changed, timestamp, app, action, memory_id, user_id, scope, left_scopes = [] }) {
      if (!changed || user_id === null) return;
      const cursor = cursorOf(deleted + kept.length + 1);
      kept.push({
        cursor,
        key: cursor,
        action,
        id: memory_id,
        user_id,
        scope,
        left_scopes,
        at: timestamp,
        caller: app,
      });
    },
    hide(user_id, name) {
      const scopes = new Set<string>();
      kept = kept.map((change) => {
        if (change.user_id !== user_id || change.action === 'erase') return change;
        for (const scope of [change.scope ?? [], change.left_scopes].flat()) scopes.add(scope);
        const caller = change.caller === user_id ? name : change.caller;
        return { ...change, caller, user_id: name, scope: null, left_scopes: [] };
      });
      return scopes;
    },
    async changes({ after, limit, ...filter }) {
      evict();
      const matches = changeMatcher(filter);
      const changes: Change[] = [];
      let place = placeOf(after);
      for (; place < deleted + kept.length && changes.length < limit; place++) {
        const change = kept[place - deleted] as Change;
        if (matches(change)) changes.push(change);
      }
      return { changes, next: cursorOf(place), more: place < deleted + kept.length };
    },
  };
}
