import { type Extensions, isTooDeep, type Memory, type Source } from '#contract';
import type { Row } from '../client/connections.ts';
import { toIso } from '../tables/timestamps.ts';
import type { FieldName } from './fields.ts';
import type { Layout } from './layout.ts';

/** Of rows that keep no time, or one that cannot be read. */
const NO_TIME = '1970-01-01T00:00:00.000Z';

/** How rows are read as memories, and in which order. */
export interface Reading {
  /** What every statement that returns records selects. */
  readonly columns: string;
  /** SQL of the size of a record, of such columns. */
  readonly bytes: string;
  /** When a row was made, as records show it: never null. Undefined: rows have no such time. */
  readonly created: string | undefined;
  /** When a row was last changed, as records show it; undefined: the table keeps no time at all. */
  readonly updated: string | undefined;
  /** SQL of the values that lists are sorted by, all descending. */
  readonly order: readonly string[];
  /** Undefined: the row is nobody's. */
  toMemory(row: Row): Memory | undefined;
}

/** `model` is that of the vectors. */
export function createReading({ fields, id, owner, temporal, vector }: Layout, model: string): Reading {
  const read = (name: FieldName, sql = fields[name]?.read) => (sql === undefined ? [] : [`${sql} as ${name}`]);
  const time = (name: 'created_at' | 'updated_at', otherwise = 'to_timestamp(0)') =>
    fields[name] && `coalesce(${toMilliseconds(fields[name].read)}, ${otherwise})`;
  const made = time('created_at');
  const created = temporal ? made : undefined;
  const updated = time('updated_at', made) ?? made;
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
    `(${vector.comparable}) is true as embedded`,
  ].join(', ');

  const long = (['tags', 'supersedes', 'extensions'] as const).filter((name) => fields[name]);
  return {
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
        // Somebody else made the vectors; the configuration says with what.
        embedding_model: row.embedded ? model : null,
        // Nobody tells how far the owner is with a row.
        status: null,
        extensions: toExtensions(row.extensions),
      };
    },
  };
}

/** Cursors and clients know milliseconds: what is finer must decide nothing. */
const toMilliseconds = (sql: string): string => `date_trunc('milliseconds', ${sql})`;
const epoch = (sql: string): string => `date_part('epoch', ${toMilliseconds(sql)}) * 1000`;

/** An empty text is no scope. Compared byte by byte, whatever the collation of the column. */
export const scopeOf = (read: string): string => `nullif(${read}, '') collate "C"`;

const toTime = (milliseconds: unknown): string | undefined =>
  typeof milliseconds === 'number' ? toIso(milliseconds) : undefined;

/** What is nested too deeply to be sent is left out. */
const toExtensions = (value: unknown): Extensions =>
  Object.fromEntries(Object.entries(value ?? {}).filter(([, inner]) => !isTooDeep(inner)));

const TYPES: readonly unknown[] = ['extracted', 'explicit', 'imported'] satisfies Source['type'][];

/** Of whatever the owner keeps there, what the protocol knows. */
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
