import pg, { type ClientBase } from 'pg';
import type { EmbedderIdentity } from '#provider';
import { unsafeVersion } from '../pgvector.ts';
import { type Conditions, conditions } from '../sql/conditions.ts';
import {
  type Column,
  grantOf,
  hasUniqueInPartitions,
  noColumn,
  readExtension,
  readTable,
  type Table,
  type VectorExtension,
} from './catalogue.ts';
import { type FieldName, settingOf } from './field-mapping.ts';
import { createFields, createHasTags, createMark, likelyMarks } from './fields.ts';
import type { Field, Id, Layout } from './layout.ts';
import { describeLayout, isConfigured, type Recognised, recognise } from './library-layouts.ts';
import { listed, type Mapping, type ResolvedMapping, resolveMapping } from './mapping.ts';
import {
  createCollection,
  createId,
  createOwner,
  idColumns,
  isUnique,
  newIdsOf,
  ownerMistake,
} from './row-identity.ts';
import { byBytes, isText } from './value-sql.ts';
import { createVector, isUnit, lengthMistake, type VectorParts, vectorParts } from './vectors.ts';

export interface ExaminedTable {
  /** Undefined exactly if there are mistakes. */
  readonly layout: Layout | undefined;
  /** Every reason why the gateway cannot serve this table. Each is a sentence with the setting and the column's real type. */
  readonly mistakes: readonly string[];
  /** What works, but not as well as it could. */
  readonly warnings: readonly string[];
  /** Set if no row is a memory. Not a mistake, since rows may be added later. */
  readonly noMemories: string | undefined;
  /** Undefined if it was not found. */
  readonly table: Table | undefined;
  /** The table of the vectors, if it is a separate one. */
  readonly vectors: Table | undefined;
  readonly extension: VectorExtension | undefined;
  /** The layout of a library that the table has, or resembles. */
  readonly recognised: Recognised | undefined;
}

/** Checks a mapping against the catalogue and a sample of rows. Reads only; no setting makes it fail. */
export async function examine(
  client: ClientBase,
  settings: Mapping,
  embedder: EmbedderIdentity,
): Promise<ExaminedTable> {
  const mistakes: string[] = [];
  const mapping = resolveMapping(settings, mistakes);
  const extension = await readExtension(client);
  if (extension === undefined) mistakes.push('this database has no pgvector (extension vector), which search needs');
  const find = async (name: string | undefined, setting: string): Promise<Table | undefined> => {
    if (!mapping || name === undefined) return undefined;
    const found = await readTable(client, mapping.schema, name, setting);
    if ('table' in found) return found.table;
    mistakes.push(found.mistake);
    return undefined;
  };
  const table = await find(mapping?.table, 'OMP_MAPPING_TABLE');
  const vectors = await find(mapping?.vectors?.table, 'OMP_MAPPING_PRESET');
  const found = table && recognise(table);
  const parts = mapping && table && { client, mapping, table, vectors, extension, embedder, mistakes };
  const layout = parts && (await createLayout(parts));
  // Of a table that fits its preset, a resemblance to another library says nothing.
  const isSimilar = found?.layout.preset === settings.preset || found?.differences.length === 0;
  const recognised = mistakes.length > 0 || isSimilar ? found : undefined;
  const seen = { table, vectors, extension, recognised };
  // Whoever has mistaken one library for another needs to know what fits.
  if (mistakes.length > 0 && table && recognised && !isConfigured(recognised, settings))
    mistakes.push(describeLayout(table, recognised));
  return mistakes.length > 0 || !layout
    ? { ...seen, layout: undefined, mistakes, warnings: [], noMemories: undefined }
    : { ...seen, ...layout, warnings: [...layout.warnings, ...otherLibrary(settings.preset, seen)], mistakes };
}

/** A preset may fit the columns of a table that another library fills. */
const otherLibrary = (preset: Mapping['preset'], { table, recognised }: Pick<ExaminedTable, 'table' | 'recognised'>) =>
  table && recognised?.differences.length === 0 && ![recognised.layout.preset, 'custom'].includes(preset)
    ? [`OMP_MAPPING_PRESET=${preset}: ${describeLayout(table, recognised)}`]
    : [];

interface ExamineParts {
  readonly client: ClientBase;
  readonly mapping: ResolvedMapping;
  readonly table: Table;
  readonly vectors: Table | undefined;
  readonly extension: VectorExtension | undefined;
  readonly embedder: EmbedderIdentity;
  readonly mistakes: string[];
}

