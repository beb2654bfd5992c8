import type { RankingOptions, SearchQuery } from '#contract';
import { queryTerms, weights } from '#ranking';
import { toHalfvec } from './halfvec.ts';
import { toBigintArray, toKeys } from './keywords.ts';
import { bytesOf, columnsOf, firstWithin } from './rows.ts';
import {
  type Conditions,
  conditions,
  whereScopePrefix,
  whereTags,
  whereWithin,
  whereWithinRanges,
} from './tables/conditions.ts';
import type { Names } from './tables/names.ts';
import { termsOf } from './terms-of.ts';

/** How many memories of a user a caller may see, and how many of them hold each key, in the order of `keysOf`. */
export interface Rarity {
  readonly rows: number;
  readonly holding: readonly number[];
}

interface Search {
  readonly query: SearchQuery;
  /** Given: the search goes through the indexes. */
  readonly rarity?: Rarity | undefined;
}

interface SearchStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The largest limit a search through the indexes can serve. */
export const MOST_INDEXED = 200;
/** Nearest vectors that compete with the keyword matches, at least. */
const NEAREST = 100;

/**
 * Session settings of a search through the vector index: it goes on until enough rows of this user are found, or until
 * to look at all of the user's `rows` would have cost no more.
 */
export const indexSettings = (rows: number): string =>
  `set local hnsw.iterative_scan = relaxed_order; set local hnsw.ef_search = 200; set local hnsw.max_scan_tuples = ${Math.ceil(rows / 2) + 1}`;

/** Memories that are looked at because they hold a rare word of the query, at most; common words come later. */
const MOST_RARE = 2_000;

/** The keys of the query's terms as they are counted and looked for; none where words do not matter. */
export function keysOf(ranking: RankingOptions, { user_id, text }: SearchQuery): number[] {
  const keys = toKeys(user_id, queryTerms(text));
  return weights(ranking, keys.length).keyword > 0 ? keys : [];
}

/**
 * The whole ranking in one statement, the same arithmetic as on every provider: cosine and IDF-weighted term coverage
 * of each of this user's memories, their weighted sum, best first. Each row also tells how many memories there are.
 * Memories outside of what the caller may see are left out of all of it, as if they were not stored.
 *
 * Without `rarity` every memory of the user is looked at. With it, the vector and keyword indexes lead to those that
 * can be among the best: see `throughIndexes`.
 */
export function searchStatement(names: Names, ranking: RankingOptions, search: Search): SearchStatement {
  const parts = toParts(names, ranking, search);
  const { where, withPart, hits } = search.rarity ? throughIndexes(parts, search.rarity) : overAll(parts);
  const order = 'score desc, created_at desc, id desc';
  const best = `select id as hit, score, created_at as time from (${hits}) as hits ${ranking.mode === 'keyword' ? 'where score > 0' : ''}
        order by score desc, time desc, hit desc limit ${where.place(search.query.limit)}`;
  const rows = `select m.*, score, ${bytesOf()} as bytes from (${best}) as best join ${names.memories} m on id = hit`;
  return {
    text: `
      with ${withPart.join(',\n      ')}
      select ${columnsOf(names)}, score, (select rows from counted) as total
      from ${firstWithin(rows, order, where.place(search.query.max_bytes))} as found
      order by ${order}`,
    values: where.values,
  };
}

type Parts = ReturnType<typeof toParts>;

interface Plan {
  readonly where: Conditions;
  readonly withPart: readonly string[];
  /** Selects id, created_at and score. */
  readonly hits: string;
}

