import type { RankingOptions, SearchQuery } from '#provider';
import { MAX_TERMS, queryTerms, weights } from '#provider';
import { conditionOf, conditions, firstWithin, whereWithin } from '../sql/conditions.ts';
import { toBigintArray, toHalfvec, toKeys } from '../sql/values.ts';
import {
  UNINDEXED_USER,
  whereInTime,
  whereScopePrefix,
  whereTags,
  whereTagsOfLargeUser,
  whereUser,
  whereWritten,
} from './conditions.ts';
import { BYTES, columnsOf, queueStatus } from './memory-rows.ts';
import type { Names } from './names.ts';

/** How many memories of a user a caller may see, and how many of those contain each key, in the order of `keysOf`. */
export interface Rarity {
  readonly rows: number;
  readonly holding: readonly number[];
}

export interface Search {
  readonly query: SearchQuery;
  /** If it is set, the user's memories are in the indexes of large users. */
  readonly rarity?: Rarity | undefined;
  /** Whether a search with `rarity` ranks all memories that match the filters, one of which must have an index. */
  readonly matching?: boolean;
  /** Limits the rows to `max_bytes`. Without it, which is cheaper, a large row has no content: then search again with it. */
  readonly within?: 'bytes';
}

interface SearchStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** The largest limit that a search through the indexes can serve. */
export const MAX_INDEXED_LIMIT = 200;
/** At least this many nearest vectors compete with the keyword matches. */
const NEAREST = 50;

/**
 * Session settings of a statement over a large user. Its estimated cost is high enough for JIT, which takes 50 to 250 ms
 * to compile it and gains nothing.
 */
export const LARGE_USER_SETTINGS = 'set local jit = off; set local enable_seqscan = off';

/**
 * Session settings of a search through the vector index: it continues until it has found enough rows of this user, or
 * until an exact search of the user's `rows` would have cost no more. The planner, which knows only the average user, would
 * rather sort all rows of large users.
 */
export const indexSettings = (rows: number): string =>
  `${LARGE_USER_SETTINGS}; set local enable_sort = off; set local hnsw.iterative_scan = relaxed_order; set local hnsw.ef_search = 200; set local hnsw.max_scan_tuples = ${Math.ceil(rows / 2) + 1}`;

/** Limit of memories ranked because they contain a rare term of the query; common terms come later. */
const MAX_RARE = 500;

/** The keys of the query's terms; none if keywords do not count. */
export function keysOf(ranking: RankingOptions, { user_id, text }: SearchQuery): number[] {
  const keys = toKeys(user_id, queryTerms(text));
  return weights(ranking, keys.length).keyword > 0 ? keys : [];
}

/**
 * Makes the statements of searches. They rank with the same arithmetic as every provider: the weighted sum of cosine and
 * IDF-weighted term coverage, best first. Each row also has the number of memories that the search saw. Memories outside
 * the allowed scopes count nowhere, as if they were not stored.
 *
 * Without `rarity` it is an exact search of all memories of the user. With `rarity` it uses the vector and keyword indexes:
 * see `throughIndexes`. With `rarity` and `matching` it is an exact search of the memories that match the filters.
 */
export function searchStatements(names: Names, ranking: RankingOptions): (search: Search) => SearchStatement {
  /** The texts of exact searches without filters. Making one takes a seventh of the gateway's processor time of a search. */
  const texts = new Map<string, string>();
  return (search) => {
    const bound = bind(names, ranking, search);
    const { values } = bound.where;
    if (search.rarity || isFiltered(search.query)) return { text: textOf(toParts(bound, search), search), values };
    const form = [bound.keyArray, bound.vector, search.query.explain, search.within].join();
    const text = texts.get(form) ?? textOf(toParts(bound, search), search);
    texts.set(form, text);
    return { text, values };
  };
}

const isFiltered = ({ within, outside, scope, tags, since, until, max_content_bytes, written }: SearchQuery): boolean =>
  within !== null ||
  tags.length > 0 ||
  [outside, scope, since, until, max_content_bytes, written].some((filter) => filter !== undefined);

