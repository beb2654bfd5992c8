import {
  type Memory,
  type MemoryPatch,
  type NewMemory,
  OF_THE_ROOT,
  type OfTheRoot,
  providerError,
  type Within,
} from '#contract';
import { visibleMatcher, withinBelow } from '#toolbox';
import type { Store, StoreMembers } from '../core/store.ts';
import { NOTHING, SAME, STORE_METHODS, translate } from '../core/translate.ts';

/*
 * A store in the names of the gateway: its ids and scopes, and what hides where (Decision 48).
 */

/** What a mounted store lacks. */
export const NOT_AT_MOUNT = Object.fromEntries([...OF_THE_ROOT, 'mounts'].map((member) => [member, undefined])) as {
  readonly [Member in OfTheRoot | 'mounts']: undefined;
};

/** What only the root store has. Its log has the entries of every store, and its usage is that of the embedders of all. */
export const ofTheRoot = (root: Store) =>
  Object.fromEntries(OF_THE_ROOT.map((member) => [member, root[member]])) as Pick<StoreMembers, OfTheRoot>;

/** Where a store is mounted. */
export interface MountPoint {
  /** The name of the store in the configuration. */
  readonly name: string;
  /** The scope of the store's records without a scope; all its other scopes lie below. */
  readonly mount: string;
}

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

/** The prefix of a search below a scope, in the store's own names. `undefined`: all scopes. */
function prefixBelow(prefix: string, mount: string): string | undefined | typeof NOTHING {
  if (mount.startsWith(prefix)) return undefined;
  const top = `${mount}/`;
  return prefix.startsWith(top) ? prefix.slice(top.length) : NOTHING;
}

/** The store with its ids and scopes in the names of the gateway. It has neither keys nor an audit log. */
export function atMount(inner: Store, { name, mount }: MountPoint): Store {
  const prefix = idPrefix(name);
  const below = ownWithin(inner, mount);
  const ownId = (id: string): string => id.slice(prefix.length);
  const ownScope = (scope: string | null): string | null =>
    scope === null || scope === mount ? null : scope.slice(mount.length + 1);
  const ownIds = (ids: readonly string[]) => ids.map((id) => keptId(id, prefix));
  const toOwn = <Of extends NewMemory>(fields: Of): Of => ({
    ...fields,
    scope: ownScope(fields.scope),
    supersedes: ownIds(fields.supersedes),
  });
  // A store without scopes has no other scope than the mount.
  const isKept = (scope: string | null | undefined) =>
    scope !== undefined && (inner.capabilities.scopes !== 'none' || scope !== mount);
  const shownScope = (scope: string | null): string => (scope === null ? mount : `${mount}/${scope}`);
  const request = {
    id: ownId,
    scope: ownScope,
    globs(globs: string | readonly string[]) {
      const own = below([globs].flat());
      return own?.length === 1 && own[0] ? own[0] : (own ?? undefined);
    },
    prefix: (beginning: string) => prefixBelow(beginning, mount),
    within(within: Within) {
      const own = below(within);
      return own?.length === 0 ? NOTHING : own;
    },
    outside: SAME.outside,
    memory: (memory: Memory): Memory => ({ ...toOwn(memory), id: ownId(memory.id) }),
    input: toOwn,
    patch: ({ scope, supersedes, ...rest }: MemoryPatch): MemoryPatch => ({
      ...rest,
      ...(isKept(scope) && { scope: ownScope(scope as string | null) }),
      ...(supersedes && { supersedes: ownIds(supersedes) }),
    }),
  };
  const answer = {
    id: (id: string): string => prefix + id,
    scope: shownScope,
    // Not a spread: see docs/performance-notes.md.
    memory: (memory: Memory): Memory => ({
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
    }),
  };
  return { ...translate(inner, STORE_METHODS, { request, answer }), ...NOT_AT_MOUNT };
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
  const requireShown = (scope: string | null) => {
    if (isVisible(scope)) return scope;
    throw providerError(root.name, 'the backend returned records that do not match the query');
  };
  const memory = (one: Memory): Memory => {
    requireShown(one.scope);
    return one;
  };
  const hidden = translate(root, STORE_METHODS, {
    request: { ...SAME, outside: () => outside },
    answer: { id: SAME.id, scope: requireShown, memory },
  });
  const { export: exportPart } = root;
  if (!exportPart) return hidden;
  return {
    ...hidden,
    /** Its query has no scopes: what is hidden is left out here. */
    async export(query, call) {
      const { items, next } = await exportPart(query, call);
      const isShown = ({ memory: { scope } }: { readonly memory: Memory }) => isVisible(scope);
      const shown = items
        .filter(isShown)
        .map((item) => (item.versions ? { ...item, versions: item.versions.filter(isShown) } : item));
      return { items: shown, next };
    },
  };
}
