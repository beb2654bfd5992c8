import { type Memory, type NewMemory, OmpError, providerError, type Ref, type Visible, type Within } from '#contract';
import { visibleMatcher, withinBelow, withMemories } from '#toolbox';
import type { Store } from '../core/with-embedder.ts';

/*
 * A store in the names of the gateway: its ids and scopes, and what hides where (Decision 48).
 */

/** What only the root store has. */
const OF_THE_ROOT = {
  mounts: undefined,
  keys: undefined,
  audit: undefined,
  changes: undefined,
  changesHeld: undefined,
  webhooks: undefined,
  embeddingUsage: undefined,
};

/** Where a store is mounted. */
export interface Place {
  /** The name of the store in the configuration. */
  readonly name: string;
  /** The scope of the store's records without a scope; all its other scopes lie below. */
  readonly mount: string;
}

/** Every member of a store, so that a new one does not compile until it is decided what a mount does with it. */
export type StoreMembers = { [Member in keyof Required<Store>]: Store[Member] };

/** What the ids of a store begin with. */
export const idPrefix = (name: string): string => `~${name}~`;

/** An id with the name of its store. */
const NAMED = /^~[a-z][a-z0-9-]*~/;
/** What a mounted store keeps of an id of the root store, so that it cannot be taken for one of its own. */
const OF_ROOT = '~~';

/** The store's own form of an id in `supersedes`. */
const keptId = (id: string, prefix: string): string => {
  // An own id that begins with the mark of a name stays in full.
  if (id.startsWith(prefix) && id[prefix.length] !== '~') return id.slice(prefix.length);
  return NAMED.test(id) ? id : OF_ROOT + id;
};

/** The reverse of `keptId`. */
const shownId = (id: string, prefix: string): string => {
  if (id.startsWith(OF_ROOT)) return id.slice(OF_ROOT.length);
  return NAMED.test(id) ? id : prefix + id;
};

/** The prefix of a search below a scope, in the store's own names. `undefined`: all scopes; null: no record can match. */
function prefixBelow(prefix: string | undefined, mount: string): string | undefined | null {
  if (prefix === undefined || mount.startsWith(prefix)) return undefined;
  const top = `${mount}/`;
  return prefix.startsWith(top) ? prefix.slice(top.length) : null;
}

/** The names of a store's own, and those that clients see. */
function namesOf(prefix: string, mount: string) {
  const ownId = (id: string): string => id.slice(prefix.length);
  const ownScope = (scope: string | null): string | null =>
    scope === null || scope === mount ? null : scope.slice(mount.length + 1);
  const shownScope = (scope: string | null): string => (scope === null ? mount : `${mount}/${scope}`);
  const toOwn = <Fields extends NewMemory>(fields: Fields): Fields => ({
    ...fields,
    scope: ownScope(fields.scope),
    supersedes: fields.supersedes.map((id) => keptId(id, prefix)),
  });
  // Not a spread: see docs/performance-notes.md.
  const toShown = (memory: Memory): Memory => ({
    id: prefix + memory.id,
    content: memory.content,
    user_id: memory.user_id,
    created_at: memory.created_at,
    updated_at: memory.updated_at,
    scope: shownScope(memory.scope),
    tags: memory.tags,
    source: memory.source,
    confidence: memory.confidence,
    valid_from: memory.valid_from,
    valid_to: memory.valid_to,
    supersedes: memory.supersedes.map((id) => shownId(id, prefix)),
    embedding_model: memory.embedding_model,
    status: memory.status,
    extensions: memory.extensions,
  });
  return { ownId, ownScope, shownScope, toOwn, toShown };
}

/** The members that have nothing to do with ids and scopes. */
const asTheyAre = (inner: Store) => ({
  name: inner.name,
  capabilities: inner.capabilities,
  embedding: inner.embedding,
  idempotent: inner.idempotent,
  read_only: inner.read_only,
  ping: inner.ping,
  stats: inner.stats,
  backlog: inner.backlog,
  close: inner.close,
  freezing: inner.freezing,
  queryVector: inner.queryVector,
  userUsage: inner.userUsage,
});

