import type { RankingOptions, SearchQuery } from '#contract';
import { queryTerms, weights } from '#ranking';
import {
  type Conditions,
  conditions,
  whereScopePrefix,
  whereTags,
  whereWithin,
  whereWithinRanges,
} from './conditions.ts';
import { toHalfvec } from './halfvec.ts';
import { toBigintArray, toKeys } from './keywords.ts';
import type { Names } from './names.ts';
import { COLUMNS } from './rows.ts';

/**
 * How many nearest vectors of a large user compete with the keyword matches; also the largest limit an indexed search
 * can serve.
 */
export const VECTOR_CANDIDATES = 400;

/** Session settings of a search through the vector index: it goes on until enough rows of this user are found. */
export const INDEX_SETTINGS = `set local hnsw.iterative_scan = relaxed_order; set local hnsw.ef_search = ${VECTOR_CANDIDATES}`;

interface Search {
  readonly query: SearchQuery;
  readonly vector: Float32Array | undefined;
  readonly how: 'exact' | 'indexed';
}

/**
 * The whole ranking in one statement, the same arithmetic as on every provider: cosine and IDF-weighted term coverage
 * of each of this user's memories, their weighted sum, best first. Each row also tells how many memories there are.
 * Memories outside of what the caller may see are left out of all of it, as if they were not stored.
 *
 * `exact` looks at every memory of the user. `indexed`, for users with so many that this gets slow, looks at the
 * nearest vectors and at every memory that shares a term with the query. An index scan gives up after so many rows of
 * other users and other scopes; when it came back with too few, every memory is looked at after all.
 */
export function searchStatement(
  names: Names,
  ranking: RankingOptions,
  { query, vector, how }: Search,
): { text: string; values: readonly unknown[] } {
  const where = conditions();
  const visible = part(where, (own) => whereWithin(own, query.within));
  const user = `user_id = ${where.place(query.user_id)} and ${visible}`;
  const whole = `${user} and ${part(where, (own) => whereWithinRanges(own, query))}`;
  const keys = toKeys(query.user_id, queryTerms(query.text));
  const weight = weights(ranking, keys.length);
  const keysPlace = weight.keyword > 0 && keys.length > 0 ? where.place(toBigintArray(keys)) : undefined;
  const vectorPlace = vector && weight.vector > 0 ? where.place(toHalfvec(vector)) : undefined;
  const keyArray = `${keysPlace}::bigint[]`;
  const distance = `embedding ${names.cosineDistance} ${vectorPlace}::${names.halfvec}`;
  const wanted = part(where, (own) => {
    whereScopePrefix(own, query);
    whereTags(own, query.tags);
  });

  const near = `near as materialized (
        select id from ${names.memories} where ${user} and large and ${wanted} order by ${distance} limit ${VECTOR_CANDIDATES}),
      rest as (
        select id from ${names.memories} where ${whole} and ${wanted} and (select count(*) from near) < ${VECTOR_CANDIDATES}),`;
  const sharing = `select id from ${names.memories} where large and keywords && ${keyArray} and ${user}`;
  const candidates = [vectorPlace && 'select id from near union select id from rest', keysPlace && sharing];
  const [first, mine, everything, withTerm] =
    how === 'exact'
      ? ['', whole, 'mine', 'mine where key = any(keywords)']
      : [
          vectorPlace ? near : '',
          `id in (${candidates.filter(Boolean).join(' union ') || 'null'})`,
          `${names.memories} where ${whole}`,
          `${names.memories} where large and keywords @> array[key] and ${visible}`,
        ];

  // A zero vector has no direction: NaN in pgvector, no similarity here.
  const cosine = vectorPlace ? `greatest(0, coalesce(nullif(1 - (${distance}), 'NaN'), 0))` : '0';
  const coverage = keysPlace
    ? `case when keywords && ${keyArray} then (select sum(idf) from term where key = any(keywords)) / (select sum(idf) from term) else 0 end`
    : '0';
  const score = `${where.place(weight.vector)}::float8 * cosine + ${where.place(weight.keyword)}::float8 * ${coverage}`;
  return {
    text: `
      with ${first} mine as materialized (select *, ${cosine} as cosine from ${names.memories} where ${mine}),
      total as materialized (select count(*)::float8 as rows from ${everything}),
      frequency as materialized (
        select key, (select count(*)::float8 from ${withTerm}) as df from unnest(${keysPlace ? keyArray : 'null::bigint[]'}) as key),
      term as materialized (
        select key, ln(1 + (rows - df + 0.5::float8) / (df + 0.5::float8)) as idf from frequency, total)
      select ${COLUMNS}, score, (select rows from total) as total
      from (select *, least(1, floor((${score}) * 1e6::float8 + 0.5::float8) / 1e6::float8) as score from mine where ${wanted}) as hit
      ${ranking.mode === 'keyword' ? 'where score > 0' : ''}
      order by score desc, hit.created_at desc, hit.id desc limit ${where.place(query.limit)}`,
    values: where.values,
  };
}

/** Some of the conditions as a text of their own: rarity is judged over all visible memories, the filters only pick hits. */
function part(where: Conditions, write: (own: Conditions) => void): string {
  const own: string[] = [];
  write({ ...where, and: (condition) => void own.push(condition) });
  return own.length > 0 ? own.join(' and ') : 'true';
}
