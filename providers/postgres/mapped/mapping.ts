import { FIELDS, type FieldName } from './fields.ts';
import type { Mapping } from './options.ts';
import { type Place, parsePlace } from './place.ts';
import { PRESETS } from './presets/index.ts';
import type { Collection, Preset, VectorsApart } from './presets/preset.ts';

/** A preset with the settings over it, before anything was looked up. */
export interface Merged {
  readonly preset: string;
  readonly schema: string;
  readonly table: string;
  readonly id: readonly string[];
  readonly new_ids: Mapping['new_ids'];
  readonly embedding: string;
  readonly fields: ReadonlyMap<FieldName, Place>;
  readonly user_pattern: string;
  /** As far as one is named, by a setting or the library's default. */
  readonly collection: (Collection & { readonly value: string }) | undefined;
  readonly vectors: VectorsApart | undefined;
  readonly writable: boolean;
}

export const settingOf = (key: string): string => `OMP_MAPPING_${key.toUpperCase()}`;

/** Mistakes are added to the list. Undefined when it is not even told which columns to look at. */
export function merge(mapping: Mapping, mistakes: string[]): Merged | undefined {
  const preset: Preset = PRESETS[mapping.preset];
  const fields = new Map<FieldName, Place>();
  for (const field of FIELDS) {
    const text = mapping[field] ?? preset.fields[field];
    if (text === undefined) continue;
    const place = parsePlace(text);
    if (place) fields.set(field, place);
    else {
      mistakes.push(
        `${settingOf(field)}: ${text} is neither a column, nor a path such as metadata->>'user_id', nor a constant such as 'shared'`,
      );
    }
  }
  if (fields.get('content')?.kind === 'constant')
    mistakes.push(`${settingOf('content')} is a constant; it has to be where a row has its text`);
  const id = mapping.id === undefined ? preset.id : columnsOf('id', [mapping.id], mistakes);
  const embedding =
    mapping.embedding === undefined ? preset.embedding : columnsOf('embedding', [mapping.embedding], mistakes)?.[0];
  const table = mapping.table ?? preset.table;
  const needed = { table, id: mapping.id ?? id, embedding: mapping.embedding ?? embedding };
  const missing = [
    ...Object.entries(needed).filter(([, value]) => value === undefined),
    ...(['content', 'user_id'] as const)
      .filter((field) => (mapping[field] ?? preset.fields[field]) === undefined)
      .map((field) => [field]),
  ];
  if (missing.length > 0) {
    mistakes.push(
      `OMP_MAPPING_PRESET=${mapping.preset} needs ${listed(missing.map(([key]) => settingOf(key as string)))}`,
    );
  }
  if (mapping.writable && preset.read_only !== undefined) {
    mistakes.push(
      `OMP_MAPPING_WRITABLE: ${preset.read_only}; whoever does not need the rows to be read by that library can set OMP_MAPPING_PRESET=custom`,
    );
  }
  if (mapping.new_ids !== undefined && !mapping.writable) {
    mistakes.push('OMP_MAPPING_NEW_IDS has no effect while OMP_MAPPING_WRITABLE is not true');
  }
  if (mapping.writable) mistakes.push(...sharedPlaces(fields));
  if (mapping.collection !== undefined && !preset.collection && !preset.vectors?.which) {
    mistakes.push(`OMP_MAPPING_COLLECTION: OMP_MAPPING_PRESET=${mapping.preset} knows no collections`);
  }
  if (!table || !id || !embedding) return undefined;
  const value = mapping.collection ?? preset.collection?.default;
  return {
    preset: mapping.preset,
    schema: mapping.schema ?? preset.schema ?? 'public',
    table,
    id,
    new_ids: mapping.new_ids ?? preset.new_ids,
    embedding,
    fields,
    user_pattern: mapping.user_pattern,
    collection: preset.collection && value !== undefined ? { ...preset.collection, value } : undefined,
    vectors: preset.vectors && withCollection(preset.vectors, preset.collection ? undefined : mapping.collection),
    writable: mapping.writable,
  };
}

/** What is written into one place cannot be told apart again. */
function sharedPlaces(fields: ReadonlyMap<FieldName, Place>): string[] {
  const first = new Map<string, FieldName>();
  return [...fields].flatMap(([field, place]) => {
    const where = JSON.stringify(place);
    const other = first.get(where);
    first.set(where, other ?? field);
    return other === undefined || place.kind === 'constant'
      ? []
      : [`${settingOf(field)} and ${settingOf(other)} name the same place; OMP_MAPPING_WRITABLE needs one for each`];
  });
}

function columnsOf(key: string, texts: readonly string[], mistakes: string[]): string[] | undefined {
  const places = texts.map(parsePlace);
  const columns = places.flatMap((place) => (place?.kind === 'column' ? [place.column] : []));
  if (columns.length === texts.length) return columns;
  mistakes.push(
    `${settingOf(key)}: ${texts.join(', ')} is not the name of a column; double quotes go around one that is no plain word`,
  );
  return undefined;
}

const withCollection = (vectors: VectorsApart, collection: string | undefined): VectorsApart =>
  vectors.which && collection !== undefined ? { ...vectors, which: { ...vectors.which, value: collection } } : vectors;

/** `a`, `a and b`, `a, b and c`. */
export const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