function textOf(parts: StatementParts, search: Search): string {
  const { names, ranking, where, limit, bytes } = parts;
  const { withPart, hits, complete } = !search.rarity
    ? exact(parts)
    : search.matching
      ? exactlyMatching(parts, search.rarity)
      : throughIndexes(parts, search.rarity);
  // These are columns of `best`, not of the table: the join keeps the order, so nothing is sorted twice.
  const order = 'score desc, time desc, hit desc';
  const shown = search.query.explain ? 'score, cosine, coverage' : 'score';
  const best = `select id as hit, ${shown}, created_at as time from (${hits}) as hits ${ranking.mode === 'keyword' ? 'where score > 0' : ''}
        order by ${order} limit ${limit}`;
  const rows = `(${best}) as best join ${names.memories} m on id = hit and ${where.inShard('m.')}`;
  const [columns, from] = search.within
    ? [
        columnsOf(names),
        `${firstWithin(`select m.*, hit, time, ${shown}, ${BYTES} as bytes from ${rows}`, order, bytes)} as page`,
      ]
    : [columnsOf(names, queueStatus(names), `${bytes}::float8`), rows];
  return `
      with ${withPart.join(',\n      ')}
      select ${columns}, ${shown}, (select rows from counted) as total${complete ? `, ${complete} as complete` : ''}
      from ${from}
      order by ${order}`;
}

type StatementParts = ReturnType<typeof toParts>;

interface Plan {
  readonly withPart: readonly string[];
  /** Selects id, created_at and score. */
  readonly hits: string;
  /** Whether a search through the indexes compared all memories after all. */
  readonly complete?: string | undefined;
}

/** The parameters of every search, before those of its filters. */
function bind(names: Names, ranking: RankingOptions, { query, within }: Search) {
  const where = conditions(names.placement.shardOf(query.user_id));
  const keys = keysOf(ranking, query);
  const weight = weights(ranking, keys.length);
  return {
    names,
    ranking,
    where,
    keys,
    user: where.bind(query.user_id),
    limit: where.bind(query.limit),
    /** The limit of bytes of the answer, or of one row. */
    bytes: where.bind(within ? query.max_bytes : Math.floor(query.max_bytes / query.limit)),
    keyArray: keys.length > 0 ? `${where.bind(toBigintArray(keys))}::bigint[]` : undefined,
    vector: query.vector && weight.vector > 0 ? `${where.bind(toHalfvec(query.vector))}::${names.halfvec}` : undefined,
    vectorWeight: `${where.bind(weight.vector)}::float8`,
    keywordWeight: `${where.bind(weight.keyword)}::float8`,
  };
}

/** The parts that the plans share. */
function toParts(bound: ReturnType<typeof bind>, { query }: Search) {
  const { names, where, user, keyArray, vector, vectorWeight, keywordWeight } = bound;
  const visible = conditionOf(where, (inner) => whereWithin(inner, query));
  const distance = vector && `${names.embedding} ${names.cosineDistance} ${vector}`;
  const filter = conditionOf(where, (inner) => {
    whereScopePrefix(inner, query);
    whereTags(inner, query.tags);
    whereInTime(inner, query);
    whereWritten(inner, query.written);
    const most = query.max_content_bytes;
    if (most !== undefined) inner.and(`octet_length(content) <= ${inner.bind(most)}::int8`);
  });
  return {
    query,
    filter,
    distance,
    ...bound,
    /** All visible memories. A function, because a parameter must only be added where it is used. */
    whole: () =>
      `${where.inShard()} and ${conditionOf(where, (inner) => whereUser(inner, query, user))} and ${visible}`,
    /** All matching memories of a large user, read through the indexes of the filters. */
    matching: () =>
      `${where.inShard()} and ${userOfMatching(query)} = ${user} and ${visible} and ${filter} and ${conditionOf(where, (inner) => whereTagsOfLargeUser(inner, query))}`,
    /** The same for a scan of the vector or keyword index: the `case` keeps the planner from using any other. */
    scanned: `${where.inShard()} and large and ${UNINDEXED_USER} = ${user} and case when large then ${visible} and ${filter} end`,
    cosine: distance ? cosineOf(distance) : '0',
    /** What ranking of a memory selects: its score and, to explain it, the parts. */
    score: `least(1, floor((${vectorWeight} * cosine + ${keywordWeight} * ${
      keyArray ? 'coalesce(coverage, 0)' : '0'
    }) * 1e6::float8 + 0.5::float8) / 1e6::float8) as score${
      query.explain ? `, cosine, ${keyArray ? 'coalesce(coverage, 0)' : '0'} as coverage` : ''
    }`,
  };
}

/** A zero vector has no direction: pgvector returns NaN, the score is 0. */
const cosineOf = (distance: string): string => `greatest(0, coalesce(nullif(1 - (${distance}), 'NaN'), 0))`;

