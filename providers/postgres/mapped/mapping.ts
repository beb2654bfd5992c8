import { z } from 'zod';
import { type ColumnReference, FIELDS, type FieldName, parseColumnReference, settingOf } from './field-mapping.ts';
import { type Collection, PRESET_NAMES, PRESETS, type Preset, type VectorTable } from './presets.ts';

/** Postgres truncates longer identifiers without an error. */
const MAX_IDENTIFIER_BYTES = 63;

const identifier = () =>
  z
    .string()
    .min(1)
    .refine((name) => Buffer.byteLength(name) <= MAX_IDENTIFIER_BYTES && !name.includes('\0'))
    .optional();
const columnName = () =>
  z
    .string()
    .refine((text) => parseColumnReference(text)?.kind === 'column')
    .optional();
const columnReference = () =>
  z
    .string()
    .refine((text) => parseColumnReference(text) !== undefined)
    .optional();

/** How a mapped table is read and written, as settings say it. The preset fills in what is unset. */
export const Mapping = z.strictObject({
  preset: z.enum(PRESET_NAMES),
  schema: identifier(),
  table: identifier(),
  collection: z.string().min(1).optional(),
  writable: z.boolean().default(false),
  id: columnName(),
  new_ids: z.enum(['text', 'uuid', 'database']).optional(),
  embedding: columnName(),
  deleted_at: columnName(),
  content: columnReference(),
  user_id: columnReference(),
  /** What the table stores for a user; `{user}` stands for the id. */
  user_pattern: z
    .string()
    .refine((pattern) => pattern.split('{user}').length === 2)
    .default('{user}'),
  scope: columnReference(),
  tags: columnReference(),
  source: columnReference(),
  confidence: columnReference(),
  created_at: columnReference(),
  updated_at: columnReference(),
  valid_from: columnReference(),
  valid_to: columnReference(),
  supersedes: columnReference(),
  extensions: columnReference(),
});
export type Mapping = z.output<typeof Mapping>;

/** A preset with the settings applied, before the catalogue is read. */
export interface ResolvedMapping {
  readonly preset: string;
  readonly schema: string;
  readonly table: string;
  readonly id: readonly string[];
  readonly new_ids: Mapping['new_ids'];
  readonly embedding: string;
  /** Column that marks rows as deleted. */
  readonly deleted_at: string | undefined;
  readonly fields: ReadonlyMap<FieldName, ColumnReference>;
  readonly user_pattern: string;
  /** The collection that a setting or the library's default names, if any. */
  readonly collection: (Collection & { readonly value: string }) | undefined;
  readonly vectors: VectorTable | undefined;
  readonly writable: boolean;
}

/** Adds mistakes to the list. Undefined when the table, its id or its vectors are unknown. */
export function resolveMapping(mapping: Mapping, mistakes: string[]): ResolvedMapping | undefined {
  const preset = PRESETS[mapping.preset];
  const fields = new Map<FieldName, ColumnReference>();
  for (const field of FIELDS) {
    const reference = parse(mapping[field] ?? preset.fields[field]);
    if (reference) fields.set(field, reference);
  }
  const id = mapping.id === undefined ? preset.id : [columnOf(mapping.id)];
  const embedding = mapping.embedding === undefined ? preset.embedding : columnOf(mapping.embedding);
  const table = mapping.table ?? preset.table;
  mistakes.push(...conflicts(mapping, preset, fields));
  const needed = { table, id, embedding, content: fields.get('content'), user_id: fields.get('user_id') };
  const missing = Object.entries(needed).flatMap(([key, value]) => (value === undefined ? [settingOf(key)] : []));
  if (missing.length > 0) mistakes.push(`OMP_MAPPING_PRESET=${mapping.preset} needs ${listed(missing)}`);
  if (!table || !id || !embedding) return undefined;
  const collection = mapping.collection ?? preset.collection?.default;
  return {
    preset: mapping.preset,
    schema: mapping.schema ?? preset.schema ?? 'public',
    table,
    id,
    new_ids: mapping.new_ids ?? preset.new_ids,
    embedding,
    deleted_at: mapping.deleted_at === undefined ? undefined : columnOf(mapping.deleted_at),
    fields,
    user_pattern: mapping.user_pattern,
    collection: preset.collection && collection !== undefined ? { ...preset.collection, value: collection } : undefined,
    vectors: preset.vectors && withCollection(preset.vectors, preset.collection ? undefined : mapping.collection),
    writable: mapping.writable,
  };
}

/** Settings that contradict each other or the preset. */
function conflicts(
  { preset: name, writable, new_ids, collection }: Mapping,
  preset: Preset,
  fields: ReadonlyMap<FieldName, ColumnReference>,
): string[] {
  const mistakes: string[] = [];
  if (fields.get('content')?.kind === 'constant')
    mistakes.push(`${settingOf('content')} is a constant; it must name the column that holds the text of a row`);
  if (writable && preset.read_only !== undefined) {
    mistakes.push(
      `OMP_MAPPING_WRITABLE: ${preset.read_only}; if that library does not need to read the rows, set OMP_MAPPING_PRESET=custom`,
    );
  }
  if (new_ids !== undefined && !writable)
    mistakes.push('OMP_MAPPING_NEW_IDS has no effect while OMP_MAPPING_WRITABLE is not true');
  if (writable) mistakes.push(...duplicateReferences(fields));
  if (collection !== undefined && !preset.collection && !preset.vectors?.which)
    mistakes.push(`OMP_MAPPING_COLLECTION: OMP_MAPPING_PRESET=${name} has no collections`);
  return mistakes;
}

/** Two fields written to the same column or path overwrite each other. */
function duplicateReferences(fields: ReadonlyMap<FieldName, ColumnReference>): string[] {
  const first = new Map<string, FieldName>();
  return [...fields].flatMap(([field, reference]) => {
    const key = JSON.stringify(reference);
    const other = first.get(key);
    first.set(key, other ?? field);
    return other === undefined || reference.kind === 'constant'
      ? []
      : [
          `${settingOf(field)} and ${settingOf(other)} are the same; OMP_MAPPING_WRITABLE needs a column or path for each`,
        ];
  });
}

/** Settings and presets hold nothing else: `Mapping` validates the first, tests the second. */
const parse = (text: string | undefined) => (text === undefined ? undefined : parseColumnReference(text));

function columnOf(text: string): string {
  const reference = parseColumnReference(text);
  if (reference?.kind !== 'column') throw new Error(`not the name of a column: ${text}`);
  return reference.column;
}

const withCollection = (vectors: VectorTable, collection: string | undefined): VectorTable =>
  vectors.which && collection !== undefined ? { ...vectors, which: { ...vectors.which, value: collection } } : vectors;

/** `a`, `a and b`, `a, b and c`. */
export const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
