import type { Call, EmbedderIdentity, Finding, Log, Memory, ProviderMethods } from '#contract';
import type {
  Collection,
  CollectionSpec,
  Description,
  FoundPoint,
  MappingOptions,
  Measure,
  Preset,
  Presets,
} from './collection.ts';
import { equals } from './filters.ts';
import { createMappedView, type ForeignCollection } from './mapped-view.ts';
import {
  hasTime,
  kept,
  type Mapping,
  mappingOf,
  placesOf,
  recognised,
  settingOf,
  toOwn,
  unsupported,
} from './mapping.ts';
import { createReading, maxResults } from './reading.ts';
import { MAX_SORTED } from './walk.ts';
import { exportPage, holdingsOf } from './walks.ts';
import { createWriting } from './writing.ts';

/*
 * Collections that another application fills, with a field mapping in place of the codec. Nothing is created there or altered.
 */

interface MappedSpec extends Pick<CollectionSpec<unknown>, 'name' | 'title'> {
  readonly presets?: Presets | undefined;
  /** What people call a collection of the database. Default: collection. */
  readonly noun?: string | undefined;
}
interface MappedChoice extends MappedSpec {
  readonly options: MappingOptions;
  readonly embedder: EmbedderIdentity | undefined;
}

/** Points that are looked at. */
const SAMPLE = 100;
/** Names of fields that a message shows. */
const SHOWN = 12;

interface ExaminedCollection {
  readonly mapping: Mapping;
  readonly description: Description;
  readonly measure: Measure;
  readonly comparable: boolean;
  readonly temporal: boolean;
  /** The preset whose library fills the collection, as far as its fields tell. */
  readonly found: string | undefined;
  /** Set if no point of the sample is a memory. */
  readonly noMemories: string | undefined;
  readonly warnings: readonly string[];
}

/** Reads one page of the collection. Throws a plain `Error` for the operator if settings or embedder do not fit. */
export async function examineMapped(
  collection: ForeignCollection,
  { name, title, presets = {}, noun = 'collection', options, embedder }: MappedChoice,
  call: Call,
): Promise<ExaminedCollection> {
  const { traits } = collection;
  const mapping = mappingOf(name, presets, options, { nested: traits.nested === true, noun });
  const chosen = `${settingOf(name, 'preset')}=${options.preset}`;
  const description = await collection.describe(call);
  if (!description) {
    const place = settingOf(name, 'table' in options ? 'table' : 'collection');
    throw new Error(
      `${title} has no such ${noun}, and with ${chosen} the gateway creates none: ${place} is the name that the application gave it`,
    );
  }
  const { mistake, dimensions, measure = traits.measure } = description;
  if (mistake !== undefined) throw new Error(`the collection cannot be served: ${mistake}`);
  // An empty one may not know it yet.
  if (embedder && dimensions !== 0 && dimensions !== embedder.dimensions)
    throw new Error(
      `the collection on ${title} has vectors of ${dimensions} dimensions, and "${embedder.model}" makes ${embedder.dimensions}; configure the ` +
        'embedder that made its vectors',
    );
  const points =
    (await collection.sample?.(mapping.user, SAMPLE, call)) ??
    (await collection.page({ limit: SAMPLE, select: { vector: true } }, call)).points;
  const memories = points.filter((point) => toOwn(mapping, point) !== undefined);
  const found = recognised(presets, points, traits);
  const nobody =
    `none of ${points.length} sampled points has a text in "${mapping.node ?? mapping.text}" and one user in "${mapping.user}" ` +
    `(${settingOf(name, 'text_field')}, ${settingOf(name, 'user_field')}); they have ${namesIn(points, mapping.nested)}`;
  const filler = found === options.preset ? undefined : presets[found ?? ''];
  const better = `${settingOf(name, 'preset')}=${found}`;
  const other = filler === undefined ? '' : `, as ${filler.library} fills it: ${better}`;
  // Two presets may read the same fields. `custom` is for what the library fills no more.
  const isOther =
    filler !== undefined && options.preset !== 'custom' && !readsAlike(filler, presets[options.preset ?? '']);
  if (isOther && options.writable && filler.read_only !== undefined)
    throw new Error(`${settingOf(name, 'writable')} cannot be used with ${chosen}${other}, and ${filler.read_only}`);
  // What the database cannot take as the name of a field shows here, and not in a request. One that lists to sample takes any.
  for (const [place, field] of collection.sample ? [] : placesOf(mapping)) {
    const filter = place === 'user' || place === 'scope' ? equals(field, '-') : undefined;
    await collection.page({ filter, limit: 1, select: { fields: [field], vector: false } }, call).catch((cause) => {
      const message = `${title} cannot ${filter ? 'filter by' : 'show'} "${field}" (${settingOf(name, `${place}_field`)})`;
      throw new Error(`${message}: ${(cause as Error).message}${other}`, { cause });
    });
  }
  const temporal =
    mapping.created !== undefined && (memories.length === 0 || memories.some((each) => hasTime(mapping, each)));
  const comparable =
    measure.startsWith('cosine') ||
    traits.slow_pages !== undefined ||
    points.every(({ vector }) => !vector || isUnit(vector));
  return {
    ...{ mapping, description, measure, comparable, temporal, found },
    noMemories: points.length > 0 && memories.length === 0 ? nobody + other : undefined,
    warnings: [
      ...(isOther ? [`${chosen} can read it, but ${filler.library} fills it: ${better}`] : []),
      ...(mapping.created === undefined || temporal
        ? []
        : [
            `none of ${memories.length} sampled points has a time in "${mapping.created}" (${settingOf(name, 'created_field')}): lists are sorted by ` +
              'id, and since and until are rejected',
          ]),
      ...(comparable
        ? []
        : [
            `the collection measures by ${measure}, and its vectors have other lengths than 1: a search compares all vectors of the user in the gateway`,
          ]),
    ],
  };
}

