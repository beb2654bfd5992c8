import { type EveryVerb, OmpError, type Provider, type Within } from '#contract';

/**
 * For a provider without scopes and without tags to emulate them. All its records are unscoped. Requests that use a scope
 * are rejected with `unsupported_capability`; callers with restricted scopes find nothing.
 */
export function rejectScopes(inner: Provider): Provider {
  const { name, add, batch, idempotency, update, delete: remove, list, search, vectorsOf } = inner;
  const rejectScope = (scope: string | null | undefined) => {
    if (scope != null) {
      throw new OmpError('unsupported_capability', 'scope: the provider does not support scopes', { provider: name });
    }
  };
  const scoped: EveryVerb = {
    ...inner,
    check(given, vector) {
      rejectScope(given.scope);
      inner.check?.(given, vector);
    },
    add:
      add &&
      (async (input, vector, call) => {
        rejectScope(input.scope);
        return add(input, vector, call);
      }),
    batch:
      batch &&
      (async (items, call) => {
        for (const { input } of items) rejectScope(input.scope);
        return batch(items, call);
      }),
    idempotency: idempotency && {
      async firstAnswers(adds, call) {
        for (const { input } of adds) rejectScope(input?.scope);
        return idempotency.firstAnswers(adds, call);
      },
      add: idempotency.add,
    },
    get: async (ref, call) => (isRestricted(ref.within) ? undefined : inner.get(inAnyScope(ref), call)),
    update:
      update &&
      (async (ref, patch, vector, call) => {
        rejectScope(patch.scope);
        return isRestricted(ref.within) ? undefined : update(inAnyScope(ref), patch, vector, call);
      }),
    delete: remove && (async (ref, call) => (isRestricted(ref.within) ? false : remove(inAnyScope(ref), call))),
    list:
      list &&
      (async ({ scope, ...query }, call) => {
        rejectScope(scope);
        return isRestricted(query.within) ? [] : list(inAnyScope(query), call);
      }),
    search:
      search &&
      (async ({ scope, ...query }, call) => {
        rejectScope(scope);
        return isRestricted(query.within) ? [] : search(inAnyScope(query), call);
      }),
    vectorsOf:
      vectorsOf &&
      (async (query, call) => (isRestricted(query.within) ? new Map() : vectorsOf(inAnyScope(query), call))),
    // No provider without scopes has them.
    users: undefined,
    userStats: undefined,
    erase: undefined,
    scan: inner.scan,
    restore: undefined,
    audit: undefined,
    read_only: inner.read_only,
    keys: inner.keys,
    stats: inner.stats,
    ingestion: inner.ingestion,
    backlog: inner.backlog,
  };
  return scoped;
}

/** No glob matches a record without a scope. */
const isRestricted = (within: Within): boolean => within !== null;
const inAnyScope = <Query extends { readonly within: Within }>(query: Query): Query => ({ ...query, within: null });
