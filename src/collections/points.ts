import { createHash } from 'node:crypto';
import { type Extensions, type Memory, ORIGIN, type Origin, UNTRUSTED, type Vector } from '#contract';
import { conversationOf } from '#toolbox';
import { FIELDS, type FoundPoint, type Point, type PointFields, type Selection, type Traits } from './collection.ts';

/*
 * The codec between memories and points.
 */

/** What lists and rankings need of a point before its content is read. */
export const LIGHT: Selection = {
  fields: FIELDS.filter(({ name }) => name !== 'content' && name !== 'rest').map(({ name }) => name),
  vector: false,
};
/** What tells points apart. */
export const KEYS: Selection = { fields: ['memory_id', 'user_id'], vector: false };
/** What a memory is made of. The other fields are for filters and orders: decoding them takes as long again. */
export const WHOLE: Selection = {
  fields: ['memory_id', 'user_id', 'content', 'scope', 'created', 'updated', 'blank', 'rest'],
  vector: false,
};
export const WITH_VECTOR: Selection = { ...WHOLE, vector: true };
/** For filters that are decided here. */
export const EVERYTHING: Selection = { vector: false };

/** Places are below this. */
export const PLACES = 2 ** 48;

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** A place in an order that spreads evenly and never changes. */
export const placeOf = (text: string): number => hashOf(text).readUIntBE(0, 6);

/** Which conversation a memory is in; empty: in none. */
export const conversationField = (memory: Memory): string => {
  const name = conversationOf(memory);
  return name === undefined ? '' : hashOf(name).toString('base64url', 0, 18);
};

/** The id of the point of a memory. No memory has the id `.` (it could not be read by a path): it is that of the one point that is none. */
export const HEAD = '.';
export function pointId(id: string, ids: Traits['ids']): string {
  if (ids === 'text') return id;
  const bytes = hashOf(id).subarray(0, 16);
  // A UUID of version 8: made as the application likes.
  bytes[6] = 0x80 | ((bytes[6] as number) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

const writtenField = ({ extensions }: Memory): string[] => {
  const { key, via } = (extensions[ORIGIN] ?? {}) as Partial<Origin>;
  return [
    ...(key === undefined ? [] : [`key:${key}`]),
    extensions[ORIGIN] === undefined ? 'via:unknown' : `via:${via}`,
    ...(extensions[UNTRUSTED] === true ? [] : ['trusted']),
  ];
};

export const isBlank = (vector: Float32Array): boolean => vector.every((component) => component === 0);

/** Stands for a vector of zeros, which databases refuse, or leave out of searches. */
const placeholder = (dimensions: number): Float32Array => {
  const vector = new Float32Array(dimensions);
  vector[0] = 1;
  return vector;
};

/** `vector`: as the embedder made it. */
export function toPoint(memory: Memory, vector: Float32Array, ids: Traits['ids']): Point {
  const {
    id,
    user_id,
    content,
    scope,
    tags,
    created_at,
    updated_at,
    source,
    confidence,
    valid_from,
    valid_to,
    supersedes,
    extensions,
  } = memory;
  const blank = isBlank(vector);
  return {
    id: pointId(id, ids),
    vector: blank ? placeholder(vector.length) : vector,
    fields: {
      ...{ memory_id: id, user_id, content, scope: scope ?? '', tags: [...new Set(tags)] },
      ...{ created: Date.parse(created_at), updated: Date.parse(updated_at) },
      ...{ place: placeOf(id), user_place: placeOf(user_id), bytes: Buffer.byteLength(content) },
      ...{ written: writtenField(memory), conversation: conversationField(memory), blank: blank ? 1 : 0 },
      rest: JSON.stringify({ tags, source, confidence, valid_from, valid_to, supersedes, extensions }),
    },
  };
}

type Rest = Pick<Memory, 'tags' | 'source' | 'confidence' | 'valid_from' | 'valid_to' | 'supersedes'> & {
  readonly extensions: Extensions;
};

/** `model`: of the vectors of the collection, if it is known. Field by field: see docs/performance-notes.md. */
export function toMemory({ fields }: Pick<FoundPoint, 'fields'>, model: string | null): Memory {
  const rest = JSON.parse(String(fields.rest)) as Rest;
  return {
    id: String(fields.memory_id),
    created_at: new Date(Number(fields.created)).toISOString(),
    content: String(fields.content),
    user_id: String(fields.user_id),
    scope: fields.scope === '' ? null : String(fields.scope),
    tags: rest.tags,
    source: rest.source,
    confidence: rest.confidence,
    valid_from: rest.valid_from,
    valid_to: rest.valid_to,
    supersedes: rest.supersedes,
    extensions: rest.extensions,
    updated_at: new Date(Number(fields.updated)).toISOString(),
    embedding_model: model,
    status: model === null ? null : 'done',
  };
}

/** The vector as it was given. */
export const toVector = ({ fields, vector }: FoundPoint): Vector =>
  vector === undefined ? null : fields.blank === 1 ? new Float32Array(vector.length) : vector;

/** The point that names the model of the vectors. */
export const headPoint = (model: string, dimensions: number, ids: Traits['ids']): Point => ({
  id: pointId(HEAD, ids),
  vector: placeholder(dimensions),
  fields: {
    ...{
      memory_id: HEAD,
      user_id: '',
      content: '',
      scope: '',
      tags: [],
      created: 0,
      updated: 0,
      place: -1,
      user_place: -1,
    },
    ...{ bytes: 0, written: [], conversation: '', blank: 1, rest: JSON.stringify({ model, dimensions }) },
  },
});

/** The size of a point as databases count it. */
export const pointBytes = ({ fields, vector }: Point): { fields: number; whole: number } => {
  const size = fieldBytes(fields);
  return { fields: size, whole: size + 4 * vector.length };
};
const fieldBytes = (fields: PointFields): number => Buffer.byteLength(JSON.stringify(fields));
