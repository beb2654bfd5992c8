import type { Extensions, Memory, Source } from '#contract';
import type { Row } from './client/connections.ts';
import type { Names } from './tables/names.ts';
import { toIso } from './tables/timestamps.ts';

/** Times leave Postgres as epoch milliseconds: parsing its timestamp text costs a third of a list's throughput. */
const milliseconds = (column: string, value = column) => `date_part('epoch', ${value}) * 1000 as ${column}`;

const COLUMNS = [
  'id',
  'user_id',
  'content',
  'scope',
  `nullif(tags, '{}') as tags`,
  'source',
  'confidence',
  milliseconds('created_at'),
  milliseconds('updated_at', 'nullif(updated_at, created_at)'),
  milliseconds('valid_from'),
  milliseconds('valid_to'),
  `nullif(supersedes, '{}') as supersedes`,
  `nullif(extensions, '{}'::jsonb) as extensions`,
].join(', ');

/** Compressed, and so perhaps some ten times as long: only ever asked of what is rarely long. */
const isShort = (column: string): string => `pg_column_size(${column}) <= 500`;
const SHORT = ['tags', 'supersedes', 'extensions'].map(isShort).join(' and ');

/**
 * For a list of rows that are hardly ever large: what is too large is left out, the content of such a row always. So that
 * costs a list of small ones next to nothing (a sum over the rows: a tenth of its time). `share` is SQL of the most bytes.
 */
export const unlessLarge = (columns: string, share: string): string =>
  columns
    .replace('content', `case when octet_length(content) <= ${share} and ${SHORT} then content end as content`)
    .replace(/nullif\((\w+), '{}'[^)]*\)/g, (field, column) => `case when ${isShort(column)} then ${field} end`);

/** SQL of the size of a row (`recordBytes`), or a little less; with some columns changed, what it would be then. */
export const bytesOf = ({ content, tags, supersedes, extensions }: Readonly<Record<string, string>> = {}): string =>
  `octet_length(${content ?? 'content'}) + octet_length(${tags ?? 'tags'}::text) + octet_length(${supersedes ?? 'supersedes'}::text)
   + octet_length((${extensions ?? 'extensions'})::text) + coalesce(octet_length(source::text), 0)`;

/** Of rows that have their `bytes`: those up to the one that passes `most`, at least two, in this order. All are SQL. */
export const firstWithin = (rows: string, order: string, most: string): string =>
  `(select * from (select *, sum(bytes) over place - bytes as bytes_before, row_number() over place as nth
     from (${rows}) as sized window place as (order by ${order})) as placed where bytes_before <= ${most} or nth <= 2)`;

/** Null of a memory that is not in the queue: it is done. */
const queueStatus = (names: Names): string => `(select status from ${names.ingestion} where memory_id = id)`;

/**
 * What every statement that returns records selects. What most records lack travels as null and is put back below.
 * `status` is for a statement that changes the queue itself, of which it would see what was there before.
 */
export const columnsOf = (names: Names, status = queueStatus(names)): string => `${COLUMNS}, ${status} as status`;

export function toMemory(row: Row, embeddingModel: string | null): Memory {
  const created_at = toIso(row.created_at as number);
  return {
    id: row.id as string,
    content: row.content as string,
    user_id: row.user_id as string,
    scope: row.scope as string | null,
    tags: (row.tags as string[] | null) ?? [],
    source: row.source as Source | null,
    confidence: row.confidence as number | null,
    created_at,
    updated_at: row.updated_at === null ? created_at : toIso(row.updated_at as number),
    valid_from: row.valid_from === null ? null : toIso(row.valid_from as number),
    valid_to: row.valid_to === null ? null : toIso(row.valid_to as number),
    supersedes: (row.supersedes as string[] | null) ?? [],
    embedding_model: embeddingModel,
    status: (row.status as Memory['status']) ?? 'done',
    extensions: (row.extensions as Extensions | null) ?? {},
  };
}

/** A `text[]` parameter; the driver's own conversion is slower for the usual empty list. */
export const toTextArray = (values: readonly string[]): string =>
  `{${values.map((value) => `"${value.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`;
