import {
  type AddRequest,
  type AuditAction,
  type AuditEntry,
  analyseLater,
  type BatchOutcome,
  type BatchRequest,
  type Call,
  changeEntry,
  defineProvider,
  effectivePatch,
  MAX_RECORD_BYTES,
  type Memory,
  type MemoryPatch,
  mergeExtensions,
  NO_STATS,
  NO_USAGE,
  newRecord,
  OmpError,
  type Provider,
  type ProviderCapabilities,
  type RankingOptions,
  type Ref,
  requireFits,
  requireVersion,
  type UserListQuery,
  type UserPart,
  type UserSummary,
  unchangedEntry,
  usedBy,
  type Visible,
  visibleMatcher,
} from '#provider';
import { createAuditLog } from './audit.ts';
import { createChangeFeed } from './change-feed.ts';
import { createErasure } from './erasure.ts';
import { createFreezing } from './freezing.ts';
import { createKeyUses, type KeyUses } from './key-uses.ts';
import { createExport } from './memory-export.ts';
import { Options } from './memory-options.ts';
import { createUser, type User } from './user.ts';
import { createVersions, type Home, replacedVersions } from './versions.ts';
import { createWebhookStore } from './webhooks.ts';

/** Memories in process memory, lost when it ends: the reference semantics of every verb, and a backend for experiments. */
export default defineProvider({
  specVersion: 2,
  name: 'memory',
  options: Options,
  async open(
    { scopes },
    { embedder, ranking, audit, versions, max_record_bytes = MAX_RECORD_BYTES },
  ): Promise<Provider> {
    // Without scopes, callers with restricted scopes could not read the entries.
    const log = audit && scopes === 'native' ? createAuditLog(audit) : undefined;
    const feed = log && audit && createChangeFeed(audit);
    const note = (entry: AuditEntry) => {
      log?.note(entry);
      feed?.note(entry);
    };
    const keyUses = createKeyUses();
    const model = embedder?.model ?? null;
    const users = new Map<string, User>();
    const homes = new Map<string, Home>();
    const { freezing, requireThawed } = createFreezing('memory');

    const userOf = (userId: string): User => {
      const existing = users.get(userId);
      if (existing) return existing;
      const user = createUser(embedder?.dimensions, ranking);
      users.set(userId, user);
      return user;
    };
    const homeOf = (ref: Ref): Home | undefined => {
      const home = homes.get(ref.id);
      if (!home) return undefined;
      const { user_id, scope } = home.entry.memory;
      return (ref.users === null || ref.users.includes(user_id)) && visibleMatcher(ref)(scope) ? home : undefined;
    };
    const homesOf = (ids: readonly string[], { user_id, ...visible }: Visible & { readonly user_id: string }): Home[] =>
      ids.flatMap((id) => homeOf({ ...visible, id, users: [user_id] }) ?? []);
    /** The caller changes the memory in the same tick, so that both happen or neither does. */
    const recordAudit = (action: AuditAction, memory: Memory, call: Call, old?: Memory) => {
      const left_scopes = old && old.scope !== null && old.scope !== memory.scope ? [old.scope] : [];
      note(changeEntry(action, { ...memory, left_scopes }, call));
    };
    const adds = createAdds({ userOf, homes, keyUses, model, recordAudit, requireThawed });

    return {
      name: 'memory',
      capabilities: capabilitiesOf(ranking, scopes),
      ...adds,
      keyUse: async (key) => keyUses.find(key),
      get: async (ref) => homeOf(ref)?.entry.memory,
      async update({ ref, patch: input, vector, limits }, call) {
        const before = homeOf(ref);
        requireVersion(before?.entry.memory, ref);
        const patch = before && effectivePatch(before.entry.memory, input);
        if (!patch) {
          if (before) note(unchangedEntry('update', before.entry.memory, call));
          return before?.entry.memory;
        }
        const content =
          patch.content === undefined ? undefined : { vector, terms: await analyseLater(patch.content, call) };
        // The record may have been changed or deleted while the text was analysed.
        const home = homeOf(ref);
        if (!home) return undefined;
        requireVersion(home.entry.memory, ref);
        requireThawed();
        const memory = applyPatch(home.entry.memory, patch, max_record_bytes);
        const old = home.entry.memory;
        const rejection = limits && home.user.usage.admitChange(old, memory, limits(old.user_id));
        if (rejection) throw rejection;
        Object.assign(home, replacedVersions(home, versions));
        home.user.replace(home.entry, memory, content);
        recordAudit('update', memory, call, old);
        return memory;
      },
      async delete(ref, call) {
        const home = homeOf(ref);
        if (!home) return false;
        requireVersion(home.entry.memory, ref);
        requireThawed();
        home.user.remove(home.entry);
        recordAudit('delete', home.entry.memory, call);
        return homes.delete(ref.id);
      },
      list: async (query) => users.get(query.user_id)?.list(query) ?? [],
      search: async (query) => users.get(query.user_id)?.search(query) ?? [],
      userUsage: async ({ user_id }) => users.get(user_id)?.usage.now() ?? NO_USAGE,
      // Without native scopes, the counts would include tags that stand for scopes, and a conversation all scopes.
      ...(scopes === 'native' && {
        neighbours: async ({ ids, ...query }) => users.get(query.user_id)?.neighbours(homesOf(ids, query), query) ?? [],
        users: async (query) => listUsers(users, query),
        userStats: async (query) => users.get(query.user_id)?.stats(query) ?? NO_STATS,
      }),
      ...createExport({ homes, userOf, recordAudit, requireThawed, versions }),
      ...(versions && {
        versions: createVersions({ options: versions, homes, homeOf, note, requireThawed }),
      }),
      ...createErasure({ homes, users, keyUses, log, feed, note, audit, requireThawed }),
      ...(log && { audit: { ...log, record: async (entries) => entries.forEach(note) } }),
      ...(feed && { changes: feed.changes, webhooks: createWebhookStore() }),
      freezing,
      ping: async () => {},
      close: async () => {},
    };
  },
});