/** Adds mistakes to the list, and is undefined then. */
async function createLayout(
  parts: ExamineParts,
): Promise<(Pick<ExaminedTable, 'warnings' | 'noMemories'> & { layout: Layout }) | undefined> {
  const { client, mapping, table, vectors, embedder, mistakes } = parts;
  const ids = idColumns(table, mapping.id, mistakes);
  const fields = await createFields(client, table, mapping, mistakes);
  const mistake = fields.user_id && ownerMistake(table, mapping);
  if (mistake !== undefined) mistakes.push(mistake);
  const collection = mapping.collection && (await createCollection(client, table, mapping.collection, mistakes));
  const mark = createMark(table, mapping, mistakes);
  mistakes.push(...joinMistakes(mapping, table, vectors));
  const source = mapping.vectors ? { table: vectors, alias: 'v' as const } : { table, alias: 't' as const };
  const vector = source.table && vectorParts({ ...parts, ...source, table: source.table });
  if (mapping.writable) mistakes.push(...writeMistakes({ table, mapping, ids, fields }));
  if (mistakes.length > 0 || !vector || !fields.user_id || !fields.content) return undefined;

  const { owner, hasOwner, indexed } = createOwner(table, mapping, fields.user_id.read);
  const quoted = `${pg.escapeIdentifier(table.schema)}.${pg.escapeIdentifier(table.name)}`;
  const nullable = ids
    .filter(({ notNull }) => !notNull)
    .map(({ name }) => `t.${pg.escapeIdentifier(name)} is not null`);
  const id = createId(ids, mapping.new_ids);
  // No request can name a row whose id is the empty text.
  const named = ids.length === 1 && isText(ids[0]?.base ?? '') ? [`${id.read} <> ''`] : [];
  const { read: content } = fields.content;
  const tags = mapping.fields.get('tags');
  const from = `${quoted} as t${joined(mapping, table, vectors)}`;
  const inCollection = (where: Conditions) => collection?.is(where) ?? 'true';
  const stored = (where: Conditions) =>
    [inCollection(where), ...nullable, ...named, hasOwner(where), `${content} <> ''`].join(' and ');
  const always = (where: Conditions) => [stored(where), ...(mark ? [mark.absent] : [])].join(' and ');
  const rows = await sampleRows(client, { from, always }, { created: fields.created_at?.read, inCollection });
  const sample = await sampleVectors(client, { from, always }, vector);
  const updates = fields.updated_at?.write;
  const layout: Layout = {
    from,
    table: quoted,
    always,
    stored,
    mark,
    // An empty table contradicts nothing.
    temporal: fields.created_at !== undefined && (rows.memories === 0 || rows.timed > 0),
    id,
    uniqueId: isUnique(table, mapping),
    owner,
    fields,
    hasTags: tags && createHasTags(table, tags),
    vector: createVector(vector, sample),
    newColumns: (where) => (collection ? [{ column: collection.column, value: collection.value(where) }] : []),
    writable: mapping.writable,
    versioned: updates !== undefined && (updates.kind === 'path' || updates.milliseconds),
  };
  const wrongLength = lengthMistake(vector, embedder, sample.lengths);
  if (wrongLength !== undefined) return void mistakes.push(wrongLength);
  return {
    layout,
    warnings: warningsOf({ table, layout, vector, sample, rows, indexed }),
    noMemories:
      rows.present && rows.memories === 0
        ? `no row of ${table.schema}.${table.name} has both a user (${settingOf('user_id')}) and a text (${settingOf('content')}), so no user has memories`
        : undefined,
  };
}

/** Joins the vectors, if they are in a separate table. */
function joined({ vectors: apart }: ResolvedMapping, table: Table, vectors: Table | undefined): string {
  if (!apart || !vectors) return '';
  const name = pg.escapeIdentifier;
  const sql = (alias: string, { columns }: Table, column: string) =>
    byBytes(`${alias}.${name(column)}`, columns.get(column) ?? { deterministic: true });
  const on = apart.on.map((column) => `${sql('v', vectors, column)} = ${sql('t', table, column)}`);
  if (apart.which) on.push(`${sql('v', vectors, apart.which.column)} = ${pg.escapeLiteral(apart.which.value)}`);
  return ` left join ${name(vectors.schema)}.${name(vectors.name)} as v on ${on.join(' and ')}`;
}

function joinMistakes({ vectors: apart }: ResolvedMapping, table: Table, vectors: Table | undefined): string[] {
  if (!apart || !vectors) return [];
  const needed = [
    ...apart.on.flatMap((column) => [
      { in: table, column },
      { in: vectors, column },
    ]),
    ...(apart.which ? [{ in: vectors, column: apart.which.column }] : []),
  ];
  return needed
    .filter((each) => !each.in.columns.has(each.column))
    .map((each) => noColumn('OMP_MAPPING_PRESET', each.in, each.column));
}

// Samples

/** Rows to look at. */
const SAMPLE = 200;

interface RowSample {
  /** Whether the mapping covers any row. */
  readonly present: boolean;
  /** Sampled rows that are memories. */
  readonly memories: number;
  /** How many of these have a time of creation. */
  readonly timed: number;
}

