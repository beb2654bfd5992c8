import type { Filter } from './client/client.ts';

/** Where an index keeps the owner and the tags of a record. */
export interface FilteredFields {
  readonly user: string;
  readonly tags: string;
}

const OWN_FIELDS: FilteredFields = { user: 'user_id', tags: 'tags' };

/**
 * The records of this user that carry all of these tags. The one place that makes filters: none without a user leaves
 * it. Only what the service documents for single values and for lists is used; negation is not among that.
 */
export function userFilter(user_id: string, tags: readonly string[], fields: FilteredFields = OWN_FIELDS): Filter {
  const owned: Filter = { [fields.user]: { $eq: user_id } };
  if (tags.length === 0) return owned;
  return { $and: [owned, ...tags.map((tag) => ({ [fields.tags]: { $eq: tag } }))] };
}
