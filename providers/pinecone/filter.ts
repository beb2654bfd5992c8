import type { Filter as Asked } from '#provider';
import type { Filter } from './client/client.ts';

/** A filter for the records of all users. Only the gateway itself may see what it finds. */
export const anyUserFilter = (field: string): Filter => ({ [field]: { $exists: true } });

/**
 * A filter for the records of this user that have all of these tags. Filters are made only here, so that every filter names
 * a user. It uses only what Pinecone documents for single values and for lists, so no negation.
 */
export const userFilter = (user_id: string, tags: readonly string[]): Filter =>
  allOf([['user_id', user_id], ...tags.map((tag): [string, string] => ['tags', tag])]);

function allOf(wanted: readonly (readonly [field: string, value: unknown])[]): Filter {
  const conditions = wanted.map(([field, value]): Filter => ({ [field]: { $eq: value } }));
  return conditions.length > 1 ? { $and: conditions } : { ...conditions[0] };
}

/** What a filter of the kit for a mapped index compares: one user, and for each tag that a list has it, or that it stands alone. */
const compared = (filter: Asked): { field: string; value: string | number }[] =>
  filter.op === 'equals'
    ? [filter]
    : filter.op === 'not'
      ? compared(filter.filter)
      : filter.op === 'and'
        ? filter.filters.flatMap(compared)
        : [];

/** The same for Pinecone, whose `$eq` means of a list that it has the value. */
export const mappedFilter = (filter: Asked): Filter =>
  allOf(compared(filter).map(({ field, value }) => [field, value]));

/** The user in a filter of the kit. `user`: the key. */
export const userIn = (filter: Asked, user: string): string =>
  String(compared(filter).find(({ field }) => field === user)?.value);
