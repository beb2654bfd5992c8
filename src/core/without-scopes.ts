import { OmpError, type Provider, type Within } from '#contract';

type EveryVerb = { [Verb in keyof Required<Provider>]: Provider[Verb] };

/**
 * For a provider that has neither scopes nor tags to emulate them: its records are all unscoped, and whoever asks for a
 * scope is told so. What only scoped records can satisfy finds nothing.
 */
export function withoutScopes(inner: Provider): Provider {
  const { name, add, idempotency, update, delete: remove, list, search } = inner;
  const refuse = (scope: string | null | undefined) => {
    if (scope != null) {
      throw new OmpError('unsupported_capability', 'scope: the provider keeps no scopes', { provider: name });
    }
  };
  const scoped: EveryVerb = {
    ...inner,
    add:
      add &&
      (async (input, vector, call) => {
        refuse(input.scope);
        return add(input, vector, call);
      }),
    idempotency: idempotency && {
      async firstAnswer(input, key, call) {
        refuse(input.scope);
        return idempotency.firstAnswer(input, key, call);
      },
      add: idempotency.add,
    },
    get: async (ref, call) => (isOut(ref.within) ? undefined : inner.get(everywhere(ref), call)),
    update:
      update &&
      (async (ref, patch, vector, call) => {
        refuse(patch.scope);
        return isOut(ref.within) ? undefined : update(everywhere(ref), patch, vector, call);
      }),
    delete: remove && (async (ref, call) => (isOut(ref.within) ? false : remove(everywhere(ref), call))),
    list:
      list &&
      (async ({ scope, ...query }, call) => {
        refuse(scope);
        return isOut(query.within) ? [] : list(everywhere(query), call);
      }),
    search:
      search &&
      (async ({ scope, ...query }, call) => {
        refuse(scope);
        return isOut(query.within) ? [] : search(everywhere(query), call);
      }),
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
const isOut = (within: Within): boolean => within !== null;
const everywhere = <Query extends { readonly within: Within }>(query: Query): Query => ({ ...query, within: null });