const readsAlike = (a: Preset, b: Preset | undefined): boolean =>
  (['text', 'user', 'node', 'created', 'read_only'] as const).every((key) => a[key] === b?.[key]);

const isUnit = (vector: Float32Array): boolean =>
  Math.abs(vector.reduce((sum, component) => sum + component * component, 0) - 1) < 1e-3;

/** Names of fields of these points, one level deep into objects. They may be long. */
function namesIn(points: readonly FoundPoint[], nested: boolean): string {
  const names = new Set(
    points.flatMap(({ fields }) =>
      Object.entries(fields).flatMap(([name, value]: [string, unknown]) =>
        nested && typeof value === 'object' && value !== null && !Array.isArray(value)
          ? Object.keys(value).map((key) => `${name}.${key}`)
          : [name],
      ),
    ),
  );
  const shown = [...names].slice(0, SHOWN).map((name) => JSON.stringify(name.slice(0, 64)));
  return names.size === 0 ? 'no fields' : shown.join(', ') + (names.size > SHOWN ? ' and others' : '');
}

const isForeign = (collection: Collection): collection is Collection & ForeignCollection =>
  collection.page !== undefined && collection.change !== undefined;

export function requireForeign(collection: Collection, { title }: MappedSpec): ForeignCollection {
  if (!isForeign(collection)) throw new Error(`the adapter of ${title} has presets, and no page and change for them`);
  return collection;
}

interface MappedContext {
  readonly embedder: EmbedderIdentity;
  /** What memories say of the model of their vectors; null: it is not known. */
  readonly model: string | null;
  readonly log: Log;
  readonly max_record_bytes: number;
}

