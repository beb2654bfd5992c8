import type { RankingOptions, SearchQuery } from '#contract';
import { weights } from '#ranking';
import { type Conditions, conditions, whereScopePrefix, whereTags } from './conditions.ts';
import { toHalfvec } from './halfvec.ts';
import { keywordsOf, toBigintArray } from './keywords.ts';
import type { Names } from './names.ts';
import { COLUMNS } from './rows.ts';

/** How many nearest vectors of a large user compete with the keyword matches. */
const VECTOR_CANDIDATES = 400;

/** Session settings of a search through the vector index: it goes on until enough rows of this user are found. */
export const INDEX_SETTINGS = `set local hnsw.iterative_scan = relaxed_order; set local hnsw.ef_search = ${VECTOR_CANDIDATES}`;

interface Search {
  readonly query: SearchQuery;
  readonly vector: Float32Array | undefined;
  readonly how: 'exact' | 'indexed';
}

interface SearchText {
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * The whole ranking in one statement, the same arithmetic as on every provider: cosine and IDF-weighted term coverage
 * of each of this user's memories, their weighted sum, best first. Each row also tells how many memories the user has.
 *
 * `exact` looks at every memory of the user. `indexed`, for users with so many that this gets slow, looks at the
 * nearest vectors by index, at every memory that shares a term with the query, and at what is not indexed yet.
 */
export function searchStatement(names: Names, ranking: RankingOptions, { query, vector, how }: Search): SearchText {
  const where = conditions();
  const user = `user_id = ${where.place(query.user_id)}`;
  const keys = keywordsOf(query.user_id, query.text);
  const weight = weights(ranking, keys.length);
  const place = {
    keys: weight.keyword > 0 ? where.place(toBigintArray(keys)) : undefined,
    vector: vector && weight.vector > 0 ? where.place(toHalfvec(vector)) : undefined,
  };
  const distance = `embedding ${names.cosineDistance} ${place.vector}::${names.halfvec}`;
  // A zero vector has no direction: NaN in pgvector, no similarity here.
  const cosine = place.vector ? `greatest(0, coalesce(nullif(1 - (${distance}), 'NaN'), 0))` : '0';
  const wanted = filters(where, query);

  const candidates =
    how === 'exact'
      ? `select *, ${cosine} as cosine from ${names.memories} where ${user}`
      : `select *, ${cosine} as cosine from ${names.memories} where id in (
           ${[
             place.vector &&
               `(select id from ${names.memories} where ${user} and large and ${wanted} order by ${distance} limit ${VECTOR_CANDIDATES})`,
             place.keys &&
               `select id from ${names.memories} where large and keywords && ${place.keys}::bigint[] and ${user}`,
             `select id from ${names.memories} where ${user} and not large`,
           ]
             .filter(Boolean)
             .join(' union ')})`;
  const population = how === 'exact' ? 'mine' : `${names.memories} where ${user}`;
  const withTerm =
    how === 'exact'
      ? 'mine where key = any(keywords)'
      : `${names.memories} where (large and keywords @> array[key] and ${user}) or (not large and ${user} and keywords @> array[key])`;

  const terms = `term as materialized (
       select key, ln(1 + (total.rows - df + 0.5) / (df + 0.5)) as idf
       from total, (select key, (select count(*) from ${withTerm}) as df from unnest(${place.keys}::bigint[]) as key) as frequency)`;
  const coverage = place.keys
    ? `coalesce((select sum(idf) from term where key = any(keywords)), 0) / (select sum(idf) from term)`
    : '0';
  const score = `least(1, floor((${where.place(weight.vector)}::float8 * cosine + ${where.place(weight.keyword)}::float8 * ${coverage}) * 1e6 + 0.5) / 1e6)`;
  return {
    text: `with mine as materialized (${candidates}),
       total as materialized (select count(*) as rows from ${population})${place.keys ? `, ${terms}` : ''}
     select ${COLUMNS}, score, (select rows from total) as total
     from (select *, ${score} as score from mine where ${wanted}) as hit
     ${ranking.mode === 'keyword' ? 'where score > 0' : ''}
     order by score desc, hit.created_at desc, hit.id desc limit ${where.place(query.limit)}`,
    values: where.values,
  };
}

/** Conditions on scope and tags, as text of their own: rarity is judged over all of the user's memories. */
function filters(where: Conditions, query: SearchQuery): string {
  const own: string[] = [];
  const collector: Conditions = { ...where, and: (condition) => void own.push(condition) };
  whereScopePrefix(collector, query);
  whereTags(collector, query.tags);
  return own.length > 0 ? own.join(' and ') : 'true';
}
