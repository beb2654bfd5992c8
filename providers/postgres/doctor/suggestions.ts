import pg from 'pg';
import type { Remedy } from '#contract';
import { MAX_INDEXED_DIMENSIONS } from '../halfvec.ts';
import type { Index, Table } from '../mapped/catalogue.ts';
import { hasContainment, hasIndexOn } from '../mapped/catalogue.ts';
import type { StoredReference } from '../mapped/field-mapping.ts';
import type { ResolvedMapping } from '../mapped/mapping.ts';

/** The largest vector pgvector indexes in single precision. */
const MAX_INDEXED_SINGLE = 2_000;

/** An index that would serve the gateway's statements, in the form that they ask in. */
export interface Suggestion {
  /** What is missing, one sentence without its full stop. */
  readonly missing: string;
  readonly remedy: Remedy;
}

export interface Mapped {
  readonly merged: ResolvedMapping;
  readonly table: Table;
  /** Of vectors that lie in a table of their own. */
  readonly vectors: Table | undefined;
  /** Schema of pgvector. */
  readonly extension: string;
  /** Length of the embedder's vectors. */
  readonly dimensions: number;
  /** Whether an index orders by likeness already. */
  readonly vectorIndex: boolean;
  /** Whether some user may have so many rows that looking at each of them is slow. */
  readonly large: boolean;
}

/** Only what is missing. Owners' tables and their names stay as they are: nothing is suggested to be dropped or changed. */
export function suggestIndexes(mapped: Mapped): Suggestion[] {
  const { table, large } = mapped;
  if (table.kind === 'view' || table.kind === 'foreign') return [];
  return [ofOwner(mapped), ofIds(mapped), ofJoin(mapped), ...(large ? [ofVectors(mapped), ofTags(mapped)] : [])].filter(
    (suggestion) => suggestion !== undefined,
  );
}

function ofOwner({ merged, table }: Mapped): Suggestion | undefined {
  const place = merged.fields.get('user_id');
  if (!place || place.kind === 'constant' || hasIndexOn(table, place)) return undefined;
  if (table.columns.get(place.column)?.base === 'jsonb' && hasContainment(table, place.column)) return undefined;
  // Lists are sorted by time, which no index has as it is shown; without a time by id.
  const sorted = merged.fields.has('created_at') ? [] : merged.id.map(pg.escapeIdentifier);
  return {
    missing: 'no index leads to the rows of a user',
    remedy: {
      sql: create(table, [inRow(place, '->>'), ...sorted].join(', ')),
      reason: 'every list and every search asks for the rows of one user; without it each reads the whole table',
    },
  };
}

function ofIds({ merged: { id }, table }: Mapped): Suggestion | undefined {
  const [first] = id;
  if (first === undefined || hasIndexOn(table, { kind: 'column', column: first })) return undefined;
  return {
    missing: 'no index leads to a row by its id',
    remedy: {
      sql: create(table, id.map(pg.escapeIdentifier).join(', ')),
      reason: 'get, update and delete ask for one id; without it each reads the whole table',
    },
  };
}

function ofJoin({ merged, vectors }: Mapped): Suggestion | undefined {
  const on = merged.vectors?.on ?? [];
  const [first] = on;
  if (!vectors || first === undefined || hasIndexOn(vectors, { kind: 'column', column: first })) return undefined;
  return {
    missing: 'no index leads from a row to its vector',
    remedy: {
      sql: create(vectors, on.map(pg.escapeIdentifier).join(', ')),
      reason: 'every search joins the vectors to the rows of a user; without it each reads all vectors',
    },
  };
}

function ofVectors({
  merged,
  table,
  vectors = table,
  extension,
  dimensions,
  vectorIndex,
}: Mapped): Suggestion | undefined {
  const column = vectors.columns.get(merged.embedding);
  if (vectorIndex || !column || dimensions > MAX_INDEXED_DIMENSIONS) return undefined;
  const type = column.base === 'halfvec' || dimensions > MAX_INDEXED_SINGLE ? 'halfvec' : 'vector';
  const schema = pg.escapeIdentifier(extension);
  const name = pg.escapeIdentifier(column.name);
  const asItIs = column.dimensions !== null && column.base === type;
  const key = asItIs ? name : `(${name}::${schema}.${type}(${dimensions}))`;
  const why = asItIs
    ? ''
    : column.dimensions === null
      ? '; the column does not say how long its vectors are, so the index does'
      : '; vectors of more than 2,000 dimensions can be indexed in half precision only';
  return {
    missing: 'no index finds the nearest vectors',
    remedy: {
      sql: create(vectors, `${key} ${schema}.${type}_cosine_ops`, 'hnsw'),
      reason: `a search of a user with very many rows looks at each of them without it${why}; it makes inserts dearer, so build it when searches of such users get slow`,
    },
  };
}

function ofTags({ merged, table }: Mapped): Suggestion | undefined {
  const place = merged.fields.get('tags');
  if (!place || place.kind === 'constant') return undefined;
  const column = table.columns.get(place.column);
  const isArray = column?.base.startsWith('_');
  if (!column || !(isArray || column.base === 'jsonb')) return undefined;
  const expression = inRow(place, '->');
  const isOn = ({ method, valid, partial, keys }: Index) =>
    method === 'gin' && valid && !partial && keys.some((key) => bare(key.expression) === bare(expression));
  if (table.indexes.some(isOn)) return undefined;
  return {
    missing: 'no index leads to rows by their tags',
    remedy: {
      sql: create(table, isArray ? expression : `${expression} jsonb_path_ops`, 'gin'),
      reason: 'a filter by tag reads all rows of a user without it',
    },
  };
}

/** Without what Postgres adds when it prints an expression. */
const bare = (expression: string): string => expression.replace(/::text|[\s()"]/g, '');

/** A column, or a path with the parentheses that an index needs; `last` is the arrow that ends it. */
function inRow(place: StoredReference, last: '->' | '->>'): string {
  const column = pg.escapeIdentifier(place.column);
  if (place.kind === 'column') return column;
  const end = place.path.length - 1;
  const step = (sql: string, key: string, at: number) =>
    `(${sql} ${at === end ? last : '->'} ${pg.escapeLiteral(key)})`;
  return `(${place.path.reduce(step, column)})`;
}

/** A partitioned table takes no index while it is being used. */
function create({ schema, name, kind }: Table, keys: string, method?: string): string {
  const table = `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;
  return `create index ${kind === 'partitioned' ? '' : 'concurrently '}on ${table} ${method ? `using ${method} ` : ''}(${keys});`;
}
