import pg from 'pg';
import type { Embedder, EmbedderIdentity, Finding, MaintenanceContext, Remedy } from '#provider';
import {
  type Column,
  hasContainment,
  hasIndexOn,
  type Index,
  plainExpression,
  type Table,
  tablesNearVectors,
} from '../mapped/catalogue.ts';
import { type ExaminedTable, examine } from '../mapped/examine.ts';
import type { StoredReference } from '../mapped/field-mapping.ts';
import type { Field, Layout } from '../mapped/layout.ts';
import { describeLayout, recognise } from '../mapped/library-layouts.ts';
import { listed, type Mapping, type ResolvedMapping, resolveMapping } from '../mapped/mapping.ts';
import { isUnique } from '../mapped/row-identity.ts';
import { MAX_INDEXED_DIMENSIONS } from '../pgvector.ts';
import type { Options } from '../postgres-options.ts';
import { conditions } from '../sql/conditions.ts';
import {
  compareVectors,
  estimateSize,
  findHidden,
  ok,
  problem,
  type Read,
  readOnly,
  reportSize,
  type StatisticsSource,
  type TableSize,
  warning,
} from './doctor-common.ts';

type MappedOptions = Options & { readonly mapping: Mapping };

/** Warnings of the start that are reported below with their remedies. */
const REPORTED_BELOW = /^pgvector |: every request reads the whole table|no vector index that can be used/;

/** A mapped table: whether the mapping fits it, and which indexes would help. */
export const checkMappedTable = (
  client: pg.Client,
  options: MappedOptions & Pick<MaintenanceContext, 'mounts'>,
  embedder: Embedder | undefined,
): Promise<Finding[]> =>
  readOnly(client, async (read) => {
    const { mapping, mounts } = options;
    const merged = resolveMapping(mapping, []);
    const examined = embedder
      ? await examine(client, mapping, embedder)
      : await examineWithout(client, read, mapping, merged);
    const { layout, table, mistakes, warnings, noMemories, recognised } = examined;
    const findings = [
      ...[...mistakes, ...(noMemories === undefined ? [] : [noMemories])].map((each) => problem('mapping', each)),
      ...warnings.filter((each) => !REPORTED_BELOW.test(each)).map((each) => warning('mapping', each)),
    ];
    if (!table) return [...findings, ...(await recognisedTables(client))];
    if (!layout || !merged) return findings;
    const use = layout.writable ? 'read and written' : 'read-only';
    findings.push(ok('mapping', `OMP_MAPPING_PRESET=${mapping.preset} fits ${quoted(table)}, which is ${use}`));
    if (recognised) findings.push(ok('mapping', describeLayout(table, recognised)));
    findings.push(...(await checkTable(read, options, { ...examined, layout, table, merged }, embedder)));
    const { scope } = layout.fields;
    if (scope === undefined) return findings;
    const memories = () => {
      const where = conditions();
      where.and(layout.always(where));
      return where;
    };
    return [
      ...findings,
      ...(await findHidden(read, { from: layout.from, scope: scope.read, where: memories }, mounts)),
    ];
  });

/** Tables of the database that a known library laid out, with the settings that serve each. */
export const findLibraryTables = (client: pg.Client): Promise<Finding[]> =>
  readOnly(client, () => recognisedTables(client));

const recognisedTables = async (client: pg.Client): Promise<Finding[]> =>
  (await tablesNearVectors(client)).flatMap((table) => {
    const recognised = recognise(table);
    return recognised?.differences.length === 0 ? [ok('mapping', describeLayout(table, recognised))] : [];
  });

interface Fitting extends ExaminedTable {
  readonly layout: Layout;
  readonly table: Table;
  readonly merged: ResolvedMapping;
}

async function checkTable(
  read: Read,
  { large_user_rows }: MappedOptions,
  { layout, table, vectors, extension, merged }: Fitting,
  embedder: Embedder | undefined,
): Promise<Finding[]> {
  const column = (vectors ?? table).columns.get(merged.embedding);
  const findings = [reportEmbedding(column, embedder), ...(await checkZone(read, table, merged))];
  if (embedder) {
    const vector = `${vectors ? 'v' : 't'}.${layout.vector.column}`;
    const where = conditions();
    const { read: content } = layout.fields.content as Field;
    where.and(`${layout.always(where)} and ${layout.vector.comparable}`);
    findings.push(...(await compareVectors(read, embedder, { from: layout.from, content, vector, where })));
  }
  const [some] = await read(`select 1 from ${quoted(table)} limit 1`);
  const size = await sizeOf(read, table, merged);
  if (size) findings.push(reportSize(size, quoted(table), some === undefined));
  const large = (size?.largest ?? size?.rows ?? 0) > large_user_rows;
  const missing = suggestIndexes({
    merged,
    table,
    vectors,
    extension: extension?.schema ?? 'public',
    dimensions: embedder?.dimensions ?? column?.dimensions ?? Number.POSITIVE_INFINITY,
    vectorIndex: layout.vector.index?.ranks === true,
    large,
  });
  return [
    ...findings,
    reportVectorIndex(layout.vector.index, { large, known: size?.analysed === true }, large_user_rows),
    ...missing.map((each) => warning('indexes', each.missing, each.remedy)),
    ...(missing.length === 0 ? [ok('indexes', 'all indexes that the statements of the gateway need exist')] : []),
  ];
}