/** The pieces that both ways are put together from. Conditions and values go into one statement. */
function toParts(names: Names, ranking: RankingOptions, { query }: Search) {
  const where = conditions();
  const visible = part(where, (own) => whereWithin(own, query.within));
  const userPlace = where.place(query.user_id);
  const keys = keysOf(ranking, query);
  const weight = weights(ranking, keys.length);
  const asked = keys.length > 0 ? `${where.place(toBigintArray(keys))}::bigint[]` : undefined;
  const { vector } = query;
  const vectorPlace = vector && weight.vector > 0 ? where.place(toHalfvec(vector)) : undefined;
  const distance = vectorPlace && `${names.embedding} ${names.cosineDistance} ${vectorPlace}::${names.halfvec}`;
  const [vectorWeight, keywordWeight] = [weight.vector, weight.keyword].map((part) => `${where.place(part)}::float8`);
  return {
    ...{ names, query, where, keys, asked, distance, vectorWeight, keywordWeight },
    /** All that is visible. A function, since values may only be placed where they are used. */
    whole: () => `user_id = ${userPlace} and ${visible} and ${part(where, (own) => whereWithinRanges(own, query))}`,
    /** The same, in a form that keeps the planner from reading all of the user's rows in the order of time. */
    user: `user_id || '' = ${userPlace} and ${visible}`,
    wanted: part(where, (own) => {
      whereScopePrefix(own, query);
      whereTags(own, query.tags);
      const most = query.max_content_bytes;
      if (most !== undefined) own.and(`octet_length(content) <= ${own.place(most)}::int8`);
    }),
    cosine: distance ? cosineOf(distance) : '0',
    score: `least(1, floor((${vectorWeight} * cosine + ${keywordWeight} * ${
      asked ? 'coalesce(coverage, 0)' : '0'
    }) * 1e6::float8 + 0.5::float8) / 1e6::float8)`,
  };
}

/** A zero vector has no direction: NaN in pgvector, no similarity here. */
const cosineOf = (distance: string): string => `greatest(0, coalesce(nullif(1 - (${distance}), 'NaN'), 0))`;

/** Every memory of the user, one after the other: fast and complete for some thousands. */
function overAll(parts: Parts): Plan {
  const { names, where, whole, wanted, cosine, asked } = parts;
  const holding = `array(
        select count(holder) from unnest(${asked}) with ordinality as asked (key, n) left join mine_terms using (key)
        group by n order by n)::float8[]`;
  return {
    where,
    withPart: [
      // Without contents and vectors: all of it would no longer fit into memory.
      `mine as materialized (
        select id, created_at, keywords, ${cosine} as cosine, ${wanted} as wanted from ${names.memories} where ${whole()})`,
      ...(asked ? [termsOf('mine', asked)] : []),
      `counted as materialized (select count(*)::float8 as rows${asked ? `, ${holding} as holding` : ''} from mine)`,
      ...(asked ? rarityOf(asked) : []),
    ],
    hits: `${scored(parts, 'mine')} where wanted`,
  };
}

/** From `counted`: the rarity of each term, and of all of them together. */
const rarityOf = (asked: string): string[] => [
  `term as materialized (
    select n, key, ln(1 + (rows - held + 0.5::float8) / (held + 0.5::float8)) as idf
    from counted, unnest(${asked}, holding) with ordinality as term (key, held, n))`,
  'rarity as materialized (select sum(idf order by n) as whole from term)',
];

/**
 * Three steps. First the nearest vectors, and all memories that hold a rare word. The last of the best among them is the
 * bar: whoever was not looked at is no nearer than the farthest of those vectors and holds only common words. Those of
 * the common words that could still lift somebody over the bar are then looked up as well. So no word is left out that
 * matters, and what is approximate is only the vector index.
 *
 * It gives up after so many rows of other users and other scopes; when it came back with too few, every memory is
 * looked at after all.
 */