/** The store with its ids and scopes in the names of the gateway. It has neither keys nor an audit log. */
export function atMount(inner: Store, { name, mount }: Place): Store {
  const prefix = idPrefix(name);
  const { add, batch, update, delete: remove, list, search, users, userStats, erase } = inner;
  const { export: exportPart, import: importMemories, neighbours, versions } = inner;
  const writtenIn = versions?.writtenIn;
  const hasScopes = inner.capabilities.scopes !== 'none';
  const below = ownWithin(inner, mount);

  const { ownId, ownScope, shownScope, toOwn, toShown } = namesOf(prefix, mount);
  const shownIfPresent = (memory: Memory | undefined): Memory | undefined => memory && toShown(memory);
  const visible = <Query extends Visible>(query: Query): Query => ({ ...query, within: below(query.within) });
  const ownRef = (ref: Ref): Ref | undefined => {
    const own = visible({ ...ref, id: ownId(ref.id) });
    return own.within?.length === 0 ? undefined : own;
  };

  const members: StoreMembers = {
    ...asTheyAre(inner),
    ...OF_THE_ROOT,
    add: add && (async ({ input, ...rest }, call) => toShown(await add({ input: toOwn(input), ...rest }, call))),
    batch:
      batch &&
      (async ({ inputs, ...rest }, call) => {
        const outcomes = await batch({ inputs: inputs.map((input) => input && toOwn(input)), ...rest }, call);
        return outcomes.map((outcome) => (outcome instanceof OmpError ? outcome : shownIfPresent(outcome)));
      }),
    async get(ref, call) {
      const own = ownRef(ref);
      return own && shownIfPresent(await inner.get(own, call));
    },
    update:
      update &&
      (async ({ ref, patch: { scope, supersedes, ...rest }, limits }, call) => {
        const own = ownRef(ref);
        const patch = {
          ...rest,
          // A store without scopes has no other scope than the mount.
          ...(scope !== undefined && (hasScopes || scope !== mount) && { scope: ownScope(scope) }),
          ...(supersedes && { supersedes: supersedes.map((id) => keptId(id, prefix)) }),
        };
        return own && shownIfPresent(await update({ ref: own, patch, limits }, call));
      }),
    delete:
      remove &&
      (async (ref, call) => {
        const own = ownRef(ref);
        return own !== undefined && remove(own, call);
      }),
    list:
      list &&
      (async ({ scope, after, ...query }, call) => {
        const globs = scope === undefined ? null : below([scope].flat());
        const [single] = globs ?? [];
        const own = {
          ...visible(query),
          ...(globs && { scope: globs.length === 1 && single ? single : globs }),
          ...(after && { after: { ...after, id: ownId(after.id) } }),
        };
        return (await list(own, call)).map(toShown);
      }),
    search:
      search &&
      (async ({ scope, ...query }, call) => {
        const own = prefixBelow(scope, mount);
        if (own === null) return [];
        const hits = await search({ ...visible(query), ...(own !== undefined && { scope: own }) }, call);
        return hits.map((hit) => ({ ...hit, memory: toShown(hit.memory) }));
      }),
    neighbours:
      neighbours &&
      (async (query, call) => (await neighbours({ ...visible(query), ids: query.ids.map(ownId) }, call)).map(toShown)),
    users: users && ((query, call) => users(visible(query), call)),
    userStats:
      userStats &&
      (async (query, call) => {
        const stats = await userStats(visible(query), call);
        return { ...stats, scopes: stats.scopes.map(({ scope, count }) => ({ scope: shownScope(scope), count })) };
      }),
    erase,
    versions: versions && {
      async list({ ref, ...query }, call) {
        const own = ownRef(ref);
        const found = own && (await versions.list({ ref: own, ...query }, call));
        return (
          found && {
            ...found,
            current: toShown(found.current),
            versions: found.versions.map((one) => withMemories(one, toShown)),
          }
        );
      },
      async purge(ref, call) {
        const own = ownRef(ref);
        return own && versions.purge(own, call);
      },
      ...(writtenIn && {
        async writtenIn({ after, ...query }, call) {
          const own = after === undefined ? undefined : ownId(after);
          const ids = await writtenIn({ ...query, after: own }, call);
          return ids.map((id) => prefix + id);
        },
      }),
    },
    export:
      exportPart &&
      (async (query, call) => {
        const { items, next } = await exportPart({ ...query, ids: query.ids?.map(ownId) }, call);
        return { items: items.map((item) => withMemories(item, toShown)), next };
      }),
    import:
      importMemories &&
      (async ({ items, replace }, call) => {
        const toOwnMemory = (memory: Memory): Memory => ({ ...toOwn(memory), id: ownId(memory.id) });
        const own = items.map((item) => withMemories(item, toOwnMemory));
        return importMemories({ items: own, replace }, call);
      }),
  };
  return members as Store;
}

