import pg from 'pg';
import type { Extensions, Memory, Source } from '#contract';
import type { Row } from './connections.ts';

/** Times leave Postgres as epoch milliseconds: parsing its timestamp text costs a third of a list's throughput. */
const milliseconds = (column: string) => `date_part('epoch', ${column}) * 1000 as ${column}`;

/** What every statement that returns records selects. */
export const COLUMNS = [
  'id',
  'user_id',
  'content',
  'scope',
  'tags',
  'source',
  'confidence',
  milliseconds('created_at'),
  milliseconds('updated_at'),
  milliseconds('valid_from'),
  milliseconds('valid_to'),
  'supersedes',
  'extensions',
].join(', ');

export const toMemory = (row: Row, embeddingModel: string | null): Memory => ({
  id: row.id as string,
  content: row.content as string,
  user_id: row.user_id as string,
  scope: row.scope as string | null,
  tags: row.tags as string[],
  source: row.source as Source | null,
  confidence: row.confidence as number | null,
  created_at: toIso(row.created_at as number),
  updated_at: toIso(row.updated_at as number),
  valid_from: row.valid_from === null ? null : toIso(row.valid_from as number),
  valid_to: row.valid_to === null ? null : toIso(row.valid_to as number),
  supersedes: row.supersedes as string[],
  embedding_model: embeddingModel,
  status: 'done',
  extensions: row.extensions as Extensions,
});

const toIso = (epochMilliseconds: number): string => new Date(Math.round(epochMilliseconds)).toISOString();

const TEXT_ARRAY: number = 1009;
const parseTextArray = pg.types.getTypeParser(TEXT_ARRAY) as (text: string) => string[];

/** How the driver reads values: as usual, but most records have no tags and supersede nothing. */
export const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    (oid as number) === TEXT_ARRAY
      ? (text: string) => (text === '{}' ? [] : parseTextArray(text))
      : pg.types.getTypeParser(oid, format),
};

/** A `text[]` parameter; the driver's own conversion is slower for the usual empty list. */
export const toTextArray = (values: readonly string[]): string =>
  `{${values.map((value) => `"${value.replace(/[\\"]/g, '\\$&')}"`).join(',')}}`;
