import type { Memory, PointFields, Source } from '#provider';
import type { Metadata, MetadataValue } from '../client/client.ts';

/** Keys cannot be removed from a record: a cleared field gets a value that no other field has. */
const CLEARED_TEXT = '';
const CLEARED_LIST: readonly string[] = [''];

/** What a point has as JSON (`FIELDS`). */
type Rest = Pick<Memory, 'tags' | 'source' | 'confidence' | 'valid_from' | 'valid_to' | 'supersedes' | 'extensions'>;

const timeOf = (value: unknown): string => new Date(Number(value)).toISOString();

/** The metadata of a point, with the names of the protocol and without empty fields. `id`: of the record. */
export function toMetadata(
  id: string,
  { memory_id, content, user_id, created, updated, blank, rest }: PointFields,
): Metadata {
  const { tags, source, confidence, valid_from, valid_to, supersedes, extensions } = JSON.parse(String(rest)) as Rest;
  return {
    ...Object.fromEntries(Object.entries(extensions).map(([key, value]) => [key, JSON.stringify(value)])),
    ...{ content: String(content), user_id: String(user_id) },
    ...{ created_at: timeOf(created), updated_at: timeOf(updated) },
    ...(tags.length > 0 && { tags }),
    ...(source !== null && { source: JSON.stringify(source) }),
    ...(confidence !== null && { confidence }),
    ...(valid_from !== null && { valid_from }),
    ...(valid_to !== null && { valid_to }),
    ...(supersedes.length > 0 && { supersedes }),
    // The embedder found nothing in the text, and the vector has no meaning.
    ...(blank === 1 && { embedded: false }),
    // A memory of another store: a record cannot have its id.
    ...(memory_id !== id && { moved_id: String(memory_id) }),
  };
}

/**
 * The metadata to set so that `before` becomes `after`, and no more: concurrent changes of other fields stay. Always says of a new text whether
 * the embedder found anything in it.
 */
export function changes({ embedded: _, ...before }: Metadata, { embedded = true, ...after }: Metadata): Metadata {
  const changedKeys = Object.keys({ ...before, ...after }).filter((key) => !isSame(before[key], after[key]));
  const clearedValue = (key: string) => (Array.isArray(before[key]) ? CLEARED_LIST : CLEARED_TEXT);
  return {
    ...Object.fromEntries(changedKeys.map((key) => [key, after[key] ?? clearedValue(key)])),
    ...(before.content !== after.content && { embedded }),
  };
}

const isSame = (a: MetadataValue | undefined, b: MetadataValue | undefined): boolean =>
  JSON.stringify(a) === JSON.stringify(b);

/** The fields of the point in a record; undefined if it is no memory. Optional fields that cannot be read are left out. */
export function toFields(id: string, metadata: Metadata): PointFields | undefined {
  const { confidence, moved_id } = metadata;
  const content = textIn(metadata.content);
  const user_id = textIn(metadata.user_id);
  const created_at = textIn(metadata.created_at);
  if (content === null || user_id === null || created_at === null) return undefined;
  const tags = listIn(metadata.tags);
  const rest: Rest = {
    tags,
    source: sourceIn(metadata.source),
    confidence: typeof confidence === 'number' ? confidence : null,
    valid_from: textIn(metadata.valid_from),
    valid_to: textIn(metadata.valid_to),
    supersedes: listIn(metadata.supersedes),
    extensions: extensionsIn(metadata),
  };
  return {
    ...{ memory_id: typeof moved_id === 'string' ? moved_id : id, user_id, content, scope: '', tags },
    ...{ created: Date.parse(created_at), updated: Date.parse(textIn(metadata.updated_at) ?? created_at) },
    ...{ bytes: Buffer.byteLength(content), blank: metadata.embedded === false ? 1 : 0, rest: JSON.stringify(rest) },
  };
}

const textIn = (value: MetadataValue | undefined): string | null =>
  typeof value === 'string' && value !== CLEARED_TEXT ? value : null;

const listIn = (value: MetadataValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((one) => one !== CLEARED_LIST[0]) : [];

/** Undefined if the value is not JSON. */
function jsonIn(value: MetadataValue | undefined): unknown {
  if (typeof value !== 'string') return undefined;
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}

function sourceIn(value: MetadataValue | undefined): Source | null {
  const source = jsonIn(value);
  return typeof source === 'object' ? source : null;
}

function extensionsIn(metadata: Metadata): Memory['extensions'] {
  const own = Object.keys(metadata).filter((key) => key.startsWith('x-'));
  const entries = own.map((key) => [key, jsonIn(metadata[key])] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}