interface Target {
  readonly homes: Map<string, Home>;
  readonly keyUses: KeyUses;
  readonly model: string | null;
  userOf(user_id: string): User;
  recordAudit(action: 'add', memory: Memory, call: Call): void;
  requireThawed(): void;
}

function createAdds({ homes, keyUses, model, userOf, recordAudit, requireThawed }: Target) {
  const batch = async ({ items, key, limits }: BatchRequest, call: Call): Promise<BatchOutcome[] | undefined> => {
    const terms = await Promise.all(items.map(({ input }) => analyseLater(input.content, call)));
    if (key && keyUses.find(key) !== key.before) return undefined;
    requireThawed();
    const outcomes = items.map(({ input, vector }, i) => {
      const user = userOf(input.user_id);
      const rejection = limits && user.usage.admitAdd(input, limits(input.user_id));
      if (rejection) return rejection;
      const memory = newRecord(input, model);
      const entry = user.add(memory, { vector, terms: terms[i] as string[] });
      homes.set(memory.id, { user, entry, version: 1, before: [] });
      recordAudit('add', memory, call);
      return memory;
    });
    const users = outcomes.flatMap((outcome) => (outcome instanceof OmpError ? [] : outcome.user_id));
    if (key && users.length > 0) keyUses.set(key, usedBy(key, outcomes), users);
    return outcomes;
  };
  return {
    batch,
    async add({ input, vector, ...rest }: AddRequest, call: Call) {
      const [outcome] = (await batch({ items: [{ input, vector }], ...rest }, call)) ?? [];
      if (outcome instanceof OmpError) throw outcome;
      return outcome;
    },
  };
}

function listUsers(
  users: ReadonlyMap<string, User>,
  { users: allowedUsers, prefix = '', after = '', limit, ...visible }: UserListQuery,
): UserPart {
  const ids = allowedUsers ? [...new Set(allowedUsers)] : [...users.keys()];
  const rest = ids.filter((id) => id > after && id.startsWith(prefix)).sort();
  const items: UserSummary[] = [];
  let index = 0;
  for (; index < rest.length && items.length < limit; index++) {
    const user_id = rest[index] as string;
    const { count, last_write } = users.get(user_id)?.stats({ ...visible, limit: 0 }) ?? NO_STATS;
    if (last_write !== null) items.push({ user_id, count, last_write });
  }
  return { items, next: index < rest.length ? rest[index - 1] : undefined };
}

const capabilitiesOf = ({ mode }: RankingOptions, scopes: 'native' | 'none'): ProviderCapabilities => ({
  vector_search: mode !== 'keyword',
  keyword_search: mode !== 'vector',
  temporal: true,
  temporal_search: true,
  scopes: scopes === 'none' ? 'tags' : scopes,
  tags: true,
  max_content_length: null,
  supports_supersession: true,
  max_search_results: null,
  max_list_scan: null,
  consistency_tokens: false,
  etags: true,
  origins: true,
  explain: true,
});

/** Throws `payload_too_large` if the record would become too large. */
function applyPatch(memory: Memory, patch: MemoryPatch, maxBytes: number): Memory {
  requireFits(memory, patch, maxBytes);
  return {
    ...memory,
    ...patch,
    extensions: mergeExtensions(memory.extensions, patch.extensions),
    updated_at: new Date(Math.max(Date.now(), Date.parse(memory.updated_at) + 1)).toISOString(),
  };
}
