import { z } from 'zod';
import { type Call, defineProvider, effectivePatch, type Memory, newRecord, type Provider, type Ref } from '#contract';
import { createUser, type Entry, type User } from './user.ts';

const Options = z.strictObject({
  /** `none` hides the native scopes, so that the gateway's emulation can be held against them. */
  scopes: z.enum(['native', 'none']).default('native'),
});

interface Home {
  readonly user: User;
  readonly entry: Entry;
}

/** Process memory: the reference semantics of every verb, and a gateway to try things on. Nothing survives the process. */
export default defineProvider({
  name: 'memory',
  options: Options,
  async open({ scopes }, { embedder, ranking }): Promise<Provider> {
    const users = new Map<string, User>();
    const homes = new Map<string, Home>();

    const userOf = (userId: string): User => {
      const known = users.get(userId);
      if (known) return known;
      const user = createUser(embedder?.dimensions, ranking);
      users.set(userId, user);
      return user;
    };
    const homeOf = ({ id, user_id }: Ref): Home | undefined => {
      const home = homes.get(id);
      return user_id === undefined || home?.entry.memory.user_id === user_id ? home : undefined;
    };
    const embed = async (text: string, purpose: 'document' | 'query', call: Call) =>
      (await embedder?.embed([text], purpose, call))?.[0];

    return {
      name: 'memory',
      capabilities: {
        vector_search: ranking.mode !== 'keyword',
        keyword_search: ranking.mode !== 'vector',
        temporal: true,
        scopes,
        max_content_length: null,
        supports_supersession: true,
        max_search_results: null,
      },
      async add(input, call) {
        const vector = await embed(input.content, 'document', call);
        const memory = newRecord(input, embedder?.model ?? null);
        const user = userOf(input.user_id);
        homes.set(memory.id, { user, entry: user.add(memory, vector) });
        return memory;
      },
      get: async (ref) => homeOf(ref)?.entry.memory,
      async update(ref, wanted, call) {
        const before = homeOf(ref);
        const patch = before && effectivePatch(before.entry.memory, wanted);
        if (!patch) return before?.entry.memory;
        const vector = patch.content === undefined ? undefined : await embed(patch.content, 'document', call);
        // The record may have been changed or deleted while the text was embedded.
        const home = homeOf(ref);
        if (!home) return undefined;
        const { memory } = home.entry;
        const updated: Memory = {
          ...memory,
          ...patch,
          extensions: { ...memory.extensions, ...patch.extensions },
          updated_at: new Date(Math.max(Date.now(), Date.parse(memory.updated_at) + 1)).toISOString(),
        };
        home.user.replace(home.entry, updated, vector);
        return updated;
      },
      async delete(ref) {
        const home = homeOf(ref);
        if (!home) return false;
        home.user.remove(home.entry);
        return homes.delete(ref.id);
      },
      list: async (query) => users.get(query.user_id)?.list(query) ?? [],
      async search(query, call) {
        const user = users.get(query.user_id);
        return user?.search(query, await embed(query.text, 'query', call)) ?? [];
      },
      ping: async () => {},
      close: async () => {},
    };
  },
});
