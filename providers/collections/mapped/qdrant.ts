import type { Schemas } from '@qdrant/js-client-rest';
import type { FoundPoint, Measure, PointChange, Selection } from '#provider';

/*
 * Points of Qdrant as requests and answers have them, those of other applications too: ids may be numbers, and vectors have names.
 */

type Vectors = Schemas['VectorsConfig'];
type VectorParams = Schemas['VectorParams'];

/** By distance. Manhattan's tells nothing about the cosine. */
const MEASURES: Readonly<Record<string, Measure>> = { Cosine: 'cosine', Dot: 'product', Euclid: 'distance' };

/** The vector of the points. `mistake`: why it cannot be used. Those of the gateway have no name, and are compared by Cosine. */
export function vectorIn(vectors: Vectors = {}, isMapped: boolean) {
  // One may have the name `size`.
  const named = Object.entries(typeof vectors.size === 'number' ? { '': vectors } : vectors);
  const [[using, params] = [], ...others] = named as [string, VectorParams][];
  if (!params || others.length > 0 || !(isMapped || using === ''))
    return {
      using: '',
      dimensions: 0,
      mistake: `its vectors have ${isMapped ? 'several ' : ''}names, or there are none`,
    };
  const { size, distance, multivector_config } = params;
  const measure = MEASURES[distance];
  const fits = isMapped ? measure !== undefined : distance === 'Cosine';
  const mistake = multivector_config
    ? 'each point has several vectors'
    : fits
      ? undefined
      : `it compares vectors by ${distance}, not by Cosine`;
  return { using: String(using), dimensions: size, measure, mistake };
}

export const toId = (id: string): string | number => (/^\d+$/.test(id) ? Number(id) : id);

/** `using`: the name of the vector. */
export const toVector = (vector: Float32Array, using: string) =>
  using === '' ? [...vector] : { [using]: [...vector] };

/** A name as Qdrant takes it: only letters, digits, `_` and `-` stand for themselves. It cannot say a quotation mark or a backslash. */
export const toKey = (name: string): string =>
  name
    .split('.')
    .map((step) => (/^[\w-]+$/.test(step) ? step : `"${step}"`))
    .join('.');
export const fromKey = (key: string): string => key.replaceAll('"', '');

/** Points may have sparse vectors too. */
export const shown = ({ fields, vector }: Selection, using: string) => ({
  with_payload: fields === undefined ? true : fields.length > 0 && fields.map(toKey),
  with_vector: vector && [using],
});

export function toFound({ id, payload, vector: stored }: Schemas['Record'], using: string): FoundPoint {
  const vector = using === '' ? stored : Object(stored)[using];
  const found = { id: String(id), fields: (payload ?? {}) as FoundPoint['fields'] };
  return Array.isArray(vector) ? { ...found, vector: Float32Array.from(vector as number[]) } : found;
}

/** Each field by itself: nothing else of the object that it is in changes. */
export function operationsOf({ id, fields, vector }: PointChange, using: string): Schemas['UpdateOperation'][] {
  const points = [toId(id)];
  const payloads = Object.entries(fields).map(([name, value]) => {
    const end = name.lastIndexOf('.');
    const key = end < 0 ? {} : { key: toKey(name.slice(0, end)) };
    return { set_payload: { points, ...key, payload: { [name.slice(end + 1)]: value } } };
  });
  const vectors = vector && { update_vectors: { points: [{ id: toId(id), vector: toVector(vector, using) }] } };
  return vectors ? [...payloads, vectors] : payloads;
}