/** Ranks every memory of the user: fast and complete for some thousands. */
function exact(parts: StatementParts): Plan {
  const { names, whole, filter, cosine, keyArray } = parts;
  const held = `(select n, count(holder)::float8 as held
      from unnest(${keyArray}) with ordinality as term (key, n) left join mine_terms using (n) group by n)`;
  return {
    withPart: [
      // It has no contents and vectors, which would not fit into memory.
      `mine as materialized (
        select id, created_at, keywords, ${cosine} as cosine, ${filter} as passes from ${names.memories} where ${whole()})`,
      ...(keyArray ? [termsOf('mine', keyArray)] : []),
      'counted as materialized (select count(*)::float8 as rows from mine)',
      ...(keyArray ? [rarityOf(`${held} as term`)] : []),
    ],
    hits: `${scored(parts, 'mine')} where passes`,
  };
}

/** Ranks every memory that matches the filters. */
function exactlyMatching(parts: StatementParts, rarity: Rarity): Plan {
  const { names, matching, cosine, keyArray } = parts;
  const seen = `seen as materialized (select ${SEEN}, ${cosine} as cosine from ${names.memories} where ${matching()})`;
  const terms = keyArray ? [rarityOf(HELD), termsOf('seen', keyArray)] : [];
  return { withPart: [countedOf(parts, rarity), seen, ...terms], hits: scored(parts, 'seen') };
}

/** `counted` from counts made beforehand. */
const countedOf = ({ where, keyArray }: StatementParts, { rows, holding }: Rarity): string =>
  `counted as (select ${where.bind(rows)}::float8 as rows${
    keyArray ? `, ${where.bind(`{${holding}}`)}::float8[] as holding` : ''
  })`;

/** The number of memories that hold each term, from `counted`. */
const HELD = 'unnest(holding) with ordinality as term (held, n)';

/** The rarity of each term, in the order of the query, and of all together. */
const rarityOf = (held: string): string => `rarity as materialized (
    select array_agg(idf) as idfs, sum(idf) as whole
    from (select ln(1 + (rows - held + 0.5::float8) / (held + 0.5::float8)) as idf from counted, ${held} order by n) as term)`;

/**
 * Three steps. First it ranks the nearest vectors and all memories with a rare term. The score of the last hit within the
 * limit is the threshold: any other memory is no nearer than the farthest of those vectors and contains only common terms.
 * Then it also ranks the memories with a common term that could still reach the threshold. So every term that matters
 * counts, and only the vector index is approximate.
 *
 * The index walk ends after a number of rows of other users and scopes. If it has found too few by then, the exact
 * search completes the result.
 */
function throughIndexes(parts: StatementParts, rarity: Rarity): Plan {
  const { where, keys, keyArray, distance } = parts;
  const near = distance ? [`select ${SEEN}, ${cosineOf('distance')} as cosine from near`, 'select * from rest'] : [];
  const withPart = [countedOf(parts, rarity)];
  const complete = distance && '(select gave_up from walk)';
  if (distance) withPart.push(...walk(parts, distance));
  if (!keyArray) {
    withPart.push(`seen as (${distance ? near.join(' union all ') : nowhere(parts)})`);
    return { withPart, hits: scored(parts, 'seen'), complete };
  }
  const rare = `${where.bind(toBigintArray(rarest(keys, rarity.holding)))}::bigint[]`;
  withPart.push(
    rarityOf(HELD),
    `rare as materialized (${sharing(parts, rare)})`,
    `seen as materialized (${[...near, 'select * from rare'].join(' union all ')})`,
    termsOf('seen', keyArray),
    `first as materialized (${scored(parts, 'seen')})`,
    `common as materialized (${common(parts, rare)})`,
    `more as materialized (${sharing(parts, '(select keys from common)::bigint[]')} and id not in (select id from first))`,
    termsOf('more', keyArray),
  );
  return { withPart, hits: `select * from first union all ${scored(parts, 'more')}`, complete };
}

/** The columns that ranking needs. */
const SEEN = 'id, created_at, keywords';

/** The nearest vectors, and all other memories if those are too few. */
function walk({ names, query, scanned, whole, filter, cosine }: StatementParts, distance: string): string[] {
  const nearest = Math.max(NEAREST, 2 * query.limit);
  return [
    `near as materialized (
      select ${SEEN}, ${distance} as distance from ${names.memories}
      where ${scanned} order by ${distance} limit ${nearest})`,
    `walk as materialized (select count(*) < ${nearest} as gave_up, min(${cosineOf('distance')}) as cosine from near)`,
    `rest as materialized (
      select ${SEEN}, ${cosine} as cosine from ${names.memories}
      where ${whole()} and ${filter} and (select gave_up from walk) and id not in (select id from near))`,
  ];
}

/** Memories that contain one of the keys and are not among the nearest. */
const sharing = ({ names, scanned, distance, cosine }: StatementParts, keys: string): string =>
  `select ${SEEN}, ${cosine} as cosine from ${names.memories} where ${scanned} and keywords && ${keys} ${
    distance ? 'and not (select gave_up from walk) and id not in (select id from near)' : ''
  }`;

