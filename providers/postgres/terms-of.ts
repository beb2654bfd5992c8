import { MAX_TERMS } from '#ranking';

/** Most stored terms that one search reads: about half a second. */
const MOST_READ = 4_000_000;
/** Read of each memory however many there are: ordinary memories have fewer. */
const FEWEST_READ = 256;
/** So many comparisons take less time than reading the terms of a memory one by one. */
const FEW_COMPARISONS = 512;
const KEY_BYTES = 8;

/**
 * Part of a `with`: which of the memories in `from` hold which of the keys in `asked`. Every stored term is read once, for
 * any number of terms asked for; comparing each with each would multiply the two. Where the memories together have more
 * than `MOST_READ` terms, as many of the first of each are read as fit.
 */
export function termsOf(from: string, asked: string): string {
  const readOfEach = `
    select case when sum(pg_column_size(keywords)) <= ${KEY_BYTES * MOST_READ} then ${MAX_TERMS}
      else least(${MAX_TERMS}, greatest(${FEWEST_READ}, ${MOST_READ} / nullif(count(*), 0))) end
    from ${from}`;
  const isLong = `pg_column_size(keywords) > ${KEY_BYTES * FEW_COMPARISONS} / cardinality(${asked})`;
  return `${from}_terms as materialized (
    select id as holder, key
    from (select id, unnest(keywords[1:(${readOfEach})]) as key from ${from} where ${isLong} or keywords && ${asked}) as stored
      join unnest(${asked}) as asked (key) using (key))`;
}
