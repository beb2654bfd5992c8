import type { Filters, FilterValue, Properties, Collection as WeaviateCollection } from 'weaviate-client';
import {
  FIELDS,
  type Field,
  type FieldValue,
  type Filter,
  type FoundPoint,
  type Point,
  type Selection,
} from '#provider';

/*
 * Points of Weaviate as requests and answers have them, and what brings those back to searches that a crash took out of them.
 */

type Handle = WeaviateCollection<Properties>;

export const NOTHING: Selection = { fields: [], vector: false };
/** How the description of a collection of the gateway begins: Weaviate itself knows the length of vectors from the first one on. */
export const MADE = /^omp-gateway, vectors of (\d{1,5}) dimensions/;
/** Weaviate creates a collection that a batch names and that is not there, unless a value has no type: an object without anything. */
const NEVER_CREATE = 'never_create';
export const schemaOf = (collection: string, dimensions: number) => ({
  class: collection,
  description: `omp-gateway, vectors of ${dimensions} dimensions`,
  ...{ vectorizer: 'none', vectorIndexType: 'hnsw' },
  // Each search is one of a user, whose vectors are all compared. The graph is never read, and as small as can be.
  vectorIndexConfig: {
    ...{ distance: 'cosine', skipDefaultQuantization: true },
    ...{ flatSearchCutoff: 2 ** 31 - 1, maxConnections: 4, efConstruction: 4 },
  },
  properties: [
    ...FIELDS.map(({ name, type, filtered }) => ({
      ...{ name, dataType: [type === 'texts' ? 'text[]' : type], indexFilterable: filtered, indexSearchable: false },
      ...(type === 'number' ? { indexRangeFilters: filtered } : { tokenization: 'field' as const }),
    })),
    { name: NEVER_CREATE, dataType: ['object'], nestedProperties: [{ name: 'none', dataType: ['text'] }] },
  ],
});

/** A text for filters: Weaviate ignores spaces at its ends, and `like` knows no escapes. */
const encoded = (text: string): string => encodeURIComponent(text).replaceAll('*', '%2A');
/** A value with the texts that filters name changed. */
const changed = ({ filtered }: Field, value: unknown, change: (text: string) => string): FieldValue => {
  if (Array.isArray(value)) return value.map(change);
  return typeof value === 'string' && filtered ? change(value) : (value as FieldValue);
};

export const toObject = ({ id, fields, vector }: Point) => {
  const properties = FIELDS.map((field) => [field.name, changed(field, fields[field.name], encoded)]);
  return { id, vectors: [...vector], properties: { ...Object.fromEntries(properties), [NEVER_CREATE]: {} } };
};
export const shown = ({ fields = FIELDS.map(({ name }) => name), vector }: Selection) => ({
  ...{ returnProperties: [...fields], includeVector: vector },
});
type Found = NonNullable<Awaited<ReturnType<Handle['query']['fetchObjectById']>>>;
export const toFound = ({ uuid, properties, vectors }: Found): FoundPoint => {
  const found = FIELDS.filter(({ name }) => name in properties);
  const fields = found.map((field) => [field.name, changed(field, properties[field.name], decodeURIComponent)]);
  return {
    ...{ id: uuid, fields: Object.fromEntries(fields) },
    ...(Array.isArray(vectors.default) && { vector: Float32Array.from(vectors.default as number[]) }),
  };
};

export function toFilter(filter: Filter, by: Handle['filter'], filters: typeof Filters): FilterValue {
  if (filter.op === 'and') return filters.and(...filter.filters.map((part) => toFilter(part, by, filters)));
  if (filter.op === 'not') return filters.not(toFilter(filter.filter, by, filters));
  const field = by.byProperty(filter.field);
  switch (filter.op) {
    case 'equals':
      return field.equal(typeof filter.value === 'string' ? encoded(filter.value) : filter.value);
    case 'anyOf':
      return field.containsAny(filter.values.map(encoded));
    case 'allOf':
      return field.containsAll(filter.values.map(encoded));
    case 'prefix':
      return field.like(`${encoded(filter.value)}*`);
    case 'range': {
      const from = filter.from === undefined ? [] : [field.greaterOrEqual(filter.from)];
      return filters.and(...from, ...(filter.to === undefined ? [] : [field.lessOrEqual(filter.to)]));
    }
  }
}

/** How many of the points that were stored last may be lost after a crash: as many as Weaviate shows at once. */
const LAST = 10_000;
/** Points may be large. */
const AT_ONCE = 10;
/** Weaviate writes its logs before it adds the vectors, which a crash would lose. A delete, also a dry one, writes them again. */
export const flush = ({ data, filter }: Handle) => data.deleteMany(filter.byId().equal(NO_OBJECT), { dryRun: true });

/** Searches find an object again that a crash took out of them once it gets another vector: so twice as long, then its own. */
export async function restore(handle: Handle, objects: readonly ReturnType<typeof toObject>[]): Promise<void> {
  const longer = objects.map((object) => ({ ...object, vectors: object.vectors.map((part) => part * 2) }));
  for (const some of [longer, objects]) await handle.data.insertMany([...some]);
  await flush(handle);
}

/** Restores those of the last points that searches do not find. */
export async function mend(handle: Handle): Promise<void> {
  const { query, filter, sort } = handle;
  const wanted = { limit: LAST, returnProperties: [] };
  const last = (await query.fetchObjects({ ...wanted, sort: sort.byUpdateTime(false) })).objects.map(
    ({ uuid }) => uuid,
  );
  const whole = async (uuids: string[]): Promise<FoundPoint[]> =>
    (await query.fetchObjects({ filters: filter.byId().containsAny(uuids), includeVector: true })).objects.map(toFound);
  const vector = last[0] && (await whole([last[0]]))[0]?.vector;
  if (!vector) return;
  const { objects } = await query.nearVector([...vector], { ...wanted, filters: filter.byId().containsAny(last) });
  const found = new Set(objects.map(({ uuid }) => uuid));
  const missing = last.filter((uuid) => !found.has(uuid));
  while (missing.length > 0) {
    const points = (await whole(missing.splice(-AT_ONCE))) as Point[];
    await restore(handle, points.map(toObject));
  }
}

const NO_OBJECT = '00000000-0000-0000-0000-000000000000';
