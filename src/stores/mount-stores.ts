import type { Embedder, Log, ProviderCapabilities } from '#contract';
import { isAtOrBelow } from '#toolbox';
import type { MountedStore, Store, StoreMembers, StorePart } from '../core/store.ts';
import { idPrefix, ofTheRoot } from './at-mount.ts';
import { ask } from './optional.ts';
import { callOf, type Part, partsOf, withMember } from './parts.ts';
import { exportParts, fullest, listParts, listUsers, neighboursInParts, searchParts, sumStats } from './reads.ts';
import { createWrites, freezingOf } from './writes.ts';

export interface MountOptions {
  readonly root: Store;
  /** The embedder of the root store. */
  readonly embedder: Embedder | undefined;
  /** In the fixed order of merged answers. No mount lies in another. */
  readonly mounted: readonly MountedStore[];
  readonly log: Log;
}

/**
 * The root store and those that are mounted at scopes, as one store (Decision 48). Without any, the root store itself. Outside of it
 * everything is as with one store: `Access` decides by the scopes that clients see, and checks every record.
 */
export function mountStores({ root, embedder, mounted, log }: MountOptions): Store {
  if (mounted.length === 0) return root;
  const parts = partsOf(root, embedder, mounted);
  const [rootPart, ...others] = parts as [Part, ...Part[]];
  const ofScope = (scope: string | null): Part =>
    others.find(({ mount }) => isAtOrBelow(scope, mount as string)) ?? rootPart;
  // An id that names no store is one of the root store, which does not have it.
  const ofId = (id: string): Part =>
    id.startsWith('~') ? (others.find(({ name }) => id.startsWith(idPrefix(name))) ?? rootPart) : rootPart;
  const { purge, ...writes } = createWrites({ parts, ofScope, ofId }, root, log);
  /** The method, if a store has it. */
  const ifAny = <Member extends keyof Store>(member: Member, method: Store[Member]): Store[Member] | undefined =>
    parts.some(({ store }) => store[member] !== undefined) ? method : undefined;

  const members: StoreMembers = {
    ...writes,
    mounts: {
      parts: parts.map((part) => ({
        name: part.name,
        get store() {
          return part.store;
        },
        ask: (call, work) => ask(part, call, (_, own) => work(own)),
      })),
      root,
      stores: mounted,
      ofScope: (scope) => ofScope(scope).store,
      ofId(id) {
        const { store, mount } = ofId(id);
        return mount === undefined ? undefined : { store, mount };
      },
      async find(ref, call) {
        const found = await ask(ofId(ref.id), call, ({ store }, own) => store.get(ref, own));
        return found?.result;
      },
      close: writes.close,
    },
    name: root.name,
    get capabilities() {
      return capabilitiesOf(parts.map(({ store }) => store.capabilities));
    },
    embedding: root.embedding,
    get idempotent() {
      return parts.some(({ store }) => store.idempotent);
    },
    read_only: root.read_only,
    ...ofTheRoot(root),
    freezing: root.freezing && freezingOf(parts),
    stats: root.stats,
    backlog: root.backlog,
    queryVector: undefined,
    add: ifAny('add', writes.add),
    batch: ifAny('batch', writes.batch),
    async get(ref, call) {
      const part = ofId(ref.id);
      return part.store.get(ref, callOf(part, call));
    },
    update: ifAny('update', writes.update),
    delete: ifAny('delete', writes.delete),
    list: ifAny('list', (query, call) => listParts(parts, ofId, query, call)),
    search: ifAny('search', (query, call) => searchParts(parts, query, call)),
    neighbours: ifAny('neighbours', (query, call) => neighboursInParts(parts, ofId, query, call)),
    users: ifAny('users', (query, call) => listUsers(parts, query, call)),
    userStats: ifAny('userStats', (query, call) => sumStats(parts, query, call)),
    userUsage: ifAny('userUsage', (request, call) => fullest(parts, request, call)),
    erase: ifAny('erase', writes.erase),
    versions: ifAny('versions', {
      async list(query, call) {
        const part = withMember(ofId(query.ref.id), 'versions');
        return part.store.versions.list(query, callOf(part, call));
      },
      purge,
    }),
    export: ifAny('export', (query, call) => exportParts(parts, ofId, query, call)),
    import: ifAny('import', writes.import),
    /** Of the required stores: without the others, the gateway still answers. */
    async ping(call) {
      await Promise.all(parts.filter(({ required }) => required).map(({ store }) => store.ping(call)));
    },
    async close() {
      await writes.close();
      await Promise.all([root.close(), ...mounted.map((one) => one.current().close())]);
    },
  };
  return Object.defineProperties({}, Object.getOwnPropertyDescriptors(members)) as Store;
}

/** A single store as one of several. */
export const alone = (store: Store): StorePart => ({
  name: store.name,
  store,
  ask: async (call, work) => ({ result: await work(call) }),
});

/** The stores in their fixed order: of one store, itself. */
export const partsIn = (store: Store): readonly StorePart[] => store.mounts?.parts ?? [alone(store)];

/** What a client may ask for; a store that does not support it says so itself. Limits are the narrowest. */
function capabilitiesOf(all: readonly ProviderCapabilities[]): ProviderCapabilities {
  const [root] = all as [ProviderCapabilities];
  const limits = all.flatMap(({ max_search_results }) => max_search_results ?? []);
  const any = (has: (one: ProviderCapabilities) => boolean | undefined) => all.some((one) => has(one) === true);
  return {
    ...root,
    // A least score for vectors would leave out what a store finds by keywords.
    vector_search: all.every(({ vector_search, keyword_search }) => vector_search || !keyword_search),
    tags: any(({ tags }) => tags),
    temporal: any(({ temporal }) => temporal),
    temporal_search: any(({ temporal_search }) => temporal_search),
    explain: any(({ explain }) => explain),
    etags: any(({ etags }) => etags),
    origins: any(({ origins }) => origins),
    consistency_tokens: any(({ consistency_tokens }) => consistency_tokens),
    max_search_results: limits.length > 0 ? Math.min(...limits) : null,
  };
}