/** The allowed scopes in the store's own names. Those of a caller are the same list with every request. */
function ownWithin({ capabilities }: Store, mount: string): (within: Within) => Within {
  const known = new WeakMap<readonly string[], { readonly own: Within }>();
  return (within) => {
    if (within === null) return null;
    const existing = known.get(within);
    if (existing) return existing.own;
    const globs = withinBelow(within, mount);
    const unscopedOnly = globs?.includes('') ? null : [];
    const own = globs === null || capabilities.scopes !== 'none' ? globs : unscopedOnly;
    known.set(within, { own });
    return own;
  };
}

/**
 * The root store without what it has at these mounts and below; every row is checked again, as `Access` does with users and scopes. Without
 * scopes, it has nothing there.
 */
export function hiding(root: Store, outside: readonly string[]): Store {
  if (root.capabilities.scopes === 'none') return root;
  const isVisible = visibleMatcher({ within: null, outside });
  const isShown = ({ scope }: Pick<Memory, 'scope'>): boolean => isVisible(scope);
  const checked = <Row extends Pick<Memory, 'scope'> | undefined>(row: Row): Row => {
    if (!row || isShown(row)) return row;
    throw providerError(root.name, 'the backend returned records that do not match the query');
  };
  const { update, delete: remove, list, search, neighbours, users, userStats, versions } = root;
  const { export: exportPart } = root;
  const hide = <Query extends Visible>(query: Query): Query => ({ ...query, outside });
  return {
    ...root,
    get: async (ref, call) => checked(await root.get(hide(ref), call)),
    ...(update && {
      update: async ({ ref, ...rest }, call) => checked(await update({ ref: hide(ref), ...rest }, call)),
    }),
    ...(remove && { delete: (ref, call) => remove(hide(ref), call) }),
    ...(list && { list: async (query, call) => (await list(hide(query), call)).map(checked) }),
    ...(search && {
      async search(query, call) {
        const hits = await search(hide(query), call);
        for (const { memory } of hits) checked(memory);
        return hits;
      },
    }),
    ...(neighbours && { neighbours: async (query, call) => (await neighbours(hide(query), call)).map(checked) }),
    ...(users && { users: (query, call) => users(hide(query), call) }),
    ...(userStats && {
      async userStats(query, call) {
        const stats = await userStats(hide(query), call);
        stats.scopes.forEach(checked);
        return stats;
      },
    }),
    ...(versions && {
      versions: {
        async list({ ref, ...query }, call) {
          const found = await versions.list({ ref: hide(ref), ...query }, call);
          for (const { memory } of found ? [{ memory: found.current }, ...found.versions] : []) checked(memory);
          return found;
        },
        purge: (ref, call) => versions.purge(hide(ref), call),
        writtenIn: versions.writtenIn,
      },
    }),
    ...(exportPart && {
      async export(query, call) {
        const { items, next } = await exportPart(query, call);
        const isShownItem = ({ memory }: { readonly memory: Memory }) => isShown(memory);
        const shown = items
          .filter(isShownItem)
          .map((item) => (item.versions ? { ...item, versions: item.versions.filter(isShownItem) } : item));
        return { items: shown, next };
      },
    }),
  };
}
