import pg from 'pg';
import type { Extensions, Memory, Source } from '#contract';
import type { Row } from '../client/connections.ts';
import { inShard, type Names } from './names.ts';
import { toIso } from './timestamps.ts';

/** Times are read as epoch milliseconds: parsing timestamp texts costs a third of a list's throughput. */
const milliseconds = (column: string, value = column) => `date_part('epoch', ${value}) * 1000 as ${column}`;

/** The columns of a record as they are stored. */
export const STORED =
  'id, user_id, content, scope, tags, source, confidence, created_at, updated_at, valid_from, valid_to, supersedes, extensions';

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

/** Usually the compressed size decides, which is at hand. The value may be some ten times as long. */
const isShort = (column: string, share: string): string =>
  `(pg_column_size(${column}) <= 500 or octet_length(${column}::text) <= ${share} / 8)`;

/**
 * The columns of a list or search without large values: a row that has one also has no content. Costs small rows almost
 * nothing, whereas a sum over the rows costs a tenth of the time. `share`: SQL of the limit in bytes.
 */
export const omitLarge = (columns: string, share: string): string => {
  const short = ['tags', 'supersedes', 'extensions'].map((column) => isShort(column, share)).join(' and ');
  return columns
    .replace('content', `case when octet_length(content) <= ${share} and ${short} then content end as content`)
    .replace(/nullif\((\w+), '{}'[^)]*\)/g, (field, column) => `case when ${isShort(column, share)} then ${field} end`);
};

/** SQL of the size of a row (`recordBytes`), or a little less. */
export const bytesOf = ({ content, tags, supersedes, extensions }: Readonly<Record<string, string>> = TEXTS): string =>
  `octet_length(${content}) + octet_length(${tags}) + octet_length(${supersedes}) + octet_length(${extensions})
   + coalesce(octet_length(source::text), 0)`;
const TEXTS = {
  content: 'content',
  tags: 'tags::text',
  supersedes: 'supersedes::text',
  extensions: 'extensions::text',
};

/** SQL of the same as the row will be. `changed`: SQL of columns that change. All functions are immutable, as Citus needs in an update. */
export function bytesAfter(changed: Readonly<Record<string, string>>): string {
  const join = (column: string) =>
    `(select coalesce(string_agg(text, ''), '') from unnest(${changed[column] ?? column}) as text)`;
  const extensions = `(${changed.extensions ?? 'extensions'})::text`;
  return bytesOf({
    content: changed.content ?? 'content',
    tags: join('tags'),
    supersedes: join('supersedes'),
    extensions,
  });
}

/** Of rows with `bytes`: those up to the one that exceeds `most`, at least two, in this order. All arguments are SQL. */
export const firstWithin = (rows: string, order: string, most: string): string =>
  `(select * from (select *, sum(bytes) over place - bytes as bytes_before, row_number() over place as nth
     from (${rows}) as sized window place as (order by ${order})) as placed where bytes_before <= ${most} or nth <= 2)`;

/** Null if the memory is not in the ingestion queue: it is done. */
export const queueStatus = (names: Names, shard = inShard(names)): string =>
  `(select status from ${names.ingestion} where memory_id = id and ${shard})`;

/**
 * The same for many rows. An unused queue has no page: asking for that once saves an eighth of PostgreSQL's time for a list
 * of 50, but costs more than the lookup for a single row. On Citus only the nodes know the size.
 */
export const queueStatusOfMany = (names: Names): string =>
  names.distributed
    ? queueStatus(names)
    : `case when (select pg_relation_size(${pg.escapeLiteral(names.ingestion)}::regclass) > 0) then ${queueStatus(names)} end`;

/**
 * The columns of every statement that returns records. Empty values are sent as null and restored by `toMemory`. `status`
 * is for a statement that changes the queue, because it would read the old status.
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

/** A `text[]` parameter; the driver's conversion is slower for the usual empty list. */
export const toTextArray = (values: readonly string[]): string =>
  `{${values.map((value) => `"${value.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`;
