import { type Memory, OmpError } from '#contract';
import { timeLike, toTime } from '#toolbox';
import { setPath } from './adapter.ts';
import type { Filter, FoundPoint, MappingOptions, OptionalFilter, Point, PointFields, Presets } from './collection.ts';
import { both } from './filters.ts';

/*
 * The codec between memories and the points of another application.
 */

/** Where points hold the fields of a memory. Undefined: nowhere. */
export interface Mapping {
  readonly text: string;
  readonly user: string;
  readonly scope: string | undefined;
  readonly created: string | undefined;
  readonly updated: string | undefined;
  readonly tags: string | undefined;
  readonly node: string | undefined;
  /** A dot in a name goes into an object. */
  readonly nested: boolean;
  /** What people call the collection, in messages. */
  readonly noun: string;
}

const FIELD_OPTIONS = ['text', 'user', 'scope', 'created', 'updated', 'tags'] as const;

/** The name of a setting of ours. */
export const settingOf = (provider: string, option: string): string =>
  `OMP_${provider}_${option}`.toUpperCase().replaceAll('-', '_');

/** By preset and settings. Throws an `Error` that names settings which are missing or contradict each other. */
export function mappingOf(
  provider: string,
  presets: Presets,
  options: MappingOptions,
  { nested, noun }: Pick<Mapping, 'nested' | 'noun'>,
): Mapping {
  const chosen = `${settingOf(provider, 'preset')}=${options.preset}`;
  const preset = presets[options.preset ?? ''] ?? { library: '' };
  const setting = (field: string) => settingOf(provider, `${field}_field`);
  if (options.writable && preset.read_only !== undefined)
    throw new Error(`${settingOf(provider, 'writable')} cannot be used with ${chosen}: ${preset.read_only}`);
  const named = (field: (typeof FIELD_OPTIONS)[number]): string | undefined =>
    options[`${field}_field`] ?? (preset as Partial<Record<typeof field, string>>)[field];
  const [text, user, ...rest] = FIELD_OPTIONS.map(named);
  if (text === undefined || user === undefined) {
    const missing = [...(text === undefined ? ['text'] : []), ...(user === undefined ? ['user'] : [])].map(setting);
    throw new Error(`${chosen} needs ${missing.join(' and ')}: the fields of the points`);
  }
  const [scope, created, updated, tags] = rest;
  // The setting names exactly one field.
  const node = options.text_field ? undefined : preset.node;
  const mapping: Mapping = { text, user, scope, created, updated, tags, node, nested, noun };
  for (const [outer, field] of placesOf(mapping))
    for (const [inner, other] of placesOf(mapping)) {
      const steps = stepsOf(other, nested);
      if (outer !== inner && stepsOf(field, nested).every((step, at) => step === steps[at]))
        throw new Error(
          `${setting(outer)} ("${field}") and ${setting(inner)} ("${other}"), or their defaults, overlap: each needs a field of its own`,
        );
    }
  return mapping;
}

/** The fields that settings can name, by the part of a memory. */
export const placesOf = (mapping: Mapping): [name: (typeof FIELD_OPTIONS)[number], field: string][] =>
  FIELD_OPTIONS.flatMap((name) => (mapping[name] === undefined ? [] : [[name, mapping[name]]]));

/** The fields that are read of a point. */
export const mappedFields = (mapping: Mapping): string[] => [
  ...placesOf(mapping).map(([, field]) => field),
  ...(mapping.node === undefined ? [] : [mapping.node]),
];

const stepsOf = (name: string, nested: boolean): string[] => (nested ? name.split('.') : [name]);

/** What a point holds under a name. */
const valueAt = (fields: unknown, name: string, nested: boolean): unknown =>
  stepsOf(name, nested).reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, key)
        ? (value as Record<string, unknown>)[key]
        : undefined,
    fields,
  );

const isFilled = (value: unknown): value is string => typeof value === 'string' && /\S/.test(value);

