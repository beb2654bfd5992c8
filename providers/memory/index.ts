import {
  type Call,
  defineProvider,
  type IdempotencyKey,
  MAX_RECORD_BYTES,
  type Memory,
  type MemoryPatch,
  type NewMemory,
  type Provider,
  NO_STATS,
  type Ref,
  type UserSummary,
  type Vector,
  type Verb,
} from '#contract';
import { analyseLater } from '#ranking';
import { effectivePatch, mergeExtensions, newRecord, requireFits, withinMatcher } from '#toolbox';
import { createAuditLog } from './audit.ts';
import { createIdempotencyKeys } from './idempotency.ts';
import { Options } from './options.ts';
import { createUser, type Entry, type User } from './user.ts';

interface Home {
  readonly user: User;
  readonly entry: Entry;
}

/** Memories in process memory, lost when it ends: the reference semantics of every verb, and a backend for experiments. */
export default defineProvider({
  name: 'memory',
  options: Options,
  async open({ scopes }, { embedder, ranking, audit, max_record_bytes = MAX_RECORD_BYTES }): Promise<Provider> {
    // Without scopes, callers with restricted scopes could not read the entries.
    const log = audit && scopes === 'native' ? createAuditLog(audit) : undefined;
    const idempotencyKeys = createIdempotencyKeys();
    const model = embedder?.model ?? null;
    const users = new Map<string, User>();
    const homes = new Map<string, Home>();

    const userOf = (userId: string): User => {
      const known = users.get(userId);
      if (known) return known;
      const user = createUser(embedder?.dimensions, ranking);
      users.set(userId, user);
      return user;
    };
    const homeOf = ({ id, users: owners, within }: Ref): Home | undefined => {
      const home = homes.get(id);
      if (!home) return undefined;
      const { user_id, scope } = home.entry.memory;
      return (owners === null || owners.includes(user_id)) && withinMatcher(within)(scope) ? home : undefined;
    };
    /** Called in the same tick as the change, so that both happen or neither does. */
    const recordAudit = (action: Verb, { id, user_id, scope }: Memory, { caller, requestId }: Call) =>
      log?.note({
        timestamp: new Date().toISOString(),
        app: caller.app,
        action,
        user_id,
        memory_id: id,
        scope,
        request_id: requestId,
        outcome: 'ok',
      });
    /** Undefined: the key is in use. */
    const insert = async (
      { input, vector, key }: { input: NewMemory; vector: Vector; key?: IdempotencyKey },
      call: Call,
    ): Promise<Memory | undefined> => {
      const found = { vector, terms: await analyseLater(input.content, call) };
      if (key && idempotencyKeys.find(key)) return undefined;
      const memory = newRecord(input, model);
      const user = userOf(input.user_id);
      homes.set(memory.id, { user, entry: user.add(memory, found) });
      if (key) idempotencyKeys.use(key, memory);
      recordAudit('add', memory, call);
      return memory;
    };

    return {
      name: 'memory',
      capabilities: {
        vector_search: ranking.mode !== 'keyword',
        keyword_search: ranking.mode !== 'vector',
        temporal: true,
        scopes: scopes === 'none' ? 'tags' : scopes,
        tags: true,
        max_content_length: null,
        supports_supersession: true,
        max_search_results: null,
        max_list_scan: null,
        consistency_tokens: false,
      },
      add: async (input, vector, call) => (await insert({ input, vector }, call)) as Memory,
      idempotency: {
        async firstAnswer(input, key, call) {
          const identity = idempotencyKeys.find(key);
          const first = identity && newRecord(input, model, { id: identity.id, created_at: identity.created_at });
          if (first) recordAudit('add', first, call);
          return first;
        },
        add: (input, vector, key, call) => insert({ input, vector, key }, call),
      },
      get: async (ref) => homeOf(ref)?.entry.memory,
      async update(ref, wanted, vector, call) {
        const before = homeOf(ref);
        const patch = before && effectivePatch(before.entry.memory, wanted);
        if (!patch) {
          if (before) recordAudit('update', before.entry.memory, call);
          return before?.entry.memory;
        }
        const found =
          patch.content === undefined ? undefined : { vector, terms: await analyseLater(patch.content, call) };
        // The record may have been changed or deleted while the text was analysed.
        const home = homeOf(ref);
        if (!home) return undefined;
        const updated = patched(home.entry.memory, patch, max_record_bytes);
        home.user.replace(home.entry, updated, found);
        recordAudit('update', updated, call);
        return updated;
      },
      async delete(ref, call) {
        const home = homeOf(ref);
        if (!home) return false;
        home.user.remove(home.entry);
        recordAudit('delete', home.entry.memory, call);
        return homes.delete(ref.id);
      },
      list: async (query) => users.get(query.user_id)?.list(query) ?? [],
      search: async (query) => users.get(query.user_id)?.search(query) ?? [],
      async users({ users: allowed, within, after = '', limit }) {
        const found: UserSummary[] = [];
        for (const user_id of (allowed ? [...new Set(allowed)] : [...users.keys()]).sort()) {
          if (found.length === limit) break;
          const { count, last_write } = (user_id > after && users.get(user_id)?.stats({ within, limit: 0 })) || NO_STATS;
          if (last_write !== null) found.push({ user_id, count, last_write });
        }
        return found;
      },
      userStats: async (query) => users.get(query.user_id)?.stats(query) ?? NO_STATS,
      ...(log && { audit: log }),
      ping: async () => {},
      close: async () => {},
    };
  },
});

/** Throws `payload_too_large` if the record would become too large. */
function patched(memory: Memory, patch: MemoryPatch, maxBytes: number): Memory {
  requireFits(memory, patch, maxBytes);
  const updated: Memory = {
    ...memory,
    ...patch,
    extensions: mergeExtensions(memory.extensions, patch.extensions),
    updated_at: new Date(Math.max(Date.now(), Date.parse(memory.updated_at) + 1)).toISOString(),
  };
  return updated;
}
