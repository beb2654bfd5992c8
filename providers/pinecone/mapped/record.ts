import type { Memory, MemoryPatch, NewMemory } from '#contract';
import type { Metadata, MetadataValue } from '../client/client.ts';
import type { Fields } from './fields.ts';
import { inFormOf, toIso } from './times.ts';

/** Of records that keep no time, or one that cannot be read. */
const NO_TIME = '1970-01-01T00:00:00.000Z';

/** Keys cannot be removed from a record. No tag is empty. */
const NO_TAGS: readonly string[] = [''];

/**
 * A record as a memory. Undefined without a text, or without exactly one owner: such a record is nobody's, whatever a
 * filter makes of it (one on a list matches any of its elements).
 */
export function toMemory(fields: Fields, id: string, metadata: Metadata): Memory | undefined {
  const content = fields.textIn(metadata);
  const user_id = metadata[fields.user];
  if (!isFilled(content) || !isFilled(user_id)) return undefined;
  const created_at = timeIn(metadata, fields.created) ?? NO_TIME;
  return {
    id,
    content,
    user_id,
    created_at,
    updated_at: timeIn(metadata, fields.updated) ?? created_at,
    scope: null,
    tags: fields.tags === undefined ? [] : tagsIn(metadata[fields.tags]),
    source: null,
    confidence: null,
    valid_from: null,
    valid_to: null,
    supersedes: [],
    extensions: {},
    // Somebody else made the vectors, and tells neither with what nor when.
    embedding_model: null,
    status: null,
  };
}

const isFilled = (value: unknown): value is string => typeof value === 'string' && /\S/.test(value);

const timeIn = (metadata: Metadata, field: string | undefined): string | undefined =>
  field === undefined ? undefined : toIso(metadata[field]);

/** A single string counts as one tag, as it does for filters. */
const tagsIn = (value: MetadataValue | undefined): string[] =>
  [value].flat().filter((tag): tag is string => typeof tag === 'string' && tag !== NO_TAGS[0]);

/** What of a new memory is kept, where the index keeps it. */
export const newMetadata = (
  fields: Fields,
  input: Pick<NewMemory, 'content' | 'user_id' | 'tags'>,
  created_at: string,
): Metadata => ({
  [fields.text]: input.content,
  [fields.user]: input.user_id,
  ...(fields.created !== undefined && { [fields.created]: created_at }),
  ...(fields.updated !== undefined && { [fields.updated]: created_at }),
  ...(fields.tags !== undefined && input.tags.length > 0 && { [fields.tags]: input.tags }),
});

/** The keys that a patch sets; times in the form in which the record has them. */
export function changes(fields: Fields, patch: MemoryPatch, before: Metadata, updated_at: string): Metadata {
  const { text, created, updated, tags } = fields;
  const { content, tags: wanted } = patch;
  const timeOf = (field: string | undefined) => (field === undefined ? undefined : before[field]);
  return {
    ...(content !== undefined && { [text]: content }),
    ...(wanted && tags !== undefined && { [tags]: wanted.length > 0 ? wanted : NO_TAGS }),
    ...(updated !== undefined && { [updated]: inFormOf(timeOf(updated) ?? timeOf(created), updated_at) }),
  };
}
