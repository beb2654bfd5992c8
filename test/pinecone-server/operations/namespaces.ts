import { checkNamespaceName, LIMITS, pageSize } from '../limits.ts';
import { existing, isDefault, namespaceName, type Operation } from '../operation.ts';
import { cut, pageToken, skipPast } from '../page-token.ts';
import { check, Refusal } from '../refusal.ts';
import type { Namespace } from '../store.ts';

const describe = ({ name, indexed, filterable }: Namespace) => ({
  name,
  record_count: indexed().records.size,
  ...(filterable && {
    schema: { fields: Object.fromEntries([...filterable].map((field) => [field, { filterable: true }])) },
    indexed_fields: { fields: [...filterable] },
  }),
});

/** All namespaces that begin with a prefix, in byte order. */
export const listNamespaces: Operation = ({ query }, { store }) => {
  const prefix = query.get('prefix') ?? '';
  const limit = pageSize(query.get('limit'));
  const past = skipPast(query.get('paginationToken'), { prefix });
  const all = store.existing().filter(({ name }) => name.startsWith(prefix));
  const { page, last } = cut(
    all.filter(({ name }) => name > past),
    limit,
  );
  return {
    body: {
      namespaces: page.map(describe),
      ...(last && { pagination: { next: pageToken({ skip_past: last.name, prefix }) } }),
      total_count: all.length,
    },
  };
};

interface Schema {
  readonly fields: Readonly<Record<string, { readonly filterable?: boolean }>>;
}

/** Makes an empty namespace, with a schema the only one whose filters are restricted. */
export const createNamespace: Operation = ({ body }, { store }) => {
  const { name, schema } = body as { name: string; schema?: Schema };
  checkNamespaceName(name);
  check(!isDefault(name), 'this name is reserved');
  const fields = Object.entries(schema?.fields ?? {});
  check(fields.length <= LIMITS.filterableFields, `at most ${LIMITS.filterableFields} fields may be filterable`);
  check(
    fields.every(([, { filterable }]) => filterable === true),
    'only filterable: true is supported',
  );
  if (store.find(name)?.exists) throw new Refusal(409, `Namespace ${name} already exists`);
  const made = store.ensure(name);
  made.filterable = schema && new Set(fields.map(([field]) => field));
  return { body: describe(made) };
};

export const describeNamespace: Operation = ({ name }, index) => ({
  body: describe(existing(namespaceName(name, index), index)),
});

/** Deletes a namespace with all it holds. What lags behind shows its records for a while. */
export const deleteNamespace: Operation = ({ name }, index) => {
  const target = existing(namespaceName(name, index), index);
  const written = target.write((records) => records.clear());
  target.exists = false;
  target.filterable = undefined;
  return { body: {}, written };
};