/** Times without a zone are read as UTC, and the database writes those of its own zone: `now()` as a default, for one. */
async function checkZone(read: Read, table: Table, { fields }: ResolvedMapping): Promise<Finding[]> {
  const names = [...fields.values()].flatMap((reference) =>
    reference.kind === 'column' && table.columns.get(reference.column)?.base === 'timestamp' ? [reference.column] : [],
  );
  if (names.length === 0) return [];
  const [row] = await read<{ zone: string; differs: boolean }>(
    `select current_setting('TimeZone') as zone, bool_or(day at time zone current_setting('TimeZone') <> day at time zone 'UTC') as differs
       from generate_series(now() - interval '1 year', now(), interval '1 month') as day`,
  );
  const columns = `${listed(names.map((name) => `"${name}"`))} of ${quoted(table)}`;
  const [first] = names as [string];
  return row?.differs
    ? [
        warning(
          'mapping',
          `${columns} has no time zone and is read as UTC, and the zone of the server is ${row.zone}: times that a default such as now() or an application in that zone wrote are off by the difference; if these are, serve a view that has (${pg.escapeIdentifier(first)} at time zone ${pg.escapeLiteral(row.zone)})`,
        ),
      ]
    : [ok('mapping', `${columns} has no time zone and is read as UTC, the zone of the server`)];
}

function reportEmbedding(column: Column | undefined, embedder: Embedder | undefined): Finding {
  const vectors = `${column?.type} in ${column?.name}`;
  if (!embedder) return ok('embedding', `${vectors} was not compared with the embedder, which does not answer`);
  return ok('embedding', `${vectors} fits the vectors of "${embedder.model}"`);
}

/** `known`: there are statistics. */
function reportVectorIndex(
  index: Layout['vector']['index'],
  { large, known }: { readonly large: boolean; readonly known: boolean },
  large_user_rows: number,
): Finding {
  const up = `users with up to ${large_user_rows} rows are searched exactly`;
  if (!index?.ranks) {
    const others = known
      ? ', and no user has more by the estimate: no vector index is needed'
      : '; without statistics it is unknown whether a user has more';
    return ok('indexes', large ? up : up + others);
  }
  if (!index.iterative)
    return warning(
      'indexes',
      `the vector index ${index.name} cannot serve the search of one user before pgvector 0.8.0`,
    );
  return ok('indexes', `${up}, others through the vector index ${index.name} (${index.method})`);
}

/** Undefined: the server keeps no statistics of views and foreign tables. */
async function sizeOf(read: Read, table: Table, merged: ResolvedMapping): Promise<TableSize | undefined> {
  if (table.kind === 'view' || table.kind === 'foreign') return undefined;
  return estimateSize(read, table.schema, table.name, await statisticsSource(read, table, merged));
}

/** There are statistics of a JSON path only if an index covers it. */
async function statisticsSource(
  read: Read,
  table: Table,
  { fields }: ResolvedMapping,
): Promise<StatisticsSource | undefined> {
  const reference = fields.get('user_id');
  if (!reference || reference.kind === 'constant') return undefined;
  if (reference.kind === 'column') return { relation: table.name, attribute: reference.column };
  const index = table.indexes.find((each) => hasIndexOn({ ...table, indexes: [each] }, reference));
  if (!index) return undefined;
  const [key] = await read<{ attribute: string }>(
    `select a.attname as attribute from pg_attribute a join pg_class c on c.oid = a.attrelid
     join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2 and a.attnum = 1`,
    [table.schema, index.name],
  );
  return key && { relation: index.name, attribute: key.attribute };
}

/** Without a working embedder, it assumes that the dimensions are those of the table and checks the rest. */
async function examineWithout(
  client: pg.Client,
  read: Read,
  mapping: Mapping,
  merged: ResolvedMapping | undefined,
): Promise<ExaminedTable> {
  const first = await examine(client, mapping, unknownEmbedder(1));
  const vectors = first.vectors ?? first.table;
  const column = merged && vectors?.columns.get(merged.embedding);
  if (!vectors || !column || !first.extension) return first;
  const length = column.dimensions ?? (await sampleLength(read, vectors, column.name, first.extension.schema));
  return length === undefined ? first : examine(client, mapping, unknownEmbedder(length));
}

async function sampleLength(read: Read, table: Table, column: string, extension: string) {
  const name = pg.escapeIdentifier(column);
  const [row] = await read<{ length: number }>(
    `select ${pg.escapeIdentifier(extension)}.vector_dims(${name}) as length from ${quoted(table)} where ${name} is not null limit 1`,
  );
  return row?.length;
}

const unknownEmbedder = (dimensions: number): EmbedderIdentity => ({ model: 'unknown', dimensions });

