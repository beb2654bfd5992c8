import type { Metadata } from 'chromadb';
import type { FieldValue, FoundPoint, Measure, PointFields, Selection } from '#provider';

/*
 * Records of Chroma as points: metadata are fields by their keys, and the document is one too.
 */

/** By what Chroma calls the space. */
export const MEASURES: Readonly<Record<string, Measure>> = {
  cosine: 'cosine distance',
  l2: 'squared distance',
  ip: 'product distance',
};

/** Chroma refuses an empty list. No list of the gateway has an empty text. */
const NOTHING = [''];
const stored = (value: FieldValue): string | number | string[] =>
  typeof value !== 'object' ? value : value.length > 0 ? [...value] : NOTHING;
const read = (value: unknown): FieldValue =>
  Array.isArray(value) ? value.filter((one) => one !== '') : (value as FieldValue);

/** All fields but the document. */
export const toMetadata = (fields: PointFields, document: string): Metadata =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]) => (key === document ? [] : [[key, stored(value)]])),
  );

/** What removes the key of an empty list: Chroma takes null for that, which its client leaves out, and sends for this. */
const NO_VALUE = Number.NaN;
/** The same for a change of a record of another application, which would not know what stands for an empty list. */
export const toChange = (fields: PointFields, document: string): Metadata =>
  toMetadata(
    Object.fromEntries(
      Object.entries(fields).map(([key, value]) => [
        key,
        Array.isArray(value) && value.length === 0 ? NO_VALUE : value,
      ]),
    ),
    document,
  );

interface Row {
  readonly id: string;
  readonly document?: string | null | undefined;
  readonly metadata?: Metadata | null | undefined;
  readonly embedding?: number[] | null | undefined;
}

/** `name`: of the field that the document is. */
export const toFound = ({ id, document, metadata, embedding }: Row, name: string): FoundPoint => {
  const fields: PointFields = Object.fromEntries(
    Object.entries(metadata ?? {}).map(([key, value]) => [key, read(value)]),
  );
  return {
    id,
    fields: { ...fields, ...(typeof document === 'string' && { [name]: document }) },
    ...(embedding && { vector: Float32Array.from(embedding) }),
  };
};

type Include = 'documents' | 'metadatas' | 'embeddings';

/** Chroma returns all metadata or none. */
export const included = ({ fields, vector }: Selection, document: string): Include[] => [
  ...(fields === undefined || fields.includes(document) ? ['documents' as const] : []),
  ...(fields === undefined || fields.some((name) => name !== document) ? ['metadatas' as const] : []),
  ...(vector ? ['embeddings' as const] : []),
];
