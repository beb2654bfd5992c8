import { OmpError, type Provider, type Within, withChanges } from '#contract';
import type { UnscopedMember } from './emulated-scopes.ts';

/**
 * For a provider without scopes and without tags to emulate them. All its records are unscoped. Requests that use a scope
 * are rejected with `unsupported_capability`; callers with restricted scopes find nothing.
 */
export function rejectScopes(inner: Provider): Provider {
  const { name, add, batch, update, delete: remove, list, search, vectorsOf } = inner;
  const rejectScope = (scope: string | null | undefined) => {
    if (scope != null) {
      throw new OmpError('unsupported_capability', 'scope: the provider does not support scopes', { provider: name });
    }
  };
  return withChanges<UnscopedMember | 'export'>(inner, {
    check(input, vector) {
      rejectScope(input.scope);
      inner.check?.(input, vector);
    },
    add:
      add &&
      (async (request, call) => {
        rejectScope(request.input.scope);
        return add(request, call);
      }),
    batch:
      batch &&
      (async (request, call) => {
        for (const { input } of request.items) rejectScope(input.scope);
        return batch(request, call);
      }),
    get: async (ref, call) => (isRestricted(ref.within) ? undefined : inner.get(inAnyScope(ref), call)),
    update:
      update &&
      (async (request, call) => {
        rejectScope(request.patch.scope);
        const { ref } = request;
        return isRestricted(ref.within) ? undefined : update({ ...request, ref: inAnyScope(ref) }, call);
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
    import: undefined,
    audit: undefined,
  });
}

/** No glob matches a record without a scope. */
const isRestricted = (within: Within): boolean => within !== null;
const inAnyScope = <Query extends { readonly within: Within }>(query: Query): Query => ({ ...query, within: null });
