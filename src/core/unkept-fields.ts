import { type NewMemory, OmpError, type Provider } from '#contract';

/**
 * For a provider that declares no tags or no supersession and has no `check`: rejects what it would lose or overlook with
 * `unsupported_capability`.
 */
export function rejectUnkept(inner: Provider): Provider {
  const { name, capabilities, add, update, list, search } = inner;
  const unkept = [
    ...(capabilities.tags ? [] : (['tags'] as const)),
    ...(capabilities.supports_supersession ? [] : (['supersedes'] as const)),
  ];
  if (unkept.length === 0) return inner;
  const reject = (fields: Partial<Pick<NewMemory, 'tags' | 'supersedes'>>) => {
    const found = unkept.find((field) => fields[field]?.length);
    if (found === undefined) return;
    throw new OmpError('unsupported_capability', `${found}: the provider does not support ${found}`, {
      provider: name,
    });
  };
  return {
    ...inner,
    // Batches and imports are checked by it alone.
    check(fields, vector) {
      reject(fields);
      inner.check?.(fields, vector);
    },
    ...(add && {
      add: async (request, call) => {
        reject(request.input);
        return add(request, call);
      },
    }),
    ...(update && {
      update: async (request, call) => {
        reject(request.patch);
        return update(request, call);
      },
    }),
    ...(list && {
      list: async (query, call) => {
        reject(query);
        return list(query, call);
      },
    }),
    ...(search && {
      search: async (query, call) => {
        reject(query);
        return search(query, call);
      },
    }),
  };
}
