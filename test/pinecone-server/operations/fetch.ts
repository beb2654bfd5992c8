import { compileFilter } from '../filter.ts';
import { checkIds, checkNoSpaces, checkResultSize, LIMITS } from '../limits.ts';
import { fetchedFrom, namespaceName, type Operation, usage } from '../operation.ts';
import { cut, pageToken, skipPast } from '../page-token.ts';
import type { Stored } from '../record-set.ts';
import { check } from '../refusal.ts';

/** Records by id. Those that are not there are left out. */
export const fetchRecords: Operation = ({ query }, index) => {
  const ids = query.getAll('ids');
  checkIds(ids);
  checkNoSpaces(ids);
  const namespace = namespaceName(query.get('namespace'), index);
  const records = fetchedFrom(namespace, index);
  const found = ids.flatMap((id): Found[] => {
    const record = records.get(id);
    return record ? [[id, record]] : [];
  });
  return { body: { vectors: vectorsOf(found), namespace, ...usage(Math.ceil(ids.length / 10)) } };
};

interface FetchByMetadata {
  readonly namespace?: string;
  readonly filter?: object;
  readonly limit?: number;
  readonly paginationToken?: string;
}

/** Records by filter, in pages whose order is no promise: here that of the ids read backwards. */
export const fetchByMetadata: Operation = ({ body }, index) => {
  const { filter, limit = 100, paginationToken, ...asked } = body as FetchByMetadata;
  check(limit <= LIMITS.fetchByMetadataPage, `limit must be between 1 and ${LIMITS.fetchByMetadataPage}`);
  const namespace = namespaceName(asked.namespace, index);
  index.countFetchByMetadata(namespace);
  const matches = compileFilter(filter, index.store.find(namespace)?.filterable);
  const question = { namespace, filter: JSON.stringify(filter) };
  const past = backwards(skipPast(paginationToken, question));
  const found = [...fetchedFrom(namespace, index).entries()]
    .filter(([id, { metadata = {} }]) => backwards(id) > past && matches(metadata))
    .sort(([a], [b]) => (backwards(a) < backwards(b) ? -1 : 1));
  const { page, last } = cut(found, limit);
  const answer = {
    vectors: vectorsOf(page),
    namespace,
    ...usage(Math.max(1, Math.ceil(page.length / 10))),
    ...(last && { pagination: { next: pageToken({ skip_past: last[0], ...question }) } }),
  };
  checkResultSize(answer);
  return { body: answer };
};

const backwards = (text: string): string => [...text].reverse().join('');

type Found = readonly [string, Stored];

const vectorsOf = (found: readonly Found[]) =>
  Object.fromEntries(
    found.map(([id, { values, metadata }]) => [id, { id, values: [...values], ...(metadata && { metadata }) }]),
  );