/** The verbs on a mapped collection, read-only unless `writable`. Throws a plain `Error` for the operator. */
export async function mappedMethods(
  raw: ForeignCollection,
  spec: MappedSpec & { readonly options: MappingOptions },
  { embedder, model, log, max_record_bytes }: MappedContext,
  call: Call,
): Promise<ProviderMethods> {
  const { name, options, noun = 'collection' } = spec;
  const examined = await examineMapped(raw, { ...spec, embedder }, call);
  const { mapping, noMemories, warnings, temporal } = examined;
  for (const warning of noMemories === undefined ? warnings : [noMemories, ...warnings])
    log.warn({}, `this mapped ${noun}: ${warning}`);
  const view = createMappedView(raw, { provider: name, ...examined });
  const shelf = {
    collection: view,
    model,
    dimensions: embedder.dimensions,
    scoped: false,
    max_scan: MAX_SORTED,
    kept: (memory: Memory) => ({ ...kept(mapping, name, memory), ...(model === null && { status: null }) }),
  };
  return {
    capabilities: {
      vector_search: true,
      temporal,
      temporal_search: temporal && view.traits.slow_pages === undefined,
      scopes: mapping.scope === undefined ? 'none' : 'native',
      tags: mapping.tags !== undefined,
      max_search_results: maxResults(view),
      mapped: true,
      complete_export: view.traits.slow_pages === undefined,
      explain: true,
    },
    ...createReading(shelf),
    export(query, call) {
      if (query.since !== undefined && mapping.created === undefined && mapping.updated === undefined)
        throw unsupported(name, `since: the ${noun} has no times`);
      return exportPage(shelf, query, call);
    },
    ...(options.writable
      ? {
          ...withoutImport(createWriting(shelf, { max_record_bytes })),
          holdings: (query, call) => holdingsOf(shelf, query, call),
        }
      : { read_only: `the ${noun} is read-only: ${settingOf(name, 'writable')}=true lets the gateway change it` }),
    ping: (call) => raw.ping(call),
    close: () => raw.close(),
  };
}

/** Ids and times are the application's. */
const withoutImport = ({ import: _, ...methods }: ReturnType<typeof createWriting>) => methods;

export const finding = (area: Finding['area'], level: Finding['level'], message: string): Finding => ({
  area,
  level,
  message,
});

/** What `doctor` finds about a mapped collection. Reads only. */
export async function diagnoseMapped(collection: Collection, asked: MappedChoice, call: Call): Promise<Finding[]> {
  const { name, title, presets = {}, options, embedder } = asked;
  const examined = await examineMapped(requireForeign(collection, asked), asked, call);
  const { description, measure, noMemories, warnings, found, mapping } = examined;
  const { dimensions, points, indexed } = description;
  const use = options.writable ? 'read and written' : 'read-only';
  const chosen = `${settingOf(name, 'preset')}=${options.preset}`;
  const library = found === undefined ? '' : `, and its points have the fields of ${presets[found]?.library}`;
  return [
    finding('connection', 'ok', `${title} answers; whether the gateway may write was not tried`),
    noMemories === undefined
      ? finding('mapping', 'ok', `${chosen} fits the collection, which is ${use}${library}`)
      : finding('mapping', 'problem', noMemories),
    finding('size', 'ok', `${points} points, vectors of ${dimensions} dimensions, compared by ${measure}`),
    ...(embedder
      ? [
          finding(
            'embedding',
            'ok',
            `the collection does not say whether "${embedder.model}" made its vectors; the dimensions are the same`,
          ),
        ]
      : []),
    ...(indexed && !indexed.includes(mapping.user)
      ? [finding('indexes', 'warning', `no index for "${mapping.user}": every request reads all points`)]
      : []),
    ...warnings.map((warning) => finding('mapping', 'warning', warning)),
  ];
}

const NOTHING = { points: [] };
/** Which preset would serve a collection that is not the gateway's. Empty: none that is known. */
export async function suggestion(
  collection: Collection,
  { name, presets = {} }: MappedSpec,
  call: Call,
): Promise<string> {
  if (!isForeign(collection)) return '';
  // What cannot be read, such as rows without ids, no preset serves.
  const { points } = await collection.page({ limit: SAMPLE, select: { vector: false } }, call).catch(() => NOTHING);
  const isOwn = points.some(({ fields }) => fields.memory_id !== undefined);
  const found = isOwn ? undefined : recognised(presets, points, collection.traits);
  return found === undefined
    ? ''
    : `; ${presets[found]?.library} fills it: ${settingOf(name, 'preset')}=${found} serves it as it is`;
}
