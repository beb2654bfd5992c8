import { createHash } from 'node:crypto';
import type { Collection, Metadata } from 'chromadb';
import { type Call, type ExportedMemory, type Extensions, type Memory, toUnit } from 'omp-gateway/provider';
import { ask, type Row } from './chroma.ts';

/** A place is below this. */
export const PLACES = 2 ** 48;

/** Where a user is in the order of users and of exports: Chroma compares numbers, not texts. */
export const placeOf = (user_id: string): number => createHash('sha256').update(user_id).digest().readUIntBE(0, 6);

/** The beginning of the ids of a place. */
export const placePrefix = (place: number): string => place.toString(16).padStart(12, '0');

/** So that no time of the protocol is negative. */
const BEFORE_ALL_TIMES = 1e14;

/**
 * The id of a record is its place in order, since Chroma sorts nothing and is quick only with ids: the place of the user (12 characters),
 * the time of creation in milliseconds (15), the id of the memory. None of them ever changes.
 */
export const recordId = ({ user_id, created_at, id }: Pick<Memory, 'user_id' | 'created_at' | 'id'>): string =>
  placePrefix(placeOf(user_id)) + String(Date.parse(created_at) + BEFORE_ALL_TIMES).padStart(15, '0') + id;

/**
 * Chroma cannot remove a key from metadata, and refuses an empty list: these values stand for none. Only keys that the gateway chose get
 * there (those of clients begin with `x-`), so that no client writes a `chroma:` key, which would overwrite the document.
 */
const NO_TAGS = [''];
const NO_VALUE = 'null';

/** Stored as JSON. No filter reads them. */
const JSON_FIELDS = ['source', 'confidence', 'valid_from', 'valid_to', 'supersedes'] as const;

export function toMetadata(memory: Memory): Metadata {
  const values = Object.entries({
    ...Object.fromEntries(JSON_FIELDS.map((field) => [field, memory[field]])),
    ...memory.extensions,
  });
  return {
    memory_id: memory.id,
    user_id: memory.user_id,
    place: placeOf(memory.user_id),
    created: Date.parse(memory.created_at),
    updated_at: memory.updated_at,
    tags: memory.tags.length > 0 ? [...memory.tags] : NO_TAGS,
    ...Object.fromEntries(
      values.filter(([, value]) => value !== null).map(([key, value]) => [key, JSON.stringify(value)]),
    ),
  };
}

/** The metadata that turns `before` into `after`, and no more: what another gateway changes meanwhile stays. */
export function changes(before: Memory, after: Memory): Metadata {
  const old = toMetadata(before);
  const next = { ...Object.fromEntries(Object.keys(old).map((key) => [key, NO_VALUE])), ...toMetadata(after) };
  return Object.fromEntries(
    Object.entries(next).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(old[key])),
  );
}

/** The memory in a record. Undefined: it is not from the gateway. `model`: of the vectors of the collection. */
export function toMemory({ document, metadata }: Row, model: string): Memory | undefined {
  if (!document || !metadata) return undefined;
  const { memory_id, user_id, created, updated_at, tags } = metadata;
  if (typeof memory_id !== 'string' || typeof user_id !== 'string' || typeof created !== 'number') return undefined;
  const created_at = new Date(created).toISOString();
  const extensions = Object.keys(metadata)
    .filter((key) => key.startsWith('x-'))
    .sort();
  // Chroma returns keys in another order each time.
  const valueIn = (key: string) => jsonIn(metadata[key]);
  return {
    id: memory_id,
    content: document,
    user_id,
    created_at,
    updated_at: typeof updated_at === 'string' ? updated_at : created_at,
    scope: null,
    tags: Array.isArray(tags) ? tags.map(String).filter((tag) => tag !== '') : [],
    ...(Object.fromEntries(JSON_FIELDS.map((field) => [field, valueIn(field)])) as Pick<
      Memory,
      (typeof JSON_FIELDS)[number]
    >),
    supersedes: (valueIn('supersedes') as string[] | null) ?? [],
    extensions: Object.fromEntries(
      extensions.map((key) => [key, valueIn(key)]).filter(([, value]) => value !== null),
    ) as Extensions,
    embedding_model: model,
    status: 'done',
  };
}

export const toVector = ({ embedding }: Row): Float32Array => Float32Array.from(embedding ?? []);

/** Null: there is none, or not one of the gateway. */
function jsonIn(value: unknown): unknown {
  try {
    return typeof value === 'string' ? JSON.parse(value) : null;
  } catch {
    return null;
  }
}

/** Stores memories, all or none. */
export const addRecords = (collection: Collection, entries: readonly ExportedMemory[], call: Call): Promise<void> =>
  ask(call, () =>
    collection.add({
      ids: entries.map(({ memory }) => recordId(memory)),
      embeddings: entries.map(({ vector }) => [...toUnit(vector)]),
      documents: entries.map(({ memory }) => memory.content),
      metadatas: entries.map(({ memory }) => toMetadata(memory)),
    }),
  );