/** `created` is SQL of the time of creation, `inCollection` the condition of rows to consider. */
async function sampleRows(
  client: ClientBase,
  { from, always }: Pick<Layout, 'from' | 'always'>,
  {
    created = 'null',
    inCollection,
  }: { readonly created: string | undefined; readonly inCollection: (where: Conditions) => string },
): Promise<RowSample> {
  const where = conditions();
  const { rows } = await client.query<RowSample>(
    `select exists (select from ${from} where ${inCollection(where)}) as present, count(*)::int as memories, count(s.created)::int as timed
       from (select ${created} as created from ${from} where ${always(where)} limit ${SAMPLE}) as s`,
    where.values,
  );
  return rows[0] as RowSample;
}

interface VectorSample {
  /** The most frequent length first. */
  readonly lengths: readonly number[];
  /** Whether all sampled vectors have length 1. */
  readonly unit: boolean;
}

/** The vectors of rows that are memories. */
async function sampleVectors(
  client: ClientBase,
  layout: Pick<Layout, 'from' | 'always'>,
  parts: VectorParts,
): Promise<VectorSample> {
  const { extension, alias, column } = parts;
  const where = conditions();
  const schema = pg.escapeIdentifier(extension.schema);
  const vector = `${alias}.${pg.escapeIdentifier(column.name)}`;
  where.and(layout.always(where));
  where.and(`${vector} is not null`);
  const { rows } = await client.query<{ dimensions: number; unit: boolean }>(
    `select ${schema}.vector_dims(s.vector) as dimensions,
        bool_and(${isUnit(parts, 's.vector')}) as unit
       from (select ${vector} as vector from ${layout.from} where ${where} limit ${SAMPLE}) as s group by 1 order by count(*) desc, 1`,
    where.values,
  );
  return { lengths: rows.map(({ dimensions }) => dimensions), unit: rows.every(({ unit }) => unit) };
}

// Warnings

/** From this many rows on, a missing vector index is worth a warning. */
const LARGE = 100_000;

interface Seen {
  readonly table: Table;
  readonly layout: Layout;
  readonly vector: VectorParts;
  readonly sample: VectorSample;
  readonly rows: RowSample;
  /** Whether an index serves a query for the rows of a user. */
  readonly indexed: boolean;
}

function warningsOf({ table, layout, vector, sample, rows, indexed }: Seen): string[] {
  const { index } = layout.vector;
  const label = `${table.schema}.${table.name}`;
  const column = `"${vector.column.name}" of ${vector.table.schema}.${vector.table.name}`;
  const undeclared =
    vector.column.dimensions === null
      ? `; the column does not declare the length of its vectors, so an index must be on a cast of it to ${vector.column.base}(${vector.dimensions})`
      : '';
  const unsafe = unsafeVersion(vector.extension.version);
  const hasCatalogue = table.kind !== 'view' && table.kind !== 'foreign';
  const warn = (condition: boolean, text: string) => (condition ? [text] : []);
  const marks = layout.mark ? [] : likelyMarks(table);
  return [
    ...warn(
      marks.length > 0,
      `${label} has a column ${listed(marks)}, and rows that are marked as deleted there are served; OMP_MAPPING_DELETED_AT=${marks[0]} hides them`,
    ),
    ...warn(
      hasCatalogue && !indexed,
      `${label} has no index on ${settingOf('user_id')}: every request reads the whole table; omp-gateway doctor prints the index to create`,
    ),
    ...warn(
      hasCatalogue && !layout.uniqueId,
      `OMP_MAPPING_ID: no primary key or unique index of ${label} is over exactly these columns: of several rows with one key, also of different users, export and migrate read one${layout.writable ? ', and changes by such an id are refused' : ''}`,
    ),
    ...warn(
      index === undefined && (table.rows ?? 0) >= LARGE,
      `${label} has about ${table.rows} rows and no vector index that can be used: a search compares all vectors of its user${undeclared}`,
    ),
    ...warn(
      layout.fields.created_at !== undefined && !layout.temporal,
      `${settingOf('created_at')}: none of ${rows.memories} rows of ${label} has a time there: lists are sorted by id, and since and until are rejected; name the column that holds the time`,
    ),
    ...warn(
      layout.temporal && rows.timed < rows.memories,
      `${settingOf('created_at')}: ${rows.memories - rows.timed} of ${rows.memories} rows of ${label} have no time there and count as created in 1970`,
    ),
    ...warn(
      sample.lengths.length > 1,
      `the vectors in ${column} have several lengths (${sample.lengths.join(', ')}): search finds only those of ${vector.dimensions}`,
    ),
    ...warn(
      index?.ranks === false,
      `the index ${index?.name} does not order as the cosine does${sample.unit ? '' : `, since the vectors in ${column} do not have length 1`}: a search compares all vectors of its user; an index by cosine would serve users with many rows`,
    ),
    ...warn(
      layout.writable && !sample.unit && index?.metric !== 'cosine',
      `the vectors in ${column} do not have length 1, and those that the gateway writes have: a search by Euclidean distance or the inner product, unlike one by cosine, does not rank these memories with the others`,
    ),
    ...warn(
      table.rowSecurity || vector.table.rowSecurity,
      `row security applies to the role of the gateway: it never sees rows of ${label} that the policies hide`,
    ),
    ...warn(unsafe !== undefined, `${unsafe}; upgrade it`),
  ];
}

