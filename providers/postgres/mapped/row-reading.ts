import { type Extensions, MAX_DEPTH, type Memory, type Source } from '#provider';
import type { Row } from '../client/connections.ts';
import { toIso } from '../sql/values.ts';
import type { FieldName } from './field-mapping.ts';
import type { Layout } from './layout.ts';

/** The time of rows without one, or with one that cannot be read. */
const NO_TIME = '1970-01-01T00:00:00.000Z';

/** How rows are selected, sorted and decoded. */
export interface Reading {
  /** The column that says whether a row has a vector. */
  readonly embedded: string;
  /** The columns of every statement that returns records. */
  readonly columns: string;
  /** SQL of the size of a record, by these columns. */
  readonly bytes: string;
  /** SQL of the time of creation, as records show it: never null. Undefined if lists are not sorted by it. */
  readonly created: string | undefined;
  /** SQL of the time of the last change, as records show it. Undefined if no time is mapped. */
  readonly updated: string | undefined;
  /** SQL of the values that lists are sorted by, all descending. */
  readonly order: readonly string[];
  /** Undefined if the row has no owner. */
  toMemory(row: Row): Memory | undefined;
}

/** `model` computed the vectors. */
export function createReading({ fields, id, owner, temporal, vector }: Layout, model: string): Reading {
  const read = (name: FieldName, sql = fields[name]?.read) => (sql === undefined ? [] : [`${sql} as ${name}`]);
  const time = (name: 'created_at' | 'updated_at', otherwise = 'to_timestamp(0)') =>
    fields[name] && `coalesce(${toMilliseconds(fields[name].read)}, ${otherwise})`;
  const made = time('created_at');
  const created = temporal ? made : undefined;
  const updated = time('updated_at', made) ?? made;
  const embedded = `(${vector.comparable}) is true as embedded`;
  const columns = [
    `${id.read} as id`,
    ...read('user_id'),
    ...read('content'),
    ...read('scope', fields.scope && scopeOf(fields.scope.read)),
    ...read('tags'),
    ...read('source'),
    ...read('confidence'),
    ...read('created_at', made && epoch(made)),
    ...read('updated_at', updated && epoch(updated)),
    ...read('valid_from', fields.valid_from && epoch(fields.valid_from.read)),
    ...read('valid_to', fields.valid_to && epoch(fields.valid_to.read)),
    ...read('supersedes'),
    ...read('extensions'),
    embedded,
  ].join(', ');

  const long = (['tags', 'supersedes', 'extensions'] as const).filter((name) => fields[name]);
  return {
    embedded,
    columns,
    bytes: ['content', ...long].map((name) => `coalesce(octet_length(${name}::text), 0)`).join(' + '),
    created,
    updated,
    order: [...(created ? [created] : []), ...id.columns.map(({ sql }) => sql)],
    toMemory(row) {
      const user_id = owner.toUser(row.user_id as string);
      if (user_id === undefined) return undefined;
      const created_at = toTime(row.created_at) ?? NO_TIME;
      return {
        id: row.id as string,
        content: row.content as string,
        user_id,
        scope: (row.scope as string | null | undefined) ?? null,
        tags: (row.tags as string[] | null | undefined) ?? [],
        source: toSource(row.source),
        confidence: (row.confidence as number | null | undefined) ?? null,
        created_at,
        updated_at: toTime(row.updated_at) ?? created_at,
        valid_from: toTime(row.valid_from) ?? null,
        valid_to: toTime(row.valid_to) ?? null,
        supersedes: (row.supersedes as string[] | null | undefined) ?? [],
        // Other applications compute vectors too; the configuration names their model.
        embedding_model: row.embedded ? model : null,
        // The table does not say whether the application is done with a row.
        status: null,
        extensions: toExtensions(row.extensions),
      };
    },
  };
}

/** Cursors and clients know milliseconds only, so the order must not depend on more. */
const toMilliseconds = (sql: string): string => `date_trunc('milliseconds', ${sql})`;
const epoch = (sql: string): string => `date_part('epoch', ${toMilliseconds(sql)}) * 1000`;

/** An empty text is no scope. Compared by bytes under any collation. */
export const scopeOf = (read: string): string => `nullif(${read}, '') collate "C"`;

const toTime = (milliseconds: unknown): string | undefined =>
  typeof milliseconds === 'number' ? toIso(milliseconds) : undefined;

const isTooDeep = (value: unknown, levels = MAX_DEPTH): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => isTooDeep(inner, levels - 1)));

/** Omits values that are nested too deeply to be sent. */
const toExtensions = (value: unknown): Extensions =>
  Object.fromEntries(Object.entries(value ?? {}).filter(([, inner]) => !isTooDeep(inner)));

const TYPES: readonly unknown[] = ['extracted', 'explicit', 'imported'] satisfies Source['type'][];

/** Keeps what the protocol defines. */
function toSource(value: unknown): Source | null {
  if (typeof value !== 'object' || value === null) return null;
  const { app, type, ref } = value as Record<string, unknown>;
  const source = {
    ...(typeof app === 'string' && { app }),
    ...(TYPES.includes(type) && { type }),
    ...(typeof ref === 'string' && { ref }),
  } as Source;
  return Object.keys(source).length > 0 ? source : null;
}
