import { endianness } from 'node:os';
import pg from 'pg';
import type { Embedder } from '#contract';
import { toHalfvec } from '../halfvec.ts';
import { ITERATIVE_PGVECTOR, isOlder } from '../pgvector.ts';
import { noColumn } from './field.ts';
import type { Vector } from './layout.ts';
import type { Merged } from './mapping.ts';
import { lengthMistake } from './samples.ts';
import type { Column, Index, Table, VectorExtension } from './table.ts';

type Metric = Vector['metric'];
type Type = 'vector' | 'halfvec';

/** By the middle of an operator class's name: what its index measures, and how that becomes a score of vectors of length 1. */
const METRICS: Readonly<
  Record<string, { readonly metric: Metric; readonly operator: string; score(distance: string): string }>
> = {
  cosine: { metric: 'cosine', operator: '<=>', score: (distance) => `1 - (${distance})` },
  l2: { metric: 'l2', operator: '<->', score: (distance) => `1 - (${distance}) * (${distance}) / 2` },
  ip: { metric: 'inner product', operator: '<#>', score: (distance) => `-(${distance})` },
  l1: { metric: 'l1', operator: '<+>', score: (distance) => `1 / (1 + (${distance}))` },
};

interface Usable {
  readonly name: string;
  readonly method: 'hnsw' | 'ivfflat';
  readonly measure: string;
  /** What the indexed expression casts the column to; undefined: it is the column itself. */
  readonly cast: { readonly type: Type; readonly dimensions: number } | undefined;
}

export interface VectorParts {
  readonly extension: VectorExtension;
  /** The table of the vectors, and what it goes by in statements. */
  readonly table: Table;
  readonly alias: 't' | 'v';
  readonly column: Column;
  readonly dimensions: number;
}

interface Placed extends Pick<VectorParts, 'table' | 'alias'> {
  readonly extension: VectorExtension | undefined;
  readonly merged: Merged;
  readonly embedder: Embedder;
  readonly mistakes: string[];
}

/** Where the vectors are. Undefined when that cannot be told; mistakes are added to the list. */
export function vectorParts({ table, alias, extension, merged, embedder, mistakes }: Placed): VectorParts | undefined {
  const column = table.columns.get(merged.embedding);
  if (column === undefined) return void mistakes.push(noColumn('OMP_MAPPING_EMBEDDING', table, merged.embedding));
  const told = `OMP_MAPPING_EMBEDDING: the column "${column.name}" of ${table.schema}.${table.name} is ${column.type}`;
  if (column.base !== 'vector' && column.base !== 'halfvec')
    return void mistakes.push(`${told}; it would have to be vector or halfvec`);
  const { dimensions } = embedder;
  const mistake =
    column.dimensions === null ? undefined : lengthMistake({ table, column }, embedder, [column.dimensions]);
  if (mistake !== undefined) mistakes.push(mistake);
  return extension && { extension, table, alias, column, dimensions };
}

/** How vectors are compared: by the operator of an index that there is, so that the index can serve. */
export function createVector({ extension, table, alias, column, dimensions }: VectorParts): Vector {
  const own = column.base as Type;
  const index = chooseIndex(table, column, dimensions);
  const { metric, operator, score } = METRICS[index?.measure ?? 'cosine'] as (typeof METRICS)[string];
  const schema = pg.escapeIdentifier(extension.schema);
  const quoted = pg.escapeIdentifier(column.name);
  const stored = `${alias}.${quoted}`;
  const hasLength = `${schema}.vector_dims(${stored}) = ${dimensions}`;
  const cast = index?.cast;
  const left = cast ? `(${stored}::${schema}.${cast.type}(${cast.dimensions}))` : stored;
  const right = cast && cast.type !== own ? `::${schema}.${own}::${schema}.${cast.type}` : `::${schema}.${own}`;
  // Vectors of different lengths cannot be compared, which is an error; behind a cast of an index all have that length.
  const mixed = column.dimensions === null && !cast;
  return {
    column: quoted,
    comparable: mixed ? hasLength : `${stored} is not null`,
    metric,
    distance(parameter) {
      const distance = `${left} operator(${schema}.${operator}) ${parameter}${right}`;
      return mixed ? `case when ${hasLength} then ${distance} end` : distance;
    },
    // A vector without direction has no distance: NaN in pgvector, no similarity here.
    score: (distance) =>
      `least(1, floor(greatest(0, coalesce(nullif(${score(distance)}, 'NaN'), 0)) * 1e6::float8 + 0.5::float8) / 1e6::float8)`,
    encode: own === 'halfvec' ? toHalfvec : toVector,
    cast: `::${schema}.${own}`,
    index: index && {
      name: index.name,
      method: index.method,
      iterative: !isOlder(extension.version, ITERATIVE_PGVECTOR),
    },
  };
}

/** The index that orders by likeness over all rows: by the cosine if one does, else the first by name. */
function chooseIndex(table: Table, column: Column, dimensions: number): Usable | undefined {
  const usable = table.indexes.flatMap((index) => asUsable(index, column, dimensions) ?? []);
  return usable.find(({ measure }) => measure === 'cosine') ?? usable[0];
}

function asUsable(
  { name, method, valid, partial, keys }: Index,
  column: Column,
  dimensions: number,
): Usable | undefined {
  const [key] = keys;
  if (!valid || partial || !key || (method !== 'hnsw' && method !== 'ivfflat')) return undefined;
  const [, type, measure] = /^(vector|halfvec)_(cosine|l2|ip|l1)_ops$/.exec(key.opclass) ?? [];
  if (measure === undefined) return undefined;
  if (key.column !== null) return key.column === column.name ? { name, method, measure, cast: undefined } : undefined;
  const cast = castOf(key.expression);
  return cast && cast.column === column.name && cast.type === type && cast.dimensions === dimensions
    ? { name, method, measure, cast: { type: cast.type as Type, dimensions } }
    : undefined;
}

/** `((embedding)::vector(1536))`, the type qualified where its schema is not on the search path. */
function castOf(expression: string) {
  const [, bare, quoted, type, dimensions] =
    /^\(*(?:([\w$]+)|"((?:[^"]|"")+)")\)*::(?:(?:[\w$]+|"(?:[^"]|"")+")\.)?(vector|halfvec)\((\d+)\)\)*$/.exec(
      expression,
    ) ?? [];
  const column = bare ?? quoted?.replaceAll('""', '"');
  return column === undefined ? undefined : { column, type, dimensions: Number(dimensions) };
}

/** pgvector's binary form of a `vector`: dimensions, an unused word, then floats, big-endian. */
function toVector(vector: Float32Array): Buffer {
  const buffer = Buffer.alloc(4 + vector.length * 4);
  buffer.set(new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength), 4);
  if (endianness() === 'LE') buffer.subarray(4).swap32();
  buffer.writeUInt16BE(vector.length, 0);
  return buffer;
}
