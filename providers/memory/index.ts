import {
  type Call,
  defineProvider,
  type Embedder,
  effectivePatch,
  MAX_RECORD_BYTES,
  type Memory,
  type MemoryPatch,
  mergeExtensions,
  type NewMemory,
  newRecord,
  type Provider,
  type Ref,
  requireFits,
  type Verb,
  withinMatcher,
} from '#contract';
import { analyseLater } from '#ranking';
import { createAuditLog } from './audit.ts';
import { createOnceKeys } from './once.ts';
import { Options } from './options.ts';
import { createUser, type Entry, type Found, type User } from './user.ts';

interface Home {
  readonly user: User;
  readonly entry: Entry;
}

/** Process memory: the reference semantics of every verb, and a gateway to try things on. Nothing survives the process. */
export default defineProvider({
  name: 'memory',
  options: Options,
  async open({ scopes }, { embedder, ranking, audit, max_record_bytes = MAX_RECORD_BYTES }): Promise<Provider> {
    // Without scopes its entries would be worth nothing to whoever may see only some.
    const log = audit && scopes === 'native' ? createAuditLog(audit) : undefined;
    const onceKeys = createOnceKeys();
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
    const embed = embedOne(embedder);
    const find = createFind(embed);

    /** Told in the same breath as the change is made: nothing is awaited in between. */
    const tell = (action: Verb, { id, user_id, scope }: Memory, { caller, requestId }: Call) =>
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
    const add = async (input: NewMemory, call: Call): Promise<Memory> => {
      const found = await find(input.content, call);
      const memory = newRecord(input, model);
      const user = userOf(input.user_id);
      homes.set(memory.id, { user, entry: user.add(memory, found) });
      tell('add', memory, call);
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
      add,
      async addOnce(input, once, call) {
        let added: Memory | undefined;
        const identity = await onceKeys.run(once, call.signal, async () => {
          added = await add(input, call);
          return added;
        });
        if (added) return added;
        const first = newRecord(input, model, identity);
        tell('add', first, call);
        return first;
      },
      get: async (ref) => homeOf(ref)?.entry.memory,
      async update(ref, wanted, call) {
        const before = homeOf(ref);
        const patch = before && effectivePatch(before.entry.memory, wanted);
        if (!patch) {
          if (before) tell('update', before.entry.memory, call);
          return before?.entry.memory;
        }
        const found = patch.content === undefined ? undefined : await find(patch.content, call);
        // The record may have been changed or deleted while the text was embedded.
        const home = homeOf(ref);
        if (!home) return undefined;
        const updated = patched(home.entry.memory, patch, max_record_bytes);
        home.user.replace(home.entry, updated, found);
        tell('update', updated, call);
        return updated;
      },
      async delete(ref, call) {
        const home = homeOf(ref);
        if (!home) return false;
        home.user.remove(home.entry);
        tell('delete', home.entry.memory, call);
        return homes.delete(ref.id);
      },
      list: async (query) => users.get(query.user_id)?.list(query) ?? [],
      async search(query, call) {
        const user = users.get(query.user_id);
        return user?.search(query, await embed(query.text, 'query', call)) ?? [];
      },
      ...(log && { audit: log }),
      ping: async () => {},
      close: async () => {},
    };
  },
});

type Embed = ReturnType<typeof embedOne>;
const createFind =
  (embed: Embed) =>
  async (content: string, call: Call): Promise<Found> => ({
    vector: await embed(content, 'document', call),
    terms: await analyseLater(content, call),
  });
const embedOne = (embedder: Embedder | undefined) => async (text: string, purpose: 'document' | 'query', call: Call) =>
  (await embedder?.embed([text], purpose, call))?.[0];

/** Throws `payload_too_large` for what grows beyond the bytes of a record. */
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
