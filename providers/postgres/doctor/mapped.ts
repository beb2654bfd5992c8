import pg from 'pg';
import type { Embedder, Finding } from '#contract';
import { conditions } from '../conditions.ts';
import type { Column, Table } from '../mapped/catalogue.ts';
import { hasIndexOn } from '../mapped/catalogue.ts';
import { type Examined, examine } from '../mapped/examine.ts';
import type { Field, Layout } from '../mapped/layout.ts';
import type { Mapping } from '../mapped/mapping.ts';
import { type ResolvedMapping, resolveMapping } from '../mapped/mapping.ts';
import type { Options } from '../options.ts';
import { ok, problem, warning } from './findings.ts';
import { type Read, reading } from './reading.ts';
import { estimateSize, lookAtSize, type Size, type StatisticsOf } from './size.ts';
import { suggestIndexes } from './suggestions.ts';
import { compareVectors } from './vectors.ts';

type MappedOptions = Options & { readonly mapping: Mapping };

/** Of the warnings at the start those that are told here in other places, with what to do. */
const TOLD_BELOW = /^pgvector |: every request reads the whole table|no vector index that can be used/;

/** A table that somebody else fills: whether the mapping fits it, and what would serve it better. */
export const lookAtMapped = (
  client: pg.Client,
  options: MappedOptions,
  embedder: Embedder | undefined,
): Promise<Finding[]> =>
  reading(client, async (read) => {
    const { mapping } = options;
    const merged = resolveMapping(mapping, []);
    const examined = embedder
      ? await examine(client, mapping, embedder)
      : await examineWithout(client, read, mapping, merged);
    const { layout, table, mistakes, warnings, noMemories } = examined;
    const findings = [
      ...[...mistakes, ...(noMemories === undefined ? [] : [noMemories])].map((each) => problem('mapping', each)),
      ...warnings.filter((each) => !TOLD_BELOW.test(each)).map((each) => warning('mapping', each)),
    ];
    if (!layout || !table || !merged) return findings;
    const use = layout.writable ? 'read and written' : 'only read';
    findings.push(ok('mapping', `OMP_MAPPING_PRESET=${mapping.preset} fits ${quoted(table)}, which is ${use}`));
    return [...findings, ...(await lookAtTable(read, options, { ...examined, layout, table, merged }, embedder))];
  });

interface Fitting extends Examined {
  readonly layout: Layout;
  readonly table: Table;
  readonly merged: ResolvedMapping;
}

async function lookAtTable(
  read: Read,
  { large_user_rows }: MappedOptions,
  { layout, table, vectors, extension, merged }: Fitting,
  embedder: Embedder | undefined,
): Promise<Finding[]> {
  const column = (vectors ?? table).columns.get(merged.embedding);
  const findings = [ofEmbedding(column, embedder)];
  if (embedder) {
    const vector = `${vectors ? 'v' : 't'}.${layout.vector.column}`;
    const where = conditions();
    const { read: content } = layout.fields.content as Field;
    where.and(`${layout.always(where)} and ${layout.vector.comparable}`);
    findings.push(...(await compareVectors(read, embedder, { from: layout.from, content, vector, where })));
  }
  const [some] = await read(`select 1 from ${quoted(table)} limit 1`);
  const size = await sizeOf(read, table, merged);
  if (size) findings.push(lookAtSize(size, quoted(table), some === undefined));
  const large = (size?.largest ?? size?.rows ?? 0) > large_user_rows;
  const missing = suggestIndexes({
    merged,
    table,
    vectors,
    extension: extension?.schema ?? 'public',
    dimensions: embedder?.dimensions ?? column?.dimensions ?? Number.POSITIVE_INFINITY,
    vectorIndex: layout.vector.index !== undefined,
    large,
  });
  return [
    ...findings,
    ofVectorIndex(layout.vector.index, large, large_user_rows),
    ...missing.map((each) => warning('indexes', each.missing, each.remedy)),
    ...(missing.length === 0 ? [ok('indexes', 'all that the statements of the gateway ask for are there')] : []),
  ];
}

function ofEmbedding(column: Column | undefined, embedder: Embedder | undefined): Finding {
  const vectors = `${column?.type} in ${column?.name}`;
  if (!embedder) return ok('embedding', `${vectors} was not held against the embedder, which does not answer`);
  return ok('embedding', `${vectors} takes what "${embedder.model}" makes`);
}

function ofVectorIndex(index: Layout['vector']['index'], large: boolean, large_user_rows: number): Finding {
  const up = `users with up to ${large_user_rows} rows (OMP_POSTGRES_LARGE_USER_ROWS) are searched exactly`;
  if (!index)
    return ok('indexes', large ? up : `${up}, and nobody has more by the estimate: no vector index is needed`);
  if (!index.iterative)
    return warning(
      'indexes',
      `the vector index ${index.name} cannot serve the search of one user before pgvector 0.8.0`,
    );
  return ok('indexes', `${up}, others through the vector index ${index.name} (${index.method})`);
}

/** Undefined where the server keeps no statistics of such a thing. */
async function sizeOf(read: Read, table: Table, merged: ResolvedMapping): Promise<Size | undefined> {
  if (table.kind === 'view' || table.kind === 'foreign') return undefined;
  return estimateSize(read, table.schema, table.name, await statisticsOf(read, table, merged));
}

/** Of a path there are statistics only where an index is over it. */
async function statisticsOf(read: Read, table: Table, { fields }: ResolvedMapping): Promise<StatisticsOf | undefined> {
  const place = fields.get('user_id');
  if (!place || place.kind === 'constant') return undefined;
  if (place.kind === 'column') return { relation: table.name, attribute: place.column };
  const index = table.indexes.find((each) => hasIndexOn({ ...table, indexes: [each] }, place));
  if (!index) return undefined;
  const [key] = await read<{ attribute: string }>(
    `select a.attname as attribute from pg_attribute a join pg_class c on c.oid = a.attrelid
     join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2 and a.attnum = 1`,
    [table.schema, index.name],
  );
  return key && { relation: index.name, attribute: key.attribute };
}

/** Without an embedder that works the length of its vectors is taken to be that of the table's, and only the rest is told. */
async function examineWithout(
  client: pg.Client,
  read: Read,
  mapping: Mapping,
  merged: ResolvedMapping | undefined,
): Promise<Examined> {
  const first = await examine(client, mapping, standIn(1));
  const vectors = first.vectors ?? first.table;
  const column = merged && vectors?.columns.get(merged.embedding);
  if (!vectors || !column || !first.extension) return first;
  const length = column.dimensions ?? (await sampleLength(read, vectors, column.name, first.extension.schema));
  return length === undefined ? first : examine(client, mapping, standIn(length));
}

async function sampleLength(read: Read, table: Table, column: string, extension: string) {
  const name = pg.escapeIdentifier(column);
  const [row] = await read<{ length: number }>(
    `select ${pg.escapeIdentifier(extension)}.vector_dims(${name}) as length from ${quoted(table)} where ${name} is not null limit 1`,
  );
  return row?.length;
}

const standIn = (dimensions: number): Embedder => ({
  model: 'unknown',
  dimensions,
  embed: () => Promise.reject(new Error('it only stands in for one')),
  close: async () => {},
});

const quoted = ({ schema, name }: Table): string => `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`;
