import pg, { type ClientBase } from 'pg';
import type { Embedder } from '#contract';
import type { Conditions } from '../tables/conditions.ts';
import { readExtension, readTable } from './catalogue.ts';
import { createCollection } from './collection.ts';
import { examineFields, noColumn } from './field.ts';
import { createId, idColumns } from './ids.ts';
import type { Layout } from './layout.ts';
import { type Merged, merge } from './mapping.ts';
import type { Mapping } from './options.ts';
import { createOwner } from './owner.ts';
import { byBytes } from './reads.ts';
import { lengthMistake, sampleRows, sampleVectors } from './samples.ts';
import type { Table, VectorExtension } from './table.ts';
import { createHasTags } from './tags.ts';
import { createVector, vectorParts } from './vector.ts';
import { uselessOf, warningsOf } from './warnings.ts';
import { freshIds, writeMistakes } from './writable.ts';

export interface Examined {
  /** Undefined exactly when there are mistakes. */
  readonly layout: Layout | undefined;
  /** Why the gateway cannot serve this table: all at once, each a sentence that names the setting and the column's real type. */
  readonly mistakes: readonly string[];
  /** What works, but not as well as it could. */
  readonly warnings: readonly string[];
  /** Why it is started for nothing: no row is a memory. Not a mistake, since rows may come. */
  readonly useless: string | undefined;
  /** As far as they were found. */
  readonly table: Table | undefined;
  /** Of vectors that lie in a table of their own. */
  readonly vectors: Table | undefined;
  readonly extension: VectorExtension | undefined;
}

/** Holds a mapping against the catalogue. Reads only; never fails because of what is configured. */
export async function examine(client: ClientBase, mapping: Mapping, embedder: Embedder): Promise<Examined> {
  const mistakes: string[] = [];
  const merged = merge(mapping, mistakes);
  const extension = await readExtension(client);
  if (extension === undefined) mistakes.push('this database has no pgvector (no extension vector), and so no vectors');
  const find = async (name: string | undefined, setting: string): Promise<Table | undefined> => {
    if (!merged || name === undefined) return undefined;
    const found = await readTable(client, merged.schema, name, setting);
    if ('table' in found) return found.table;
    mistakes.push(found.mistake);
    return undefined;
  };
  const table = await find(merged?.table, 'OMP_MAPPING_TABLE');
  const vectors = await find(merged?.vectors?.table, 'OMP_MAPPING_PRESET');
  const seen = { table, vectors, extension };
  const parts = merged && table && { client, merged, table, vectors, extension, embedder, mistakes };
  const layout = parts && (await createLayout(parts));
  return mistakes.length > 0 || !layout
    ? { ...seen, layout: undefined, mistakes, warnings: [], useless: undefined }
    : { ...seen, ...layout, mistakes };
}

interface Parts {
  readonly client: ClientBase;
  readonly merged: Merged;
  readonly table: Table;
  readonly vectors: Table | undefined;
  readonly extension: VectorExtension | undefined;
  readonly embedder: Embedder;
  readonly mistakes: string[];
}

/** Undefined when there are mistakes, which are added to the list. */
async function createLayout(
  parts: Parts,
): Promise<(Pick<Examined, 'warnings' | 'useless'> & { layout: Layout }) | undefined> {
  const { client, merged, table, vectors, embedder, mistakes } = parts;
  const ids = idColumns(table, merged.id, mistakes);
  const fields = await examineFields(client, table, merged, mistakes);
  const collection = merged.collection && (await createCollection(client, table, merged.collection, mistakes));
  mistakes.push(...joinMistakes(merged, table, vectors));
  const place = merged.vectors ? { table: vectors, alias: 'v' as const } : { table, alias: 't' as const };
  const vector = place.table && vectorParts({ ...parts, ...place, table: place.table });
  if (merged.writable) mistakes.push(...writeMistakes({ table, merged, ids, fields }));
  if (mistakes.length > 0 || !vector || !fields.user_id || !fields.content) return undefined;

  const { owner, isSomebody, indexed } = createOwner(table, merged, fields.user_id.read);
  const quoted = `${pg.escapeIdentifier(table.schema)}.${pg.escapeIdentifier(table.name)}`;
  const nullable = ids
    .filter(({ notNull }) => !notNull)
    .map(({ name }) => `t.${pg.escapeIdentifier(name)} is not null`);
  const { read: content } = fields.content;
  const tags = merged.fields.get('tags');
  const from = `${quoted} as t${joined(merged, table, vectors)}`;
  const rows = (where: Conditions) => collection?.is(where) ?? 'true';
  const always = (where: Conditions) => [rows(where), ...nullable, isSomebody(where), `${content} <> ''`].join(' and ');
  const found = await sampleRows(client, { from, always }, { made: fields.created_at?.read, rows });
  const layout: Layout = {
    from,
    table: quoted,
    always,
    // Of an empty table the mapping is believed.
    temporal: fields.created_at !== undefined && (found.memories === 0 || found.timed > 0),
    id: createId(ids, freshIds(merged, ids)),
    owner,
    fields,
    hasTags: tags && createHasTags(table, tags),
    vector: createVector(vector),
    newColumns: (where) => (collection ? [{ column: collection.column, value: collection.value(where) }] : []),
    writable: merged.writable,
  };
  const sample = await sampleVectors(client, layout, vector);
  const mistake = lengthMistake(vector, embedder, sample.lengths);
  if (mistake !== undefined) return void mistakes.push(mistake);
  return {
    layout,
    warnings: warningsOf({ table, merged, layout, vector, sample, rows: found, indexed }),
    useless: uselessOf({ table, rows: found }),
  };
}

/** The vectors of a row, where they lie apart. */
function joined({ vectors: apart }: Merged, table: Table, vectors: Table | undefined): string {
  if (!apart || !vectors) return '';
  const name = pg.escapeIdentifier;
  const sql = (alias: string, { columns }: Table, column: string) =>
    byBytes(`${alias}.${name(column)}`, columns.get(column) ?? { deterministic: true });
  const on = apart.on.map((column) => `${sql('v', vectors, column)} = ${sql('t', table, column)}`);
  if (apart.which) on.push(`${sql('v', vectors, apart.which.column)} = ${pg.escapeLiteral(apart.which.value)}`);
  return ` left join ${name(vectors.schema)}.${name(vectors.name)} as v on ${on.join(' and ')}`;
}

function joinMistakes({ vectors: apart }: Merged, table: Table, vectors: Table | undefined): string[] {
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