/** The score of each of these memories. */
const scored = ({ score, keyArray }: StatementParts, memories: string): string =>
  `select id, created_at, ${score} from ${memories}${
    keyArray
      ? `
      left join (select holder, sum((select idfs from rarity)[n]) / (select whole from rarity) as coverage
        from ${memories}_terms group by holder) as covered on holder = id`
      : ''
  }`;

/** A keyword search for stop words only finds nothing. */
const nowhere = ({ names, scanned }: StatementParts): string =>
  `select ${SEEN}, 0 as cosine from ${names.memories} where ${scanned} and false`;

/**
 * The common terms that still matter: the rarest ones, until the remaining terms together cannot raise a memory above the
 * threshold.
 */
function common({ limit, keyArray, distance, vectorWeight, keywordWeight }: StatementParts, rare: string): string {
  const bar = `(select score from first order by score desc offset ${limit}::int - 1 limit 1)`;
  const cosine = distance ? '(select cosine from walk)' : '0';
  return `
    select array_agg(key) as keys
    from (select key, sum(idf) over (order by idf, n) / whole as share
      from rarity, unnest(${keyArray}, idfs) with ordinality as term (key, idf, n)) as shares
    where ${vectorWeight} * ${cosine} + ${keywordWeight} * share >= coalesce(${bar}, 0) - 1e-6::float8 and key <> all(${rare})`;
}

/** The rarest keys, as long as few enough memories contain them. */
function rarest(keys: readonly number[], holding: readonly number[]): number[] {
  const counted = keys.map((key, i) => ({ key, held: holding[i] as number })).sort((a, b) => a.held - b.held);
  let sum = 0;
  return counted
    .filter(({ held }) => {
      sum += held;
      return sum <= MAX_RARE;
    })
    .map(({ key }) => key);
}

/** Whether an index leads to the memories of a large user that match the filters. */
export const hasIndexedFilter = (query: SearchQuery): boolean =>
  hasOwnIndex(query) || query.since !== undefined || query.until !== undefined;
const hasOwnIndex = ({ scope, tags }: SearchQuery): boolean => Boolean(scope) || tags.length > 0;
/** The user, so that the index of another filter leads to the matches, or else that on user and time. */
const userOfMatching = (query: SearchQuery): string => (hasOwnIndex(query) ? UNINDEXED_USER : 'user_id');

/** Counts the memories that `exactlyMatching` would rank, up to a limit. */
export function countMatchesStatement(names: Names, query: SearchQuery, limit: number): SearchStatement {
  const where = conditions(names.placement.shardOf(query.user_id));
  where.and(where.inShard());
  where.and(`${userOfMatching(query)} = ${where.bind(query.user_id)}`);
  whereWithin(where, query);
  whereScopePrefix(where, query);
  whereTags(where, query.tags);
  whereInTime(where, query);
  whereTagsOfLargeUser(where, query);
  const matches = `select from ${names.memories} where ${where} limit ${where.bind(limit)}`;
  return { text: `select count(*)::float8 as matching from (${matches}) as matches`, values: where.values };
}

/** Limit of terms that one search reads from the table: about half a second. */
const MAX_READ = 4_000_000;
/** Terms read of each memory in any case: ordinary memories have fewer. */
const MIN_READ = 256;
/** Up to this many comparisons cost less than reading the terms of a memory one by one. */
const FEW_COMPARISONS = 512;
const KEY_BYTES = 8;

/**
 * Part of a `with`: which of the memories in `from` contain which of the keys in `keyArray`. In a long memory it reads every
 * term once, for any number of keys; comparing each with each would multiply the two. If the memories together have
 * more than `MAX_READ` terms, it reads only as many first terms of each long one as fit.
 */
function termsOf(from: string, keyArray: string): string {
  const readOfEach = `
    select case when sum(pg_column_size(keywords)) <= ${KEY_BYTES * MAX_READ} then ${MAX_TERMS}
      else least(${MAX_TERMS}, greatest(${MIN_READ}, ${MAX_READ} / nullif(count(*), 0))) end
    from ${from}`;
  const isLong = `pg_column_size(keywords) > ${KEY_BYTES * FEW_COMPARISONS} / cardinality(${keyArray})`;
  const terms = `unnest(${keyArray}) with ordinality as term (key, n)`;
  return `${from}_terms as materialized (
    select id as holder, n from ${from} join ${terms} on key = any(keywords) where not ${isLong}
    union all
    select id, n from (select id, unnest(keywords[1:(${readOfEach})]) as key from ${from} where ${isLong}) as entry join ${terms} using (key))`;
}
