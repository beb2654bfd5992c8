import { checkNoSpaces, pageSize } from '../limits.ts';
import { fetchedFrom, namespaceName, type Operation, usage } from '../operation.ts';
import { cut, pageToken, skipPast } from '../page-token.ts';

/** Ids that begin with a prefix, in byte order. A page goes on after the last id of the one before, whatever came or went. */
export const list: Operation = ({ query }, index) => {
  const prefix = query.get('prefix') ?? '';
  checkNoSpaces([prefix]);
  const limit = pageSize(query.get('limit'));
  const namespace = namespaceName(query.get('namespace'), index);
  const past = skipPast(query.get('paginationToken'), { prefix, namespace });
  const { page, last } = cut(fetchedFrom(namespace, index).ids(prefix, past, limit + 1), limit);
  const next = last && pageToken({ skip_past: last, prefix, namespace });
  return {
    body: { vectors: page.map((id) => ({ id })), ...(next && { pagination: { next } }), namespace, ...usage(1) },
  };
};
