import {
  type AuditEntry,
  type AuditOptions,
  changeEntry,
  erasedFrom,
  erasedName,
  type Holdings,
  type Provider,
} from '#provider';
import type { MemoryAuditLog } from './audit.ts';
import type { MemoryChangeFeed } from './change-feed.ts';
import type { KeyUses } from './key-uses.ts';
import type { User } from './user.ts';
import type { Home } from './versions.ts';

interface Stored {
  readonly homes: Map<string, Home>;
  readonly users: Map<string, User>;
  readonly keyUses: KeyUses;
  readonly log: MemoryAuditLog | undefined;
  readonly feed: MemoryChangeFeed | undefined;
  readonly audit: AuditOptions | undefined;
  note(entry: AuditEntry): void;
  requireThawed(): void;
}

/** Erases a user, and counts what there is of one. */
export function createErasure(stored: Stored): Required<Pick<Provider, 'erase' | 'holdings'>> {
  const { homes, users, keyUses, log, feed, audit, note, requireThawed } = stored;
  const secret = crypto.getRandomValues(new Uint8Array(32));
  const held = (user_id: string) => {
    const mine = [...homes.values()].filter(({ entry }) => entry.memory.user_id === user_id);
    return {
      memories: Math.max(mine.length, users.get(user_id)?.stats({ within: null, limit: 0 }).count ?? 0),
      vectors: mine.filter(({ user, entry }) => user.vector(entry)).length,
      versions: mine.reduce((sum, { before }) => sum + before.length, 0),
    };
  };
  return {
    async erase({ user_id }, call): Promise<Holdings> {
      requireThawed();
      const removed = { ...held(user_id), idempotency_keys: keyUses.erase(user_id) };
      const left = new Set<string>();
      for (const [id, { entry }] of homes) {
        if (entry.memory.user_id !== user_id) continue;
        homes.delete(id);
        if (entry.memory.scope !== null) left.add(entry.memory.scope);
      }
      users.delete(user_id);
      const name = audit?.erased_users === 'hash' ? erasedName(secret, user_id) : undefined;
      // Who follows only a scope that the hidden changes named has to learn of the erase too.
      for (const scope of (name && feed?.hide(user_id, name)) ?? []) left.add(scope);
      const hidden = name && log && { audit_entries: log.hide(user_id, name) };
      for (const one of erasedFrom(user_id, left)) note(changeEntry('erase', one, call));
      return { ...removed, ...hidden };
    },
    holdings: async ({ user_id }) => ({
      ...held(user_id),
      idempotency_keys: keyUses.count(user_id),
      ...(log && { audit_entries: log.count(user_id) }),
    }),
  };
}