/** LlamaIndex stores a node with its text, or in newer versions with a text resource. */
function textOfNode(json: unknown): unknown {
  if (typeof json !== 'string') return undefined;
  try {
    const node = Object(JSON.parse(json)) as { readonly text?: unknown; readonly text_resource?: unknown };
    return node.text || (Object(node.text_resource) as { readonly text?: unknown }).text;
  } catch {
    return undefined;
  }
}

/** A single text is one tag. */
const tagsIn = (value: unknown): string[] =>
  [...new Set([value].flat())].filter((tag): tag is string => typeof tag === 'string' && tag !== '');

/**
 * The point as one of the gateway's. Undefined without a text or without exactly one user, whatever a filter matches: a filter on a list
 * matches any of its elements. `hasText`: whether the text was read at all.
 */
export function toOwn(mapping: Mapping, { id, fields, vector }: FoundPoint, hasText = true): FoundPoint | undefined {
  const at = (name: string | undefined) => (name === undefined ? undefined : valueAt(fields, name, mapping.nested));
  const content = hasText ? textOfNode(at(mapping.node)) || at(mapping.text) : '?';
  const [user_id, scope] = [at(mapping.user), at(mapping.scope)];
  if (!isFilled(content) || !isFilled(user_id)) return undefined;
  const created = Date.parse(toTime(at(mapping.created)) ?? NO_TIME);
  const tags = tagsIn(at(mapping.tags));
  return {
    id,
    fields: {
      ...{ memory_id: id, user_id, content, scope: isFilled(scope) ? scope : '', tags, created },
      updated: Date.parse(toTime(at(mapping.updated)) ?? new Date(created).toISOString()),
      ...{ bytes: Buffer.byteLength(content), blank: 0, written: [], conversation: '', place: 0, user_place: 0 },
      rest: JSON.stringify({ tags, ...NOTHING_ELSE }),
    },
    ...(vector && { vector }),
  };
}

/** The time of points without a readable one. */
const NO_TIME = '1970-01-01T00:00:00.000Z';
const NOTHING_ELSE = {
  source: null,
  confidence: null,
  valid_from: null,
  valid_to: null,
  supersedes: [],
  extensions: {},
};

/** Whether a point has a time where the mapping says. */
export const hasTime = ({ created, nested }: Mapping, { fields }: FoundPoint): boolean =>
  created !== undefined && toTime(valueAt(fields, created, nested)) !== undefined;

const isoOf = ({ fields }: Pick<Point, 'fields'>, name: 'created' | 'updated'): string =>
  new Date(Number(fields[name])).toISOString();

/** The fields of a new point, by name. */
export function newFields(mapping: Mapping, point: Point): PointFields {
  const { content, user_id, scope, tags } = point.fields;
  const given = [
    [mapping.text, content],
    [mapping.user, user_id],
    [mapping.scope, scope === '' ? undefined : scope],
    [mapping.created, isoOf(point, 'created')],
    [mapping.updated, isoOf(point, 'updated')],
    [mapping.tags, (tags as readonly string[]).length === 0 ? undefined : tags],
  ];
  const fields: Record<string, unknown> = {};
  for (const [name, value] of given) {
    if (typeof name !== 'string' || value === undefined) continue;
    if (mapping.nested) setPath(fields, name, value);
    else fields[name] = value;
  }
  // With `nested` there are objects.
  return fields as PointFields;
}

/**
 * The fields that a change sets of a point, which is read whole. Times keep the form that the point uses. Throws `unsupported_capability` if what a
 * field goes into is no object: the database would put one in its place.
 */
