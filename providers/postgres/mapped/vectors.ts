import { endianness } from 'node:os';
import pg from 'pg';
import type { EmbedderIdentity } from '#provider';
import { ITERATIVE_PGVECTOR, isOlder } from '../pgvector.ts';
import { toHalfvec } from '../sql/values.ts';
import { type Column, type Index, noColumn, type Table, type VectorExtension } from './catalogue.ts';
import type { VectorColumn } from './layout.ts';
import type { ResolvedMapping } from './mapping.ts';

type Metric = NonNullable<VectorColumn['index']>['metric'];
type Type = 'vector' | 'halfvec';

/** By the middle of an operator class's name: what its index orders by. */
const OPERATORS: Readonly<Record<Metric, string>> = { cosine: '<=>', l2: '<->', ip: '<#>', l1: '<+>' };

/** Allowed difference of a squared length from 1: half precision, and models that round. */
const UNIT_TOLERANCE = 0.02;

interface UsableIndex {
  readonly name: string;
  readonly method: 'hnsw' | 'ivfflat';
  readonly metric: Metric;
  /** What the indexed expression casts the column to. Undefined if the index is on the column itself. */
  readonly cast: { readonly type: Type; readonly dimensions: number } | undefined;
}

export interface VectorParts {
  readonly extension: VectorExtension;
  /** The table of the vectors, and its alias. */
  readonly table: Table;
  readonly alias: 't' | 'v';
  readonly column: Column;
  readonly dimensions: number;
}

interface VectorSource extends Pick<VectorParts, 'table' | 'alias'> {
  readonly extension: VectorExtension | undefined;
  readonly mapping: ResolvedMapping;
  readonly embedder: EmbedderIdentity;
  readonly mistakes: string[];
}

/** Finds the column of the vectors. Adds mistakes to the list. Undefined if there is no such column. */
export function vectorParts(source: VectorSource): VectorParts | undefined {
  const { table, alias, extension, mapping, embedder, mistakes } = source;
  const column = table.columns.get(mapping.embedding);
  if (column === undefined) return void mistakes.push(noColumn('OMP_MAPPING_EMBEDDING', table, mapping.embedding));
  const found = `OMP_MAPPING_EMBEDDING: the column "${column.name}" of ${table.schema}.${table.name} is ${column.type}`;
  if (column.base !== 'vector' && column.base !== 'halfvec')
    return void mistakes.push(`${found}; it must be vector or halfvec`);
  const { dimensions } = embedder;
  const mistake =
    column.dimensions === null ? undefined : lengthMistake({ table, column }, embedder, [column.dimensions]);
  if (mistake !== undefined) mistakes.push(mistake);
  return extension && { extension, table, alias, column, dimensions };
}

/** What is wrong with the length of the stored vectors, for this embedder. */
export function lengthMistake(
  { column, table }: Pick<VectorParts, 'column' | 'table'>,
  { model, dimensions }: EmbedderIdentity,
  lengths: readonly number[],
): string | undefined {
  if (lengths.length === 0 || lengths.includes(dimensions)) return undefined;
  return `OMP_MAPPING_EMBEDDING: the vectors in "${column.name}" of ${table.schema}.${table.name} have ${lengths.join(' or ')} dimensions, those of the embedder ${model} have ${dimensions}; set OMP_EMBEDDING_MODEL or OMP_EMBEDDING_DIMENSIONS to what computed them, or OMP_MAPPING_EMBEDDING to another column`;
}

/** SQL that tells whether a vector has length 1. */
export const isUnit = ({ extension }: Pick<VectorParts, 'extension'>, vector: string): string =>
  `(abs(1 + (${vector} operator(${pg.escapeIdentifier(extension.schema)}.<#>) ${vector})) < ${UNIT_TOLERANCE})`;

/** Compares vectors by cosine. `unit`: whether the stored ones have length 1. */
export function createVector(
  { extension, table, alias, column, dimensions }: VectorParts,
  { unit }: { readonly unit: boolean },
): VectorColumn {
  const own = column.base as Type;
  const index = chooseIndex(table, column, dimensions);
  const schema = pg.escapeIdentifier(extension.schema);
  const quoted = pg.escapeIdentifier(column.name);
  const stored = `${alias}.${quoted}`;
  const hasLength = `${schema}.vector_dims(${stored}) = ${dimensions}`;
  const cast = index?.cast;
  const left = cast ? `(${stored}::${schema}.${cast.type}(${cast.dimensions}))` : stored;
  const right = cast && cast.type !== own ? `::${schema}.${own}::${schema}.${cast.type}` : `::${schema}.${own}`;
  // Comparing vectors of different lengths is an error. A cast of an index ensures the length.
  const mixed = column.dimensions === null && !cast;
  const distanceBy = (metric: Metric) => (parameter: string) => {
    const distance = `${left} operator(${schema}.${OPERATORS[metric]}) ${parameter}${right}`;
    return mixed ? `case when ${hasLength} then ${distance} end` : distance;
  };
  return {
    column: quoted,
    read: `${stored}::text`,
    comparable: mixed ? hasLength : `${stored} is not null`,
    distance: distanceBy('cosine'),
    // The zero vector has no direction: pgvector's distance is NaN, the score 0.
    score: (distance) =>
      `least(1, floor(greatest(0, coalesce(nullif(1 - (${distance}), 'NaN'), 0)) * 1e6::float8 + 0.5::float8) / 1e6::float8)`,
    encode: own === 'halfvec' ? toHalfvec : toVector,
    cast: `::${schema}.${own}`,
    index: index && {
      name: index.name,
      method: index.method,
      metric: index.metric,
      rows: table.rows ?? 0,
      distance: distanceBy(index.metric),
      isUnit: isUnit({ extension }, stored),
      iterative: !isOlder(extension.version, ITERATIVE_PGVECTOR),
      ranks: index.metric === 'cosine' || (unit && index.metric !== 'l1'),
    },
  };
}

/** An index over all rows that orders by similarity: by cosine if there is one, else the first by name. */
function chooseIndex(table: Table, column: Column, dimensions: number): UsableIndex | undefined {
  const usable = table.indexes.flatMap((index) => asUsableIndex(index, column, dimensions) ?? []);
  return usable.find(({ metric }) => metric === 'cosine') ?? usable[0];
}

function asUsableIndex(
  { name, method, valid, partial, keys }: Index,
  column: Column,
  dimensions: number,
): UsableIndex | undefined {
  const [key] = keys;
  if (!valid || partial || !key || (method !== 'hnsw' && method !== 'ivfflat')) return undefined;
  const [, type, found] = /^(vector|halfvec)_(cosine|l2|ip|l1)_ops$/.exec(key.opclass) ?? [];
  if (found === undefined) return undefined;
  const metric = found as Metric;
  if (key.column !== null) return key.column === column.name ? { name, method, metric, cast: undefined } : undefined;
  const cast = castOf(key.expression);
  return cast && cast.column === column.name && cast.type === type && cast.dimensions === dimensions
    ? { name, method, metric, cast: { type: cast.type as Type, dimensions } }
    : undefined;
}

/** Parses `((embedding)::vector(1536))`. The type is qualified if its schema is not on the search path. */
function castOf(expression: string) {
  const [, unquoted, quoted, type, dimensions] =
    /^\(*(?:([\w$]+)|"((?:[^"]|"")+)")\)*::(?:(?:[\w$]+|"(?:[^"]|"")+")\.)?(vector|halfvec)\((\d+)\)\)*$/.exec(
      expression,
    ) ?? [];
  const column = unquoted ?? quoted?.replaceAll('""', '"');
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