// Writing

/** Characters of a new id: `mem_` and a ULID, or a UUID. */
const ID_LENGTHS = { text: 30, uuid: 36 } as const;

interface Writing {
  readonly table: Table;
  readonly mapping: ResolvedMapping;
  /** Without columns that are wrong, which other mistakes name; the same for fields. */
  readonly ids: readonly Column[];
  readonly fields: Readonly<Partial<Record<FieldName, Field>>>;
}

/** Why the gateway cannot add, change and delete rows. */
function writeMistakes({ table, mapping, ids, fields }: Writing): string[] {
  const setting = 'OMP_MAPPING_WRITABLE';
  const label = `${table.schema}.${table.name}`;
  const lacks = (['insert', 'update', 'delete'] as const).filter((what) => !table.may[what]);
  const computed = (['content', 'user_id'] as const).filter((name) => {
    const field = fields[name];
    return field !== undefined && field.write === undefined && field.constant === undefined;
  });
  const empty = columnsWithoutValue({ table, mapping, ids, fields });
  const mistakes: string[] = [];
  if (lacks.length > 0) {
    const what = listed(lacks.map((each) => each.toUpperCase()));
    const why = table.kind === 'view' ? ', or the view takes no writes' : `; ${grantOf(lacks.join(', '), table)}`;
    mistakes.push(`${setting}: the role of the gateway has no ${what} on ${label}${why}`);
  }
  for (const name of computed) {
    mistakes.push(`${setting}: the database computes the column of ${settingOf(name)}, so it cannot be written`);
  }
  if (empty.length > 0) {
    mistakes.push(
      `${setting}: ${label} requires a value in ${listed(empty)}, which no setting maps; give ${empty.length > 1 ? 'them defaults' : 'it a default'}`,
    );
  }
  if (ids.length < mapping.id.length) return mistakes;
  const names = ids.map(({ name }) => name);
  if (!isUnique(table, mapping) && !hasUniqueInPartitions(table, names)) {
    const quoted = listed(names.map((name) => `"${name}"`));
    mistakes.push(
      `${setting}: ${label} has no primary key or unique index ${table.kind === 'partitioned' ? 'that contains' : 'over exactly'} ${quoted}, so a write could change several rows`,
    );
  }
  const mistake = newIdMistake(newIdsOf(mapping.new_ids, ids), ids, label);
  return mistake === undefined ? mistakes : [...mistakes, mistake];
}

function newIdMistake(newIds: Id['newIds'], [id, ...more]: readonly Column[], label: string): string | undefined {
  if (id === undefined || more.length > 0)
    return 'OMP_MAPPING_WRITABLE: the gateway cannot create ids of several columns';
  const found = `OMP_MAPPING_NEW_IDS=${newIds}: the column "${id.name}" of ${label} is ${id.type}`;
  if (newIds === 'database') return id.hasDefault ? undefined : `${found} and has no default`;
  if (id.generated) return `${found} and computed by the database; use database`;
  if (newIds === 'uuid' && id.base === 'uuid') return undefined;
  const length = Number(/\((\d+)\)$/.exec(id.type)?.[1] ?? Number.POSITIVE_INFINITY);
  return isText(id.base) && length >= ID_LENGTHS[newIds]
    ? undefined
    : `${found}, which cannot hold ids of ${ID_LENGTHS[newIds]} characters; use ${id.base === 'uuid' ? 'uuid' : 'database'}`;
}

/** Required columns that the gateway would not fill. */
function columnsWithoutValue({ table, mapping, ids, fields }: Writing): string[] {
  const references = Object.keys(fields).map((name) => mapping.fields.get(name as FieldName));
  const filled = new Set([
    ...ids.map(({ name }) => name),
    ...references.flatMap((reference) => (reference && reference.kind !== 'constant' ? [reference.column] : [])),
    mapping.embedding,
    mapping.collection?.column,
  ]);
  return [...table.columns.values()]
    .filter(({ name, notNull, hasDefault }) => notNull && !hasDefault && !filled.has(name))
    .map(({ name }) => `"${name}"`);
}
