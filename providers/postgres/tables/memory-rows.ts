import pg from 'pg';
import type { Extensions, Memory, Source } from '#provider';
import type { Row } from '../client/connections.ts';
import { toIso } from '../sql/values.ts';
import type { Names } from './names.ts';

/** A column of a record: the SQL that reads it, and whether its value may be large. */
interface Column<Name extends string = string> {
  readonly name: Name;
  readonly read: string;
  readonly large: boolean;
}

const plain = <Name extends string>(name: Name): Column<Name> => ({ name, read: name, large: false });

/** Times are read as epoch milliseconds: parsing timestamp texts costs a third of a list's throughput. */
const time = <Name extends string>(name: Name, value: string = name): Column<Name> => ({
  ...plain(name),
  read: `date_part('epoch', ${value}) * 1000`,
});

/** An empty value is sent as null, which `toMemory` restores. */
const collection = <Name extends string>(name: Name, empty: string): Column<Name> => ({
  name,
  read: `nullif(${name}, ${empty})`,
  large: true,
});

const COLUMNS = [
  plain('id'),
  plain('user_id'),
  { ...plain('content'), large: true },
  plain('scope'),
  collection('tags', `'{}'`),
  plain('source'),
  plain('confidence'),
  time('created_at'),
  time('updated_at', 'nullif(updated_at, created_at)'),
  time('valid_from'),
  time('valid_to'),
  collection('supersedes', `'{}'`),
  collection('extensions', `'{}'::jsonb`),
];

const selectList = (columns: readonly Column[]): string =>
  columns.map(({ name, read }) => (read === name ? name : `${read} as ${name}`)).join(', ');

/** The names of the columns. */
export const RECORD = COLUMNS.map(({ name }) => name);
export type RecordColumn = (typeof RECORD)[number];
export const COLUMN_NAMES = RECORD.join(', ');
const LARGE = COLUMNS.filter(({ large }) => large);
const WHOLE = selectList(COLUMNS);

/**
 * The columns of every statement that returns records. `status` is for a statement that changes the queue, because it would
 * read the old status. `limit`: SQL of a number of bytes. A longer value is then null, and its row has no content. That
 * costs small rows almost nothing, whereas a sum over the rows costs a tenth of the time of a list or search.
 */
export const columnsOf = (names: Names, status = queueStatus(names), limit?: string): string =>
  `${limit === undefined ? WHOLE : selectList(COLUMNS.map((column) => withinLimit(column, limit)))}, ${status} as status`;

function withinLimit(column: Column, limit: string): Column {
  if (!column.large) return column;
  const tests = (column.name === 'content' ? LARGE : [column]).map(({ name }) => isShort(name, limit));
  return { ...column, read: `case when ${tests.join(' and ')} then ${column.read} end` };
}

/** Usually the compressed size decides, which is at hand. The value may be some ten times as long. */
const isShort = (column: string, limit: string): string =>
  column === 'content'
    ? `octet_length(content) <= ${limit}`
    : `(pg_column_size(${column}) <= 500 or octet_length(${column}::text) <= ${limit} / 8)`;

const sumOfBytes = (...texts: readonly string[]): string =>
  [...texts.map((text) => `octet_length(${text})`), 'coalesce(octet_length(source::text), 0)'].join(' + ');

/** SQL of the size of a row (`recordBytes`), or a little less. */
export const BYTES = sumOfBytes('content', 'tags::text', 'supersedes::text', 'extensions::text');

/** SQL of the size after a change. `changed`: SQL of columns that change. All functions are immutable, as Citus needs in an update. */
export function bytesAfter(changed: Readonly<Record<string, string>>): string {
  const sql = (column: string) => changed[column] ?? column;
  const joined = (column: string) => `(select coalesce(string_agg(text, ''), '') from unnest(${sql(column)}) as text)`;
  return sumOfBytes(sql('content'), joined('tags'), joined('supersedes'), `(${sql('extensions')})::text`);
}

/** Null if the memory is not in the ingestion queue: it is done. */
export const queueStatus = (names: Names, shard = names.placement.inShard()): string =>
  `(select status from ${names.ingestion} where memory_id = id and ${shard})`;

/**
 * The same for many rows. An unused queue has no page: a look at that once saves an eighth of PostgreSQL's time for a list
 * of 50, but costs more than the lookup for a single row. On Citus only the nodes know the size.
 */
export const queueStatusOfMany = (names: Names): string =>
  names.placement.distributed
    ? queueStatus(names)
    : `case when (select pg_relation_size(${pg.escapeLiteral(names.ingestion)}::regclass) > 0) then ${queueStatus(names)} end`;

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
