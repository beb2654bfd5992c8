import { compileFilter } from '../filter.ts';
import { checkIds } from '../limits.ts';
import { existing, namespaceName, type Operation } from '../operation.ts';
import { check } from '../refusal.ts';
import type { Change, Namespace } from '../store.ts';

interface Delete {
  readonly ids?: readonly string[];
  readonly deleteAll?: boolean;
  readonly namespace?: string;
  readonly filter?: object;
}

/** Deletes by ids, by filter, or everything in a namespace that must exist. */
export const deleteRecords: Operation = ({ body }, index) => {
  const asked = body as Delete;
  const ways = [asked.ids, asked.filter, asked.deleteAll || undefined].filter((way) => way !== undefined);
  check(ways.length === 1, 'exactly one of ids, filter and deleteAll is required');
  if (asked.ids) checkIds(asked.ids);
  const target = existing(namespaceName(asked.namespace, index), index);
  return { body: {}, written: target.write(changeFor(asked, target)) };
};

function changeFor({ ids, filter }: Delete, { whole, filterable }: Namespace): Change {
  if (!ids && !filter) return (records) => records.clear();
  const matches = filter && compileFilter(filter, filterable);
  const found = matches
    ? [...whole.entries()].filter(([, { metadata = {} }]) => matches(metadata)).map(([id]) => id)
    : (ids ?? []);
  return (records) => {
    for (const id of found) records.delete(id);
  };
}
