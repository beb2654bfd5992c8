import {
  type Call,
  type Memory,
  type MemoryPatch,
  type NewMemory,
  OmpError,
  type Ref,
  timeLike,
  toTime,
} from '#provider';
import type { Metadata, MetadataValue, Service } from '../client/client.ts';
import { PROVIDER } from '../client/pinecone-errors.ts';
import type { Overlay, RecentWrite } from '../overlay.ts';
import type { Options } from '../pinecone-options.ts';
import type { Metric } from '../score.ts';
import { PRESETS, type Preset } from './presets.ts';

/** What the verbs on a mapped index work with. */
export interface MappedIndex {
  readonly service: Service;
  readonly namespace: string;
  readonly fields: Fields;
  readonly dimensions: number;
  readonly metric: Metric;
  /** Recent writes of this gateway; empty if it must not write. */
  readonly overlay: Overlay<WrittenMemory>;
  /** Maximum records of one user that a list reads. */
  readonly max_listed: number;
}

export interface WrittenMemory extends RecentWrite {
  readonly memory: Memory;
}

/** The latest version of a record that this gateway knows. */
export interface FoundRecord extends Pick<WrittenMemory, 'memory' | 'vector'> {
  /** The metadata that the index shows; it may be older than the memory. */
  readonly metadata: Metadata;
}

export type Find = (ids: readonly string[], users: Ref['users'], call: Call) => Promise<Map<string, FoundRecord>>;

/** The metadata keys that hold the fields of a memory. Undefined: the index does not store the field. */
export interface Fields {
  readonly text: string;
  readonly user: string;
  readonly created: string | undefined;
  readonly updated: string | undefined;
  readonly tags: string | undefined;
  /** The text of a record; undefined if it has none. */
  readonly textIn: (metadata: Metadata) => unknown;
}

/** The fields by preset and settings. Throws an `Error` that names settings which are missing or contradict each other. */
export function fieldsOf(options: Options): Fields {
  const { preset: name = 'custom', text_field, user_field, created_field, updated_field, tags_field } = options;
  const preset: Preset = PRESETS[name];
  if (options.layout !== 'single') {
    throw new Error(
      'OMP_PINECONE_LAYOUT has no effect with OMP_PINECONE_PRESET; OMP_PINECONE_NAMESPACE names the only namespace',
    );
  }
  if (options.writable && preset.read_only !== undefined) {
    throw new Error(`OMP_PINECONE_WRITABLE cannot be used with OMP_PINECONE_PRESET=${name}: ${preset.read_only}`);
  }
  const text = text_field ?? preset.text;
  const user = user_field ?? preset.user;
  if (text === undefined || user === undefined) {
    const missing = [
      ...(text === undefined ? ['OMP_PINECONE_TEXT_FIELD'] : []),
      ...(user === undefined ? ['OMP_PINECONE_USER_FIELD'] : []),
    ];
    throw new Error(`OMP_PINECONE_PRESET=${name} needs ${missing.join(' and ')}: the metadata keys of the records`);
  }
  const created = created_field ?? preset.created;
  const updated = updated_field ?? preset.updated;
  const keys = [text, user, created, updated, tags_field].filter((key) => key !== undefined);
  const duplicate = keys.find((key, index) => keys.indexOf(key) !== index);
  if (duplicate !== undefined) {
    throw new Error(
      `two of the OMP_PINECONE_…_FIELD settings, or their defaults, name the metadata key "${duplicate}"`,
    );
  }
  const plain = (metadata: Metadata) => metadata[text];
  return {
    text,
    user,
    created,
    updated,
    tags: tags_field,
    // The setting names exactly one key.
    textIn: text_field ? plain : (preset.textIn ?? plain),
  };
}

/** The time of records without a readable one. */
const NO_TIME = '1970-01-01T00:00:00.000Z';

/** Keys cannot be removed from a record. No tag is empty. */
const NO_TAGS: readonly string[] = [''];

/**
 * The memory in a record. Undefined without a text or without exactly one user, whatever a filter matches: a filter on a
 * list matches any of its elements.
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
    // The application made the vectors; the model and the state are unknown.
    embedding_model: null,
    status: null,
  };
}

const isFilled = (value: unknown): value is string => typeof value === 'string' && /\S/.test(value);

/** The time in a record; undefined without one that can be read. */
export const timeIn = (metadata: Metadata, field: string | undefined): string | undefined =>
  field === undefined ? undefined : toTime(metadata[field]);

/** A single string counts as one tag, as in filters. */
const tagsIn = (value: MetadataValue | undefined): string[] =>
  [value].flat().filter((tag): tag is string => typeof tag === 'string' && tag !== NO_TAGS[0]);

/** The metadata of a new record. */
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

/** The metadata that a patch sets. Times keep the form that the record uses. */
export function changes(fields: Fields, patch: MemoryPatch, before: Metadata, updated_at: string): Metadata {
  const { text, created, updated, tags } = fields;
  const { content, tags: newTags } = patch;
  const storedIn = (field: string | undefined) => (field === undefined ? undefined : before[field]);
  return {
    ...(content !== undefined && { [text]: content }),
    ...(newTags && tags !== undefined && { [tags]: newTags.length > 0 ? newTags : NO_TAGS }),
    ...(updated !== undefined && { [updated]: timeLike(storedIn(updated) ?? storedIn(created), updated_at) }),
  };
}

/**
 * Throws `unsupported_capability` with the names of all given fields that the index cannot store: a write stores everything
 * or nothing. Scopes are rejected before they reach the provider.
 */
export function requireStorable(fields: Fields, input: Partial<NewMemory>): void {
  const { tags = [], source, confidence, valid_from, valid_to, supersedes = [], extensions = {} } = input;
  const names = [
    ...(tags.length > 0 && fields.tags === undefined ? ['tags'] : []),
    ...Object.entries({ source, confidence, valid_from, valid_to })
      .filter(([, value]) => value != null)
      .map(([name]) => name),
    ...(supersedes.length > 0 ? ['supersedes'] : []),
    ...Object.keys(extensions),
  ];
  if (names.length > 0) throw unsupported(`${names.join(', ')}: the index cannot store this`);
}

/** Throws `unsupported_capability` for a list or a search by tags that the index does not store. */
export function requireTagsField(fields: Fields, tags: readonly string[]): void {
  if (tags.length > 0 && fields.tags === undefined) throw unsupported('tag: the index stores no tags');
}

const unsupported = (message: string) => new OmpError('unsupported_capability', message, { provider: PROVIDER });
