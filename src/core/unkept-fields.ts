import { type Extensions, type NewMemory, OmpError, ORIGIN, type Provider, UNTRUSTED } from '#contract';

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

/**
 * For a provider that keeps no `x-` keys, as its `check` says: its memories have no origin. What an untrusted caller writes is rejected with
 * `unsupported_capability`, since nothing would mark it (Decision 54).
 */
export function dropOrigins(inner: Provider): Provider {
  const { name, check, add, batch, update } = inner;
  if (!check || keepsKeys(check)) return inner;
  const withoutOrigin = <Fields extends { readonly extensions?: Extensions }>(fields: Fields): Fields => {
    if (!fields.extensions) return fields;
    const { [ORIGIN]: _, [UNTRUSTED]: untrusted, ...extensions } = fields.extensions;
    if (untrusted !== true) return { ...fields, extensions };
    const message = `${UNTRUSTED}: the provider keeps no x- keys, so it takes nothing from an untrusted key`;
    throw new OmpError('unsupported_capability', message, { provider: name });
  };
  return {
    ...inner,
    capabilities: { ...inner.capabilities, stamped: false },
    check: (fields, vector) => check(withoutOrigin(fields), vector),
    ...(add && { add: ({ input, ...rest }, call) => add({ input: withoutOrigin(input), ...rest }, call) }),
    ...(batch && {
      batch: ({ items, ...rest }, call) =>
        batch({ items: items.map(({ input, vector }) => ({ input: withoutOrigin(input), vector })), ...rest }, call),
    }),
    ...(update && { update: ({ patch, ...rest }, call) => update({ patch: withoutOrigin(patch), ...rest }, call) }),
  };
}

function keepsKeys(check: NonNullable<Provider['check']>): boolean {
  try {
    check({ extensions: { [ORIGIN]: { via: 'http' } } });
    return true;
  } catch (error) {
    return !(error instanceof OmpError && error.code === 'unsupported_capability');
  }
}