export function changedFields(
  mapping: Mapping,
  provider: string,
  { stored, before, after }: { readonly stored: FoundPoint; readonly before: FoundPoint; readonly after: Point },
): PointFields {
  const at = (name: string | undefined) =>
    name === undefined ? undefined : valueAt(stored.fields, name, mapping.nested);
  const changed = (['content', 'scope', 'tags'] as const).flatMap((name) =>
    JSON.stringify(before.fields[name]) === JSON.stringify(after.fields[name])
      ? []
      : [[name === 'content' ? mapping.text : mapping[name], after.fields[name]]],
  );
  const { updated, created } = mapping;
  const time = updated === undefined ? [] : [[updated, timeLike(at(updated) ?? at(created), isoOf(after, 'updated'))]];
  const fields: PointFields = Object.fromEntries([...changed, ...time]);
  for (const name of Object.keys(fields)) {
    const steps = stepsOf(name, mapping.nested);
    for (let count = 1; count < steps.length; count++) {
      const outer = at(steps.slice(0, count).join('.'));
      if (outer !== undefined && outer !== null && (typeof outer !== 'object' || Array.isArray(outer)))
        throw unsupported(provider, `${name}: the point has no object there, and what it has would be lost`);
    }
  }
  return fields;
}

/**
 * The memory as the collection keeps it. Throws `unsupported_capability` with the names of all fields that it cannot store: a write stores
 * everything or nothing.
 */
export function kept({ tags, scope, created, updated, noun }: Mapping, provider: string, memory: Memory): Memory {
  const names = [
    ...(memory.tags.length > 0 && tags === undefined ? ['tags'] : []),
    ...(memory.scope !== null && scope === undefined ? ['scope'] : []),
    ...(['source', 'confidence', 'valid_from', 'valid_to'] as const).filter((name) => memory[name] !== null),
    ...(memory.supersedes.length > 0 ? ['supersedes'] : []),
    ...Object.keys(memory.extensions),
  ];
  if (names.length > 0) throw unsupported(provider, `${names.join(', ')}: the ${noun} cannot store this`);
  const created_at = created === undefined ? NO_TIME : memory.created_at;
  return { ...memory, created_at, updated_at: updated === undefined ? created_at : memory.updated_at };
}

export const unsupported = (provider: string, message: string): OmpError =>
  new OmpError('unsupported_capability', message, { provider });

/**
 * The part of a filter that the database decides, in the names of its fields. Undefined: no part. Every point that matches the filter matches
 * it. Throws if the filter has tags, and the collection has none.
 */
export function foreignFilter(
  mapping: Mapping,
  can: readonly OptionalFilter[],
  filter: Filter | undefined,
): Filter | undefined {
  const parts = (filter?.op === 'and' ? filter.filters : filter ? [filter] : []).flatMap((part): Filter[] => {
    if ((part.op === 'equals' || part.op === 'anyOf') && (part.field === 'user_id' || part.field === 'scope')) {
      const field = part.field === 'user_id' ? mapping.user : mapping.scope;
      const values = part.op === 'anyOf' ? part.values : [part.value];
      if (field === undefined || values.includes('') || (part.op === 'anyOf' && !can.includes('anyOf'))) return [];
      return [{ ...part, field }];
    }
    const { tags } = mapping;
    if (part.op !== 'allOf' || part.field !== 'tags' || tags === undefined) return [];
    if (!can.includes('allOf') || !can.includes('not')) return [];
    // A list with it, or it alone.
    return part.values.map((value) => {
      const either: Filter[] = [
        { op: 'allOf', field: tags, values: [value] },
        { op: 'equals', field: tags, value },
      ];
      return not(both(...either.map(not)));
    });
  });
  return parts.length === 0 ? undefined : both(...parts);
}

const not = (filter: Filter): Filter => ({ op: 'not', filter });

/** The name of the preset whose signs most of these points have. */
export const recognised = (
  presets: Presets,
  points: readonly FoundPoint[],
  { nested = false }: { readonly nested?: boolean },
): string | undefined =>
  Object.entries(presets).find(
    ([, { signs = [] }]) =>
      signs.length > 0 &&
      points.filter(({ fields }) => signs.every((sign) => valueAt(fields, sign, nested) !== undefined)).length >
        points.length / 2,
  )?.[0];
