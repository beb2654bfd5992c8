import { type Extensions, type Memory, OmpError, type Source } from '#contract';
import type { Metadata, MetadataValue, StoredRecord } from './client/client.ts';
import { isZero } from './score.ts';

/**
 * Most bytes of metadata, as JSON in UTF-8. The service takes 40,960; how it counts is not documented, and a record
 * that other replicas change at the same moment, or whose fields were emptied, needs a little more than it was given.
 */
const METADATA_BUDGET = 38_000;

/** In code points: of four bytes each they leave room for the longest `user_id` and the times. */
export const MAX_CONTENT_LENGTH = 9_000;

/** Keys cannot be removed from a record: a field emptied later gets a value that nothing else has. */
const EMPTIED_TEXT = '';
const EMPTIED_LIST: readonly string[] = [''];

/**
 * What is kept beside the vector, under the protocol's own names; empty fields are left out. `embedded`: whether the
 * text had any signal (`toValues`).
 */
export function toMetadata(memory: Memory, embedded: boolean): Metadata {
  const { tags, source, confidence, valid_from, valid_to, supersedes } = memory;
  const extensions = Object.entries(memory.extensions).map(([key, value]) => [key, JSON.stringify(value)]);
  return {
    ...(Object.fromEntries(extensions) as Record<string, string>),
    content: memory.content,
    user_id: memory.user_id,
    created_at: memory.created_at,
    updated_at: memory.updated_at,
    ...(tags.length > 0 && { tags }),
    ...(source !== null && { source: JSON.stringify(source) }),
    ...(confidence !== null && { confidence }),
    ...(valid_from !== null && { valid_from }),
    ...(valid_to !== null && { valid_to }),
    ...(supersedes.length > 0 && { supersedes }),
    ...(!embedded && { embedded }),
  };
}

/**
 * What has to be set so that the metadata of `before` become those of `after`, and nothing else: what somebody else
 * changes at the same moment stays. `embedded` is given exactly when the content changes.
 */
export function changes(before: Memory, after: Memory, embedded?: boolean): Metadata {
  const old = toMetadata(before, true);
  const wanted = toMetadata(after, true);
  const changed = Object.keys({ ...old, ...wanted }).filter((key) => !isSame(old[key], wanted[key]));
  const emptied = (key: string) => (Array.isArray(old[key]) ? EMPTIED_LIST : EMPTIED_TEXT);
  return {
    ...Object.fromEntries(changed.map((key) => [key, wanted[key] ?? emptied(key)])),
    ...(embedded !== undefined && { embedded }),
  };
}

const isSame = (a: MetadataValue | undefined, b: MetadataValue | undefined): boolean =>
  JSON.stringify(a) === JSON.stringify(b);

/** Undefined for what is no memory. What others wrote into optional fields and cannot be read is left out. */
export function toMemory(id: string, metadata: Metadata, model: string): Memory | undefined {
  const { confidence } = metadata;
  const content = textIn(metadata.content);
  const user_id = textIn(metadata.user_id);
  const created_at = textIn(metadata.created_at);
  if (content === null || user_id === null || created_at === null) return undefined;
  return {
    id,
    content,
    user_id,
    created_at,
    updated_at: textIn(metadata.updated_at) ?? created_at,
    scope: null,
    tags: listIn(metadata.tags),
    source: sourceIn(metadata.source),
    confidence: typeof confidence === 'number' ? confidence : null,
    valid_from: textIn(metadata.valid_from),
    valid_to: textIn(metadata.valid_to),
    supersedes: listIn(metadata.supersedes),
    extensions: extensionsIn(metadata),
    embedding_model: model,
    status: 'done',
  };
}

const textIn = (value: MetadataValue | undefined): string | null =>
  typeof value === 'string' && value !== EMPTIED_TEXT ? value : null;

const listIn = (value: MetadataValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((one) => one !== EMPTIED_LIST[0]) : [];

/** Undefined where there is no JSON. */
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

function extensionsIn(metadata: Metadata): Extensions {
  const own = Object.keys(metadata).filter((key) => key.startsWith('x-'));
  const read = own.map((key) => [key, jsonIn(metadata[key])] as const);
  return Object.fromEntries(read.filter(([, value]) => value !== undefined));
}

/** Whether a record's vector says anything about its text. */
export const isEmbedded = (metadata: Metadata): boolean => metadata.embedded !== false;

/** Throws `payload_too_large` for a record that is too large for the service, whatever of it makes it so. */
export function requireFits(metadata: Metadata): void {
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  if (bytes <= METADATA_BUDGET) return;
  throw new OmpError(
    'payload_too_large',
    `the memory with all its fields takes ${bytes} bytes, at most ${METADATA_BUDGET} can be kept; shorten it or split it into several`,
  );
}

/** The service keeps no vector of zeros: a text without any signal gets another one, and a mark. */
export function toValues(vector: Float32Array): { values: Float32Array; embedded: boolean } {
  if (!isZero(vector)) return { values: vector, embedded: true };
  return { values: vector.map((_, index) => (index === 0 ? 1 : 0)), embedded: false };
}

/** The reverse of `toValues`. */
export const toVector = ({ values, metadata }: Pick<StoredRecord, 'values' | 'metadata'>): Float32Array =>
  isEmbedded(metadata) ? Float32Array.from(values) : new Float32Array(values.length);
