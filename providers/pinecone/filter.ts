import type { Filter } from './client/client.ts';

/** The metadata keys of the user and the tags in an index. */
export interface FilteredFields {
  readonly user: string;
  readonly tags: string;
}

const GATEWAY_FIELDS: FilteredFields = { user: 'user_id', tags: 'tags' };

/** A filter for the records of all users. Only the gateway itself may see what it finds. */
export const anyUserFilter = (field: string): Filter => ({ [field]: { $exists: true } });

/**
 * A filter for the records of this user that have all of these tags. Filters are made only here, so that every filter names
 * a user. It uses only what Pinecone documents for single values and for lists, so no negation.
 */
export function userFilter(user_id: string, tags: readonly string[], fields: FilteredFields = GATEWAY_FIELDS): Filter {
  const ofUser: Filter = { [fields.user]: { $eq: user_id } };
  if (tags.length === 0) return ofUser;
  return { $and: [ofUser, ...tags.map((tag) => ({ [fields.tags]: { $eq: tag } }))] };
}
