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

/**
 * The id of a record is its place in order, since Chroma sorts nothing and is quick only with ids: the place of the user (12 characters),
 * the time of creation in milliseconds (15, from so early on that none is negative), the id of the memory. None of them ever changes.
 */
export const recordId = ({ user_id, created_at, id }: Pick<Memory, 'user_id' | 'created_at' | 'id'>): string =>
  placePrefix(placeOf(user_id)) + String(Date.parse(created_at) + 1e14).padStart(15, '0') + id;

/**
 * Chroma cannot remove a key from metadata, and refuses an empty list: these values stand for none. Only keys that the gateway chose get
 * there (those of clients begin with `x-`), so that no client writes a `chroma:` key, which would overwrite the document.
 */
const NO_TAGS = [''];
const NO_VALUE = 'null';

/** Stored as JSON. No filter reads them. */
const JSON_FIELDS = ['source', 'confidence', 'valid_from', 'valid_to', 'supersedes'] as const;
type JsonFields = Pick<Memory, (typeof JSON_FIELDS)[number]>;

function toMetadata(memory: Memory): Metadata {
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

/** All metadata of a memory that replaces a record with these keys: Chroma would keep those that are not named. */
const replacing = (before: Metadata, memory: Memory): Metadata => ({
  ...Object.fromEntries(Object.keys(before).map((key) => [key, NO_VALUE])),
  ...toMetadata(memory),
});

/** The metadata that turns `before` into `after`, and no more: what another gateway changes meanwhile stays. */
export function changes(before: Memory, after: Memory): Metadata {
  const old = toMetadata(before);
  const next = Object.entries(replacing(old, after));
  return Object.fromEntries(next.filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(old[key])));
}

/** The memory in a record. Undefined: it is not from the gateway. `model`: of the vectors of the collection. */
export function toMemory({ document, metadata }: Row, model: string): Memory | undefined {
  if (!document || !metadata) return undefined;
  const { memory_id, user_id, created, updated_at, tags } = metadata;
  if (typeof memory_id !== 'string' || typeof user_id !== 'string' || typeof created !== 'number') return undefined;
  const created_at = new Date(created).toISOString();
  // Chroma returns keys in another order each time.
  const keys = Object.keys(metadata).sort();
  const valueIn = (key: string) => jsonIn(metadata[key]);
  return {
    id: memory_id,
    content: document,
    user_id,
    created_at,
    updated_at: typeof updated_at === 'string' ? updated_at : created_at,
    scope: null,
    tags: Array.isArray(tags) ? tags.map(String).filter((tag) => tag !== '') : [],
    ...(Object.fromEntries(JSON_FIELDS.map((field) => [field, valueIn(field)])) as JsonFields),
    supersedes: (valueIn('supersedes') as string[] | null) ?? [],
    extensions: Object.fromEntries(
      keys.flatMap((key) => (key.startsWith('x-') && valueIn(key) !== null ? [[key, valueIn(key)]] : [])),
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

/** A memory to store. `before`: the metadata of the record that it replaces. */
type Entry = ExportedMemory & { readonly before?: Metadata | null | undefined };

/** Stores memories, all or none. (An `add` would ignore a record that exists, and report success.) */
export const putRecords = (collection: Collection, entries: readonly Entry[], call: Call): Promise<void> =>
  ask(call, () =>
    collection.upsert({
      ids: entries.map(({ memory }) => recordId(memory)),
      embeddings: entries.map(({ vector }) => [...toUnit(vector)]),
      documents: entries.map(({ memory }) => memory.content),
      metadatas: entries.map(({ memory, before }) => replacing(before ?? {}, memory)),
    }),
  );