function throughIndexes(parts: Parts, { rows, holding }: Rarity): Plan {
  const { where, keys, asked, distance } = parts;
  const near = distance ? [`select ${SEEN}, ${cosineOf('distance')} as cosine from near`, 'select * from rest'] : [];
  const withPart = [
    `counted as (select ${where.place(rows)}::float8 as rows${
      asked ? `, ${where.place(`{${holding}}`)}::float8[] as holding` : ''
    })`,
  ];
  if (distance) withPart.push(...walk(parts, distance));
  if (!asked) {
    withPart.push(`seen as (${distance ? near.join(' union all ') : nowhere(parts)})`);
    return { where, withPart, hits: scored(parts, 'seen') };
  }
  const rare = `${where.place(toBigintArray(rarest(keys, holding)))}::bigint[]`;
  withPart.push(
    ...rarityOf(asked),
    `rare as materialized (${sharing(parts, rare)})`,
    `seen as materialized (${[...near, 'select * from rare'].join(' union all ')})`,
    termsOf('seen', asked),
    `first as materialized (${scored(parts, 'seen')})`,
    `common as materialized (${common(parts, rare)})`,
    `more as materialized (${sharing(parts, '(select keys from common)::bigint[]')} and id not in (select id from first))`,
    termsOf('more', asked),
  );
  return { where, withPart, hits: `select * from first union all ${scored(parts, 'more')}` };
}

/** What has to be known of a memory to rank it. */
const SEEN = 'id, created_at, keywords';

/** The nearest vectors, and all that there is besides if they are too few. */
function walk({ names, query, user, whole, wanted, cosine }: Parts, distance: string): string[] {
  const nearest = Math.max(NEAREST, 2 * query.limit);
  return [
    `near as materialized (
      select ${SEEN}, ${distance} as distance from ${names.memories}
      where ${user} and large and ${wanted} order by ${distance} limit ${nearest})`,
    `walk as materialized (select count(*) < ${nearest} as gave_up, min(${cosineOf('distance')}) as cosine from near)`,
    `rest as materialized (
      select ${SEEN}, ${cosine} as cosine from ${names.memories}
      where ${whole()} and ${wanted} and (select gave_up from walk) and id not in (select id from near))`,
  ];
}

/** Those that hold one of the keys and are not among the nearest. */
const sharing = ({ names, user, wanted, distance, cosine }: Parts, keys: string): string =>
  `select ${SEEN}, ${cosine} as cosine from ${names.memories} where large and keywords && ${keys} and ${user} and ${wanted} ${
    distance ? 'and not (select gave_up from walk) and id not in (select id from near)' : ''
  }`;

/** The score of each of these memories. */
const scored = ({ score, asked }: Parts, memories: string): string =>
  `select id, created_at, ${score} as score from ${memories}${
    asked
      ? `
      left join (select holder, sum(idf) / (select whole from rarity) as coverage
        from ${memories}_terms join term using (key) group by holder) as covered on holder = id`
      : ''
  }`;

/** Keyword search for stop words alone. */
const nowhere = ({ names, user, wanted }: Parts): string =>
  `select ${SEEN}, 0 as cosine from ${names.memories} where ${user} and ${wanted} and false`;

/**
 * The common words that still matter: the rarest of them, down to where all that are more common together cannot lift a
 * memory over the bar.
 */
function common({ query, where, distance, vectorWeight, keywordWeight }: Parts, rare: string): string {
  const bar = `(select score from first order by score desc offset ${where.place(query.limit)}::int - 1 limit 1)`;
  const cosine = distance ? '(select cosine from walk)' : '0';
  return `
    select array_agg(key) as keys
    from (select key, sum(idf) over (order by idf, n) / (select whole from rarity) as share from term) as shares
    where ${vectorWeight} * ${cosine} + ${keywordWeight} * share >= coalesce(${bar}, 0) - 1e-6::float8 and key <> all(${rare})`;
}

/** As many of the rarest keys as few enough memories hold. */
function rarest(keys: readonly number[], holding: readonly number[]): number[] {
  const counted = keys.map((key, i) => ({ key, held: holding[i] as number })).sort((a, b) => a.held - b.held);
  let sum = 0;
  return counted
    .filter(({ held }) => {
      sum += held;
      return sum <= MOST_RARE;
    })
    .map(({ key }) => key);
}

/** Some of the conditions as a text of their own: rarity is judged over all visible memories, the filters only pick hits. */
export function part(where: Conditions, write: (own: Conditions) => void): string {
  const own: string[] = [];
  write({ ...where, and: (condition) => void own.push(condition) });
  return own.length > 0 ? own.join(' and ') : 'true';
}
