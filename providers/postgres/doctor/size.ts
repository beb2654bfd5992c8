import type { Finding } from '#contract';
import { ok, warning } from './findings.ts';
import type { Read } from './reading.ts';

/** What the planner's statistics tell of a table. Null: they do not tell. */
export interface Size {
  readonly rows: number | null;
  readonly users: number | null;
  /** Rows of the user who has most. */
  readonly largest: number | null;
  readonly analysed: boolean;
}

/** Where there are statistics of the owner: the table and its column, or an index and its expression. */
export interface StatisticsOf {
  readonly relation: string;
  readonly attribute: string;
}

/** Estimates alone: counting would read the whole table. No value of a column is asked for. */
export async function estimateSize(
  read: Read,
  schema: string,
  table: string,
  owner: StatisticsOf | undefined,
): Promise<Size> {
  const [whole] = await read<{ rows: number | null; analysed: boolean }>(
    `select case when c.reltuples >= 0 and (c.reltuples > 0 or c.relpages > 0 or s.analysed) then c.reltuples::float8 end as rows,
       coalesce(s.analysed, false) or exists (select from pg_stats p where p.schemaname = $1 and p.tablename = $2) as analysed
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     left join lateral (
       select coalesce(last_analyze, last_autoanalyze) is not null as analysed from pg_stat_all_tables where relid = c.oid
     ) s on true
     where n.nspname = $1 and c.relname = $2`,
    [schema, table],
  );
  const { rows = null, analysed = false } = whole ?? {};
  const [spread] = owner
    ? await read<{ distinct: number; share: number | null }>(
        `select n_distinct::float8 as distinct, most_common_freqs[1]::float8 as share from pg_stats
         where schemaname = $1 and tablename = $2 and attname = $3 order by inherited desc limit 1`,
        [schema, owner.relation, owner.attribute],
      )
    : [];
  if (rows === null || !spread) return { rows, users: null, largest: null, analysed };
  const users = Math.max(1, Math.round(spread.distinct < 0 ? -spread.distinct * rows : spread.distinct));
  // Without common values everybody has about the same.
  return { rows, users, largest: Math.round(spread.share === null ? rows / users : spread.share * rows), analysed };
}

/**
 * How many rows there are, and how they are spread over users. `table` is quoted. `needless`: statistics are not to be
 * expected, or of no use.
 */
export function lookAtSize({ rows, users, largest, analysed }: Size, table: string, needless: boolean): Finding {
  if (!analysed) {
    if (needless) return ok('size', 'there are no statistics yet, so sizes are not known');
    return warning('size', 'ANALYZE has never run on the table: the planner guesses, and sizes are not known', {
      sql: `analyze ${table};`,
      reason: 'tells the planner how many rows and users there are; autovacuum, where it is on, does it by itself',
    });
  }
  if (rows === null) return ok('size', 'the number of rows is not known');
  const spread =
    users === null || largest === null
      ? 'how they are spread over users the statistics do not tell'
      : `of ${about(users)} users, ${about(rows / users)} each on average; the largest has ${about(largest)} (${percent(largest / rows)})`;
  return ok('size', `${about(rows)} rows, ${spread}`);
}

/** Two significant digits: more would feign precision. */
const about = (number: number): string => `about ${Number(number.toPrecision(2)).toLocaleString('en')}`;
const percent = (share: number): string => `${Math.round(share * 100)} %`;