const quoted = ({ schema, name }: Table): string => `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;

/** The largest vector that pgvector indexes in single precision. */
const MAX_INDEXED_SINGLE = 2_000;

/** An index that the gateway's statements would use. */
interface Suggestion {
  /** What is missing, as a sentence without its full stop. */
  readonly missing: string;
  readonly remedy: Remedy;
}

interface MappedTable {
  readonly merged: ResolvedMapping;
  readonly table: Table;
  /** The table of the vectors, if that is another one. */
  readonly vectors: Table | undefined;
  /** Schema of the pgvector extension. */
  readonly extension: string;
  /** Length of the embedder's vectors. */
  readonly dimensions: number;
  /** Whether a vector index exists. */
  readonly vectorIndex: boolean;
  /** Whether some user may have so many rows that an exact search is slow. */
  readonly large: boolean;
}

/** Suggests only what is missing. It never suggests to drop or change anything of the mapped table. */
function suggestIndexes(mapped: MappedTable): Suggestion[] {
  const { table, large } = mapped;
  if (table.kind === 'view' || table.kind === 'foreign') return [];
  return [
    forUser(mapped),
    forId(mapped),
    forJoin(mapped),
    ...(large ? [forVectors(mapped), forTags(mapped)] : []),
  ].filter((suggestion) => suggestion !== undefined);
}

function forUser({ merged, table }: MappedTable): Suggestion | undefined {
  const reference = merged.fields.get('user_id');
  if (!reference || reference.kind === 'constant' || hasIndexOn(table, reference)) return undefined;
  if (table.columns.get(reference.column)?.base === 'jsonb' && hasContainment(table, reference.column))
    return undefined;
  // Lists are ordered by time, or by id without one. The time is computed, so no index has it.
  const sorted = merged.fields.has('created_at') ? [] : merged.id.map(pg.escapeIdentifier);
  return {
    missing: 'no index leads to the rows of a user',
    remedy: {
      sql: create(table, [inRow(reference, '->>'), ...sorted].join(', ')),
      reason: 'every list and every search reads the rows of one user; without it each reads the whole table',
    },
  };
}

function forId({ merged, table }: MappedTable): Suggestion | undefined {
  const { id } = merged;
  const [first] = id;
  if (first === undefined || isUnique(table, merged) || hasIndexOn(table, { kind: 'column', column: first }))
    return undefined;
  return {
    missing: 'no index leads to a row by its id',
    remedy: {
      sql: create(table, id.map(pg.escapeIdentifier).join(', ')),
      reason:
        'get, update and delete read one id, and each page of an export begins at one; without it each reads the whole table',
    },
  };
}

function forJoin({ merged, vectors }: MappedTable): Suggestion | undefined {
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

function forVectors({
  merged,
  table,
  vectors = table,
  extension,
  dimensions,
  vectorIndex,
}: MappedTable): Suggestion | undefined {
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
      ? '; the column has no fixed dimensions, so the index names them'
      : '; vectors of more than 2,000 dimensions can be indexed in half precision only';
  return {
    missing: 'no index finds the nearest vectors',
    remedy: {
      sql: create(vectors, `${key} ${schema}.${type}_cosine_ops`, 'hnsw'),
      reason: `without it a search of a user with very many rows compares all of their vectors${why}; it makes inserts slower, so build it when such searches get slow`,
    },
  };
}

function forTags({ merged, table }: MappedTable): Suggestion | undefined {
  const reference = merged.fields.get('tags');
  if (!reference || reference.kind === 'constant') return undefined;
  const column = table.columns.get(reference.column);
  const isArray = column?.base.startsWith('_');
  if (!column || !(isArray || column.base === 'jsonb')) return undefined;
  const expression = inRow(reference, '->');
  const isOn = ({ method, valid, partial, keys }: Index) =>
    method === 'gin' &&
    valid &&
    !partial &&
    keys.some((key) => plainExpression(key.expression) === plainExpression(expression));
  if (table.indexes.some(isOn)) return undefined;
  return {
    missing: 'no index leads to rows by their tags',
    remedy: {
      sql: create(table, isArray ? expression : `${expression} jsonb_path_ops`, 'gin'),
      reason: 'without it a filter by tag reads all rows of a user',
    },
  };
}

/** SQL of a column or a JSON path, with the parentheses that an index needs. `last`: the operator of the last step. */
function inRow(reference: StoredReference, last: '->' | '->>'): string {
  const column = pg.escapeIdentifier(reference.column);
  if (reference.kind === 'column') return column;
  const end = reference.path.length - 1;
  const step = (sql: string, key: string, at: number) =>
    `(${sql} ${at === end ? last : '->'} ${pg.escapeLiteral(key)})`;
  return `(${reference.path.reduce(step, column)})`;
}

/** A partitioned table does not support `concurrently`. */
const create = (table: Table, keys: string, method?: string): string =>
  `create index ${table.kind === 'partitioned' ? '' : 'concurrently '}on ${quoted(table)} ${method ? `using ${method} ` : ''}(${keys});`;
